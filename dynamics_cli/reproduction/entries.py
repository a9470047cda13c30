"""The index of papers: enough to list figures without importing any.

The folder of another paper (`dyn --with FOLDER`), or a module that an installed package names by an
entry point of the group `dyn`, has a `PaperEntry` as `PAPER`, whose figures name their modules in
full (`mypackage.myfigure`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple


class FigureEntry(NamedTuple):
    """The index's entry of a figure, read without importing it."""

    title: str
    seconds: float
    """Expected time on two CPU cores, training included."""
    module: str
    """Module with the `Figure` as `FIGURE`, or under its id in `FIGURES`; of bundled papers, in
    their folder.
    """
    variants: tuple[str, ...] = ()
    """Names of the figure's variants."""
    id: str = ""
    paper: str = ""
    """Its id and the key of its paper, which the catalogue fills in."""


class PaperEntry(NamedTuple):
    """The index's entry of a paper, read without importing its figures."""

    title: str
    authors: str
    venue: str
    figures: Mapping[str, FigureEntry]
    """Figure id -> figure, in the order of the paper."""

"""The index of papers: enough to list figures without importing any.

The folder of another paper (`dyn --with FOLDER`), or a module that an installed package names by an
entry point of the group `dyn`, has a `PaperEntry` as `PAPER`, whose figures name their modules in
full (`mypackage.myfigure`).
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Literal, NamedTuple, get_args

Cause = Literal["paper", "our setting", "our data"]
CAUSES: tuple[Cause, ...] = get_args(Cause)
"""In the order of tables. A setting is ours where the paper leaves open a size, a step, a time, a
draw or the meaning of a word.
"""


class Reason(NamedTuple):
    """Why a claim is not reproduced, as far as we know."""

    cause: Cause
    text: str
    """A clause that goes on from the cause and a colon."""

    def __str__(self) -> str:
        return f"{self.cause}: {self.text}"


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
    missed: Mapping[str, Reason] = MappingProxyType({})
    """Id of a claim that is not reproduced, undecided, without its premise or dependent on the
    seed -> why. Tables read it here, so that a sentence changes without training.
    """
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

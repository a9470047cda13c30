"""The papers and figures that there are: the bundled ones, and those of installed packages.

Listing imports no figure, and neither torch nor matplotlib; `load_figure` imports the one that is asked for.
"""

from __future__ import annotations

import importlib
import importlib.metadata
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from importlib.metadata import entry_points
from typing import TYPE_CHECKING

from dynamics_cli.errors import InputError, UsageError, did_you_mean
from dynamics_cli.reproduction.entries import FigureEntry, PaperEntry

if TYPE_CHECKING:
    from dynamics_cli.reproduction.figure import Figure

GROUP = "dyn.papers"
"""Entry points of this group add papers (see `entries`)."""
EXPERIMENTS = "dynamics_cli._bundled.experiments"
"""Package of the bundled papers."""


@dataclass(frozen=True)
class Listed:
    """A figure as the catalogue lists it."""

    id: str
    paper: str
    title: str
    seconds: float
    """Expected time on two CPU cores, training included."""
    module: str
    """Module to import, in full."""
    variants: tuple[str, ...] = ()
    """Names of its variants."""


def papers() -> dict[str, PaperEntry]:
    """Return all papers by key, the bundled ones first.

    Raises:
        InputError: an installed package offers a paper that cannot be read, or whose key is taken.
    """
    found = _bundled()
    for point in entry_points(group=GROUP):
        if point.name in found:
            raise InputError(f"{_owner(point)} adds the paper {point.name!r}, which is there already; uninstall one")
        found[point.name] = _entry(point)
    return found


def figures(paper: str | None = None) -> list[Listed]:
    """Return the figures of one paper, or of all papers, in the order of the index.

    Raises:
        UsageError: there is no such paper.
        InputError: as `papers`.
    """
    known = papers()
    if paper is not None and paper not in known:
        raise UsageError(f"no paper {paper!r}{did_you_mean(paper, known)}; `dyn list papers` lists them")
    keys = known if paper is None else [paper]
    return [_listed(key, id_, entry) for key in keys for id_, entry in known[key].figures.items()]


def load_figure(figure_id: str) -> Figure:
    """Import the module of a figure and return its declaration.

    Raises:
        UsageError: there is no such figure; the message names the closest one.
        InputError: the module of an installed package does not hold the figure.
    """
    from dynamics_cli.reproduction.figure import Figure

    listed = find(figure_id)
    try:
        module = importlib.import_module(listed.module)
    except ImportError as error:
        if listed.module.startswith(f"{EXPERIMENTS}."):
            raise
        raise InputError(f"the figure {figure_id} cannot be imported: {error}") from error
    several = getattr(module, "FIGURES", None)
    figure = several.get(figure_id) if isinstance(several, Mapping) else getattr(module, "FIGURE", None)
    if not isinstance(figure, Figure) or figure.id != figure_id:
        raise InputError(f"{listed.module} holds the figure {figure_id} neither as FIGURE nor in FIGURES")
    return replace(figure, title=listed.title)


def find(figure_id: str) -> Listed:
    """Return how the catalogue lists a figure.

    Raises:
        UsageError: there is no such figure; the message names the closest one.
    """
    for key, paper in _bundled().items():  # other packages are asked only for what is not bundled
        if figure_id in paper.figures:
            return _listed(key, figure_id, paper.figures[figure_id])
    known = {listed.id: listed for listed in figures()}
    if figure_id in known:
        return known[figure_id]
    if figure_id in papers():
        raise UsageError(f"{figure_id!r} is a paper; --paper {figure_id} reproduces all of its figures")
    raise UsageError(f"no figure {figure_id!r}{_closest(figure_id, known)}; `dyn list figures` lists them")


def _closest(word: str, known: Iterable[str]) -> str:
    """Return a hint that also finds `fig2` for `boursier2022-fig2`."""
    endings = [id_ for id_ in known if id_.endswith(f"-{word}")]
    return f" (did you mean {endings[0]!r}?)" if endings else did_you_mean(word, known)


def _bundled() -> dict[str, PaperEntry]:
    return dict(importlib.import_module(f"{EXPERIMENTS}.index").PAPERS)


def _listed(paper: str, figure_id: str, entry: FigureEntry) -> Listed:
    module = f"{EXPERIMENTS}.{entry.module}" if paper in _bundled() else entry.module
    return Listed(figure_id, paper, entry.title, entry.seconds, module, entry.variants)


def _entry(point: importlib.metadata.EntryPoint) -> PaperEntry:
    try:
        paper = point.load()
    except (ImportError, AttributeError) as error:
        raise InputError(f"{_owner(point)} adds the paper {point.name!r}, which cannot be imported: {error}") from error
    if not isinstance(paper, PaperEntry):
        raise InputError(f"{_owner(point)} adds the paper {point.name!r}, but {point.value} is not a PaperEntry")
    return paper


def _owner(point: importlib.metadata.EntryPoint) -> str:
    return f"the package {point.dist.name}" if point.dist is not None else f"the entry point {point.value}"

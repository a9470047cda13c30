"""All papers and figures: bundled, in folders named by `--with`, and of installed packages.

Listing imports no figure, and neither torch nor matplotlib; `load_figure` imports a single figure.
"""

from __future__ import annotations

import importlib
import os
from collections.abc import Iterable, Mapping
from contextlib import nullcontext
from dataclasses import replace
from importlib.metadata import entry_points
from pathlib import Path
from typing import TYPE_CHECKING

from dynamics_cli._bundled import bundled_configs
from dynamics_cli.errors import InputError, UsageError, did_you_mean
from dynamics_cli.reproduction.entries import FigureEntry, PaperEntry
from dynamics_cli.text import Table

if TYPE_CHECKING:
    from dynamics_cli.reproduction.figure import Figure

GROUP = "dyn"
"""Entry points of this group add papers and kinds."""
EXPERIMENTS = "dynamics_cli._bundled.experiments"
"""Package of the bundled papers."""


def papers() -> dict[str, PaperEntry]:
    """Return all papers by key: bundled, in folders named by `--with`, and of installed packages.

    Raises InputError: the `PAPER` of a package is no paper, or its key is taken.
    """
    known = dict(_bundled())
    paths = os.environ.get("DYN_WITH", "")
    if not (paths or entry_points(group=GROUP)):  # listing is light without packages of others
        return known
    from dynamics_cli.kinds.registry import installed_packages, named_packages

    for key, package in {**installed_packages(), **named_packages(paths)}.items():
        if (paper := getattr(package, "PAPER", None)) is None:
            continue  # it has kinds alone
        if not isinstance(paper, PaperEntry):
            raise InputError(f"{package.__name__}: PAPER is no PaperEntry")
        if key in known:
            raise InputError(
                f"{package.__name__}: there is a paper {key!r} already; take another name"
            )
        known[key] = paper
    return known


def figures(paper: str | None = None) -> list[FigureEntry]:
    """Return the figures of a paper, or of all papers, in the order of the index.

    Raises:
        UsageError: there is no such paper.
        InputError: as `papers`.
    """
    known = papers()
    if paper is not None and paper not in known:
        raise UsageError(f"no paper {paper!r}{meant(paper, known)}; `dyn list papers` lists them")
    if paper is not None:
        known = {paper: known[paper]}
    entries = []
    for key, of_paper in known.items():
        entries += [_listed(key, *figure) for figure in of_paper.figures.items()]
    return entries


def figure_names(paper: str | None = None) -> dict[str, str]:
    """Return the names of figures and of their variants, each with the id of its figure."""
    names = {}
    for entry in figures(paper):
        names[entry.id] = entry.id
        names |= {f"{entry.id}-{variant}": entry.id for variant in entry.variants}
    return names


def load_figure(figure_id: str) -> Figure:
    """Import the module of a figure and return its declaration.

    Raises:
        UsageError: there is no such figure; the message names the closest.
        InputError: the module of another package cannot be imported, or does not hold the figure.
    """
    from dynamics_cli.kinds.registry import importing
    from dynamics_cli.reproduction.figure import Figure

    entry = find(figure_id)
    bundled = entry.module.startswith(f"{EXPERIMENTS}.")
    try:
        with nullcontext() if bundled else importing():
            module = importlib.import_module(entry.module)
    except InputError as error:
        raise InputError(f"the figure {figure_id}: {error}") from error
    figure = getattr(module, "FIGURE", None)
    if isinstance(several := getattr(module, "FIGURES", None), Mapping):
        figure = several.get(figure_id)
    if not isinstance(figure, Figure) or figure.id != figure_id:
        raise InputError(
            f"{entry.module} holds the figure {figure_id} neither as FIGURE nor in FIGURES"
        )
    return replace(figure.bound(module), title=entry.title, missed=entry.missed)


def entry_of(name: str) -> FigureEntry:
    """Return the entry of a figure, or of a variant's; an empty one where no index lists it."""
    figure_id = figure_names().get(name)
    return FigureEntry("", 0.0, "") if figure_id is None else find(figure_id)


def find(figure_id: str) -> FigureEntry:
    """Return how the catalogue lists a figure.

    Raises UsageError: there is no such figure; the message names the closest.
    """
    # other packages are asked only for figures that are not bundled
    for key, paper in _bundled().items():
        if figure_id in paper.figures:
            return _listed(key, figure_id, paper.figures[figure_id])
    known = {listed.id: listed for listed in figures()}
    if figure_id in known:
        return known[figure_id]
    known_papers = papers()
    if figure_id in known_papers:
        raise UsageError(
            f"{figure_id!r} is a paper; `dyn reproduce {figure_id}` makes all of its figures"
        )
    close = meant(figure_id, [*known, *known_papers])
    where = "`dyn list figures` lists them, `dyn --with FOLDER` loads others"
    raise UsageError(f"no figure {figure_id!r}{close}; {where}")


def meant(name: str, known: Iterable[str]) -> str:
    """Return a hint for the name of no known figure or paper: a folder here, or the closest."""
    from dynamics_cli.kinds.registry import package_in

    folder = name.partition("-")[0]
    # False for what is no name of a file
    if os.path.isfile(os.path.join(package_in(Path(folder)), "__init__.py")):  # noqa: PTH113, PTH118
        return f"; `dyn --with {folder} ...` loads the paper in the folder {folder}"
    return did_you_mean(name, known)


def loading(figure_id: str) -> list[str]:
    """Return `--with FOLDER` for a figure of a folder that is named so; nothing for others.

    The paper of the working directory needs none.
    """
    paths = os.environ.get("DYN_WITH", "").split(os.pathsep)
    named = [Path(path).name for path in paths if path and path != str(paper_here())]
    tops = {listed.module.partition(".")[0] for listed in figures() if listed.id == figure_id}
    return [word for folder in named if folder in tops for word in ("--with", folder)]


def use_here(words: Iterable[str]) -> None:
    """Load the paper of the working directory, as `--with .` does, where a command names it.

    Code runs for a user who asks for the paper or a figure by name, and not as a stranger's folder
    is listed or completed. An installed package takes the place of the folder.

    Raises InputError: it cannot be imported.
    """
    here = paper_here()
    if here is None or here.name not in (word.partition("-")[0] for word in words):
        return
    if here.name not in {point.module for point in entry_points(group=GROUP)}:
        from dynamics_cli.kinds.registry import use

        use(here)


def paper_here() -> Path | None:
    """Return the package of the paper that `pyproject.toml` in the working directory names."""
    if not os.path.isfile("pyproject.toml"):  # noqa: PTH113 - listing is light
        return None
    from dynamics_cli.kinds.registry import package_in

    package = package_in(Path.cwd())
    return None if package == Path.cwd() else package


def _bundled() -> dict[str, PaperEntry]:
    index: dict[str, PaperEntry] = importlib.import_module(f"{EXPERIMENTS}.index").PAPERS
    return index


def _listed(paper: str, figure_id: str, entry: FigureEntry) -> FigureEntry:
    entry = entry._replace(id=figure_id, paper=paper)
    if paper in _bundled():
        return entry._replace(module=f"{EXPERIMENTS}.{paper}.{entry.module}")
    return entry


def list_figures(paper: str | None = None) -> Table:
    """List the figures that can be reproduced.

    Times are on two CPU cores, training included. A variant is the same figure of other runs, such
    as `flow`, gradient flow itself: `dyn reproduce FIGURE --variant NAME`.

    Args:
        paper: only figures of this paper.

    Raises UsageError: there is no such paper.
    """
    keys = ("id", "paper", "title", "seconds", "variants")
    return Table({key: getattr(figure, key) for key in keys} for figure in figures(paper))


def list_papers() -> Table:
    """List the papers whose figures can be reproduced.

    The columns are key, title, authors, venue, and the ids of the figures.
    """
    return Table(
        {"key": key, **paper._asdict(), "figures": list(paper.figures)}
        for key, paper in papers().items()
    )


def list_configs() -> Table:
    """List the bundled configs.

    Commands take their names as well as files. The columns are name, path, and the first line of
    comment.
    """
    return Table(
        {"name": name, "path": path, "title": _title(path)}
        for name, path in bundled_configs().items()
    )


def _title(path: Path) -> str:
    first, _, _ = path.read_text(encoding="utf-8").partition("\n")
    if not first.startswith("#"):
        return ""
    return first[1:].strip()

"""From what a user names to a page: of runs, a sweep, a picture, a figure, or papers."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dynamics_cli.analysis.description import read_picture
from dynamics_cli.analysis.picture import Picture
from dynamics_cli.errors import RunError, UsageError
from dynamics_cli.pages.document import Page, tag
from dynamics_cli.pages.drawn import add_charts
from dynamics_cli.pages.papers import Reproduced, add_figure, add_paper
from dynamics_cli.pages.run import add_comparison, add_run, add_sweep
from dynamics_cli.reproduction import catalogue
from dynamics_cli.reproduction.document import command, figures_folder
from dynamics_cli.runs.run import Run
from dynamics_cli.runs.store.layout import is_run, outputs_root
from dynamics_cli.sweeps.directory import is_sweep, read_sweep
from dynamics_cli.sweeps.find import is_there, open_run, run_names, sweep_directory

if TYPE_CHECKING:
    from dynamics_cli.reproduction.reproduce import FigureResult
    from dynamics_cli.sweeps.directory import Sweep

Part = tuple[str, Any]
"""`run`, `sweep`, `picture`, `figure` or `paper`, and the run, the directory, file, or key."""


def pages_folder() -> Path:
    """Return the folder of pages, below the root of outputs."""
    return outputs_root() / "pages"


def page(*what: Run | Sweep | FigureResult | str | Path, theory: bool = False) -> Page:
    """Write one HTML file that shows everything, offline.

    Of a run its curves, a slider through its states, its config and where it was made; of several
    runs their curves over one another and the settings that differ; of a sweep its phase diagram;
    of figures and papers that were reproduced the pictures and every claim; of a `picture.yaml` its
    charts. The file needs no server and asks for nothing.

    Args:
        what: runs as `load_run` takes them; or a sweep, the id or the result of a reproduced
            figure, the JSON file beside it, the key of a paper, or a file `picture.yaml`; by
            default all papers.
        theory: add the predictions of theories for a run, which may take long.

    Returns:
        The page; `save(path)` writes it, and a notebook shows it.

    Raises:
        UsageError: there is nothing of this name, or nothing to show of it.
        RunError: something is damaged, or not there.
    """
    parts = [_part(which) for which in what]
    if not parts:
        return _papers()
    if len(parts) > 1:
        runs = [value for kind, value in parts if kind == "run"]
        if len(runs) < len(parts):
            raise UsageError(
                "runs have a page together; a sweep, a figure and a paper have a page each"
            )
        page = Page("comparison", f"{len(runs)} runs")
        add_comparison(page, runs)
        return page
    ((kind, value),) = parts
    if kind == "run":
        name = value.path.name
        if (replica := getattr(value, "replica", None)) is not None:
            name = f"{name}-{replica}"
        page = Page(name, name)
        add_run(page, value, theory=theory)
    elif kind == "sweep":
        name = value.absolute().name
        page = Page(name, f"Sweep {read_sweep(value).name}")
        add_sweep(page, value)
    elif kind == "picture":
        picture = Picture(read_picture(value))
        page = Page(value.stem, picture.described.title or value.stem)
        page.body += [tag("p", note) for note in picture.notes]
        page.body.append(tag("div", *add_charts(page, picture.charts), class_="panels"))
    elif kind == "figure":
        page = Page(value.stem, value.stem)
        add_figure(page, Reproduced(value), level="h2")
    else:
        page = Page(value, value)
        _add_paper(page, value)
    return page


def _papers() -> Page:
    page = Page("papers", "Papers and what was reproduced of them")
    papers = catalogue.papers()
    links = (tag("li", tag("a", entry.title, href=f"#{key}")) for key, entry in papers.items())
    page.body.append(tag("nav", tag("ul", *links), aria_label="papers"))
    for key in papers:
        _add_paper(page, key)
    return page


def _add_paper(page: Page, key: str) -> None:
    figures = Reproduced.of_paper(key)
    add_paper(page, key, figures)
    for figure in figures:
        add_figure(page, figure)


def _part(which: Any) -> Part:
    if isinstance(which, Run):
        return "run", which
    files = getattr(which, "files", None)  # the result of `reproduce`
    path = Path(files[-1] if files else getattr(which, "path", which))
    described = {".json": "figure", ".yaml": "picture", ".yml": "picture"}
    if path.suffix in described and path.is_file():
        return described[path.suffix], path
    text = os.fspath(path)
    if is_there(text):
        # perhaps the folder of a paper
        of_paper = path.is_dir() and not (is_run(path) or is_sweep(path))
    else:
        # names of runs and sweeps may begin as names of papers do
        of_paper = text not in run_names()
    if of_paper:
        if text in catalogue.papers():
            return "paper", text
        if text in catalogue.figure_names():
            return "figure", _document(text)
    sweep = sweep_directory(path)
    if sweep is not None:
        return "sweep", sweep
    try:
        return "run", open_run(text)
    except RunError as error:
        if is_there(text) and not catalogue.meant(text, ()):
            raise
        close = catalogue.meant(text, [*catalogue.papers(), *catalogue.figure_names()])
        told = f"nor is it a sweep, a figure or a paper{close}; `dyn --with FOLDER` loads others"
        raise RunError(f"{error}; {told}") from error


def _document(name: str) -> Path:
    """Return the JSON of a figure. Raises RunError: it has not been reproduced yet."""
    document = figures_folder() / f"{name}.json"
    if not document.is_file():
        again = f"`{command(name)}` does it"
        raise RunError(f"{name} has not been reproduced yet (there is no {document}): {again}")
    return document

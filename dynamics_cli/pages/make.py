"""From what a user names to a page: runs, sweeps, figures and papers, alone or together."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dynamics_cli.errors import RunError, did_you_mean
from dynamics_cli.pages.document import Page, tag
from dynamics_cli.pages.figure import add_figure, add_paper
from dynamics_cli.pages.run import add_comparison, add_run
from dynamics_cli.pages.sweep import add_sweep
from dynamics_cli.reproduction import catalogue
from dynamics_cli.reproduction.document import read_document
from dynamics_cli.runs.run import Run
from dynamics_cli.runs.store.layout import outputs_root
from dynamics_cli.sweeps.directory import read_sweep
from dynamics_cli.sweeps.find import is_there, open_run, run_names, sweep_directory

if TYPE_CHECKING:
    from dynamics_cli.reproduction.reproduce import FigureResult
    from dynamics_cli.sweeps.directory import Sweep

Part = tuple[str, Any]
"""What something is - `run`, `sweep`, `figure` or `paper` - and the run, the directory, the JSON, or the key."""


def pages_folder() -> Path:
    """Return the folder of pages, below the root of outputs."""
    return outputs_root() / "pages"


def page(*what: Run | Sweep | FigureResult | str | Path, runs: bool = False, theory: bool = False) -> Page:
    """See `api.page`."""
    parts = [_found(one) for one in what] or [("paper", key) for key in catalogue.papers()]
    page = Page(*_called(parts, everything=not what))
    alone = [value for kind, value in parts if kind == "run"]
    if len(alone) == 1:
        if len(parts) > 1:
            page.body.append(tag("h2", alone[0].path.name))
        add_run(page, alone[0], theory=theory)
    elif alone:
        add_comparison(page, alone)
    papers = [value for kind, value in parts if kind == "paper"]
    if len(papers) > 1:
        links = (tag("li", tag("a", catalogue.papers()[key].title, href=f"#{key}")) for key in papers)
        page.body.append(tag("nav", tag("ul", *links), aria_label="papers"))
    for kind, value in parts:
        if kind == "sweep":
            add_sweep(page, value)
        elif kind == "figure":
            add_figure(page, value, read_document(value), runs=runs, level="h2")
        elif kind == "paper":
            add_paper(page, value, runs=runs)
    return page


def _called(parts: Sequence[Part], *, everything: bool) -> tuple[str, str]:
    """Return name and title of a page."""
    if everything:
        return "papers", "Papers and what was reproduced of them"
    if len(parts) > 1 and all(kind == "run" for kind, _ in parts):
        return "comparison", f"{len(parts)} runs"
    if len(parts) > 1:
        return "together", ", ".join(_called([part], everything=False)[0] for part in parts)
    ((kind, value),) = parts
    if kind == "run":
        replica = getattr(value, "replica", None)
        name = value.path.name if replica is None else f"{value.path.name}-{replica}"
    elif kind == "sweep":
        name = value.absolute().name
        return name, f"Sweep {read_sweep(value).get('name', name)}"
    else:
        name = value.stem if kind == "figure" else value
    return name, name


def _found(one: Any) -> Part:
    """Return what a user means: a run, a sweep, the JSON of a figure, or a paper."""
    if isinstance(one, Run):
        return "run", one
    files = getattr(one, "files", None)  # the result of `reproduce`
    path = Path(files[-1] if files else getattr(one, "path", one))
    if path.suffix == ".json" and path.is_file():
        return "figure", path
    text = os.fspath(path)
    if (named := _named(text)) is not None:
        return named
    sweep = sweep_directory(path)
    return ("run", _run(text)) if sweep is None else ("sweep", sweep)


def _named(text: str) -> Part | None:
    """Return the paper, or the JSON of the figure, of a name, which runs and sweeps have that only begin so."""
    if is_there(text) or text in run_names():
        return None
    if text in catalogue.papers():
        return "paper", text
    names = catalogue.figure_names()
    if text not in names:
        return None
    document, figure = outputs_root() / "figures" / f"{text}.json", names[text]
    if not document.is_file():
        variant = text.removeprefix(figure).removeprefix("-")
        again = f"`dyn reproduce {figure}{f' --variant {variant}' if variant else ''}` does it"
        raise RunError(f"{text} has not been reproduced yet (there is no {document}): {again}")
    return "figure", document


def _run(text: str) -> Run:
    try:
        return open_run(text)
    except RunError as error:
        if is_there(text):
            raise
        close = did_you_mean(text, [*catalogue.papers(), *catalogue.figure_names()])
        raise RunError(f"{error}; nor is it a sweep, a figure or a paper{close}") from error

"""`dyn page`: one HTML file that shows runs, sweeps, figures and papers; or the site of a paper."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

import click

import dynamics_cli as dyn
from dynamics_cli.cli.arguments import NamedPath, json_option, quiet_option
from dynamics_cli.cli.groups import documented
from dynamics_cli.cli.output import emit, emit_json, say
from dynamics_cli.text import size

EXAMPLES = """\b
Examples:
  dyn page latest
  dyn page boursier2022-orthogonal -o orthogonal.html
  dyn page outputs/runs/first-0123456789 outputs/runs/second-abcdef0123
  dyn page outputs/sweeps/boursier2022-orthogonal-0123456789
  dyn page boursier2022
  dyn page --all
  dyn page boursier2022 --site boursier2022-site
"""


@documented("page", epilog=EXAMPLES)
@click.argument("what", nargs=-1, metavar="[RUN_SWEEP_FIGURE_OR_PAPER]...", type=NamedPath())
@click.option(
    "-o",
    "--output",
    type=NamedPath(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="The file (default: in outputs/pages).",
)
@click.option(
    "--site",
    type=NamedPath(path_type=Path, file_okay=False),
    metavar="DIR",
    help="Of a paper, a folder of pages, pictures, claims and configs for a web server.",
)
@click.option(
    "--all", "everything", is_flag=True, help="All papers: the report of all that was reproduced."
)
@click.option("--theory", is_flag=True)
@quiet_option
@json_option
def page(
    *,
    what: tuple[str, ...],
    output: Path | None,
    site: Path | None,
    everything: bool,
    theory: bool,
    quiet: bool,
    as_json: bool,
) -> None:
    message = partial(say, quiet=quiet or as_json)
    if everything == bool(what):
        raise click.UsageError("say what to show: runs, a sweep, a figure, a paper, or --all")
    if site is not None:
        if len(what) != 1 or output is not None or theory:
            raise click.UsageError("--site takes one paper, and neither --output nor --theory")
        _site(what[0], site, quiet=quiet, as_json=as_json)
        _refresh(what[0], message)
        return
    from dynamics_cli.pages import pages_folder
    from dynamics_cli.runs.store import manifest

    if theory:
        message("computing the predictions of theories")
    made = dyn.page(*what, theory=theory)
    for note in made.notes:
        say(f"note: {note}")
    if output is None:
        (file,) = manifest.write_listed(pages_folder(), {f"{made.name}.html": made.encode()})
    else:
        file = made.save(output)
    for name in what:
        _refresh(name, message)
    if as_json:
        emit_json({"file": file, "bytes": file.stat().st_size if file.is_file() else None})
        return
    emit(str(file))
    if file.is_file():
        message(size(file.stat().st_size))


def _refresh(name: str, message: Callable[[str], None]) -> None:
    """Write the tables of a paper into its repository, where that is the working directory."""
    from dynamics_cli.pages.release import refresh

    for path in refresh(name):
        message(f"{path.name}: the table is new")


def _site(paper: str, folder: Path, *, quiet: bool, as_json: bool) -> None:
    written = dyn.site(paper, folder)
    if as_json:
        emit_json({"index": written[0], "files": written})
        return
    emit(str(written[0]))
    bytes_ = sum(file.stat().st_size for file in written)
    say(f"{len(written)} files, {size(bytes_)}", quiet=quiet)

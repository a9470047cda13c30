"""`dyn plot`: pictures of any run."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from dynamics_cli.cli.arguments import complete_run, format_option, json_option, out_option, quiet_option
from dynamics_cli.cli.output import CountBar, emit, emit_files, emit_json, say
from dynamics_cli.text import text_table

if TYPE_CHECKING:
    from dynamics_cli.plotting.time_axis import LogAxes

EXAMPLES = """\b
Examples:
  dyn plot outputs/runs/boursier2022-orthogonal-0123456789 --list
  dyn plot boursier2022-orthogonal --panel function --at 4000 --at 15000 --format pdf
  dyn plot boursier2022-orthogonal --animate
  dyn plot first-0123456789 second-abcdef0123 --panel loss --panel sharpness --log x
  dyn plot outputs/sweeps/boursier2022-orthogonal-0123456789 --x initialization.scale --color architecture.width
"""


@click.command(epilog=EXAMPLES)
@click.argument("runs", metavar="RUN...", nargs=-1, required=True, shell_complete=complete_run)
@click.option(
    "--panel",
    "panels",
    multiple=True,
    metavar="NAME",
    help="Draw this panel, or one measure; repeatable (default: all).",
)
@click.option(
    "--at",
    "iterations",
    type=click.IntRange(0),
    multiple=True,
    metavar="ITERATION",
    help="Show the state after so many iterations, or mark it; can be repeated (default: several states).",
)
@click.option(
    "--measure",
    default="final_loss",
    metavar="NAME",
    help="Of a sweep: the final number to draw (default: final_loss).",
)
@click.option("--x", "x", metavar="COLUMN", help="Of a sweep: any column of its table to draw over.")
@click.option("--y", "y", metavar="COLUMN", help="Of a sweep: any column to draw (default: --measure).")
@click.option("--color", "color", metavar="COLUMN", help="Of a sweep: the column that colours show.")
@click.option(
    "--log",
    type=click.Choice(["x", "y", "xy", "none"]),
    help="Which axes of curves are logarithmic, the others being linear (default: those that this suits).",
)
@format_option(("png",))
@out_option("Folder of the pictures (default: plots in the run directory; of several runs, outputs/plots).")
@click.option(
    "--animate", is_flag=True, help="Write a GIF, and an MP4 where ffmpeg is installed; panels only if asked for too."
)
@click.option("--list", "list_panels", is_flag=True, help="Only say which panels this run offers.")
@quiet_option
@json_option
def plot(
    *,
    runs: tuple[str, ...],
    panels: tuple[str, ...],
    iterations: tuple[int, ...],
    measure: str,
    x: str | None,
    y: str | None,
    color: str | None,
    log: LogAxes | None,
    formats: tuple[str, ...],
    out: Path | None,
    animate: bool,
    list_panels: bool,
    quiet: bool,
    as_json: bool,
) -> None:
    """Draw panels of a run or a sweep, or several runs together.

    RUN is a run directory, the (start of the) name or hash of one below outputs/runs, or `latest`; DIR:k is replica k
    of runs trained together; of the directory of a sweep, phase diagrams and curves are drawn. Which panels there are
    depends on what the run is: --list says. Of several RUNs the loss, and each measure that all of them have, are drawn
    into one picture.
    """
    from dynamics_cli import api
    from dynamics_cli.runs import named
    from dynamics_cli.runs.store import layout

    columns = {name: value for name, value in (("x", x), ("y", y), ("color", color)) if value is not None}
    sweep = api.sweep_directory(runs[0]) if len(runs) == 1 else None
    if (sweep is not None or len(runs) > 1) and (animate or iterations):
        what = "a sweep has no states" if sweep else "several runs are drawn over all iterations"
        raise click.UsageError(f"{what}: --at and --animate go with a run")
    drawn = list(runs) if len(runs) > 1 else sweep or named.load_run(runs[0], whole=True)
    if list_panels:
        offered = api.list_panels(drawn)
        if as_json:
            emit_json(offered)
        else:
            emit(text_table(["panel", "what it shows"], offered.cells()))
        return
    from dynamics_cli.plotting.style import save

    message = partial(say, quiet=quiet or as_json)
    path = None if isinstance(drawn, list) else drawn if isinstance(drawn, Path) else drawn.path
    folder = out or (layout.outputs_root() / "plots" if path is None else layout.plots_folder(path))
    files: list[Path] = []
    if panels or iterations or columns or not animate:
        options: dict[str, Any] = {"measure": measure, "columns": columns, "log": log, "messages": message}
        for stem, figure in api.pictures(drawn, panels, iterations, **options):
            files += save(figure, folder / stem, formats)
    if animate and not isinstance(drawn, Path | list):
        with CountBar("frames", shown=not (quiet or as_json)) as bar:
            files += api.animate(drawn, folder, progress=bar)
    if as_json:
        emit_json({"run": path, "files": files} if path else {"runs": list(runs), "files": files})
    else:
        emit_files(files)

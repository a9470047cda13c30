"""`dyn plot`: pictures of any run."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from dynamics_cli.cli.arguments import complete_run
from dynamics_cli.cli.options import format_option, json_option, out_option, quiet_option

if TYPE_CHECKING:
    from dynamics_cli.runs import Run

EXAMPLES = """\b
Examples:
  dyn plot outputs/runs/boursier2022-orthogonal-0123456789 --list
  dyn plot boursier2022-orthogonal --panel function --at 4000 --at 15000 --format pdf
  dyn plot boursier2022-orthogonal --animate
"""


@click.command(epilog=EXAMPLES)
@click.argument("run", shell_complete=complete_run)
@click.option(
    "--panel", "panels", multiple=True, metavar="NAME", help="Draw this panel; can be repeated (default: all)."
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
@format_option(("png",))
@out_option("Folder of the pictures (default: plots in the run directory).")
@click.option(
    "--animate", is_flag=True, help="Write a GIF, and an MP4 where ffmpeg is installed; panels only if asked for too."
)
@click.option("--list", "list_panels", is_flag=True, help="Only say which panels this run offers.")
@quiet_option
@json_option
def plot(
    *,
    run: str,
    panels: tuple[str, ...],
    iterations: tuple[int, ...],
    measure: str,
    formats: tuple[str, ...],
    out: Path | None,
    animate: bool,
    list_panels: bool,
    quiet: bool,
    as_json: bool,
) -> None:
    """Draw panels of a run, or its animation.

    RUN is a run directory, or the (start of the) name of one below outputs/runs; DIR:k is replica k of runs trained
    together; of the directory of a sweep, phase diagrams and curves are drawn. Which panels there are depends on what
    the run is: --list says.
    """
    from dynamics_cli.cli.arguments import open_run
    from dynamics_cli.cli.output import emit, emit_json, say
    from dynamics_cli.runs.store.layout import PLOTS
    from dynamics_cli.sweeps.directory import is_sweep

    if is_sweep(Path(run)):
        from dynamics_cli.cli.plot_sweep import plot_sweep

        if animate or iterations:
            raise click.UsageError("a sweep has no states: --at and --animate go with a run")
        plot_sweep(Path(run), panels, measure, out, formats, list_panels=list_panels, as_json=as_json)
        return
    loaded = open_run(run)
    if list_panels:
        _list(loaded, as_json=as_json)
        return
    folder = out or loaded.path / PLOTS
    loaded.check_all()  # before the first picture, so that there is none of a damaged run
    names = _chosen(loaded, panels)
    states = _states(loaded, iterations, quiet=quiet or as_json)
    only_moving = animate and not panels and not iterations
    files = [] if only_moving else _draw(loaded, names, states, folder, formats)
    if animate:
        from dynamics_cli.analysis import animate_run

        say("drawing the frames of the animation", quiet=quiet or as_json)
        files += animate_run(loaded, folder / "animation")
    if as_json:
        emit_json({"run": loaded.path, "files": files})
        return
    for file in files:
        emit(str(file))


def _list(run: Run, *, as_json: bool) -> None:
    from dynamics_cli.analysis import panels_of
    from dynamics_cli.cli.output import emit, emit_json, table

    found = panels_of(run)
    if as_json:
        emit_json([{"name": panel.name, "description": panel.description} for panel in found])
    else:
        emit(table(["panel", "what it shows"], [[panel.name, panel.description] for panel in found]))


def _chosen(run: Run, panels: tuple[str, ...]) -> list[str]:
    """Return the names of the panels to draw.

    Raises:
        UsageError: the run does not offer one of them.

    """
    from dynamics_cli.analysis import check_panel, panels_of

    for name in panels:
        check_panel(run, name)
    return list(dict.fromkeys(panels)) or [panel.name for panel in panels_of(run)]


def _states(run: Run, iterations: tuple[int, ...], *, quiet: bool) -> list[int | None]:
    """Return the iterations asked for, one for each recorded state; None leaves the choice to the panel."""
    from dynamics_cli.cli.output import say

    states: dict[int, int] = {}  # recorded iteration -> the first one asked for that it is nearest to
    for wanted in iterations:
        nearest = int(run.snapshot_iterations[run.index_of(wanted)])
        if nearest != wanted:
            say(f"no state was recorded at iteration {wanted}; the nearest, {nearest}, is shown", quiet=quiet)
        states.setdefault(nearest, wanted)
    return list(states.values()) or [None]


def _draw(run: Run, names: list[str], states: list[int | None], folder: Path, formats: tuple[str, ...]) -> list[Path]:
    """Draw each panel at each state and return the files."""
    from dynamics_cli.analysis import draw_panel
    from dynamics_cli.plotting.style import save

    files = []
    for name in names:
        for state in states:
            stem = name if state is None else f"{name}-{state}"
            files += save(draw_panel(run, name, state), folder / stem, formats)
    return files

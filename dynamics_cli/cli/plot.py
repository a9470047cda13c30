"""`dyn plot`: pictures of any run."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from dynamics_cli import api
from dynamics_cli.cli.arguments import complete_run, format_option, json_option, out_option, quiet_option
from dynamics_cli.cli.groups import documented
from dynamics_cli.cli.output import CountBar, emit, emit_either, emit_files, emit_json, say
from dynamics_cli.text import text_table

if TYPE_CHECKING:
    from dynamics_cli.analysis import Prediction

EXAMPLES = """\b
Examples:
  dyn plot outputs/runs/boursier2022-orthogonal-0123456789 --list
  dyn plot boursier2022-orthogonal --panel function --at 4000 --at 15000 --format pdf
  dyn plot boursier2022-orthogonal --animate
  dyn plot first-0123456789 second-abcdef0123 --panel loss --panel sharpness --log x
  dyn plot boursier2022-orthogonal --theory
  dyn plot outputs/sweeps/boursier2022-orthogonal-0123456789 --x initialization.scale --color architecture.width
  dyn plot latest --where optimizer.lr=0.1 --measure test_loss
"""


@documented(api.plot, epilog=EXAMPLES)
@click.argument("run", metavar="RUN...", nargs=-1, required=True, shell_complete=complete_run)
@click.option("--panel", multiple=True, metavar="NAME")
@click.option("--at", type=click.IntRange(0), multiple=True, metavar="ITERATION")
@click.option("--measure", metavar="NAME")
@click.option("--x", "x", metavar="SETTING", help="Of a sweep: the setting to draw over.")
@click.option("--y", "y", metavar="NAME", help="Of a sweep: the final number over it (default: --measure).")
@click.option("--color", "color", metavar="SETTING", help="Of a sweep: the setting that colours show.")
@click.option("--where", multiple=True, metavar="COLUMN=VALUE")
@click.option("--log", type=click.Choice(["x", "y", "xy", "none"]))
@format_option(("png",))
@out_option
@click.option(
    "--animate", is_flag=True, help="Write a GIF, and an MP4 where ffmpeg is installed; panels only if asked for too."
)
@click.option(
    "--theory", is_flag=True, help="Draw the predictions of theories beside the run; panels only if asked for too."
)
@click.option(
    "--anyway", multiple=True, metavar="THEORY",
    help="With --theory: draw this one although its assumptions fail; can be repeated.",
)  # fmt: skip
@click.option("--list", "list_panels", is_flag=True, help="Only list the panels of this run.")
@quiet_option
@json_option
def plot(
    *, run: tuple[str, ...], panel: tuple[str, ...], at: tuple[int, ...], formats: tuple[str, ...],
    out: Path | None, animate: bool, theory: bool, anyway: tuple[str, ...], list_panels: bool, quiet: bool,
    as_json: bool, **drawing: Any,
) -> None:  # fmt: skip
    from dynamics_cli.runs.store import layout
    from dynamics_cli.sweeps.find import open_run, sweep_directory

    columns = {name: value for name in ("x", "y", "color") if (value := drawing.pop(name)) is not None}
    where: tuple[str, ...] = drawing.pop("where")
    sweep = sweep_directory(run[0]) if len(run) == 1 else None
    if (sweep is not None or len(run) > 1) and (animate or at or theory):
        why = "a sweep has no states" if sweep else "several runs are drawn over all iterations"
        raise click.UsageError(f"{why}: --at, --animate and --theory go with a run")
    if odd := [text for text in where if "=" not in text]:
        raise click.UsageError(f"--where {odd[0]!r} must have the form COLUMN=VALUE")
    if anyway and not theory:
        raise click.UsageError("--anyway goes with --theory")
    drawn = list(run) if len(run) > 1 else sweep or open_run(run[0], whole=True)
    if list_panels:
        offered = api.list_panels(drawn)
        emit_either(offered, text_table(["panel", "shows"], offered.cells()), as_json=as_json)
        return
    from dynamics_cli.plotting.style import save

    message = partial(say, quiet=quiet or as_json)
    path = None if isinstance(drawn, list) else drawn if isinstance(drawn, Path) else drawn.path
    folder = out or (
        layout.outputs_root() / "plots"
        if path is None
        else layout.plots_folder(path) / str(getattr(drawn, "replica", ""))
    )
    files: list[Path] = []
    predicted = api.predictions(drawn, anyway) if theory and not isinstance(drawn, Path | list) else []
    files += _draw_theories(predicted, folder, formats, message)
    if panel or at or columns or not (animate or theory):
        settings = dict(text.split("=", 1) for text in where)
        asked = api.Drawing(panel, at, columns=columns, where=settings, **drawing)
        for stem, figure in api.pictures(drawn, asked, message):
            files += save(figure, folder / stem, formats)
    if animate and not isinstance(drawn, Path | list):
        with CountBar("frames", shown=not (quiet or as_json)) as bar:
            files += api.animate(drawn, folder, progress=bar)
    if as_json:
        told: dict[str, Any] = {"run": path, "files": files} if path else {"runs": list(run), "files": files}
        emit_json(told | ({"theories": _said(predicted)} if theory else {}))
        return
    if rows := [[one.name, name, f"{gap:.3g}"] for one in predicted for name, gap in one.deviations.items()]:
        emit(text_table(["theory", "curve", "largest deviation / largest measured"], rows))
    emit_files(files)


def _draw_theories(
    predicted: Sequence[Prediction], folder: Path, formats: Sequence[str], message: Callable[[str], None]
) -> list[Path]:
    """Draw the predictions, name the assumptions that fail, and return the files."""
    from dynamics_cli.analysis import prediction_charts
    from dynamics_cli.plotting.chart import draw_charts
    from dynamics_cli.plotting.style import save

    files: list[Path] = []
    for one in predicted:
        if one.violated:
            end = "drawn all the same" if one.curves else f"not drawn; --anyway {one.name} draws what it can"
            message("\n  - ".join([f"{one.name}: assumptions fail, {end}", *one.violated]))
        if one.curves:
            files += save(draw_charts(prediction_charts(one)), folder / f"theory-{one.name}", formats)
    return files


def _said(predicted: Sequence[Prediction]) -> dict[str, dict[str, object]]:
    """Return the theories as JSON has them."""
    return {
        one.name: {"violated": one.violated, "drawn": bool(one.curves), "deviations": one.deviations}
        for one in predicted
    }

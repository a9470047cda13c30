"""`dyn plot`: pictures of any run."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

import dynamics_cli as dyn
from dynamics_cli import api
from dynamics_cli.cli.arguments import (
    NamedPath,
    format_option,
    json_option,
    out_option,
    quiet_option,
)
from dynamics_cli.cli.groups import documented, help_texts
from dynamics_cli.cli.output import CountBar, emit, emit_either, emit_files, emit_json, say
from dynamics_cli.text import text_table

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from dynamics_cli.analysis import Prediction

EXAMPLES = """\b
Examples:
  dyn plot boursier2022-orthogonal --list
  dyn plot latest --panel function --at 4000 --at 15000 --format pdf
  dyn plot boursier2022-orthogonal --animate
  dyn plot boursier2022-orthogonal --theory
  dyn plot first second --y loss --y sharpness --label first="small step"
  dyn plot latest --where optimizer.lr=0.1 --y test_loss --size page
  dyn plot latest --x optimizer.lr --y architecture.width --color final_loss
  dyn plot picture.yaml --out edge.pdf
"""
LOOKS = {
    "stat": ("median", "mean", "all", "best"),
    "band": ("auto", "range", "90%", "se", "none"),
    "share": ("xy", "x", "y", "none"),
    "legend": ("below", "inside", "none"),
    "bounds": ("near", "all", "none"),
}


def _words(command: Any) -> Any:
    """Add the options that describe a picture."""
    texts = help_texts("picture")[1]

    def option(name: str, **options: Any) -> Any:
        said = re.split(r"[;.](?= |$)", texts[name])[0]
        return click.option(f"--{name}", help=f"{said[:1].upper()}{said[1:]}.", **options)

    for name, choices in reversed(LOOKS.items()):
        command = option(name, type=click.Choice(choices))(command)
    for name in ("note", "size", "title"):
        command = option(name, metavar="TEXT" if name != "size" else "SIZE")(command)
    for name in ("over", "columns", "rows", "facet", "marker", "dash", "color", "x", "y"):
        several = name in ("over", "columns", "rows", "facet", "y")
        command = option(name, multiple=several, metavar="QUANTITY" if name == "y" else "KEY")(
            command
        )
    return command


@documented("plot", epilog=EXAMPLES)
@click.argument("run", metavar="RUN...", nargs=-1, required=True, type=NamedPath())
@click.option("--panel", multiple=True, metavar="NAME")
@click.option("--at", type=click.IntRange(0), multiple=True, metavar="ITERATION")
@_words
@click.option("--where", multiple=True, metavar="KEY=VALUE", help="Only runs with this setting.")
@click.option(
    "--log",
    type=click.Choice(["x", "y", "xy", "c", "xc", "yc", "xyc", "none"]),
    help="Which axes are logarithmic, c the colours of a phase diagram.",
)
@click.option(
    "--limits", multiple=True, metavar="AXIS=LOW:HIGH", help="Where an axis ends: y=0:1, or x=:100."
)
@click.option(
    "--label", "labels", multiple=True, metavar="KEY=TEXT", help="Another name in the picture."
)
@format_option(("png",))
@out_option
@click.option("--animate", is_flag=True, help="Write a GIF; panels only if asked for too.")
@click.option(
    "--theory",
    is_flag=True,
    help="Draw the predictions of theories beside the run; panels only if asked for too.",
)
@click.option("--list", "list_panels", is_flag=True, help="Only list the panels of this run.")
@quiet_option
@json_option
def plot(
    *,
    run: tuple[str, ...],
    panel: tuple[str, ...],
    at: tuple[int, ...],
    formats: tuple[str, ...],
    out: Path | None,
    animate: bool,
    theory: bool,
    list_panels: bool,
    quiet: bool,
    as_json: bool,
    **drawing: Any,
) -> None:
    from dynamics_cli.runs.run import Run
    from dynamics_cli.runs.store import layout
    from dynamics_cli.runs.store.manifest import refuse_links

    drawn = api.open_any(run[0] if len(run) == 1 else list(run))
    if not isinstance(drawn, Run) and (animate or theory):
        raise click.UsageError("--animate and --theory go with a single run")
    if list_panels:
        offered = dyn.list_panels(drawn)
        header = ["panel", "shows", "as options"][: len(offered.columns)]
        emit_either(offered, text_table(header, offered.cells()), as_json=as_json)
        return
    message = partial(say, quiet=quiet or as_json)
    path = None if isinstance(drawn, list | Path) else drawn.path
    plots = layout.outputs_root() / "plots" if path is None else path / layout.PLOTS
    folder = out or plots / str(getattr(drawn, "replica", ""))
    if out is None and path is not None:
        refuse_links(plots, folder)
    files: list[Path] = []
    predicted = dyn.predictions(drawn) if theory and isinstance(drawn, Run) else []
    files += _draw_theories(predicted, folder, formats, message)
    if panel or at or not (animate or theory):
        made = api.pictures(drawn, panel, at, messages=message, **_plain(drawing))
        files += _saved(made, folder, formats, out)
    if animate and isinstance(drawn, Run):
        with CountBar("frames", shown=not (quiet or as_json)) as bar:
            files.append(dyn.animate(drawn, folder, progress=bar))
    if as_json:
        document: dict[str, Any] = {"run": path, "files": files}
        if path is None:
            document = {"runs": list(run), "files": files}
        if theory:
            document["theories"] = _said(predicted)
        emit_json(document)
        return
    rows = []
    for prediction in predicted:
        for name, gap in prediction.deviations.items():
            rows.append([prediction.name, name, f"{gap:.3g}"])
    if rows:
        emit(text_table(["theory", "curve", "largest deviation / largest measured"], rows))
    emit_files(files)


def _plain(drawing: Mapping[str, Any]) -> dict[str, Any]:
    """Return the words of a picture, given the options."""
    words = {
        name: list(value) if isinstance(value, tuple) else value for name, value in drawing.items()
    }
    words["where"] = _by_key("--where", drawing["where"], "KEY=VALUE")
    limits = _by_key("--limits", drawing["limits"], "AXIS=LOW:HIGH")
    words["limits"] = {axis: _ends(text) for axis, text in limits.items()}
    words["labels"] = _by_key("--label", drawing["labels"], "KEY=TEXT")
    words["size"] = _size(drawing["size"])
    return words


def _saved(
    made: Iterator[tuple[str, Figure]], folder: Path, formats: Sequence[str], out: Path | None
) -> list[Path]:
    """Save pictures in a folder, or the one picture under the name that was given."""
    from dynamics_cli.analysis.picture import save_figure
    from dynamics_cli.plotting.style import FORMATS

    if out is None or out.suffix.removeprefix(".") not in FORMATS:
        files: list[Path] = []
        for stem, figure in made:
            files += save_figure(figure, folder / stem, formats)
        return files
    (_, figure), *others = made
    if others:
        raise click.UsageError(
            f"{len(others) + 1} pictures do not fit in {out}: choose one with --panel or --y, or"
            " name a folder"
        )
    return save_figure(figure, out.with_suffix(""), [out.suffix.removeprefix(".")])


def _size(text: str | None) -> Any:
    if text is None or text in ("column", "page"):
        return text
    try:
        numbers = [float(part) for part in text.split("x")]
        if len(numbers) > 2 or min(numbers) <= 0:
            raise ValueError
    except ValueError:
        raise click.UsageError(
            f"--size {text!r}: give column, page, WIDTH or WIDTHxHEIGHT in inches"
        ) from None
    return numbers if len(numbers) == 2 else numbers[0]


def _ends(text: str) -> list[float | None]:
    low, between, high = text.partition(":")
    with suppress(ValueError):
        ends = [float(end) if end else None for end in (low, high)]
        if between:
            return ends
    raise click.UsageError(f"--limits {text!r}: give LOW:HIGH, or one of them, as 0: or :100")


def _by_key(option: str, texts: Sequence[str], form: str) -> dict[str, str]:
    for text in texts:
        if "=" not in text:
            raise click.UsageError(f"{option} {text!r} must have the form {form}")
    return dict(text.split("=", 1) for text in texts)


def _draw_theories(
    predicted: Sequence[Prediction],
    folder: Path,
    formats: Sequence[str],
    message: Callable[[str], None],
) -> list[Path]:
    """Draw the predictions, name the assumptions that fail, and return the files."""
    from dynamics_cli.analysis import prediction_charts
    from dynamics_cli.analysis.picture import save_figure
    from dynamics_cli.plotting.chart import draw_charts

    files: list[Path] = []
    for prediction in predicted:
        if prediction.violated:
            head = f"{prediction.name}: assumptions fail, not drawn"
            message("\n  - ".join([head, *prediction.violated]))
        if prediction.curves:
            figure = draw_charts(prediction_charts(prediction))
            files += save_figure(figure, folder / f"theory-{prediction.name}", formats)
    return files


def _said(predicted: Sequence[Prediction]) -> dict[str, dict[str, object]]:
    """Return the theories as JSON has them."""
    return {
        prediction.name: {
            "violated": prediction.violated,
            "drawn": bool(prediction.curves),
            "deviations": prediction.deviations,
        }
        for prediction in predicted
    }

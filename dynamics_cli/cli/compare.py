"""`dyn compare`: two runs or two sweeps side by side."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

import dynamics_cli as dyn
from dynamics_cli.cli.arguments import complete_run, json_option
from dynamics_cli.cli.output import emit, emit_json
from dynamics_cli.text import cell, number, shorten, text_table

if TYPE_CHECKING:
    from dynamics_cli.runs.compare import Comparison
    from dynamics_cli.sweeps.summary import SweepComparison

SHOWN = 48
"""Characters of a setting that a line shows."""


@click.command(epilog="Example: dyn compare outputs/runs/first-0123456789 outputs/runs/second-abcdef0123")
@click.argument("run_a", metavar="RUN", shell_complete=complete_run)
@click.argument("run_b", metavar="RUN", shell_complete=complete_run)
@click.option(
    "--plot", type=click.Path(path_type=Path), metavar="FILE", help="Draw the losses of both into this picture."
)
@json_option
def compare(run_a: str, run_b: str, plot: Path | None, as_json: bool) -> None:
    """Compare two runs, or two sweeps.

    Of sweeps: settings that differ, how jobs ended, final numbers of the jobs that both have. Of runs: settings that
    differ, final numbers, and how far losses and weights are apart. The relative difference is the largest distance
    over the iterations that both runs recorded, divided by the largest absolute value there.
    """
    from dynamics_cli.sweeps.find import sweep_directory

    sweeps = [sweep_directory(one) for one in (run_a, run_b)]
    if any(sweeps):
        if not all(sweeps) or plot is not None:
            raise click.UsageError("a sweep is compared with a sweep, without --plot")
        _show_sweeps(dyn.compare_sweeps(run_a, run_b), as_json=as_json)
        return
    found = dyn.compare(run_a, run_b)
    if plot is not None:
        from dynamics_cli.analysis.overlay import draw_overlay
        from dynamics_cli.plotting.style import save

        save(draw_overlay([found.a, found.b]), plot.with_suffix(""), [plot.suffix[1:] or "png"])
    if as_json:
        emit_json(found.as_dict())
        return
    emit(f"A  {found.a.path}\nB  {found.b.path}\n")
    shown = [
        ["-" if value is None else shorten(str(value), SHOWN) for value in both] for both in found.settings.values()
    ]
    rows = [[key, *values] for key, values in zip(found.settings, shown, strict=True)]
    emit((text_table(["setting", "A", "B"], rows) if rows else "the settings are the same") + "\n")
    final = [[name.replace("_", " "), cell(a), cell(b)] for name, (a, b) in found.final.items()]
    emit(text_table(["final", "A", "B"], final) + "\n")
    emit(_differences_text(found))


def _show_sweeps(found: SweepComparison, *, as_json: bool) -> None:
    if as_json:
        emit_json(vars(found))
        return
    emit(f"A  {found.a}\nB  {found.b}\n")
    rows = [[key, *(shorten(", ".join(values), SHOWN) for values in both)] for key, both in found.settings.items()]
    emit((text_table(["setting", "A", "B"], rows) if rows else "the same settings are swept") + "\n")
    ended = [[f"jobs {status}", *map(str, both)] for status, both in found.statuses.items()]
    emit(text_table(["", "A", "B"], [*ended, ["jobs in both", str(found.common), ""]]) + "\n")
    finals = [
        [name.replace("_", " "), str(one["common"]), number(one["a"]), number(one["b"]),
         "identical" if one["relative"] == 0 else number(one["relative"]), str(one["job"])]
        for name, one in found.numbers.items()
    ]  # fmt: skip
    emit(text_table(["final", "jobs", "median A", "median B", "max relative difference", "at job of A"], finals))


def _differences_text(found: Comparison) -> str:
    rows = [
        [
            name,
            str(one.common),
            one.note or ("identical" if one.relative == 0 else number(one.relative)),
            "" if one.iteration is None or one.relative == 0 else str(one.iteration),
        ]
        for name, one in {"loss": found.loss, **found.parameters}.items()
    ]
    return text_table(["recorded", "in common", "max relative difference", "at iteration"], rows)

"""`dyn compare`: two runs side by side."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

import dynamics_cli as dyn
from dynamics_cli.cli.arguments import NamedPath, json_option
from dynamics_cli.cli.groups import documented
from dynamics_cli.cli.output import emit, emit_json
from dynamics_cli.text import cell, number, shorten, text_table

if TYPE_CHECKING:
    from dynamics_cli.runs.compare import Comparison

SHOWN = 48
"""Characters of a setting that a line shows."""


@documented(
    "compare",
    epilog="Example: dyn compare outputs/runs/first-0123456789 outputs/runs/second-abcdef0123",
)
@click.argument("run_a", metavar="RUN", type=NamedPath())
@click.argument("run_b", metavar="RUN", type=NamedPath())
@json_option
def compare(run_a: str, run_b: str, as_json: bool) -> None:
    comparison = dyn.compare(run_a, run_b)
    if as_json:
        emit_json(comparison.as_dict())
        return
    emit(f"A  {comparison.a.path}\nB  {comparison.b.path}\n")
    if not comparison.settings:
        emit("the settings are the same\n")
    for what, sides in {"setting": comparison.settings, "code": comparison.code}.items():
        if rows := [[key, *map(_setting, both)] for key, both in sides.items()]:
            emit(text_table([what, "A", "B"], rows) + "\n")
    final = [
        [name.replace("_", " "), cell(a), cell(b)] for name, (a, b) in comparison.final.items()
    ]
    emit(text_table(["final", "A", "B"], final) + "\n")
    emit(_differences_text(comparison))


def _setting(value: Any) -> str:
    if value is None:
        return "-"
    return shorten(str(value), SHOWN)


def _differences_text(comparison: Comparison) -> str:
    rows = []
    for name, difference in {"loss": comparison.loss, **comparison.parameters}.items():
        largest = "identical"
        place = ""
        if difference.relative != 0:
            largest = number(difference.relative)
            if difference.iteration is not None:
                place = str(difference.iteration)
        rows.append([name, str(difference.common), difference.note or largest, place])
    return text_table(["recorded", "in common", "max relative difference", "at iteration"], rows)

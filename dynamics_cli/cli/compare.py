"""`dyn compare`: two runs side by side."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import click

from dynamics_cli.cli.arguments import complete_run
from dynamics_cli.cli.options import json_option

if TYPE_CHECKING:
    from dynamics_cli.cli.comparison import Difference
    from dynamics_cli.runs import Run

SHOWN = 48
"""Characters of a setting that a line shows."""


@click.command(epilog="Example: dyn compare outputs/runs/first-0123456789 outputs/runs/second-abcdef0123")
@click.argument("run_a", metavar="RUN", shell_complete=complete_run)
@click.argument("run_b", metavar="RUN", shell_complete=complete_run)
@json_option
def compare(run_a: str, run_b: str, as_json: bool) -> None:
    """Compare two runs.

    Shows settings that differ, final numbers, and how far losses and weights are apart. The relative difference is the
    largest distance over the iterations that both runs recorded, divided by the largest absolute value there.
    """
    from dynamics_cli.cli import comparison
    from dynamics_cli.cli.arguments import open_run
    from dynamics_cli.cli.output import emit, emit_json

    a, b = open_run(run_a), open_run(run_b)
    settings = comparison.settings_that_differ(a.config, b.config)
    differences = {"loss": comparison.loss_difference(a, b), **comparison.parameter_differences(a, b)}
    if as_json:
        emit_json(_document(a, b, settings, differences))
        return
    emit(f"A  {a.path}\nB  {b.path}\n")
    emit(_settings_text(settings) + "\n")
    emit(_numbers_text(a, b) + "\n")
    emit(_differences_text(differences))


def _numbers(run: Run) -> dict[str, Any]:
    from dynamics_cli.cli.summary import final_measures, final_numbers

    return {**final_numbers(run), **final_measures(run)}


def _document(
    a: Run, b: Run, settings: dict[str, tuple[Any, Any]], differences: dict[str, Difference]
) -> dict[str, Any]:
    loss = differences["loss"]
    return {
        "runs": [{"path": run.path, "hash": run.hash, **_numbers(run)} for run in (a, b)],
        "settings": {key: list(values) for key, values in settings.items()},
        "loss": asdict(loss),
        "parameters": {name: asdict(found) for name, found in differences.items() if found is not loss},
    }


def _settings_text(settings: dict[str, tuple[Any, Any]]) -> str:
    from dynamics_cli.cli.output import table

    if not settings:
        return "the settings are the same"
    return table(["setting", "A", "B"], [[key, _short(a), _short(b)] for key, (a, b) in settings.items()])


def _numbers_text(a: Run, b: Run) -> str:
    from dynamics_cli.cli.output import number, table

    left, right = _numbers(a), _numbers(b)

    def cell(value: Any) -> str:
        return number(value) if isinstance(value, float) or value is None else str(value)

    names = dict.fromkeys([*left, *right])
    rows = [[name.replace("_", " "), cell(left.get(name)), cell(right.get(name))] for name in names]
    return table(["final", "A", "B"], rows)


def _differences_text(differences: dict[str, Difference]) -> str:
    from dynamics_cli.cli.output import number, table

    rows = [
        [
            name,
            str(found.common),
            found.note or ("identical" if found.relative == 0 else number(found.relative)),
            "" if found.iteration is None or found.relative == 0 else str(found.iteration),
        ]
        for name, found in differences.items()
    ]
    return table(["recorded", "in common", "max relative difference", "at iteration"], rows)


def _short(value: Any) -> str:
    text = "-" if value is None else str(value)
    return text if len(text) <= SHOWN else text[: SHOWN - 3] + "..."

"""What a measure of a config says of its numbers: their names, its panel, its bound."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from dynamics_cli.kinds import Measure, RunConfig

T = TypeVar("T")


def recorded(config: RunConfig, name: str, ask: Callable[[Measure], T]) -> T | None:
    """Return the answer of a measure of the config; None where its kind is not loaded."""
    measures = (measure for measure in config.record.measures or () if isinstance(measure, Measure))
    return next((ask(measure) for measure in measures if measure.name == name), None)


def column_names(config: RunConfig, name: str, count: int) -> list[str]:
    """Return the names of the `count` numbers of a measure of runs of a config, as `columns_of` does."""
    named = list(recorded(config, name, lambda measure: measure.columns(dict(config))) or ())
    return named if len(set(named)) == len(named) == count else [str(k + 1) for k in range(count)]

"""What a measure of a config says of its numbers: their names, its panel, its bound."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import TypeVar

from dynamics_cli.errors import InputError
from dynamics_cli.kinds import Measure, RunConfig

T = TypeVar("T")


def recorded(config: RunConfig, name: str, ask: Callable[[Measure], T]) -> T | None:
    """Return the answer of a measure of the config; None where no kind of the name is registered here."""
    with suppress(InputError):  # of an unknown kind
        return next((ask(one) for one in config.record.measures or () if one.name == name), None)
    return None


def column_names(config: RunConfig, name: str, count: int) -> list[str]:
    """Return the names of the `count` numbers of a measure of runs of a config, as `columns_of` does."""
    named = list(recorded(config, name, lambda one: one.columns(dict(config))) or ())
    return named if len(set(named)) == len(named) == count else [str(k + 1) for k in range(count)]

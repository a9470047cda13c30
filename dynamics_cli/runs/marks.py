"""Iterations of a run at which something was changed, in words."""

from __future__ import annotations

from typing import Any, NamedTuple

from dynamics_cli.config.dump import flat
from dynamics_cli.runs.run import Run


class Mark(NamedTuple):
    """An iteration, and what happened there."""

    at: int
    words: str


def marks_of(run: Run) -> list[Mark]:
    """Return the changes of a run that it has reached."""
    marks = []
    for change in run.config.changes or ():
        settings = flat(change.model_dump(exclude_none=True, exclude={"at"}))
        words = ", ".join(_said(key, value) for key, value in settings.items())
        marks.append(Mark(change.at, words))
    return sorted(mark for mark in marks if mark.at <= run.iterations)


def _said(key: str, value: Any) -> str:
    name = key.removeprefix("optimizer.")
    if isinstance(value, list):
        value = " ".join(map(str, value))
    return f"{name} {value:g}" if isinstance(value, float) else f"{name} {value}"

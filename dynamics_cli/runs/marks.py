"""Iterations of a run at which something was changed or noted, in words."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from dynamics_cli.config.dump import flat
from dynamics_cli.runs.run import Run


class Mark(NamedTuple):
    """An iteration, and what happened there."""

    at: float
    words: str


def marks_of(run: Run) -> list[Mark]:
    """Return the changes of a run that it has reached, and the notes of its recorder."""
    marks = [Mark(note["at"], note["words"]) for note in run.info.get("notes", [])]
    for change in run.config.changes or ():
        settings = flat(change.model_dump(exclude_none=True, exclude={"at"}))
        words = ", ".join(_said(key, value) for key, value in settings.items())
        marks.append(Mark(change.at, words))
    return sorted(mark for mark in marks if mark.at <= run.iterations)


def marks_of_all(runs: Sequence[Run]) -> list[Mark]:
    """Return the marks of several runs, one at an iteration.

    It has no words where the runs differ in them; legends say how they differ.
    """
    words: dict[float, set[str]] = {}
    for run in runs:
        at_each: dict[float, list[str]] = {}
        for mark in marks_of(run):
            at_each.setdefault(mark.at, []).append(mark.words)
        for at, said in at_each.items():
            words.setdefault(at, set()).add("; ".join(said))
    return [Mark(at, said.pop() if len(said) == 1 else "") for at, said in sorted(words.items())]


def _said(key: str, value: Any) -> str:
    name = key.removeprefix("optimizer.")
    if isinstance(value, list):
        value = " ".join(map(str, value))
    return f"{name} {value:g}" if isinstance(value, float) else f"{name} {value}"

"""Iterations of a run at which something was changed or noted, in words."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import Any, NamedTuple

from pydantic import ValidationError

from dynamics_cli.config.changes import segments_of
from dynamics_cli.config.dump import flat
from dynamics_cli.runs.run import Run

NAMED = 3
"""Runs that a mark names at most."""


class Mark(NamedTuple):
    """An iteration, and what happened there."""

    at: float
    words: str


def marks_of(run: Run) -> list[Mark]:
    """Return the changes of a run that it has reached, and the notes of its recorder."""
    marks = [Mark(note["at"], note["words"]) for note in run.info.get("notes", [])]
    return sorted(mark for mark in [*marks, *_changes(run)] if mark.at <= run.iterations)


def branch_of(run: Run) -> str:
    """Return all changes of a run in words; nothing where it has none."""
    return "; ".join(f"{mark.words} from {mark.at:g}" for mark in _changes(run))


def _changes(run: Run) -> list[Mark]:
    """Return the changes of a run, each by the settings that it really changes."""
    marks: list[Mark] = []
    changes = run.config.changes or ()
    if not changes:
        return marks
    before: dict[int, dict[str, Any]] = {}
    with suppress(ValidationError):  # a kind that is not loaded: all that is said is a change
        segments = [segment.config for segment in segments_of(run.config)]
        before = dict(enumerate(flat(config.model_dump()) for config in segments))
    for k, change in enumerate(changes):
        said = flat(change.model_dump(exclude_none=True, exclude={"at"}))
        changed = {
            key: value
            for key, value in said.items()
            if k not in before or key not in before[k] or before[k][key] != value
        }
        words = ", ".join(_said(key, value) for key, value in (changed or said).items())
        marks.append(Mark(change.at, words))
    return marks


def marks_of_all(runs: Sequence[Run]) -> list[Mark]:
    """Return the marks of several runs; the words of a mark that few of them have name these."""
    having: dict[Mark, list[str]] = {}
    for run in runs:
        for mark in marks_of(run):
            having.setdefault(mark, []).append(run.path.name)
    return [
        Mark(at, words if len(names) == len(runs) else f"{words} ({', '.join(names[:NAMED])})")
        for (at, words), names in sorted(having.items())
    ]


def _said(key: str, value: Any) -> str:
    name = key.removeprefix("optimizer.")
    if isinstance(value, list):
        value = " ".join(map(str, value))
    return f"{name} {value:g}" if isinstance(value, float) else f"{name} {value}"

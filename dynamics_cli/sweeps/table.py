"""The table of a sweep, computed from its runs."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

from dynamics_cli.errors import DynError
from dynamics_cli.runs.columns import column_names
from dynamics_cli.runs.run import FEW_NUMBERS, Run
from dynamics_cli.runs.store import files
from dynamics_cli.sweeps.jobs import settings_of
from dynamics_cli.sweeps.tasks import Task, alone, tasks_of
from dynamics_cli.text import Table

Row = dict[str, Any]
COLUMNS: dict[str, Callable[[Run], Any]] = {
    "status": lambda run: run.info.get("replica_statuses", [run.status]),
    "iterations": lambda run: run.info.get("replica_iterations", [run.iterations]),
    "final_loss": lambda run: run.info.get("replica_losses", [run.final_loss]),
}
"""Name -> its values for the networks of a run."""
ENDED = ("complete", "diverged")
FIXED = ("job", "seed", "status", "path", "replica", "hash", "message")
"""Columns that are neither settings nor final numbers."""


class Results:
    """How the jobs of a sweep ended.

    Attributes:
        rows: the number of each job that has ended -> its row.
        tasks: all of them.
    """

    def __init__(self, directory: Path, described: Mapping[str, Any]) -> None:
        """Begin with no job that has ended."""
        self.directory, self.tasks, self.rows = directory, tasks_of(described), dict[int, Row]()
        self._settings = settings_of(described)
        self._measures: dict[str, tuple[int, int, int]] = {}
        """Name of a number -> the first job that has it, and its place there, by which columns stand."""

    def read(self, task: Task, is_own: Callable[[Run, Sequence[int]], bool] | None = None) -> bool:
        """Note how the jobs of a task ended, if they have, by runs that are the task's own; say whether all have."""
        if self._take(task.name, task.numbers, is_own):
            return True
        apart = task.numbers if len(task.numbers) > 1 and files.exists(self.directory / alone(task.numbers[0])) else ()
        ended = [self._take(alone(number), [number], is_own) for number in apart]
        return bool(ended) and all(ended)

    def fail(self, task: Task, message: str) -> None:
        """Note that those jobs of a task failed which have not ended."""
        for number in task.numbers:
            if number not in self.rows:
                self.rows[number] = self._begun(number) | {"status": "failed", "path": task.name, "message": message}

    def _begun(self, number: int) -> Row:
        settings, seed = self._settings[number]
        return {"job": number, **settings, "seed": seed}

    def _take(self, name: str, numbers: Sequence[int], is_own: Callable[[Run, Sequence[int]], bool] | None) -> bool:
        if not files.exists(self.directory / name):
            return False
        with suppress(DynError):  # a run that cannot be read is trained again, which tells why
            run = Run(self.directory / name)
            count = len(run.info.get("replicas", [0]))
            if run.status in ENDED and count == len(numbers) and (is_own is None or is_own(run, numbers)):
                self._note(run, name, numbers)
                return True
        return False

    def _note(self, run: Run, name: str, numbers: Sequence[int]) -> None:
        columns = {column: of(run) for column, of in COLUMNS.items()}
        columns["final_loss"] = [math.nan if loss is None else loss for loss in columns["final_loss"]]
        for place, (measure, values) in enumerate(run.measures.items()):
            last = np.asarray(values[-1:], float).reshape(len(numbers) if len(values) else 0, -1)
            names = [measure] if values.ndim == 1 + ("replicas" in run.info) else []
            if not names and 0 < last.shape[-1] <= FEW_NUMBERS:
                names = [f"{measure}.{one}" for one in column_names(run.config, measure, last.shape[1])]
            for k, one in enumerate(names if len(values) else ()):
                columns[one] = last[:, k].tolist()
                first = numbers[0], place, k
                self._measures[one] = min(self._measures.get(one, first), first)
        places = range(len(numbers)) if "replicas" in run.info else [None]
        for k, number, replica in zip(itertools.count(), numbers, places, strict=False):
            own = {column: values[k] for column, values in columns.items()}
            where = {"path": name, "replica": replica, "hash": run.hash, "message": ""}
            self.rows[number] = self._begun(number) | own | where

    def as_table(self) -> Table:
        """Return the rows of the jobs that have ended, in their order."""
        names, *rows = self.table()
        return Table(dict(zip(names, row, strict=True)) for row in rows)

    def table(self) -> Iterator[list[Any]]:
        """Yield the names of the columns, then the rows of the jobs that have ended, in their order."""
        settings = [key for key in self._settings[0][0] if key != "seed"]
        measures = sorted(self._measures, key=lambda name: (self._measures[name], name))
        names = ["job", *settings, "seed", *COLUMNS, *measures, "path", "replica", "hash", "message"]
        yield names
        for number in sorted(self.rows):
            yield [self.rows[number].get(name) for name in names]

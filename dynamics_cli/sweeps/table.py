"""The table of a sweep, computed from its runs."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from dynamics_cli.errors import DynError
from dynamics_cli.runs.columns import column_names
from dynamics_cli.runs.run import FEW_NUMBERS, Run
from dynamics_cli.runs.store import files
from dynamics_cli.sweeps.jobs import settings_of
from dynamics_cli.text import Table

Row = dict[str, Any]


class Batch(NamedTuple):
    """Jobs that are trained together, often a single one."""

    name: str
    """Their run directory, below that of the sweep."""
    numbers: Sequence[int]


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
        batches: all batches, larger than one job first.
    """

    def __init__(self, directory: Path, described: Mapping[str, Any]) -> None:
        """Begin with no job that has ended."""
        self.directory, self.rows, self._settings = directory, dict[int, Row](), settings_of(described)
        several: list[list[int]] = described["batches"]
        alone = sorted({*range(described["jobs"])}.difference(*several))
        batches = [Batch(f"batches/{numbers[0]:06d}", numbers) for numbers in several]
        self.batches = [*batches, *(Batch(f"jobs/{number:06d}", [number]) for number in alone)]
        self._measures: dict[str, tuple[int, int, int]] = {}
        """Name of a number -> the first job that has it, and its place there, by which columns stand."""

    def read(self, batch: Batch, is_own: Callable[[Run, Sequence[int]], bool] | None = None) -> bool:
        """Note how the jobs of a batch ended, if they have, by a run that is the batch's own; say whether they have."""
        if not files.exists(self.directory / batch.name):
            return False
        with suppress(DynError):  # a run that cannot be read is trained again, which tells why
            run = Run(self.directory / batch.name)
            count = len(run.info.get("replicas", [0]))
            own = count == len(batch.numbers) and (is_own is None or is_own(run, batch.numbers))
            if run.status in ENDED and own:
                self._note(run, *batch)
                return True
        return False

    def fail(self, batch: Batch, message: str) -> None:
        """Note that the jobs of a batch failed."""
        for number in batch.numbers:
            self.rows[number] = self._begun(number) | {"status": "failed", "path": batch.name, "message": message}

    def _begun(self, number: int) -> Row:
        settings, seed = self._settings[number]
        return {"job": number, **settings, "seed": seed}

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

"""The table of a sweep, computed from its runs."""

from __future__ import annotations

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
PLACE = ("path", "replica", "hash", "message")
"""Columns that say where the run of a job is."""
FIXED = ("job", "seed", "status", *PLACE)
"""Columns that are neither settings nor final numbers."""


class Results:
    """How the jobs of a sweep ended.

    Attributes:
        rows: the number of each job that has ended -> its row; numbers that are not finite are None.
        batches: all batches, larger than one job first.
    """

    def __init__(self, directory: Path, described: Mapping[str, Any]) -> None:
        """Begin with no job that has ended."""
        self.directory, self.rows, self._settings = directory, dict[int, Row](), settings_of(described)
        several: list[list[int]] = described["batches"]
        alone = sorted({*range(described["jobs"])}.difference(*several))
        batches = [Batch(f"batches/{numbers[0]:06d}", numbers) for numbers in several]
        self.batches = [*batches, *(Batch(f"jobs/{number:06d}", [number]) for number in alone)]

    def read(self, batch: Batch, is_own: Callable[[Run, Sequence[int]], bool] | None = None) -> bool:
        """Note how the jobs of a batch ended, if they have, by a run that is the batch's own; say whether they have."""
        if not files.exists(self.directory / batch.name):
            return False
        with suppress(DynError):  # a run that cannot be read is trained again, which tells why
            run = Run(self.directory / batch.name)
            fits = len(run.info.get("replicas", [0])) == len(batch.numbers)
            if run.status in ENDED and fits and (is_own is None or is_own(run, batch.numbers)):
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
        together = "replicas" in run.info
        columns = {column: of(run) for column, of in COLUMNS.items()}
        for measure, values in run.measures.items():
            if len(values):
                last = np.asarray(values[-1], float).reshape(len(numbers), -1)  # (jobs, numbers)
                names = [measure] if values.ndim == 1 + together else []
                if not names and last.shape[1] <= FEW_NUMBERS:
                    names = [f"{measure}.{part}" for part in column_names(run.config, measure, last.shape[1])]
                columns |= {column: last[:, k].tolist() for k, column in enumerate(names)}
        for k, number in enumerate(numbers):
            ended = {column: _finite(values[k]) for column, values in columns.items()}
            place = {"path": name, "replica": k if together else None, "hash": run.hash, "message": ""}
            self.rows[number] = self._begun(number) | ended | place

    def as_table(self) -> Table:
        """Return the rows of the jobs that have ended, in their order."""
        names, *rows = self.table()
        return Table(dict(zip(names, row, strict=True)) for row in rows)

    def table(self) -> Iterator[list[Any]]:
        """Yield the names of the columns, then the rows of the jobs that have ended, in their order."""
        rows = [self.rows[number] for number in sorted(self.rows)]
        before = ["job", *(key for key in self._settings[0][0] if key != "seed"), "seed", *COLUMNS]
        measures = dict.fromkeys(name for row in rows for name in row)
        names = [*before, *(name for name in measures if name not in (*before, *PLACE)), *PLACE]
        yield names
        for row in rows:
            yield [row.get(name) for name in names]


def _finite(value: Any) -> Any:
    return None if isinstance(value, float) and not math.isfinite(value) else value

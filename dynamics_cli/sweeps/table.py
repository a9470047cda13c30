"""The table of a sweep: a column is an array over all jobs in their order, read from the files of the runs."""

from __future__ import annotations

import io
import time
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dynamics_cli.errors import DynError, RunError
from dynamics_cli.runs.columns import column_names
from dynamics_cli.runs.run import FEW_NUMBERS, Run
from dynamics_cli.runs.store import files
from dynamics_cli.runs.store.locks import acquire
from dynamics_cli.sweeps.directory import (
    COLUMNS,
    ENDINGS,
    MEASURES_AT,
    RESULTS,
    TABLE,
    cell_of,
    read_sweep,
    read_table,
    remove_shards,
    shard_table,
    table_seals,
    write_sweep,
)
from dynamics_cli.sweeps.jobs import PlannedSweep
from dynamics_cli.sweeps.tasks import Numbers, Task, Tasks, alone
from dynamics_cli.text import Table
from dynamics_cli.training.session import identity_of

TABLE_SECONDS = 1.0
"""Time between two versions of a table that grows, at least."""
_BLOCK = 4096
"""Rows that are made at once."""
_LOCK = "table.lock"
Shard = tuple[int, int]
"""`(3, 50)`: the third of fifty parts of a sweep."""


class Results:
    """How the jobs of a sweep ended, as columns over all jobs in their order.

    Attributes:
        columns: name -> (jobs,), of `COLUMNS`.
        measures: name -> (jobs,), masked where a job has no such number.
    """

    def __init__(self, planned: PlannedSweep, tasks: Tasks, directory: Path) -> None:
        """Begin with no job that has ended."""
        self.planned, self.tasks, self.directory = planned, tasks, directory
        self.columns = {one.name: np.full(len(planned), one.empty, one.dtype) for one in COLUMNS}
        self.measures: dict[str, np.ma.MaskedArray[Any, Any]] = {}
        self._places: dict[str, tuple[int, int, int]] = {}
        for numbers, message in tasks.refused:
            self.fail(numbers, message)

    def counts(self) -> dict[str, int]:
        """Return how many jobs ended in which way."""
        return {name: int((self.columns["status"] == name).sum()) for name in ENDINGS}

    def first_failure(self) -> str:
        """Return why the first job that failed did."""
        return str(self.columns["message"][self.columns["status"] == "failed"][0])

    def fail(self, numbers: Numbers, message: str, path: str = "") -> None:
        """Note that those of the jobs that have not ended failed."""
        failed = numbers[self.columns["status"][numbers] == ""]
        for name, value in (("status", "failed"), ("message", message), ("path", path)):
            self.columns[name][failed] = value

    def read(self, task: Task, *, known: bool = False) -> bool:
        """Note how the jobs of a task ended, if they have: their files say so.

        Where it is not `known` whose runs they are, their identity is compared.
        """
        if self._take(task.name, task.numbers, known=known):
            return True
        apart = task.numbers if len(task.numbers) > 1 and files.exists(self.directory / alone(task.numbers[0])) else ()
        ended = [self._take(alone(number), np.array([number]), known=known) for number in apart]
        return bool(ended) and all(ended)

    def _take(self, name: str, numbers: Numbers, *, known: bool) -> bool:
        if files.exists(self.directory / name):
            with suppress(DynError):  # a run that cannot be read is trained again, which tells why
                run, count = Run(self.directory / name), len(numbers)
                ended = run.status in ("complete", "diverged") and len(run.info.get("replicas", [0])) == count
                if ended and (known or self._is_own(run, numbers)):
                    self._note(run, numbers)
                    return True
        return False

    def _is_own(self, run: Run, numbers: Numbers) -> bool:
        configs = [self.planned[int(number)].config for number in numbers]
        datasets = {id(config.dataset): config.dataset.resolve() for config in configs}  # jobs share most of them
        resolved = [config.model_copy(update={"dataset": datasets[id(config.dataset)]}) for config in configs]
        return run.hash == identity_of(resolved, str(run.info.get("device")), str(run.info.get("backend")))

    def _note(self, run: Run, numbers: Numbers) -> None:
        for column in COLUMNS:
            self.columns[column.name][numbers] = column.of(run)
        for place, (measure, values) in enumerate(run.measures.items()):
            if not len(values):
                continue
            last = np.asarray(values[-1], float).reshape(len(numbers), -1)
            names = [measure]
            if np.ndim(values) != (1 if len(numbers) == 1 else 2):
                config = self.planned[int(numbers[0])].config
                few = last.shape[1] <= FEW_NUMBERS
                names = [f"{measure}.{name}" for name in column_names(config, measure, last.shape[1])] if few else []
            for k, name in enumerate(names):
                first = (int(numbers[0]), place, k)  # whichever job ends first, columns stand as in the first of them
                self._places[name] = min(self._places.get(name, first), first)
                if name not in self.measures:
                    self.measures[name] = np.ma.MaskedArray(np.zeros(len(self.planned)), mask=True)
                self.measures[name][numbers] = last[:, k]

    def _records(self) -> Iterator[dict[str, Any]]:
        """Yield number, settings, seed, columns and measures of the jobs that have ended; paths are below the sweep."""
        numbers = np.flatnonzero(self.columns["status"] != "")
        for start in range(0, len(numbers), _BLOCK):
            some = numbers[start : start + _BLOCK]
            own = {name: self.measures[name][some].tolist() for name in self._measured}
            all_columns = [self.columns[one.name][some].tolist() for one in COLUMNS]
            for k, (number, *values) in enumerate(zip(some.tolist(), *all_columns, strict=True)):
                settings, seed = self.planned.cells(number)
                columns = [(one.name, one.plain(value)) for one, value in zip(COLUMNS, values, strict=True)]
                measures = {name: column[k] for name, column in own.items() if column[k] is not None}
                yield {"job": number, "settings": settings, "seed": seed, **dict(columns[:MEASURES_AT]),
                       "measures": measures, **dict(columns[MEASURES_AT:])}  # fmt: skip

    @property
    def _measured(self) -> list[str]:
        return sorted(self.measures, key=lambda name: (self._places[name], name))

    def __len__(self) -> int:
        """Return the number of jobs that have ended."""
        return int(np.count_nonzero(self.columns["status"] != ""))

    def documents(self) -> Iterator[dict[str, Any]]:
        """Yield the jobs that have ended as `--json` lists them."""
        for record in self._records():
            yield {**record, "path": self.directory / record["path"] if record["path"] else None}

    def rows(self) -> Table:
        """Return a row for each job: its number, settings, seed, how it ended, final numbers, where its run is."""
        return Table(map(_flat, self.documents()))

    @property
    def _keys(self) -> list[str]:
        return [key for key in self.planned.keys if key != "seed"]  # which has a column in any case

    def csv(self) -> Iterator[list[Any]]:
        """Yield the names of the columns of `results.csv`, then its rows."""
        columns = [column.name for column in COLUMNS]
        final, rest = columns[:MEASURES_AT], columns[MEASURES_AT:]
        yield (names := ["job", *self._keys, "seed", *final, *self._measured, *rest])
        for row in map(_flat, self._records()):
            yield [cell_of(row.get(name)) for name in names]

    def arrays(self) -> Iterator[tuple[str, NDArray[Any]]]:
        """Yield the columns of numbers and words (jobs,): of a job that has not ended NaN, -1 or an empty text."""
        columns: dict[str, list[Any]] = {key: [] for key in (*self._keys, "seed")}
        for number in range(len(self.planned)):
            settings, seed = self.planned.cells(number)
            row = settings | {"seed": -1 if seed is None else seed}
            for key, column in columns.items():
                column.append(cell_of(row.get(key, "")))
        for key, values in columns.items():
            plain = all(type(value) in (int, float) for value in values)
            yield key, np.array(values) if plain else np.array([str(value) for value in values])
        yield from ((name, column) for name, column in self.columns.items() if column.dtype != object)
        yield from ((name, column.filled(np.nan)) for name, column in self.measures.items())


def _flat(record: dict[str, Any]) -> dict[str, Any]:
    """Return a record with its settings and measures beside its other entries."""
    parts = (value if key in ("settings", "measures") else {key: value} for key, value in record.items())
    return {key: value for part in parts for key, value in part.items()}


class GrowingTable:
    """The table of a sweep, or of a shard of it, while jobs end; two drivers may write one table in turn."""

    def __init__(self, results: Results, described: dict[str, Any], shard: Shard | None) -> None:
        self._directory = results.directory
        self.path = self._directory / (RESULTS if shard is None else shard_table(*shard))
        self.results, self._described, self._whole = results, described, shard is None
        self._next = time.monotonic() + TABLE_SECONDS

    def grow(self) -> None:
        """Write the table if the last version is a second old, or older where writing takes long."""
        if (began := time.monotonic()) >= self._next:
            self.write()
            self._next = time.monotonic() + max(TABLE_SECONDS, 20 * (time.monotonic() - began))

    def unseal(self) -> None:
        """Note that the whole table is to be written again."""
        with self._alone() as sealed:
            if sealed:
                write_sweep(self._directory, self._described)

    def write(self, *, seal: bool = False) -> None:
        """Write the jobs that have ended, unless another driver has written all; to `seal`, checksums too."""
        with self._alone() as sealed:
            if sealed and self._whole and not seal:
                return
            rows = self.results.csv()
            files.save_csv(self.path, next(rows), rows)
            if self._whole:
                files.save(self._directory / TABLE["columns"], self._archive())
            if seal:
                write_sweep(self._directory, {**self._described, **table_seals(self._directory)})
                remove_shards(self._directory)

    def sealed(self) -> bool:
        """Whether the table is there, as it was written, and says how each job ended."""
        with suppress(RunError):
            read_table(self._directory)
            with np.load(io.BytesIO(read_table(self._directory, "columns")), allow_pickle=False) as columns:
                return np.array_equal(columns["status"], self.results.columns["status"])
        return False

    def _archive(self) -> memoryview:
        data = io.BytesIO()
        with zipfile.ZipFile(data, "w") as archive:  # `np.savez` has no room for a column called `file`
            for name, column in self.results.arrays():
                with archive.open(f"{name}.npy", "w", force_zip64=True) as stream:
                    np.lib.format.write_array(stream, column, allow_pickle=False)
        return data.getbuffer()

    @contextmanager
    def _alone(self) -> Iterator[bool]:
        """Let no other driver write meanwhile; say whether the whole table is written."""
        with files.os_errors_as_run_errors(self._directory):
            lock, _ = acquire(self._directory, _LOCK)
        try:
            yield "table" in read_sweep(self._directory)
        finally:
            lock.release()

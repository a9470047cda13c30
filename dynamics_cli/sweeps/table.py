"""The table of a sweep: a column is an array over all jobs in their order, read from the files of the runs."""

from __future__ import annotations

import io
import json
import math
import time
import zipfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, overload

import numpy as np
from numpy.typing import NDArray

from dynamics_cli.errors import DynError, RunError
from dynamics_cli.runs.run import FEW_NUMBERS, Run, column_names
from dynamics_cli.runs.store import files
from dynamics_cli.runs.store.locks import acquire
from dynamics_cli.sweeps.directory import (
    COLUMNS,
    RESULTS,
    read_sweep,
    read_table,
    remove_shards,
    shard_table,
    table_seals,
    write_sweep,
)
from dynamics_cli.sweeps.jobs import Job, PlannedSweep
from dynamics_cli.sweeps.tasks import Numbers, Task, Tasks, alone
from dynamics_cli.text import Table
from dynamics_cli.training.session import identity_of

STATUSES = ("", "complete", "diverged", "failed")
TABLE_SECONDS = 1.0
"""Time between two versions of a table that grows, at least."""
_BLOCK = 4096
"""Rows that are written at once."""
_LOCK = "table.lock"
Shard = tuple[int, int]
"""`(3, 50)`: the third of fifty parts of a sweep."""


@dataclass(frozen=True)
class Result:
    """How one job ended."""

    job: Job
    status: str
    """`complete`, `diverged` or `failed`."""
    path: str = ""
    """Its run directory, below that of the sweep."""
    replica: int | None = None
    """Its place among the replicas of that directory."""
    iterations: int | None = None
    final_loss: float = math.nan
    measures: dict[str, float] = field(default_factory=dict)
    message: str = ""
    hash: str = ""
    """Identity of the run, of all replicas of a directory the same."""


class Results(Sequence[Result]):
    """How the jobs of a sweep that have ended did so, in their order; each is made when it is asked for."""

    def __init__(self, planned: PlannedSweep, tasks: Tasks) -> None:
        """Begin with no job that has ended."""
        count = len(planned)
        self.planned, self.tasks = planned, tasks
        self.status = np.zeros(count, np.int8)
        self.iterations = np.full(count, -1, np.int64)
        self.final_loss = np.full(count, np.nan)
        self.replica = np.full(count, -1, np.int32)
        self.measures: dict[str, NDArray[np.float64]] = {}
        self._places: dict[str, tuple[int, int, int]] = {}
        self._measured: dict[str, NDArray[np.bool_]] = {}
        self._apart = np.zeros(count, bool)
        """Jobs that were trained alone, although their plan is to be trained together."""
        self._messages: dict[int, str] = {}
        self._hashes: dict[str, str] = {}
        """Run directory -> identity."""
        for numbers, message in tasks.refused:
            self.fail(numbers, message)

    def counts(self) -> dict[str, int]:
        """Return how many jobs ended in which way."""
        return {name: int((self.status == k).sum()) for k, name in enumerate(STATUSES) if k}

    def first_failed(self) -> Result:
        """Return the first job that failed."""
        return self._result(int(np.argmax(self.status == STATUSES.index("failed"))))

    def fail(self, numbers: Numbers, message: str) -> None:
        """Note that jobs failed."""
        self.status[numbers] = STATUSES.index("failed")
        self._messages |= dict.fromkeys(numbers.tolist(), message)

    def read(self, task: Task, directory: Path, *, known: bool = False) -> bool:
        """Note how the jobs of a task ended, if they have: their files say so.

        Where it is not `known` whose runs they are, their identity is compared.
        """
        if files.exists(directory / task.name):
            with suppress(DynError):  # what cannot be read is asked for again, which tells why
                return self._take(directory, task.name, task.numbers, known=known)
        if len(task.numbers) > 1 and files.exists(directory / alone(task.numbers[0])):
            ended = [self._read_alone(number, directory, known=known) for number in task.numbers]
            return all(ended)
        return False

    def _read_alone(self, number: int, directory: Path, *, known: bool) -> bool:
        with suppress(DynError):
            if self._take(directory, alone(number), np.array([number]), known=known):
                self._apart[number] = True
                return True
        return False

    def _is_own(self, run: Run, numbers: Numbers) -> bool:
        configs = [self.planned[int(number)].config for number in numbers]
        datasets = {id(config.dataset): config.dataset.resolve() for config in configs}  # jobs share most of them
        resolved = [config.model_copy(update={"dataset": datasets[id(config.dataset)]}) for config in configs]
        return run.hash == identity_of(resolved, str(run.info.get("device")), str(run.info.get("backend")))

    def _take(self, directory: Path, name: str, numbers: Numbers, *, known: bool) -> bool:
        run, own = Run(directory / name), len(numbers) == 1
        if run.status not in ("complete", "diverged") or not (known or self._is_own(run, numbers)):
            return False
        self._hashes[name] = run.hash or ""
        info = run.info
        if not own and len(info.get("replicas", ())) != len(numbers):
            return False
        self.status[numbers] = [STATUSES.index(one) for one in info.get("replica_statuses", [run.status])]
        self.iterations[numbers] = info.get("replica_iterations", run.iterations)
        losses = [run.final_loss] if own else info["replica_losses"]
        self.final_loss[numbers] = [math.nan if loss is None else loss for loss in losses]
        self.replica[numbers] = -1 if own else np.arange(len(numbers))
        for place, (measure, values) in enumerate(run.measures.items()):
            if not len(values):
                continue
            last = np.asarray(values[-1], float).reshape(len(numbers), -1)
            if np.ndim(values) == (1 if own else 2):
                self._measure(measure, numbers, last[:, 0], (place, 0))
            elif last.shape[1] <= FEW_NUMBERS:
                names = column_names(self.planned[int(numbers[0])].config, measure, last.shape[1])
                for k, column in enumerate(names):
                    self._measure(f"{measure}.{column}", numbers, last[:, k], (place, k))
        for number in numbers.tolist() if self._messages else ():
            self._messages.pop(number, None)
        return True

    def _measure(self, name: str, numbers: Numbers, values: NDArray[np.float64], place: tuple[int, int]) -> None:
        first = (int(numbers[0]), *place)  # whichever job ends first, columns stand as in the first that has them
        self._places[name] = min(self._places.get(name, first), first)
        if name not in self.measures:
            self.measures[name] = np.full(len(self.planned), np.nan)
            self._measured[name] = np.zeros(len(self.planned), bool)
        self.measures[name][numbers] = values
        self._measured[name][numbers] = True

    def _path(self, number: int) -> str:
        failed_before = self.tasks.task_of[number] < 0
        return (
            "" if failed_before else alone(number) if self._apart[number] else self._names(self.tasks.task_of[number])
        )

    def _names(self, task: int) -> str:
        if (known := getattr(self, "_name", None)) is None or known[0] != task:
            self._name = known = task, self.tasks[int(task)].name
        return str(known[1])

    def _result(self, number: int) -> Result:
        iterations, replica = int(self.iterations[number]), int(self.replica[number])
        return Result(
            self.planned[number],
            STATUSES[self.status[number]],
            self._path(number),
            None if replica < 0 else replica,
            None if iterations < 0 else iterations,
            float(self.final_loss[number]),
            {name: float(self.measures[name][number]) for name, has in self._measured.items() if has[number]},
            self._messages.get(number, ""),
            self._hashes.get(self._path(number), ""),
        )

    @property
    def numbers(self) -> Numbers:
        """The jobs that have ended."""
        return np.flatnonzero(self.status)

    def __len__(self) -> int:
        return int(np.count_nonzero(self.status))

    @overload
    def __getitem__(self, k: int) -> Result: ...
    @overload
    def __getitem__(self, k: slice) -> list[Result]: ...
    def __getitem__(self, k: int | slice) -> Result | list[Result]:
        numbers = self.numbers[k]
        return self._result(int(numbers)) if isinstance(k, int) else [self._result(int(one)) for one in numbers]

    def __iter__(self) -> Iterator[Result]:
        return (self._result(int(number)) for number in self.numbers)

    def header(self) -> list[str]:
        """Return the columns of the table: job, swept settings, seed, status, final numbers, where the run is."""
        return ["job", *self._keys, "seed", "status", "iterations", "final_loss", *self._columns, "path",
                "replica", "hash", "message"]  # fmt: skip

    @property
    def _columns(self) -> list[str]:
        return sorted(self.measures, key=lambda name: (self._places[name], name))

    @property
    def _keys(self) -> list[str]:
        return [key for key in self.planned.keys if key != "seed"]  # which has a column in any case

    def cells(self) -> Iterator[list[Any]]:
        """Yield the rows of the table, in the order of the jobs."""
        keys, names = self._keys, self._columns
        for start in range(0, len(self.planned), _BLOCK):
            numbers = start + np.flatnonzero(self.status[start : start + _BLOCK])
            own = [(self.measures[name][numbers].tolist(), self._measured[name][numbers].tolist()) for name in names]
            block = (
                column[numbers].tolist() for column in (self.status, self.iterations, self.final_loss, self.replica)
            )
            for k, (number, status, iterations, loss, replica) in enumerate(zip(numbers.tolist(), *block, strict=True)):
                settings, seed = self.planned.cells(number)
                yield [
                    number,
                    *(_cell(settings.get(key, "")) for key in keys),
                    "" if seed is None else seed,
                    STATUSES[status],
                    "" if iterations < 0 else iterations,
                    repr(loss),
                    *(repr(values[k]) if has[k] else "" for values, has in own),
                    (path := self._path(number)),
                    "" if replica < 0 else replica,
                    self._hashes.get(path, ""),
                    self._messages.get(number, ""),
                ]

    def arrays(self) -> Iterator[tuple[str, NDArray[Any]]]:
        """Yield the columns of numbers and words (jobs,): of a job that has not ended NaN, -1 or an empty text."""
        settings: list[list[Any]] = [[] for _ in self._keys]
        seeds = np.zeros(len(self.planned), np.int64)
        for number in range(len(self.planned)):
            found, seed = self.planned.cells(number)
            seeds[number] = -1 if seed is None else seed
            for column, key in zip(settings, self._keys, strict=True):
                column.append(_cell(found.get(key, "")))
        for key, values in zip(self._keys, settings, strict=True):
            plain = all(type(value) in (int, float) for value in values)
            yield key, np.array(values) if plain else np.array([str(value) for value in values])
        yield "seed", seeds
        yield "status", np.array(STATUSES)[self.status]
        yield from (("iterations", self.iterations), ("final_loss", self.final_loss), ("replica", self.replica))
        yield from self.measures.items()

    def rows(self, directory: Path) -> Table:
        """Return one row a job: its number, settings, seed, how it ended, final numbers, where its run is."""
        rows = Table()
        for result in self:
            row: dict[str, Any] = {}
            for key, value in job_document(result, directory).items():
                row |= value if key in ("settings", "measures") else {key: value}
            rows.append(row)
        return rows


def _cell(value: Any) -> Any:
    return json.dumps(value) if isinstance(value, list | dict | bool) else value


def job_document(result: Result, directory: Path) -> dict[str, Any]:
    """Return what `--json` says of one job."""
    return {
        "job": result.job.number,
        "settings": result.job.settings,
        "seed": result.job.config.seed,
        "status": result.status,
        "iterations": result.iterations,
        "final_loss": result.final_loss,
        "measures": result.measures,
        "path": directory / result.path if result.path else None,
        "replica": result.replica,
        "hash": result.hash,
        "message": result.message,
    }


class GrowingTable:
    """The table of a sweep, or of a shard of it, while jobs end; two drivers may write one table in turn."""

    def __init__(self, results: Results, directory: Path, described: dict[str, Any], shard: Shard | None) -> None:
        self.path = directory / (RESULTS if shard is None else shard_table(*shard))
        self.results, self._whole = results, shard is None
        self._directory, self._described = directory, described
        self._next = time.monotonic() + TABLE_SECONDS

    def grow(self) -> None:
        """Write the table if the last version is a second old, or older where writing takes long."""
        if (began := time.monotonic()) >= self._next:
            self.write()
            self._next = time.monotonic() + max(TABLE_SECONDS, 20 * (time.monotonic() - began))

    def unseal(self) -> None:
        """Note that the whole table is to be written again."""
        with self._alone():
            if "table" in read_sweep(self._directory):
                write_sweep(self._directory, self._described)

    def write(self) -> None:
        """Write what there is, unless another driver has written all."""
        with self._alone():
            if not self._whole or "table" not in read_sweep(self._directory):
                self._save()

    def sealed(self) -> bool:
        """Whether the table is there, as it was written, and says how each job ended."""
        with suppress(RunError):
            read_table(self._directory)
            with np.load(io.BytesIO(read_table(self._directory, "columns")), allow_pickle=False) as columns:
                return np.array_equal(columns["status"], np.array(STATUSES)[self.results.status])
        return False

    def seal(self) -> None:
        """Write the whole table, its columns, and its checksum into `sweep.json`."""
        with self._alone():
            self._save()
            write_sweep(self._directory, {**self._described, **table_seals(self._directory)})
            remove_shards(self._directory)

    def _save(self) -> None:
        files.save_csv(self.path, self.results.header(), self.results.cells())
        if self._whole:
            data = io.BytesIO()
            with zipfile.ZipFile(data, "w") as archive:  # `np.savez` has no room for a column called `file`
                for name, column in self.results.arrays():
                    with archive.open(f"{name}.npy", "w", force_zip64=True) as stream:
                        np.lib.format.write_array(stream, column, allow_pickle=False)
            files.save(self._directory / COLUMNS, data.getbuffer())

    @contextmanager
    def _alone(self) -> Iterator[None]:
        with files.os_errors_as_run_errors(self._directory):
            lock, _ = acquire(self._directory, _LOCK)
        try:
            yield
        finally:
            lock.release()

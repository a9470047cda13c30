"""A sweep as a directory: what was asked for, its runs, its table; nothing is done twice.

Jobs of equal shape are cut into batches by the plan alone; a batch, or a job that must be trained alone, is one task.
"""

from __future__ import annotations

import hashlib
import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Executor
from contextlib import nullcontext, suppress
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import Any

from dynamics_cli.config import run_hash
from dynamics_cli.errors import DynError, UsageError
from dynamics_cli.runs.replica import replicas_of
from dynamics_cli.runs.run import Run
from dynamics_cli.runs.store import files, layout
from dynamics_cli.runs.store.locks import run_lock
from dynamics_cli.runs.summary import final_measures
from dynamics_cli.sweeps.directory import (
    RESULTS,
    SWEEP,
    read_sweep,
    remove_shards,
    shard_table,
    table_seal,
    write_sweep,
    write_table,
)
from dynamics_cli.sweeps.expressions import Let
from dynamics_cli.sweeps.grid import Axis
from dynamics_cli.sweeps.jobs import Job
from dynamics_cli.sweeps.workers import STOPPED, run_in_processes, run_task
from dynamics_cli.text import Table
from dynamics_cli.training.backends import choose
from dynamics_cli.training.estimate import Estimate, estimate
from dynamics_cli.training.replicas import build_problems, divide
from dynamics_cli.training.session import identity_of
from dynamics_cli.training.signals import Interrupted

TABLE_SECONDS = 1.0
"""Time between two versions of a table that grows, at least."""
LOOKED_AT = 100
"""Jobs trained alone whose needs are estimated, one by one."""
SHORT_SECONDS = 10.0
"""Batches that take less than this together are trained without starting processes."""
Report = Callable[["Result"], object]


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


@dataclass(frozen=True)
class PlannedSweep:
    """What a sweep is: its jobs, and where their settings came from."""

    jobs: Sequence[Job]
    axes: Sequence[Axis] = ()
    lets: Sequence[Let] = ()
    """Settings that are computed."""
    seeds: int = 1

    @property
    def keys(self) -> list[str]:
        """The settings that differ from job to job."""
        return [axis.key for axis in self.axes] + [let.key for let in self.lets]

    def described(self) -> dict[str, Any]:
        """Return what `sweep.json` says of it.

        Raises:
            ConfigError: when a file that a config names is not there or cannot be read.
        """
        axes = [
            {"key": a.key, "values": list(a.values), "log": a.log} | ({"with": a.leader} if a.leader else {})
            for a in self.axes
        ]
        lets = {"computed": {let.key: let.expression for let in self.lets}} if self.lets else {}
        return {
            "hash": sweep_hash(self.jobs),
            "name": self.jobs[0].config.name,
            "axes": axes,
            **lets,
            "seeds": self.seeds,
            "jobs": len(self.jobs),
        }


@dataclass(frozen=True)
class Sweep:
    """A finished sweep."""

    path: Path
    results: list[Result]
    table: Path

    @property
    def rows(self) -> Table:
        """One row a job, as `results.csv` has them: settings, seed, how it ended, final numbers, where its run is."""
        return result_rows(self.results, self.path)

    def _repr_html_(self) -> str:
        return self.rows._repr_html_()


def sweep_hash(jobs: Sequence[Job]) -> str:
    """Return the identity of a sweep: that of its runs in their order, device and backend as they were asked for.

    Raises:
        ConfigError: when a file that a config names is not there or cannot be read.

    """
    digest = hashlib.sha256()
    for job in jobs:
        config = job.config
        digest.update(run_hash(config, device=config.device, backend=config.backend).encode())
    return digest.hexdigest()


@dataclass(frozen=True)
class Task:
    """Jobs that are trained together, often one: what a worker does."""

    name: str
    """The run directory, below that of the sweep."""
    jobs: Sequence[Job]


def split(jobs: Sequence[Job]) -> tuple[list[Task], list[Result]]:
    """Return the tasks of a sweep, which its jobs alone decide, and the jobs that no network can be trained with."""
    division = divide([job.config for job in jobs])
    tasks = []
    for batch in division.batches:
        together = [jobs[k] for k, _ in batch]
        tasks.append(Task(f"batches/{together[0].number:06d}", together))
    tasks += [Task(f"jobs/{jobs[k].number:06d}", [jobs[k]]) for k in division.singles]
    return tasks, [Result(jobs[k], "failed", message=message) for k, message in division.refused]


Shard = tuple[int, int]
"""`(3, 50)`: the third of fifty parts of a sweep."""


def run_sweep(
    planned: PlannedSweep,
    *,
    out: Path | None = None,
    shard: Shard | None = None,
    executor: Executor | None = None,
    workers: int | None = None,
    report: Report | None = None,
) -> Sweep:
    """Train the jobs of a sweep, skip what is done, and write its table, which grows as jobs end.

    What is done is decided by the files alone: shards of one sweep may run at once, on machines that share a folder,
    and any of them may die. The same call without a shard trains what is missing and completes the table.

    Args:
        planned: what `api.plan_sweep` returns.
        out: the directory; by default one named after the sweep below `outputs/sweeps`.
        shard: the part of the sweep that is trained; by default all of it.
        executor: where tasks run; by default spawned processes of one thread each, and short batches here.
        workers: number of those processes; by default one per core. When given, nothing is trained here.
        report: called with each result as it comes.

    Raises:
        UsageError: the directory holds another sweep.
        ConfigError: a file that a config names cannot be read.
        RunError: the directory cannot be written.
        Interrupted: a signal came; calling again goes on.

    """
    described = planned.described()
    directory = sweep_directory(described, out)
    tasks, refused = split(planned.jobs)
    if shard is not None:
        k, n = shard
        tasks, refused = tasks[k - 1 :: n], refused[k - 1 :: n]
    with run_lock(directory) if shard is None else nullcontext():
        _claim(directory, described)
        growing = GrowingTable(directory, planned.keys, described, shard)
        try:
            for result in chain(refused, _run_tasks(tasks, directory, executor, workers)):
                growing.add(result)
                if report is not None:
                    report(result)
        finally:
            growing.write()
        path = growing.path
        if shard is None:
            write_sweep(directory, {**described, "table": table_seal(files.read(path))})
            remove_shards(directory)
    return Sweep(directory, growing.in_order(), path)


def sweep_directory(described: Mapping[str, Any], out: Path | None = None) -> Path:
    """Return where a sweep is."""
    return out or layout.outputs_root() / "sweeps" / f"{described['name']}-{described['hash'][:10]}"


def _claim(directory: Path, described: dict[str, Any]) -> None:
    if files.exists(directory / SWEEP):
        if read_sweep(directory)["hash"] != described["hash"]:
            raise UsageError(f"{directory} holds another sweep; give --out another directory")
        return
    foreign = [name for name in (layout.INFO, layout.CONFIG) if files.exists(directory / name)]
    if foreign:
        raise UsageError(f"{directory} holds {foreign[0]}: it is not the directory of a sweep")
    files.make_directory(directory)
    write_sweep(directory, described)


class GrowingTable:
    """The table of a sweep, or of a shard of it, while jobs end."""

    def __init__(self, directory: Path, keys: Sequence[str], described: dict[str, Any], shard: Shard | None) -> None:
        self.path = directory / (RESULTS if shard is None else shard_table(*shard))
        self._directory, self._keys, self._described = directory, keys, described
        self._results: dict[int, Result] = {}
        self._next = time.monotonic() + TABLE_SECONDS

    def add(self, result: Result) -> None:
        """Note how a job ended; the file follows after a second, or later where writing takes long."""
        self._results[result.job.number] = result
        if (began := time.monotonic()) >= self._next:
            self.write()
            self._next = time.monotonic() + max(TABLE_SECONDS, 20 * (time.monotonic() - began))

    def in_order(self) -> list[Result]:
        """Return the results in the order of the jobs."""
        return [self._results[number] for number in sorted(self._results)]

    def write(self) -> None:
        """Write what there is."""
        if self.path.name == RESULTS and "table" in read_sweep(self._directory):
            write_sweep(self._directory, self._described)  # sealed by an earlier call, which it will not be meanwhile
        write_table(self.path, self.in_order(), self._keys)


def _run_tasks(
    tasks: Sequence[Task], directory: Path, executor: Executor | None, workers: int | None
) -> Iterator[Result]:
    """Yield how each job ended: those that are done at once, then short batches in this process, then all others."""
    todo = []
    for task in tasks:
        done = finished(task, directory)
        yield from done
        if not done:
            todo.append(task)
    here = _short(todo) if executor is None and workers is None else []
    for task in here:  # whose compiled kernels use all cores
        try:
            why = run_task([job.config for job in task.jobs], directory / task.name)
        except Interrupted as error:
            raise Interrupted(STOPPED, error.number) from error
        yield from _ended(task, directory, why)
    apart = [task for task in todo if task not in here]
    sent = [([job.config for job in task.jobs], directory / task.name) for task in apart]
    for k, why in run_in_processes(sent, executor=executor, workers=workers):
        yield from _ended(apart[k], directory, why)


def _short(tasks: Sequence[Task]) -> list[Task]:
    """Return the batches that this process trains: one alone, or those that take less than starting others."""
    batches = [task for task in tasks if len(task.jobs) > 1]
    if len(batches) < 2 or sum(needs(task).seconds * len(task.jobs) for task in batches) < SHORT_SECONDS:
        return batches
    return []


def needs(task: Task) -> Estimate:
    """Return what each network of a task needs; those of one task differ in numbers only.

    Raises:
        DynError: it cannot be trained.
    """
    problems = build_problems([job.config for job in task.jobs[:2]])
    return estimate(problems[0], choose(problems))


def finished(task: Task, directory: Path) -> list[Result]:
    """Return how the jobs of a task ended; none where it is not done yet."""
    with suppress(DynError):  # what cannot be read is asked for again, which tells why
        run = Run(directory / task.name)
        resolved = [job.config.model_copy(update={"dataset": job.config.dataset.resolve()}) for job in task.jobs]
        own = run.hash == identity_of(resolved, str(run.info.get("device")), str(run.info.get("backend")))
        if own and run.status in ("complete", "diverged"):
            return _ended(task, directory, "")
    return []


def _ended(task: Task, directory: Path, why: str) -> list[Result]:
    if why:
        return [Result(job, "failed", path=task.name, message=why) for job in task.jobs]
    together = Run(directory / task.name)
    if len(task.jobs) == 1:
        return [_result(task.jobs[0], together, task.name)]
    runs = zip(task.jobs, replicas_of(together), strict=True)
    return [_result(job, run, task.name, replica=r) for r, (job, run) in enumerate(runs)]


def _result(job: Job, run: Run, name: str, replica: int | None = None) -> Result:
    measures = final_measures(run)
    return Result(job, run.status, name, replica, run.iterations, run.final_loss, measures, hash=run.hash or "")


def counts(results: Sequence[Result]) -> dict[str, Any]:
    """Return how many jobs ended in which way."""
    ended = [result.status for result in results]
    return {status: ended.count(status) for status in ("complete", "diverged", "failed")}


@dataclass(frozen=True)
class SweepProspect:
    """What a sweep would do, and need."""

    path: Path
    jobs: int
    done: int
    """Jobs that are done already."""
    refused: list[str]
    """Why jobs cannot be trained at all, each message once."""
    batches: int
    alone: int
    """Jobs that are trained alone."""
    seconds: float
    """Time that the rest takes on two CPU cores, within a factor of a few."""
    disk_bytes: int
    """Size of all runs."""


def prospect(planned: PlannedSweep, out: Path | None = None) -> SweepProspect:
    """Say what `run_sweep` would do; nothing is written.

    Raises:
        UsageError: the directory holds another sweep.
    """
    described = planned.described()
    directory = sweep_directory(described, out)
    if files.exists(directory / SWEEP) and read_sweep(directory)["hash"] != described["hash"]:
        raise UsageError(f"{directory} holds another sweep; give --out another directory")
    tasks, refused = split(planned.jobs)
    alone = [task for task in tasks if len(task.jobs) == 1]
    step = max(1, len(alone) // LOOKED_AT)  # of many jobs some stand for the others
    left, seconds, disk = set(map(id, tasks)), 0.0, 0.0
    done = [task for task in tasks if finished(task, directory)]
    left -= set(map(id, done))
    messages = [result.message for result in refused]
    for task in [*(task for task in tasks if len(task.jobs) > 1), *alone[::step]]:
        count = len(task.jobs) if len(task.jobs) > 1 else len(alone) / len(alone[::step])
        try:
            one = needs(task)
        except DynError as error:
            messages.append(str(error))
            continue
        disk += count * one.disk_bytes
        seconds += count * one.seconds * (id(task) in left)
    jobs_done = sum(len(task.jobs) for task in done)
    return SweepProspect(directory, len(planned.jobs), jobs_done, list(dict.fromkeys(messages)),
                         len(tasks) - len(alone), len(alone), seconds, round(disk))  # fmt: skip


def result_rows(results: Sequence[Result], directory: Path) -> Table:
    """Return one row a job: its number, settings, seed, how it ended, final numbers, where its run is."""
    rows = Table()
    for result in results:
        row: dict[str, Any] = {}
        for key, value in job_document(result, directory).items():
            row |= value if key in ("settings", "measures") else {key: value}
        rows.append(row)
    return rows


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

"""A sweep as a directory: what was asked for, its runs, its table; nothing is done twice."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from dynamics_cli.config import run_hash
from dynamics_cli.errors import DynError, UsageError
from dynamics_cli.runs.replica import replicas_of
from dynamics_cli.runs.run import Run
from dynamics_cli.runs.store import files, layout
from dynamics_cli.runs.store.locks import run_lock
from dynamics_cli.sweeps.directory import SWEEP, read_sweep, table_seal, write_sweep, write_table
from dynamics_cli.sweeps.expressions import Let
from dynamics_cli.sweeps.grid import Axis
from dynamics_cli.sweeps.jobs import Job
from dynamics_cli.sweeps.workers import run_in_processes
from dynamics_cli.text import Table
from dynamics_cli.training.problem import Problem
from dynamics_cli.training.replicas import divide
from dynamics_cli.training.session import obtain_run, plan_problems
from dynamics_cli.training.signals import Interrupted

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


def run_sweep(
    planned: PlannedSweep,
    *,
    out: Path | None = None,
    executor: Executor | None = None,
    workers: int | None = None,
    report: Report | None = None,
) -> Sweep:
    """Train the jobs of a sweep, skip what is done, and write its table.

    Raises:
        UsageError: the directory holds another sweep.
        ConfigError: a file that a config names cannot be read.
        RunError: the directory cannot be written.
        Interrupted: a signal came; calling again goes on.

    """
    described = planned.described()
    directory = out or layout.outputs_root() / "sweeps" / f"{described['name']}-{described['hash'][:10]}"
    with run_lock(directory):
        _claim(directory, described)
        results = run_jobs(planned.jobs, directory, executor=executor, workers=workers, report=report)
        path = write_table(directory, results, planned.keys)
        write_sweep(directory, {**described, "table": table_seal(files.read(path))})
    return Sweep(directory, results, path)


def _claim(directory: Path, described: dict[str, Any]) -> None:
    if files.exists(directory / SWEEP):
        if read_sweep(directory)["hash"] != described["hash"]:
            raise UsageError(f"{directory} holds another sweep; give --out another directory")
        return
    foreign = [name for name in (layout.INFO, layout.CONFIG) if files.exists(directory / name)]
    if foreign:
        raise UsageError(f"{directory} holds {foreign[0]}: it is not the directory of a sweep")
    write_sweep(directory, described)


def run_jobs(
    jobs: Sequence[Job],
    directory: Path,
    *,
    executor: Executor | None = None,
    workers: int | None = None,
    report: Report | None = None,
) -> list[Result]:
    """Train all jobs below `directory`, going on when one fails; finished ones are only read.

    Args:
        jobs: what `build_jobs` returns.
        directory: the sweep's own.
        executor: where jobs that cannot be batched run; by default spawned processes of one thread each.
        workers: number of those processes; by default one per core.
        report: called with each result as it comes.

    Raises:
        Interrupted: SIGINT or SIGTERM came; what was done is kept, and the same call goes on from there.

    """
    results: dict[int, Result] = {}
    for result in _results(jobs, directory, executor, workers):
        results[result.job.number] = result
        if report is not None:
            report(result)
    return [results[job.number] for job in jobs]


def _results(jobs: Sequence[Job], directory: Path, executor: Executor | None, workers: int | None) -> Iterator[Result]:
    """Train all jobs and yield how each ended: batches in this process, all others through an executor."""
    division = divide([job.config for job in jobs])
    for k, message in division.refused:
        yield Result(jobs[k], "failed", message=message)
    for batch in division.batches:
        yield from _run_batch([(jobs[k], problem) for k, problem in batch], directory)
    singles = [jobs[k] for k in division.singles]
    names = [f"jobs/{job.number:06d}" for job in singles]
    todo = [(job.config, directory / name) for job, name in zip(singles, names, strict=True)]
    for k, message in run_in_processes(todo, executor=executor, workers=workers):
        failed = Result(singles[k], "failed", path=names[k], message=message)
        yield failed if message else _result(singles[k], Run(directory / names[k]), names[k])


def _run_batch(batch: Sequence[tuple[Job, Problem]], directory: Path) -> list[Result]:
    """Train one batch in this process, whose compiled kernels use all cores."""
    name = f"batches/{batch[0][0].number:06d}"
    try:
        plan = plan_problems([problem for _, problem in batch], directory / name)
        runs = replicas_of(obtain_run(plan, resume=True).run)
    except Interrupted:
        raise
    except DynError as error:
        return [Result(job, "failed", path=name, message=str(error)) for job, _ in batch]
    return [_result(job, run, name, replica=r) for r, ((job, _), run) in enumerate(zip(batch, runs, strict=True))]


def _result(job: Job, run: Run, name: str, replica: int | None = None) -> Result:
    measures = {key: float(values[-1]) for key, values in run.measures.items() if len(values)}
    return Result(job, run.status, name, replica, run.iterations, run.final_loss, measures)


def counts(results: Sequence[Result]) -> dict[str, Any]:
    """Return how many jobs ended in which way."""
    ended = [result.status for result in results]
    return {status: ended.count(status) for status in ("complete", "diverged", "failed")}


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
        "message": result.message,
    }

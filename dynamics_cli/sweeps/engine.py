"""Running a sweep: batches in this process, everything else through an executor; nothing is done twice."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from dynamics_cli.errors import DynError
from dynamics_cli.runs.run import Run
from dynamics_cli.sweeps.batches import Work, divide
from dynamics_cli.sweeps.jobs import Job
from dynamics_cli.sweeps.workers import run_in_processes
from dynamics_cli.training.problem import Problem
from dynamics_cli.training.replicas import obtain_replicas, plan_replicas
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
    work = divide(jobs)
    results: dict[int, Result] = {}

    def note(result: Result) -> None:
        results[result.job.number] = result
        if report is not None:
            report(result)

    for job, message in work.refused:
        note(Result(job, "failed", message=message))
    for batch in work.batches:
        for result in _run_batch(batch, directory):
            note(result)
    _run_singles(work, directory, executor, workers, note)
    return [results[job.number] for job in jobs]


def _run_batch(batch: Sequence[tuple[Job, Problem]], directory: Path) -> list[Result]:
    """Train one batch in this process, whose compiled kernels use all cores."""
    name = f"batches/{batch[0][0].number:06d}"
    try:
        runs = obtain_replicas(plan_replicas([problem for _, problem in batch], directory / name))
    except Interrupted:
        raise
    except DynError as error:
        return [Result(job, "failed", path=name, message=str(error)) for job, _ in batch]
    return [_result(job, run, name, replica=r) for r, ((job, _), run) in enumerate(zip(batch, runs, strict=True))]


def _run_singles(
    work: Work, directory: Path, executor: Executor | None, workers: int | None, note: Callable[[Result], None]
) -> None:
    todo = [(job.config, directory / _single(job)) for job in work.singles]
    for number, message in run_in_processes(todo, executor=executor, workers=workers):
        job, name = work.singles[number], _single(work.singles[number])
        failed = Result(job, "failed", path=name, message=message)
        note(failed if message else _result(job, Run(directory / name), name))


def _single(job: Job) -> str:
    return f"jobs/{job.number:06d}"


def _result(job: Job, run: Run, name: str, replica: int | None = None) -> Result:
    measures = {key: float(values[-1]) for key, values in run.measures.items() if len(values)}
    return Result(job, run.status, name, replica, run.iterations, run.final_loss, measures)


def counts(results: Sequence[Result]) -> dict[str, Any]:
    """Return how many jobs ended in which way."""
    ended = [result.status for result in results]
    return {status: ended.count(status) for status in ("complete", "diverged", "failed")}

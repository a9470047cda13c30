"""Running a sweep: batches in this process, everything else through an executor; nothing is done twice."""

from __future__ import annotations

import math
import multiprocessing
import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor, ProcessPoolExecutor, as_completed
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from dynamics_cli.config import RunConfig
from dynamics_cli.errors import DynError
from dynamics_cli.runs.run import Run
from dynamics_cli.sweeps.batches import Work, divide
from dynamics_cli.sweeps.jobs import Job
from dynamics_cli.training.problem import Problem
from dynamics_cli.training.replicas import obtain_replicas, plan_replicas
from dynamics_cli.training.session import obtain_run, plan_run
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


def run_in_processes(
    todo: Sequence[tuple[RunConfig, Path]], *, executor: Executor | None = None, workers: int | None = None
) -> Iterator[tuple[int, str]]:
    """Train configs in their directories, in any order; yield the place of each as it ends, and why it failed or "".

    Args:
        todo: configs and their run directories.
        executor: where they run; by default spawned processes of one thread each, one per core.
        workers: number of those processes.

    """
    if not todo:
        return
    own = executor is None
    if executor is None:
        spawn = multiprocessing.get_context("spawn")
        count = min(workers or os.cpu_count() or 1, len(todo))
        executor = ProcessPoolExecutor(count, mp_context=spawn, initializer=_one_thread)
    try:
        futures = {executor.submit(run_job, config, directory): k for k, (config, directory) in enumerate(todo)}
        for future in as_completed(futures):
            yield futures[future], future.result()
    finally:
        if own:
            executor.shutdown(wait=True, cancel_futures=True)


def _single(job: Job) -> str:
    return f"jobs/{job.number:06d}"


def run_job(config: RunConfig, directory: Path) -> str:
    """Train one job, or go on with it; return "" or why it failed. Called in another process."""
    try:
        obtain_run(plan_run(config, directory), resume=True)
    except Interrupted:
        raise
    except DynError as error:
        return str(error)
    return ""


def _result(job: Job, run: Run, name: str, replica: int | None = None) -> Result:
    measures = {key: float(values[-1]) for key, values in run.measures.items() if len(values)}
    return Result(job, run.status, name, replica, run.iterations, run.final_loss, measures)


def _one_thread() -> None:
    """Keep a worker process on one core; the cores are busy with its siblings."""
    for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS"):
        os.environ[name] = "1"
    import torch

    torch.set_num_threads(1)


def counts(results: Sequence[Result]) -> dict[str, Any]:
    """Return how many jobs ended in which way."""
    ended = [result.status for result in results]
    return {status: ended.count(status) for status in ("complete", "diverged", "failed")}

"""Training the jobs of a sweep that are not done; nothing is done twice."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor
from contextlib import nullcontext, suppress
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any

from dynamics_cli.errors import DynError, UsageError
from dynamics_cli.process import cores
from dynamics_cli.runs.errors import CorruptRunError
from dynamics_cli.runs.run import Run
from dynamics_cli.runs.store import files, layout, manifest
from dynamics_cli.runs.store.locks import run_lock
from dynamics_cli.sweeps.directory import (
    RESULTS,
    SWEEP,
    Batch,
    Sweep,
    SweepDescription,
    batches_of,
    belonging,
    ended_rows,
    ended_run,
    parts_of,
    read_sweep,
    write_table,
)
from dynamics_cli.sweeps.jobs import PlannedSweep
from dynamics_cli.text import duration
from dynamics_cli.training.backends import choose
from dynamics_cli.training.estimate import measuring_seconds
from dynamics_cli.training.many.replicas import divide
from dynamics_cli.training.many.train import Task, train_all
from dynamics_cli.training.many.workers import STOPPED
from dynamics_cli.training.problem import build_problem
from dynamics_cli.training.session import Obtained, identity_of
from dynamics_cli.training.signals import Interrupted

LONG_MEASURING = 30.0
"""Seconds of measures from which processes are worth it."""
FEW_STATES = 40
"""States of all jobs up to which measures are not tried for that."""


def run_sweep(
    planned: PlannedSweep,
    *,
    out: Path | None = None,
    shard: tuple[int, int] | None = None,
    executor: Executor | None = None,
    workers: int | None = None,
    report: Callable[[float, int], object] | None = None,
    messages: Callable[[str], None] | None = None,
) -> Sweep:
    """Train the jobs of a sweep that are not done, and write its table.

    One process trains a sweep; another waits for it. Shards may run at once, on machines that share
    a folder; the last one writes the table. The same call without a shard trains the missing jobs
    and writes the table.

    `report` is called with the number of jobs that are done, a half-trained one as 1/2, and of all;
    the others are arguments of `api.sweep`.

    Raises:
        UsageError: the directory holds something else.
        RunError: the directory cannot be written; and as `api.sweep`.
        Interrupted: a signal came; calling again goes on.
    """
    directory = out or default_directory(planned)
    if foreign := [name for name in (layout.INFO, layout.CONFIG) if files.exists(directory / name)]:
        raise UsageError(f"{directory} holds {foreign[0]}: it is not the directory of a sweep")
    if (kept := _finished_read_only(directory, planned)) is not None:
        return kept
    with run_lock(directory, on_wait=messages) if shard is None else nullcontext():
        part, parts = shard or (1, 1)
        if shard is None and executor is None and workers is None:
            workers = _measuring_workers(directory, planned, messages)
        each = workers or getattr(executor, "_max_workers", None) or 1
        described = _begun(directory, planned, parts * each)
        datasets = dict[int, Any]()
        whole = batches_of(described)
        of_shard = (parts_of(directory, batch) for batch in whole[part - 1 :: parts])
        batches = [*chain.from_iterable(of_shard)]
        todo = _left(directory, batches, planned, datasets, messages)
        if shard is not None and messages is not None:
            told = f"part {part} of {parts}: {_jobs(batches)} of {described.jobs} jobs"
            if not batches:
                told += f", since the sweep was begun in {len(whole)} batches"
            messages(f"{told}, {_jobs(todo)} to train")
        if described.table is not None and todo:
            described.table = None
            described.write(directory)
        ended = _jobs(batches) - _jobs(todo)

        def tell(under_way: float) -> None:
            if report is not None:
                report(ended + under_way, _jobs(batches))

        def on_end(*some: Batch) -> None:
            nonlocal ended
            ended += _jobs(some)
            tell(0)

        on_end()

        def task_of(batch: Batch) -> Task:
            configs = [planned[number].config for number in batch.numbers]
            return Task(configs, directory / batch.name, about=belonging(described, batch))

        def failure(outcome: Obtained | DynError, batch: Batch) -> str | None:
            return _failure(outcome, batch, planned, datasets)

        train = partial(train_all, executor=executor, workers=workers, under_way=tell)
        try:
            failed = _train_batches(directory, todo, task_of, train, failure, on_end, messages)
        except Interrupted as error:
            raise Interrupted(STOPPED, error.number) from error
        except KeyboardInterrupt:  # between two runs, or before training began
            raise KeyboardInterrupt(STOPPED) from None
        rows = ended_rows(directory, described, failed, {batch.name for batch in batches})
        if shard is None or len(rows) == described.jobs:  # perhaps of the part that ends last
            write_table(directory, described, rows)
    done = Sweep(directory)
    done.rows = rows  # with the failures of a shard, which are written nowhere
    return done


def _measuring_workers(
    directory: Path, planned: PlannedSweep, messages: Callable[[str], None] | None
) -> int | None:
    """Return the cores as workers where measures take long; None elsewhere.

    One process takes measures in turn.
    """
    described = known_sweep(directory, planned)
    if cores() == 1 or (described is not None and described.table is not None):
        return None
    seconds = 0.0
    with suppress(DynError):  # told when the job is trained
        problem = build_problem(planned[-1].config)
        choice = choose([problem], [])
        several = len(planned) * len(problem.recorded_states) > FEW_STATES
        if problem.measures and several and choice.device == "cpu":
            seconds = measuring_seconds(problem, choice) * len(planned)
    if seconds < LONG_MEASURING:
        return None
    if messages is not None:
        messages(f"measures take about {duration(seconds)}, shared by {cores()} processes")
    return cores()


def _begun(directory: Path, planned: PlannedSweep, parts: int) -> SweepDescription:
    """Return the description of a sweep, which is written where there is none.

    A sweep that begins has at least `parts` batches and single jobs, unless it has fewer jobs.
    """
    described = known_sweep(directory, planned)
    if described is None:
        division = divide([job.config for job in planned], parts)
        refused = [numbers for numbers, _ in division.refused if len(numbers) > 1]
        # another shard may have been faster
        described = known_sweep(directory, planned)
        if described is None:
            described = planned.described([*division.batches, *refused])
            described.write(directory)
    # texts of pictures, and columns of the table: nothing is trained again
    if described.labels != planned.labels:
        described.labels = planned.labels
        described.write(directory)
    if described.columns != planned.columns:
        described.columns = planned.columns
        described.table = None
        described.write(directory)
    return described


def _jobs(batches: Sequence[Batch]) -> int:
    return sum(len(batch.numbers) for batch in batches)


def _train_batches(
    directory: Path,
    todo: Sequence[Batch],
    task_of: Callable[[Batch], Task],
    train: Callable[[Sequence[Task]], Iterator[tuple[int, Obtained | DynError]]],
    failure: Callable[[Obtained | DynError, Batch], str | None],
    on_end: Callable[[Batch], None],
    messages: Callable[[str], None] | None,
) -> dict[str, str]:
    """Train batches, and return the names of those that failed, and why.

    The jobs of a batch that fails are trained one by one: one network need not fail the others.
    """
    failed: dict[str, str] = {}
    while todo:
        again: list[Batch] = []
        for place, outcome in train([task_of(batch) for batch in todo]):
            batch = todo[place]
            why = failure(outcome, batch)
            if why is None:
                on_end(batch)
                continue
            trained = not isinstance(outcome, DynError)  # of other data than the plan's
            if trained or len(batch.numbers) == 1 or ended_run(directory, batch) is not None:
                failed[batch.name] = why
                on_end(batch)
                continue
            alone: list[Batch] = []
            for job in batch.alone():
                try:
                    task_of(job).plan()
                except DynError as error:  # no process is started for it
                    failed[job.name] = str(error)
                    on_end(job)
                else:
                    alone.append(job)
            if alone and messages is not None:
                messages(f"{why}: {len(alone)} jobs are trained one by one")
            again += alone
        todo = again
    return failed


def _finished_read_only(directory: Path, planned: PlannedSweep) -> Sweep | None:
    """Return the sweep in a directory that cannot be written, where it is finished; else None."""
    if not directory.is_dir() or os.access(directory, os.W_OK):
        return None
    if known_sweep(directory, planned) is None:
        return None
    sweep = Sweep(directory)
    return sweep if sweep.finished else None


def default_directory(planned: PlannedSweep) -> Path:
    """Return the directory that is named after a sweep."""
    return layout.outputs_root() / "sweeps" / f"{planned[0].config.name}-{planned.hash[:10]}"


def known_sweep(directory: Path, planned: PlannedSweep) -> SweepDescription | None:
    """Return the contents of `sweep.json`, None where there is none.

    Raises:
        UsageError: the directory holds another sweep, or somebody's table.
    """
    if not files.exists(directory / SWEEP):
        manifest.refuse_foreign(directory, [RESULTS])  # before hours of training
        return None
    if (known := read_sweep(directory)).hash != planned.hash:
        raise UsageError(f"{directory} holds another sweep; give --out another directory")
    return known


def _left(
    directory: Path,
    batches: Sequence[Batch],
    planned: PlannedSweep,
    datasets: dict[int, Any],
    messages: Callable[[str], None] | None,
) -> list[Batch]:
    """Return the batches that are not done; `messages` is told of those with damaged runs."""
    left = []
    for batch in batches:
        try:
            if not _is_done(directory, batch, planned, datasets):
                left.append(batch)
        except CorruptRunError as error:
            left.append(batch)
            if messages is not None and not error.unread:
                messages(f"{error}; it is trained again")
    return left


def _is_done(
    directory: Path, batch: Batch, planned: PlannedSweep, datasets: dict[int, Any]
) -> bool:
    """Whether the jobs of a batch have ended, in a run of theirs.

    Raises CorruptRunError: the run is damaged.
    """
    if (run := ended_run(directory, batch)) is None:
        return False
    if not _is_planned(run, batch, planned, datasets):
        return False
    for name in run.array_names:
        run.check(name)
    return True


def _failure(
    outcome: Obtained | DynError, batch: Batch, planned: PlannedSweep, datasets: dict[int, Any]
) -> str | None:
    """Return why a trained batch has failed; None where it has not."""
    if isinstance(outcome, DynError):
        return str(outcome)
    if _is_planned(outcome.run, batch, planned, datasets):
        return None
    return (
        "a data file, or code that is not bundled, changed while the sweep was trained: restore"
        f" it, delete {outcome.run.path}, and the same `dyn sweep` trains the job"
    )


def _is_planned(run: Run, batch: Batch, planned: PlannedSweep, datasets: dict[int, Any]) -> bool:
    """Whether a run is of the jobs of a batch, on data and with code as the sweep was planned.

    `datasets` has `id` of a data set -> it, resolved.
    """
    configs = []
    for number in batch.numbers:
        config = planned[number].config
        if id(config.dataset) not in datasets:
            datasets[id(config.dataset)] = config.dataset.resolve()
        configs.append(config.model_copy(update={"dataset": datasets[id(config.dataset)]}))
    device = str(run.info.get("device"))
    backend = str(run.info.get("backend"))
    return run.hash == identity_of(configs, device, backend, dict(planned.files))

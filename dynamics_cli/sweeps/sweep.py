"""Training the jobs of a sweep that are not done; nothing is done twice."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import Executor
from contextlib import ExitStack, closing, contextmanager, suppress
from functools import partial
from itertools import chain
from pathlib import Path

from dynamics_cli.errors import DynError, UsageError
from dynamics_cli.process import cores
from dynamics_cli.runs.code import Code, code
from dynamics_cli.runs.errors import CorruptRunError
from dynamics_cli.runs.store import files, layout, manifest
from dynamics_cli.runs.store.locks import run_lock
from dynamics_cli.sweeps.directory import (
    RESULTS,
    SWEEP,
    Sweep,
    SweepDescription,
    directory_of,
    ended_rows,
    ended_run,
    part_at_work,
    parts_of,
    read_sweep,
    runs_of,
    write_table,
)
from dynamics_cli.sweeps.jobs import PlannedSweep
from dynamics_cli.text import duration
from dynamics_cli.training.backends import choose
from dynamics_cli.training.estimate import measuring_seconds
from dynamics_cli.training.many.replicas import dealt, divide
from dynamics_cli.training.many.train import Task, train_all
from dynamics_cli.training.many.workers import STOPPED
from dynamics_cli.training.problem import build_problem
from dynamics_cli.training.session import Obtained
from dynamics_cli.training.signals import Interrupted

LONG_MEASURING = 30.0
"""Seconds of measures from which processes are worth it."""
CHANGED = (
    "a data file, or code that is not bundled, changed while the sweep was trained: restore it,"
    " delete {}, and the same `dyn sweep` trains the job"
)
FEW_STATES = 40
"""States of all jobs up to which measures are not tried for that."""


def run_sweep(
    planned: PlannedSweep,
    *,
    out: Path | None = None,
    shard: tuple[int, int] | None = None,
    executor: Executor | None = None,
    workers: int | None = None,
    stop_at_failure: bool = False,
    max_seconds: float | None = None,
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
    with ExitStack() as held:
        if shard is None:
            held.enter_context(run_lock(directory, on_wait=messages))
        part, parts = shard or (1, 1)
        if shard is None and executor is None and workers is None:
            workers = _measuring_workers(directory, planned, messages)
        each = workers or getattr(executor, "_max_workers", None) or 1
        described = _begun(directory, planned, parts * each)
        held.enter_context(part_at_work(directory, part, parts, each, messages))
        whole = runs_of(described)
        of_part = (parts_of(directory, numbers) for numbers in dealt(whole, part - 1, parts))
        runs = [*chain.from_iterable(of_part)]
        todo = [run for run in runs if not _is_done(directory, described, run, messages)]
        ended = _jobs(runs) - _jobs(todo)
        if shard is not None and messages is not None:
            few = "" if runs else f", since the sweep was begun in {len(whole)} batches"
            told = f"part {part} of {parts}: {_jobs(runs)} of {described.jobs} jobs{few}"
            messages(f"{told}, {_jobs(todo)} to train")
        if described.table is not None and todo:
            described.table = None
            described.write(directory)

        def tell(under_way: float) -> None:
            if report is not None:
                report(ended + under_way, _jobs(runs))

        tell(0)
        failed: dict[str, str] = {}
        train = partial(train_all, executor=executor, workers=workers, under_way=tell)
        with (
            _stoppable(max_seconds, messages) as timer,
            closing(_trained(directory, planned, described, todo, train, messages)) as trained,
        ):
            if max_seconds is not None:
                timer.start()
            for numbers, why in trained:
                ended += len(numbers)
                tell(0)
                if why is not None:
                    failed[directory_of(numbers)] = why
                    if stop_at_failure:
                        break
        # a call is planned without the config that its recorder writes
        configs = [job.config for job in planned if job.config.recorded is None]
        rows = ended_rows(directory, described, failed, configs)
        if len(rows) == described.jobs:  # perhaps of the part that ends last
            write_table(directory, described, rows)
    done = Sweep(directory)
    done.rows = rows  # with the failures of a shard, which are written nowhere
    return done


@contextmanager
def _stoppable(
    seconds: float | None, messages: Callable[[str], None] | None
) -> Iterator[threading.Timer]:
    """Say how a sweep that is interrupted goes on; give the timer that interrupts it."""
    timer = threading.Timer(seconds or 0, os.kill, (os.getpid(), signal.SIGINT))
    former = signal.getsignal(signal.SIGINT)
    if seconds is not None:
        if threading.current_thread() is not threading.main_thread():
            raise UsageError("max_seconds is for the main thread, which signals reach")
        # a command in the background ignores it
        signal.signal(signal.SIGINT, signal.default_int_handler)
    began = time.monotonic()
    try:
        yield timer
    except (Interrupted, KeyboardInterrupt) as error:  # the latter between two runs
        number = getattr(error, "number", signal.SIGINT)
        over = seconds is not None and time.monotonic() - began >= seconds
        if over and number == signal.SIGINT:
            if messages is not None:
                messages(f"{seconds:g} s are over; the same command goes on")
        elif isinstance(error, Interrupted):
            raise Interrupted(STOPPED, number) from error
        else:
            raise KeyboardInterrupt(STOPPED) from None
    finally:
        timer.cancel()
        if seconds is not None:
            signal.signal(signal.SIGINT, former)


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

    A sweep that begins is trained as at least `parts` runs, unless it has fewer jobs.
    """
    described = known_sweep(directory, planned)
    if described is None:
        runs = divide([job.config for job in planned], parts)
        # another shard may have been faster
        described = known_sweep(directory, planned)
        if described is None:
            described = planned.described(runs)
            entry, copies = code(planned.loop)
            described.code = Code.model_validate(entry)
            for copy, contents in copies.items():
                files.save(directory / copy, contents)
            described.write(directory)
    # texts of pictures, and columns of the table: nothing is trained again
    if described.columns != planned.columns:
        described.table = None
    given = {"labels": planned.labels, "columns": planned.columns}
    updated = described.model_copy(update=given)
    if updated != described:
        updated.write(directory)
    return updated


def _jobs(runs: Sequence[Sequence[int]]) -> int:
    return sum(map(len, runs))


def _trained(
    directory: Path,
    planned: PlannedSweep,
    described: SweepDescription,
    todo: Sequence[Sequence[int]],
    train: Callable[[Sequence[Task]], Iterator[tuple[int, Obtained | DynError]]],
    messages: Callable[[str], None] | None,
) -> Generator[tuple[Sequence[int], str | None]]:
    """Train the jobs of runs; yield those of each run that has ended, and why it failed or None.

    The jobs of a run that fails are trained one by one: one network need not fail the others.
    """

    def task_of(numbers: Sequence[int]) -> Task:
        return planned.task([planned[k].config for k in numbers], directory / directory_of(numbers))

    while todo:
        again: list[Sequence[int]] = []
        for place, outcome in train([task_of(numbers) for numbers in todo]):
            numbers = todo[place]
            if not isinstance(outcome, DynError):
                owned = described.owns(outcome.run, numbers)
                yield numbers, None if owned else CHANGED.format(outcome.run.path)
                continue
            if len(numbers) == 1 or ended_run(directory, numbers) is not None:
                yield numbers, str(outcome)
                continue
            alone = []
            for number in numbers:
                try:
                    task_of([number]).plan()
                except DynError as error:  # no process is started for it
                    yield [number], str(error)
                else:
                    alone.append([number])
            if alone and messages is not None:
                messages(f"{outcome}: {len(alone)} jobs are trained one by one")
            again += alone
        todo = again


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


def _is_done(
    directory: Path,
    described: SweepDescription,
    numbers: Sequence[int],
    messages: Callable[[str], None] | None,
) -> bool:
    """Whether jobs have ended in a whole run of theirs; `messages` is told of a damaged run."""
    try:
        run = ended_run(directory, numbers)
        if run is None or not described.owns(run, numbers):
            return False
        for name in run.array_names:
            run.check(name)
    except CorruptRunError as error:
        if messages is not None and not error.unread:
            messages(f"{error}; it is trained again")
        return False
    return True

"""A sweep as a directory: its description, its runs, its table; nothing is done twice.

Jobs of equal shape are cut into batches by the plan alone; a batch, or a job that must be trained alone, is one task.
A task is claimed by the lock of its run directory, done when its run is, and sealed with it: any driver, engine or
worker may die, and several drivers may work at once. An engine is told a directory and numbers: where tasks run.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Executor
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from dynamics_cli.errors import DynError, RunError, UsageError
from dynamics_cli.kinds.registry import foreign_sources
from dynamics_cli.memory import GIB
from dynamics_cli.runs.errors import LockedRunError
from dynamics_cli.runs.info import read_info
from dynamics_cli.runs.store import files, layout
from dynamics_cli.runs.store.locks import is_locked, run_lock
from dynamics_cli.runs.writer import keep_sources
from dynamics_cli.sweeps.directory import SWEEP, read_sweep, write_sweep
from dynamics_cli.sweeps.jobs import LIGHT_LOSSES, PlannedSweep
from dynamics_cli.sweeps.table import GrowingTable, Results, Shard
from dynamics_cli.sweeps.tasks import BUSY, Numbers, Task, Tasks, alike, train, work
from dynamics_cli.sweeps.workers import STOPPED, run_in_processes
from dynamics_cli.text import Table, size
from dynamics_cli.training.backends import choose
from dynamics_cli.training.estimate import Estimate, estimate
from dynamics_cli.training.replicas import build_problems
from dynamics_cli.training.signals import Interrupted

if TYPE_CHECKING:
    from pandas import DataFrame

    from dynamics_cli.runs import Run
    from dynamics_cli.sweeps.pictures import SweepTable

LOOKED_AT = 100
"""Groups of alike jobs whose needs are estimated, at most."""
SHORT_SECONDS = 10.0
"""Batches that take less than this together are trained without starting processes."""
CONNECT_SECONDS = 10
"""How long a Dask scheduler may take to answer."""
_LOOK_SECONDS = 0.2
"""Time between two looks at the tasks of other drivers."""
Report = Callable[[int], object]
Engine = Callable[[str, Sequence[int]], Iterator[tuple[int, str]]]
"""Gives workers a directory and the numbers of tasks; yields the number of each that has ended, and why it failed."""


@dataclass(frozen=True)
class Sweep:
    """A finished sweep."""

    path: Path
    results: Results
    table: Path

    @property
    def rows(self) -> Table:
        """A row for each job, as in `results.csv`: settings, seed, how it ended, final numbers, where its run is."""
        return self.results.rows()

    def runs(self, where: Mapping[str, Any] | None = None) -> list[Run]:
        """Return the runs of jobs with these settings, such as `{"optimizer.lr": 0.1}`; by default of all that ran.

        Raises:
            UsageError: there is no such setting, or no job has this value.
            CorruptRunError: a run is not where the table says.
        """
        from dynamics_cli.sweeps.pictures import SweepTable

        table = SweepTable(self.path, where=where)
        return [table.run(k) for k, row in enumerate(table.rows) if row["status"] != "failed"]

    def run(self, row: int | Mapping[str, Any]) -> Run:
        """Return the run of a row of `rows`, or of the job of this number.

        Raises RunError: the job failed, has not ended, or its run is gone.
        """
        return self._table.run_of(row if isinstance(row, int) else row["job"])

    @cached_property
    def _table(self) -> SweepTable:
        from dynamics_cli.sweeps.pictures import SweepTable

        return SweepTable(self.path)

    def to_pandas(self) -> DataFrame:
        """Return `rows` as a `pandas.DataFrame`.

        Raises UsageError: pandas is not installed.
        """
        return self.rows.to_pandas()

    def _repr_html_(self) -> str:
        return self.rows._repr_html_()


def run_sweep(
    planned: PlannedSweep,
    *,
    out: Path | None = None,
    shard: Shard | None = None,
    engine: Engine | None = None,
    workers: int | None = None,
    report: Report | None = None,
    messages: Callable[[str], object] | None = None,
) -> Sweep:
    """Train the jobs of a sweep that are not done, and write its table, which grows as jobs end.

    Files alone decide which jobs are done: drivers and shards of one sweep may run at once, on machines that share
    a folder, and any of them may die. The same call without a shard trains the missing jobs and completes the table.

    `engine` is where tasks run, by default spawned processes of one thread each, and short batches here; `report` is
    called with the number of jobs that have ended, each time some have; the others are arguments of `api.sweep`.

    Raises:
        RunError: the directory cannot be written; and as `api.sweep`.
        Interrupted: a signal came; calling again goes on.

    """
    directory, described, tasks = placed(planned, out)
    claim(directory, described, planned)
    results = Results(planned, tasks, directory)
    growing = GrowingTable(results, described, shard)
    k, n = shard or (1, 1)
    mixed: list[str] = []
    with ExitStack() as stack:
        with suppress(LockedRunError):  # of another driver: each trains tasks that the other does not
            stack.enter_context(run_lock(directory, wait=False))  # says that somebody works here
        todo = [number for number in range(k - 1, len(tasks), n) if not results.read(tasks[number])]
        if shard is None and todo:
            growing.unseal()
        if report is not None:
            report(len(results))
        here = _short(planned, [tasks[number] for number in todo]) if engine is None and workers is None else False
        try:
            for number, why in _run(planned, tasks, todo, directory, engine or _engine(planned, tasks, workers, here)):
                task = tasks[number]
                if not results.read(task, known=not why) or why:
                    results.fail(task.numbers, why or "its run is not there", task.name)
                mixed += _of_resumption(directory / task.name)
                growing.grow()
                if report is not None:
                    report(len(results))
        except BaseException:
            growing.write()
            raise
        if shard is not None:
            growing.write()
        elif todo or not growing.sealed():
            growing.write(seal=True)
    if mixed and messages is not None:
        messages(f"note: {mixed[0]}{f' ({len(mixed) - 1} more such notes)' if mixed[1:] else ''}")
    return Sweep(directory, results, growing.path)


def _of_resumption(run: Path) -> list[str]:
    """Return the notes of a run that was resumed."""
    with suppress(DynError):  # there is none: it failed, or its jobs were trained alone
        info = read_info(run)
        return [f"{run}: {message}" for message in info.get("messages", ()) if info.get("resumptions")]
    return []


def placed(planned: PlannedSweep, out: Path | None) -> tuple[Path, dict[str, Any], Tasks]:
    """Return the directory of a sweep, by default named after it, its description, and its tasks.

    Raises:
        UsageError: the directory holds another sweep.
    """
    described = planned.described()
    directory = out or layout.outputs_root() / "sweeps" / f"{described['name']}-{described['hash'][:10]}"
    tasks = Tasks(planned, known_sweep(directory, described))
    return directory, described | {"batches": tasks.sizes}, tasks


def known_sweep(directory: Path, described: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return the contents of `sweep.json`, None where there is none.

    Raises:
        UsageError: the directory holds another sweep.
    """
    if not files.exists(directory / SWEEP):
        return None
    if (known := read_sweep(directory))["hash"] != described["hash"]:
        raise UsageError(f"{directory} holds another sweep; give --out another directory")
    return known


def claim(directory: Path, described: dict[str, Any], planned: PlannedSweep) -> None:
    """Make the directory of a sweep, with all that workers need to know.

    Raises:
        UsageError: it holds something else.
    """
    known = known_sweep(directory, described)
    if known is None:
        foreign = [name for name in (layout.INFO, layout.CONFIG) if files.exists(directory / name)]
        if foreign:
            raise UsageError(f"{directory} holds {foreign[0]}: it is not the directory of a sweep")
        with files.os_errors_as_run_errors(directory):
            files.make_directory(directory)
    for config in planned.first_of_each_kind():
        keep_sources(directory, foreign_sources(config))
    if known is None or "config" not in known:
        write_sweep(directory, described)


def _run(
    planned: PlannedSweep, tasks: Tasks, todo: Sequence[int], directory: Path, engine: Engine
) -> Iterator[tuple[int, str]]:
    """Yield tasks as they end, and why they failed; tasks that other drivers train come when these drivers are done."""
    while todo:
        busy = []
        for number, why in engine(str(directory), todo):
            if why == BUSY:
                busy.append(number)
            else:
                yield number, why
        todo = []
        while busy and not todo:
            time.sleep(_LOOK_SECONDS)
            todo = [number for number in busy if not is_locked(directory / tasks[number].name)]
            busy = [number for number in busy if number not in todo]
        todo += busy


def _engine(planned: PlannedSweep, tasks: Tasks, workers: int | None, here: bool) -> Engine:
    """Return the engine that trains batches in this process, by all cores, if `here`, and other tasks in processes."""

    def local(directory: str, numbers: Sequence[int]) -> Iterator[tuple[int, str]]:
        batches = [number for number in numbers if here and len(tasks[number].numbers) > 1]
        for number in batches:
            try:
                yield number, train(planned, tasks[number], Path(directory))
            except Interrupted as error:
                raise Interrupted(STOPPED, error.number) from error
            except LockedRunError:
                yield number, BUSY
            except DynError as error:
                yield number, str(error)
        left = [number for number in numbers if number not in batches] if batches else numbers
        for k, why in run_in_processes([(directory, number) for number in left], call=work, workers=workers):
            yield left[k], why

    return local


def _short(planned: PlannedSweep, tasks: Sequence[Task]) -> bool:
    """Whether this process trains the batches: a single batch, or batches that end before processes have started."""
    batches = [task for task in tasks if len(task.numbers) > 1]
    total = 0.0
    for task in batches[1:] and batches:
        total += needs(planned, task.numbers).seconds * len(task.numbers)
        if total > SHORT_SECONDS:
            return False
    return True


def needs(planned: PlannedSweep, numbers: Numbers) -> Estimate:
    """Return the needs of each of some networks that differ in numbers only.

    Raises:
        DynError: they cannot be trained.
    """
    problems = build_problems([planned[int(number)].config for number in numbers[:2]], drawn=False)
    return estimate(problems[0], choose(problems))


def _needs_of_all(planned: PlannedSweep, left: NDArray[np.bool_] | None = None) -> tuple[float, float, list[str]]:
    """Return the seconds that the jobs take which are `left` (jobs,), the bytes that all record, and refusals.

    Of many groups of jobs that are alike some stand for the others.
    """
    groups = alike(planned)
    some = groups[:: -(-len(groups) // LOOKED_AT)]
    seconds, disk, refusals = 0.0, 0.0, list[str]()
    for numbers in some:
        try:
            each = needs(planned, numbers)
        except DynError as error:
            refusals.append(str(error))
            continue
        seconds += each.seconds * (len(numbers) if left is None else np.count_nonzero(left[numbers]))
        disk += each.disk_bytes * len(numbers)
    return seconds * len(groups) / len(some), disk * len(groups) / len(some), refusals


@dataclass(frozen=True)
class SweepProspect:
    """The work and the needs of a sweep."""

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
    """Return the prospect of `run_sweep`; nothing is written.

    Raises:
        UsageError: the directory holds another sweep.
    """
    directory, _, tasks = placed(planned, out)
    results = Results(planned, tasks, directory)
    for task in tasks:
        results.read(task)
    seconds, disk, refusals = _needs_of_all(planned, results.columns["status"] == "")
    messages = dict.fromkeys([*(message for _, message in tasks.refused), *refusals])
    batches = sum(task.name.startswith("batches") for task in tasks)
    refused = sum(len(numbers) for numbers, _ in tasks.refused)
    done, alone = len(results) - refused, len(tasks) - batches
    return SweepProspect(directory, len(planned), done, [*messages], batches, alone, seconds, round(disk))


def beyond_limit(planned: PlannedSweep) -> str | None:
    """Return a message if the records of the jobs need more than `record.limit_gib` together; None if it does not."""
    _, total, _ = _needs_of_all(planned)  # refusals are told when jobs are trained
    limit = planned[0].config.record.limit_gib
    if total <= limit * GIB:
        return None
    return (
        f"the jobs would record about {size(round(total))}, record.limit_gib is {limit:g}: each keeps its ends and "
        f"about {LIGHT_LOSSES} losses (--record light); --record ends keeps fewer, --record config all"
    )


def by_executor(executor: Executor, look: Callable[[], object] | None = None) -> Engine:
    """Return an engine that gives tasks to a `concurrent.futures.Executor`, such as that of Parsl.

    While it waits, `look` is called a few times a second.
    """

    def run(directory: str, numbers: Sequence[int]) -> Iterator[tuple[int, str]]:
        todo = [(directory, number) for number in numbers]
        for k, why in run_in_processes(todo, call=work, executor=executor, look=look):
            yield numbers[k], why

    return run


def by_dask(scheduler: str, messages: Callable[[str], object] | None = None) -> Engine:
    """Return an engine that gives tasks to the workers of a Dask scheduler, which see the directory of the sweep.

    Each time that the last worker has gone, `messages` is told; the sweep goes on when another comes.

    Raises:
        UsageError: Dask is not installed.
    """
    try:
        from distributed import Client
    except ImportError as error:
        raise UsageError("--engine dask needs dask.distributed: pip install 'dynamics-cli[dask]'") from error

    def run(directory: str, numbers: Sequence[int]) -> Iterator[tuple[int, str]]:
        try:
            client = Client(scheduler, timeout=CONNECT_SECONDS, set_as_default=False)
        except (OSError, ValueError) as error:
            raise RunError(f"no Dask scheduler answers at {scheduler}: {error}") from error
        with client:
            alone = False

            def look() -> None:
                nonlocal alone
                before, alone = alone, not client.scheduler_info()["workers"]
                if alone and not before and messages is not None:
                    messages(f"no Dask worker is at {scheduler}: the sweep waits, and goes on when one comes")

            yield from by_executor(client.get_executor(pure=False), look)(directory, numbers)

    return run

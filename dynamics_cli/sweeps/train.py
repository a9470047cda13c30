"""Training several configs: alike networks side by side, others in processes of their own or on a cluster.

Sweeps, figures, their seeds and audits train by `train_all`. A run that is finished is reused, an interrupted one goes
on; so any driver, executor or worker may die, and the same call goes on.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Executor
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Protocol

from dynamics_cli.config import RunConfig, load_config
from dynamics_cli.config.dump import to_plain
from dynamics_cli.errors import DynError, InputError, RunError, UsageError
from dynamics_cli.kinds.registry import blamed
from dynamics_cli.runs.errors import CorruptRunError
from dynamics_cli.runs.run import Run
from dynamics_cli.sweeps.workers import run_by_executor, run_in_processes
from dynamics_cli.training.loop import Progress
from dynamics_cli.training.prospect import found_run
from dynamics_cli.training.replicas import batch_key, build_problems
from dynamics_cli.training.session import Obtained, Plan, obtain_run, plan_problems, plan_run
from dynamics_cli.training.signals import Interrupted

LONG_WORK = 2**34
"""A run of more multiply-adds is worth a process of its own: a second or more, as starting one takes."""
CONNECT_SECONDS = 10
"""How long a Dask scheduler may take to answer."""
Engine = Callable[[Iterator[tuple[Any, ...]]], Iterator[tuple[int, str]]]
"""Calls `work` with each of some arguments; yields the place of each that has ended, and why it failed."""


class ProgressDisplay(Protocol):
    """Shows the progress of successive training runs."""

    def __call__(self, name: str, total: int) -> AbstractContextManager[Progress | None]:
        """Return a context of a run of `total` iterations; its function is called as training goes on.

        It is never called for a run that is reused.
        """


@dataclass(frozen=True)
class Task:
    """Networks that are trained as one run: a single one, or several side by side as its replicas."""

    configs: Sequence[RunConfig]
    directory: Path | None = None
    """The run directory; by default named after the configs below `outputs/runs`."""

    @blamed()
    def plan(self) -> Plan:
        """Return the plan of the run.

        Raises DynError: the networks cannot be trained, or not together.
        """
        first = self.configs[0]
        if len(self.configs) == 1:
            return plan_run(first, self.directory)
        problems = build_problems(self.configs)
        if batch_key(problems[0]) is None or len({one.dataset.x.shape for one in problems}) > 1:
            raise InputError(f"{first.name}: {len(problems)} networks of this config cannot be trained together")
        return plan_problems(problems, self.directory)


def train_all(
    tasks: Sequence[Task], *, engine: Engine | None = None, workers: int | None = None, force: bool = False,
    progress: ProgressDisplay | None = None, messages: Callable[[str], None] | None = None,
) -> Iterator[tuple[int, Obtained | DynError]]:  # fmt: skip
    """Train tasks, go on with them, or reuse their runs; yield the place of each, and its run or why it failed.

    Tasks are yielded as they end, in any order. By default this process trains replicas, by all cores, and short runs;
    processes of one thread each train the other runs, if there are two or more.

    Args:
        tasks: the runs to train.
        engine: where all tasks run, in place of this machine.
        workers: number of processes that train all tasks.
        force: train finished runs again.
        progress: shows the progress of training.
        messages: told which run another process is training.

    Raises:
        Interrupted: SIGINT or SIGTERM came; states are saved, and the same call goes on.
        RunError: the engine is broken.
    """
    elsewhere = engine is not None or workers is not None
    apart: dict[int, Task] = {}

    def here(task: Task, *, lone: bool) -> Obtained | DynError | Task:
        """Train a task, unless it is better trained apart: then return it, with its directory."""
        try:
            plan = task.plan()
            if not lone and _is_long(plan, force=force):
                return replace(task, directory=plan.directory)
            return _train_here(task, plan, force, progress, messages)
        except Interrupted:
            raise
        except DynError as error:
            return error

    for k, task in enumerate(tasks):
        planned_apart = elsewhere or (task.directory is not None and len(task.configs) == 1)
        found = task if planned_apart else here(task, lone=len(tasks) == 1)
        if isinstance(found, Task):
            apart[k] = found
        else:
            yield k, found
    if len(apart) == 1 and not elsewhere:
        ((k, task),) = apart.items()
        found = here(task, lone=True)
        assert not isinstance(found, Task)
        yield k, found
        return
    places, tasks_apart = list(apart), list(apart.values())
    arguments = ((str(task.directory), [to_plain(one) for one in task.configs], force) for task in tasks_apart)
    run = engine or partial(run_in_processes, call=work, workers=workers)
    with progress("long runs", len(places)) if progress and places else nullcontext() as shown:
        for done, (place, why) in enumerate(run(arguments), start=1):
            if shown is not None:
                shown(done, float("nan"))
            yield places[place], RunError(why) if why else _found(tasks_apart[place].directory)


def _found(directory: Path | None) -> Obtained | DynError:
    """Return the run that another process has trained."""
    try:
        run = Run(directory or Path())
        return Obtained(run, reused=False, seconds=run.info.get("seconds", 0.0))
    except DynError as error:
        return error


def _is_long(plan: Plan, *, force: bool) -> bool:
    """Whether a run that is still to be trained is worth a process with a core of its own."""
    if len(plan.problems) > 1 or plan.choice.device != "cpu" or os.cpu_count() == 1:
        return False
    run = None if force else found_run(plan)
    return plan.needs.multiply_adds > LONG_WORK and (run is None or run.status not in ("complete", "diverged"))


def _train_here(
    task: Task, plan: Plan, force: bool, progress: ProgressDisplay | None = None,
    messages: Callable[[str], None] | None = None,
) -> Obtained:  # fmt: skip
    """Train a task in this process; a damaged run in a directory that the task names begins anew.

    Raises DynError: that is impossible.
    """
    label = plan.config.name if len(plan.problems) == 1 else f"{plan.config.name} x {len(plan.problems)}"
    with progress(label, plan.needs.iterations) if progress else nullcontext() as shown:
        options: dict[str, Any] = {"resume": True, "progress": shown, "on_wait": messages}
        try:
            return obtain_run(plan, force=force, **options)
        except CorruptRunError as error:
            unread = isinstance(error.__cause__, OSError) and not isinstance(error.__cause__, FileNotFoundError)
            if task.directory is None or unread:  # perhaps it can be read later
                raise
            return obtain_run(plan, force=True, **options)


def work(directory: str, configs: Sequence[Mapping[str, Any]], force: bool) -> str | int:
    """Train a task in a worker process; return "", why it failed, or the number of a signal."""
    try:
        first = load_config(configs[0])
        task = Task([first, *(type(first).model_validate(one) for one in configs[1:])], Path(directory))
        _train_here(task, task.plan(), force)
    except Interrupted as error:
        return error.number
    except DynError as error:
        return str(error)
    return ""


def by_executor(executor: Executor) -> Engine:
    """Return an engine that gives tasks to a `concurrent.futures.Executor`, such as Parsl's."""
    return partial(run_by_executor, call=work, executor=executor)


def by_dask(scheduler: str, messages: Callable[[str], object] | None = None) -> Engine:
    """Return an engine that gives tasks to the workers of a Dask scheduler, which see the directories of runs.

    Where no worker is there, `messages` is told; training begins when one comes.

    Raises:
        UsageError: Dask is not installed.
    """
    try:
        from distributed import Client
    except ImportError as error:
        raise UsageError("--dask needs dask.distributed: pip install 'dynamics-cli[dask]'") from error

    def run(orders: Iterator[tuple[Any, ...]]) -> Iterator[tuple[int, str]]:
        try:
            client = Client(scheduler, timeout=CONNECT_SECONDS, set_as_default=False)
        except (OSError, ValueError) as error:
            raise RunError(f"no Dask scheduler answers at {scheduler}: {error}") from error
        with client:
            if messages is not None and not client.scheduler_info()["workers"]:
                messages(f"no Dask worker is at {scheduler}: the sweep waits, and goes on when one comes")
            yield from by_executor(client.get_executor(pure=False))(orders)

    return run

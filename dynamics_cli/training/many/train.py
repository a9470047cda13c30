"""Training several configs.

Alike networks train side by side, others in processes of their own or on a cluster.

Sweeps, figures, their seeds and audits train by `train_all`. A run that is finished is reused, an
interrupted one goes on; so any driver, executor or worker may die, and the same call goes on.
"""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Executor
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from importlib import import_module
from pathlib import Path
from typing import Any, ClassVar

from dynamics_cli.config import RunConfig, load_config, run_hash
from dynamics_cli.config.dump import to_plain
from dynamics_cli.errors import DynError, InputError, RunError
from dynamics_cli.kinds.base import RECORDED
from dynamics_cli.kinds.registry import WITH, blamed
from dynamics_cli.process import cores
from dynamics_cli.runs.errors import CorruptRunError
from dynamics_cli.runs.run import Run
from dynamics_cli.training.loop import Progress
from dynamics_cli.training.many.replicas import batch_key, build_problems
from dynamics_cli.training.many.workers import Processes, run_by_executor
from dynamics_cli.training.session import (
    Obtained,
    Plan,
    begun_run,
    obtain_run,
    plan_problems,
)
from dynamics_cli.training.signals import Interrupted

LONG_WORK = 2**34
"""A run of more multiply-adds is worth a process of its own: a second or more, as starting one
takes.
"""
CALL_WORK = 2**20
"""Multiply-adds that take as long as torch takes to call the operations of an update."""
SHORT_SECONDS = 3.0
"""Jobs of a sweep that are trained in this time need no processes, which take as long to start."""

SHORT = 16
"""Characters of the hash of a network that `run.json` keeps, as it was asked for."""
ProgressDisplay = Callable[[str, int], AbstractContextManager[Progress | None]]
"""Name and iterations of a run -> a context whose function is called as training goes on, never
for a reused run.
"""


def asked_hash(config: RunConfig, digests: dict[str, str]) -> str:
    """Return the identity of a run with device and backend as requested; see `run_hash`."""
    return run_hash(config, device=config.device, backend=config.backend, digests=digests)


def _not_shown(name: str, iterations: int) -> AbstractContextManager[Progress | None]:
    return nullcontext()


def _ignored(reached: float) -> None:
    """Tell nobody."""


@dataclass(frozen=True)
class Task:
    """Networks that are trained as one run.

    It is a single one, or several side by side as its replicas.
    """

    configs: Sequence[RunConfig]
    directory: Path | None = None
    """The run directory; by default named after the configs below `root`."""
    root: Path | None = None
    """By default `outputs/runs`."""
    apart: ClassVar[bool] = False
    """Whether it is never trained in the process that asks for it."""

    @blamed()
    def plan(self) -> Plan:
        """Return the plan of the run.

        Raises DynError: the networks cannot be trained, or not together.
        """
        first = self.configs[0]
        problems = build_problems(self.configs)
        shapes = {problem.dataset.x.shape for problem in problems}
        if len(problems) > 1 and (batch_key(problems[0]) is None or len(shapes) > 1):
            raise InputError(
                f"{first.name}: {len(problems)} networks of this config cannot be trained together"
            )
        plan = plan_problems(problems, self.directory, self.root)
        if self.directory is None:
            return plan
        return replace(plan, about={"asked": self.asked(dict(plan.files))})

    def asked(self, digests: dict[str, str]) -> list[str]:
        """Return the hashes of the configs, by which a sweep knows its jobs."""
        return [asked_hash(config, digests)[:SHORT] for config in self.configs]

    def train(
        self,
        *,
        lone: bool = True,
        force: bool = False,
        show: ProgressDisplay = _not_shown,
        under_way: Callable[[float], object] = _ignored,
        messages: Callable[[str], None] | None = None,
    ) -> Obtained | Task:
        """Train the run in this process; a damaged run in a named directory begins anew.

        A long run that is not `lone` is better trained apart: then this returns the task, with its
        directory.

        Raises DynError: that is impossible.
        """
        plan = self.plan()
        if not lone and _is_long(plan, force=force):
            return replace(self, directory=plan.directory)
        label = plan.config.name
        if len(plan.problems) > 1:
            label += f" x {len(plan.problems)}"
        total = plan.needs.iterations
        with show(label, total) as shown:

            def reached(iteration: int, loss: float) -> None:
                under_way(len(plan.problems) * iteration / total)
                if shown is not None:
                    shown(iteration, loss)

            options: dict[str, Any] = {"resume": True, "progress": reached, "on_wait": messages}
            try:
                return obtain_run(plan, force=force, **options)
            except CorruptRunError as error:
                if self.directory is None or error.unread:
                    raise
                return obtain_run(plan, force=True, **options)


def train_all(
    tasks: Sequence[Task],
    *,
    executor: Executor | None = None,
    workers: int | None = None,
    force: bool = False,
    progress: ProgressDisplay | None = None,
    under_way: Callable[[float], object] = _ignored,
    messages: Callable[[str], None] | None = None,
) -> Iterator[tuple[int, Obtained | DynError]]:
    """Train tasks, go on with them, or reuse their runs.

    Yield the place of each, and its run or why it failed.

    Tasks are yielded as they end, in any order. By default this process trains replicas, by all
    cores, and short runs, of the jobs of a sweep as many as end in `SHORT_SECONDS` after the first;
    processes of one thread each train the other runs, if there are two or more.

    Args:
        tasks: the runs to train.
        executor: trains all tasks, in place of this machine; its workers see the directories of
            runs.
        workers: number of processes that train all tasks.
        force: train finished runs again.
        progress: shows the progress of training.
        under_way: told the trained networks of tasks that have not ended, a half-trained one as
            1/2.
        messages: told which run another process is training.

    Raises:
        Interrupted: SIGINT or SIGTERM came; states are saved, and the same call goes on.
        RunError: the executor is broken.
    """
    elsewhere = executor is not None or workers is not None
    show = progress or _not_shown

    def here(task: Task, *, lone: bool) -> Obtained | DynError | Task:
        try:
            return task.train(
                lone=lone, force=force, show=show, under_way=under_way, messages=messages
            )
        except Interrupted:
            raise
        except DynError as error:
            return error

    put_off: dict[int, Task] = {}
    until = math.inf
    for k, task in enumerate(tasks):
        single = task.directory is not None and len(task.configs) == 1
        if elsewhere or task.apart or (single and time.monotonic() > until):
            put_off[k] = task
            continue
        ended = here(task, lone=len(tasks) == 1)
        # the first one may import torch and compile kernels
        until = min(until, time.monotonic() + SHORT_SECONDS)
        if isinstance(ended, Task):
            put_off[k] = ended
        else:
            yield k, ended

    if len(put_off) == 1 and not elsewhere:
        ((k, task),) = put_off.items()
        ended = here(task, lone=True)
        assert not isinstance(ended, Task)
        yield k, ended
    elif put_off:
        given = nullcontext(executor) if executor else Processes(workers)
        with show("long runs", len(put_off)) as report, given as running:
            yield from _train_apart(put_off, running, force, report, under_way)


def _train_apart(
    tasks: Mapping[int, Task],
    executor: Executor,
    force: bool,
    report: Progress | None,
    under_way: Callable[[float], object],
) -> Iterator[tuple[int, Obtained | DynError]]:
    """Train tasks by an executor; yield the key of each, and its run or why it failed."""
    kinds = os.environ.get(WITH, "")
    orders = (
        (
            kinds,
            (type(task).__module__, type(task).__name__),
            str(task.directory),
            [to_plain(config) for config in task.configs],
            force,
        )
        for task in tasks.values()
    )
    places = list(tasks)
    done = 0

    def look() -> None:
        reports = getattr(executor, "reports", {})  # of `Processes`
        under_way(sum([*reports.values()]))
        if report is not None:
            report(done, math.nan)

    for place, why in run_by_executor(orders, call=work, executor=executor, look=look):
        done += 1
        k = places[place]
        yield k, RunError(why) if why else _trained(tasks[k])


def _trained(task: Task) -> Obtained | DynError:
    """Return the run that another process has trained."""
    try:
        run = Run(task.directory or Path())
        return Obtained(run, reused=False, seconds=run.info.get("seconds", 0.0))
    except DynError as error:
        return error


def _is_long(plan: Plan, *, force: bool) -> bool:
    """Whether a run that is still to be trained is worth a process with a core of its own."""
    if len(plan.problems) > 1 or plan.choice.device != "cpu" or cores() == 1:
        return False
    if plan.problem.threaded_work(1) is None:  # convolutions use all cores in each process
        return False
    run = None if force else begun_run(plan)
    if run is not None and run.ended:
        return False
    work = plan.needs.multiply_adds
    if plan.choice.backend != "compiled":
        work += CALL_WORK * plan.needs.iterations
    return work > LONG_WORK


def work(
    kinds: str,
    class_: tuple[str, str],
    directory: str,
    configs: Sequence[Mapping[str, Any]],
    force: bool,
    report: Callable[[float], object] = _ignored,
) -> str | int:
    """Train a task of a class in a worker, perhaps on another machine, with the code of `--with`.

    Returns "", why it failed, or the number of a signal.
    """
    known = os.environ.get(WITH, "").split(os.pathsep)
    if not set(kinds.split(os.pathsep)) <= {"", *known}:  # a thread of the driver knows them
        os.environ[WITH] = kinds
    module, name = class_
    try:
        first = load_config(configs[0], lenient=RECORDED in configs[0])
        loaded = [first, *(type(first).model_validate(config) for config in configs[1:])]
        task: Task = getattr(import_module(module), name)(loaded, Path(directory))
        task.train(force=force, under_way=report)
    except Interrupted as error:
        return error.number
    except DynError as error:
        return str(error)
    return ""

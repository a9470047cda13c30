"""The tasks of a sweep: batches of jobs that are trained together, cut by the plan alone; and the work of a worker.

A worker is told a directory and a number, wherever it is: `sweep.json` there describes the jobs.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dynamics_cli.errors import DynError
from dynamics_cli.kinds import Problem, Samples
from dynamics_cli.kinds.registry import blamed
from dynamics_cli.runs.errors import CorruptRunError, LockedRunError
from dynamics_cli.runs.store import files
from dynamics_cli.runs.store.layout import RUN_FILES, is_run
from dynamics_cli.runs.store.locks import run_lock
from dynamics_cli.sweeps.directory import SWEEP, read_sweep
from dynamics_cli.sweeps.jobs import PlannedSweep, planned_again
from dynamics_cli.training.problem import build_problem
from dynamics_cli.training.replicas import batch_key, batch_size, belong_together, build_problems, dataset_of
from dynamics_cli.training.session import Plan, obtain_run, plan_problems, plan_run
from dynamics_cli.training.signals import Interrupted

Numbers = NDArray[np.int64]
BUSY = "another process trains it"
"""The answer of a worker that finds the run directory locked."""
_DATASETS = 32
"""Data sets that are kept while the plan is cut."""


@dataclass(frozen=True)
class Task:
    """Jobs that are trained together, often a single job."""

    name: str
    """The run directory, below that of the sweep."""
    numbers: Numbers
    """The jobs, in their order."""


class Tasks(list[Task]):
    """The tasks of a sweep, which its plan alone decides: first batches, then jobs that are trained alone.

    Attributes:
        refused: jobs that no network can be trained with, and why.
        sizes: jobs of a batch, for each kind of batches.
    """

    def __init__(self, planned: PlannedSweep, known: Mapping[str, Any] | None = None) -> None:
        """Build a problem for each combination of settings by which jobs may not belong together.

        `known` is the `sweep.json` of a sweep that has begun, whose batches stay as they are. No data is drawn.
        """
        self.refused: list[tuple[Numbers, str]] = []
        groups: dict[str, list[Numbers]] = {}
        first: dict[str, Problem] = {}
        alone: list[Numbers] = []
        datasets: dict[str, Samples] = {}
        for numbers in alike(planned):
            try:
                config = planned[int(numbers[0])].config
                problem = build_problem(config, dataset=dataset_of(config, datasets, drawn=False))
                key = batch_key(problem)
            except DynError as error:
                self.refused.append((numbers, str(error)))
                continue
            finally:
                if len(datasets) > _DATASETS:
                    datasets.clear()
            if key is None:
                alone.append(numbers)
                continue
            groups.setdefault(key, []).append(numbers)
            first.setdefault(key, problem)
        self.sizes: list[int] = []
        sizes = iter((known or {}).get("batches", ()))
        for key, found in groups.items():
            if (total := sum(map(len, found))) == 1:
                alone += found
            else:  # sweeps that know no sizes were cut by memory alone
                self.sizes.append(next(sizes, 0) or batch_size(first[key], total, timed=known is None))
                self._cut("batches", found, self.sizes[-1])
        if alone:
            self._cut("jobs", alone, 1)

    def _cut(self, folder: str, found: Sequence[Numbers], size: int) -> None:
        numbers = np.sort(np.concatenate(found))
        parts = (numbers[k : k + size] for k in range(0, len(numbers), size))
        self.extend(Task(f"{folder}/{part[0]:06d}", part) for part in parts)


def alike(planned: PlannedSweep) -> Numbers:
    """Return groups (g, n) of jobs whose settings differ only where networks that are trained together may differ."""
    structured = zip(planned.groups, planned.structural, strict=True)
    free = [not structural and all(_is_free(axis.key) for axis in group) for group, structural in structured]
    if not all(_is_free(let.key) for let in planned.lets):
        free = [False] * len(free)
    numbers = np.arange(len(planned)).reshape(*planned.sizes, planned.seeds)
    order = sorted(range(len(free)), key=free.__getitem__)  # those that are free last
    groups = math.prod(size for size, one in zip(planned.sizes, free, strict=True) if not one)
    return numbers.transpose(*order, len(free)).reshape(groups, -1)


def _is_free(key: str) -> bool:
    """Whether networks whose numbers differ here are trained together whenever networks with equal numbers are."""
    return key in ("seed", "optimizer.lr", "architecture.slope") or key.startswith("initialization.")


@lru_cache(2)
def _plan_in(directory: str, changed: int) -> tuple[PlannedSweep, Tasks]:
    known = read_sweep(Path(directory))
    planned = planned_again(known)
    return planned, Tasks(planned, known)


def work(directory: str, number: int) -> str | int:
    """Train a task of the sweep in a directory; return "", why it failed, `BUSY`, or the number of a signal."""
    try:
        planned, tasks = _plan_in(directory, (Path(directory) / SWEEP).stat().st_mtime_ns)
        return train(planned, tasks[number], Path(directory))
    except Interrupted as error:
        return error.number
    except LockedRunError:
        return BUSY
    except DynError as error:
        return str(error)


@blamed()
def train(planned: PlannedSweep, task: Task, directory: Path) -> str:
    """Train the jobs of a task together, or go on with them; return "", or why some failed.

    Should they not belong together after all, since a seed made another shape, each is trained alone.

    Raises:
        DynError: they cannot be trained.
        Interrupted: SIGINT or SIGTERM came; the state is saved.
        LockedRunError: another process does it.
    """
    try:
        problems = build_problems([planned[int(number)].config for number in task.numbers])
        together = len(problems) == 1 or belong_together(problems)
    except DynError:
        if len(task.numbers) == 1:
            raise
        together = False
    if together:
        _obtain(plan_problems(problems, directory / task.name))
        return ""
    messages = []
    for number in task.numbers:
        try:
            _obtain(plan_run(planned[int(number)].config, directory / alone(number)))
        except (Interrupted, LockedRunError):
            raise
        except DynError as error:
            messages.append(str(error))
    return "; ".join(dict.fromkeys(messages))


def _obtain(plan: Plan) -> None:
    """Train a run, or go on with it; a run that has lost files, as when its folder was deleted, begins anew."""
    torn = not is_run(plan.directory) and any(files.exists(plan.directory / name) for name in RUN_FILES)
    try:
        if not torn:
            obtain_run(plan, resume=True, wait=False)
            return
    except CorruptRunError as error:
        if isinstance(error.__cause__, OSError) and not isinstance(error.__cause__, FileNotFoundError):
            raise  # perhaps it can be read later
    with run_lock(plan.directory, wait=False), files.os_errors_as_run_errors(plan.directory):
        for name in RUN_FILES:
            files.remove_tree(plan.directory / name)
    obtain_run(plan, resume=True, wait=False)


def alone(number: int) -> str:
    """Return the directory of a job that is trained alone."""
    return f"jobs/{number:06d}"

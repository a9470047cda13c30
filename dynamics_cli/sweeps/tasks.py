"""The tasks of a sweep: batches of jobs that are trained together, or single jobs; and the work of a worker."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dynamics_cli.config import RunConfig, load_config
from dynamics_cli.config.dump import to_plain
from dynamics_cli.errors import DynError
from dynamics_cli.kinds.registry import blamed
from dynamics_cli.runs.errors import CorruptRunError
from dynamics_cli.runs.store import files
from dynamics_cli.runs.store.layout import RUN_FILES, is_run
from dynamics_cli.runs.store.locks import run_lock
from dynamics_cli.training.replicas import belong_together, build_problems
from dynamics_cli.training.session import Plan, obtain_run, plan_problems, plan_run
from dynamics_cli.training.signals import Interrupted


@dataclass(frozen=True)
class Task:
    """Jobs that are trained together, often a single job."""

    name: str
    """The run directory, below that of the sweep."""
    numbers: Sequence[int]
    """The jobs, in their order."""


def tasks_of(described: Mapping[str, Any]) -> list[Task]:
    """Return the tasks of a sweep that is described so: first batches, then jobs that are trained alone."""
    batches: list[list[int]] = described["batches"]
    together = {number for numbers in batches for number in numbers}
    single = [number for number in range(described["jobs"]) if number not in together]
    return [
        *(Task(f"batches/{numbers[0]:06d}", numbers) for numbers in batches),
        *(Task(alone(number), [number]) for number in single),
    ]


def alone(number: int) -> str:
    """Return the directory of a job that is trained alone."""
    return f"jobs/{number:06d}"


def order(task: Task, directory: Path, configs: Sequence[RunConfig]) -> tuple[Any, ...]:
    """Return the arguments of `work`, which any machine can read that sees the directory."""
    return str(directory), task.name, task.numbers, [to_plain(config) for config in configs]


def work(directory: str, name: str, numbers: Sequence[int], configs: Sequence[Mapping[str, Any]]) -> str | int:
    """Train a task in the directory of a sweep; return "", why it failed, or the number of a signal."""
    try:
        first = load_config(configs[0])
        others = [type(first).model_validate(config) for config in configs[1:]]
        return train(Task(name, numbers), Path(directory), [first, *others])
    except Interrupted as error:
        return error.number
    except DynError as error:
        return str(error)


@blamed()
def train(task: Task, directory: Path, configs: Sequence[RunConfig]) -> str:
    """Train the jobs of a task together, or go on with them; return "", or why some failed.

    Should they not belong together after all, since a seed made another shape, each is trained alone.

    Raises:
        DynError: they cannot be trained.
        Interrupted: SIGINT or SIGTERM came; the state is saved.
    """
    try:
        problems = build_problems(configs)
        together = len(problems) == 1 or belong_together(problems)
    except DynError:
        if len(task.numbers) == 1:
            raise
        together = False
    if together:
        _obtain(plan_problems(problems, directory / task.name))
        return ""
    messages = []
    for number, config in zip(task.numbers, configs, strict=True):
        try:
            _obtain(plan_run(config, directory / alone(number)))
        except Interrupted:
            raise
        except DynError as error:
            messages.append(str(error))
    return "; ".join(dict.fromkeys(messages))


def _obtain(plan: Plan) -> None:
    """Train a run, or go on with it; a run that has lost files, as when its folder was deleted, begins anew."""
    torn = not is_run(plan.directory) and any(files.exists(plan.directory / name) for name in RUN_FILES)
    try:
        if not torn:
            obtain_run(plan, resume=True)
            return
    except CorruptRunError as error:
        if isinstance(error.__cause__, OSError) and not isinstance(error.__cause__, FileNotFoundError):
            raise  # perhaps it can be read later
    with run_lock(plan.directory), files.os_errors_as_run_errors(plan.directory):
        for name in RUN_FILES:
            files.remove_tree(plan.directory / name)
    obtain_run(plan, resume=True)

"""The runs of many seeds at once: replicas where shapes allow it, processes for the rest."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext

from dynamics_cli.config import RunConfig
from dynamics_cli.errors import InputError
from dynamics_cli.runs import Run, is_run, load_run, runs_root
from dynamics_cli.runs.replica import ReplicaSet
from dynamics_cli.sweeps.batches import divide
from dynamics_cli.sweeps.jobs import Job
from dynamics_cli.sweeps.workers import run_in_processes
from dynamics_cli.training.loop import Progress
from dynamics_cli.training.problem import Problem
from dynamics_cli.training.replicas import ReplicaPlan, obtain_replicas, plan_replicas
from dynamics_cli.training.session import Obtained, Plan, obtain_run, plan_run

Watch = Callable[[str, int], AbstractContextManager[Progress | None]]


def obtain_together(
    configs: Sequence[RunConfig], *, force: bool = False, progress: Watch | None = None
) -> list[Obtained]:
    """Return a run for every config, in their order.

    Raises:
        DynError: a run cannot start or go on.
        Interrupted: SIGINT or SIGTERM came; the states are saved, and the next call goes on from there.

    """
    work = divide([Job(number, {}, config) for number, config in enumerate(configs)])
    found: dict[int, Obtained] = {}
    for batch in work.batches:
        obtained = _obtain_batch([problem for _, problem in batch], force, progress)
        found.update({job.number: one for (job, _), one in zip(batch, obtained, strict=True)})
    # what cannot be built is refused with its own message when it is planned
    alone = [*work.singles, *(job for job, _ in work.refused)]
    plans = {job.number: plan_run(job.config) for job in alone}
    missing = [plan for plan in plans.values() if force or not _finished(plan)]
    if len(missing) > 1 and not force:
        for _ in run_in_processes([(plan.problem.config, plan.directory) for plan in missing]):
            pass  # a failure shows itself below, where the run is asked for again
    for number, plan in plans.items():
        trained_now = plan in missing
        one = obtain_run(plan, resume=True, force=force)
        found[number] = Obtained(one.run, one.reused and not trained_now, one.seconds)
    return [found[number] for number in range(len(configs))]


def _finished(plan: Plan) -> bool:
    return is_run(plan.directory) and load_run(plan.directory, verify=False).status in ("complete", "diverged")


def obtain_as_one(config: RunConfig, replicas: int, *, force: bool = False, progress: Watch | None = None) -> Obtained:
    """Return `replicas` networks with the config's seed and those after it as one run, its arrays `(K, R, ...)`.

    Raises:
        InputError: they cannot be trained together, or not at all.
        RunError: they cannot go on.
        Interrupted: SIGINT or SIGTERM came; the state is saved, and the next call goes on from there.

    """
    work = divide([Job(k, {}, config.model_copy(update={"seed": config.seed + k})) for k in range(replicas)])
    if work.refused:
        raise InputError(work.refused[0][1])
    if len(work.batches) != 1 or work.singles:
        raise InputError(f"{config.name}: {replicas} networks of this config cannot be trained together")
    found, reused, seconds = _train_batch([problem for _, problem in work.batches[0]], force, progress)
    return Obtained(found.together, reused, seconds)


def _obtain_batch(problems: Sequence[Problem], force: bool, progress: Watch | None) -> list[Obtained]:
    replicas, reused, seconds = _train_batch(problems, force, progress)
    runs: list[Run] = list(replicas)
    return [Obtained(run, reused, seconds / len(problems)) for run in runs]


def _train_batch(problems: Sequence[Problem], force: bool, progress: Watch | None) -> tuple[ReplicaSet, bool, float]:
    """Return the replicas, whether they were finished already, and the seconds that this took now."""
    began = time.monotonic()
    plan = plan_replicas(problems, runs_root())
    config = problems[0].config
    plan = ReplicaPlan(
        plan.problems, plan.backend, plan.hash, runs_root() / f"{config.name}-x{len(problems)}-{plan.hash[:10]}"
    )
    reused = not force and is_run(plan.directory) and ReplicaSet(plan.directory).info["status"] == "complete"
    watch = progress(f"{config.name} x {len(problems)}", problems[0].iterations) if progress and not reused else None
    with watch or nullcontext() as tell:
        replicas = obtain_replicas(plan, force=force, progress=tell)
    return replicas, reused, time.monotonic() - began

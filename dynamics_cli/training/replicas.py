"""Many runs of equal shape trained together: one run directory, arrays `(K, R, ...)`."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dynamics_cli.config import RunConfig, run_hash
from dynamics_cli.errors import UsageError
from dynamics_cli.runs.replica import ReplicaSet
from dynamics_cli.runs.store import layout
from dynamics_cli.runs.store.layout import clear_run, is_run
from dynamics_cli.runs.store.locks import run_lock
from dynamics_cli.runs.writer import RunWriter
from dynamics_cli.training.backends import Choice, choose
from dynamics_cli.training.loop import Outcome, Progress
from dynamics_cli.training.observers import Observer, chosen_observers
from dynamics_cli.training.problem import Problem
from dynamics_cli.training.session import raise_if_interrupted, train
from dynamics_cli.training.steppers.two_layer import TwoLayerStepper

Plain = dict[str, Any]
_FREE: dict[str, Any] = {
    "seed": True,
    "name": True,
    "optimizer": {"lr", "stop_below"},
    "architecture": {"activation", "slope"},
    "initialization": True,
    "dataset": True,
}
"""Settings in which replicas may differ; data sets only in their numbers, not in their shape."""


@dataclass(frozen=True)
class ReplicaPlan:
    """Runs that are to be trained together."""

    problems: Sequence[Problem]
    backend: str
    hash: str
    directory: Path


def batch_key(problem: Problem) -> str | None:
    """Return what problems trained together must have in common; None for one that has to be trained alone."""
    config = problem.config
    two_layer = config.architecture.kind == "two_layer" and config.loss.kind != "cross_entropy"
    plain_descent = config.optimizer.kind == "gd" and not getattr(config.optimizer, "loss_scaled", False)
    batches = config.optimizer.kind == "sgd" and config.optimizer.stop_below is None
    if not two_layer or not (plain_descent or batches) or config.device == "cuda":
        return None
    if config.backend not in ("auto", "compiled", "matrix"):
        return None
    common = config.model_dump_json(exclude=_FREE)
    return f"{common} {problem.dataset.x.shape} {problem.shapes}"


def replica_choice(problem: Problem) -> Choice:
    """Return the backend for one of many replicas: a compiled kernel per core, or batched products for large ones."""
    choice = choose(problem)
    if choice.backend in ("compiled", "matrix"):
        return choice
    return Choice("cpu", "compiled", choice.seconds_per_iteration)


def plan_replicas(problems: Sequence[Problem], directory: Path) -> ReplicaPlan:
    """Return the plan to train problems of one `batch_key` together in `directory`."""
    choice = replica_choice(problems[0])
    hashes = [run_hash(p.config, device="cpu", backend=choice.backend) for p in problems]
    return ReplicaPlan(problems, choice.backend, hashlib.sha256("\n".join(hashes).encode()).hexdigest(), directory)


def obtain_replicas(
    plan: ReplicaPlan,
    *,
    force: bool = False,
    wait: bool = True,
    progress: Progress | None = None,
    on_wait: Callable[[str], None] | None = None,
) -> ReplicaSet:
    """Return the replicas of a plan: reused when finished, continued when interrupted, trained otherwise.

    Raises:
        UsageError: the directory holds another run.
        RunError: the runs cannot go on (disk full, corrupt, locked).
        Interrupted: SIGINT or SIGTERM came; the state is saved.

    """
    with run_lock(plan.directory, wait=wait, on_wait=on_wait):
        if force:
            clear_run(plan.directory)
        if is_run(plan.directory) and (plan.directory / layout.INFO).exists():
            found = ReplicaSet(plan.directory)
            if found.info.get("hash") != plan.hash:
                raise UsageError(f"{plan.directory} holds other runs; give --out another directory, or --force")
            if found.info["status"] == "complete":
                return found
            writer = RunWriter.reopen(plan.directory)
        else:
            writer = RunWriter.create(plan.directory, plan.problems[0].config, _info(plan))
        with writer:
            _train(plan, writer, progress)
        return ReplicaSet(plan.directory)


def _info(plan: ReplicaPlan) -> Plain:
    base = plan.problems[0].config
    changes = [differences(base, p.config) for p in plan.problems]
    return {"hash": plan.hash, "device": "cpu", "backend": plan.backend, "replicas": changes}


def differences(base: RunConfig, other: RunConfig) -> Plain:
    """Return the top-level keys of `other` that differ from those of `base`, as plain data."""
    keys = {key for key in RunConfig.model_fields if getattr(base, key) != getattr(other, key)}
    return other.model_dump(include=keys, exclude_none=True) if keys else {}


def build_replica_stepper(problems: Sequence[Problem], backend: str) -> TwoLayerStepper:
    """Return the stepper that trains problems of one `batch_key` together."""
    if backend == "matrix":
        from dynamics_cli.training.steppers.matrix import MatrixStepper

        return MatrixStepper(problems, replicas=True)
    from dynamics_cli.training.steppers.compiled import CompiledStepper

    return CompiledStepper(problems, replicas=True)


def _train(plan: ReplicaPlan, writer: RunWriter, progress: Progress | None) -> None:
    observers = [chosen_observers(p) for p in plan.problems]
    stepper, outcome, seconds = train(
        writer,
        plan.problems[0],
        lambda: build_replica_stepper(plan.problems, plan.backend),
        observers={name: _together([each[name] for each in observers]) for name in observers[0]},
        progress=progress,
    )
    _finish(writer, stepper, outcome, seconds)


def _together(observers: Sequence[Observer]) -> Observer:
    """Return the observer of weights (R, ...) that asks each replica's own."""

    def observe(weights: Any) -> NDArray[np.float64]:
        each = [
            float(observer({name: value[r] for name, value in weights.items()})) for r, observer in enumerate(observers)
        ]
        return np.array(each)

    return observe


def _finish(writer: RunWriter, stepper: TwoLayerStepper, outcome: Outcome, seconds: float) -> None:
    losses = stepper.losses()
    halts = stepper.halted_at
    statuses = [
        "diverged" if not math.isfinite(L) or (h and h[1] == "diverged") else "complete"
        for L, h in zip(losses, halts, strict=True)
    ]
    writer.finish(
        outcome.status,
        iterations=outcome.iterations,
        final_loss=float(np.mean(losses)),
        seconds=seconds,
        replica_losses=[float(L) if math.isfinite(L) else None for L in losses],
        replica_iterations=[outcome.iterations if h is None else h[0] for h in halts],
        replica_statuses=statuses if outcome.status != "interrupted" else ["interrupted"] * len(halts),
    )
    raise_if_interrupted(writer, outcome)

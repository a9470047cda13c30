"""From a config to a finished run: identity, reuse, the lock, training, and what the run says of itself."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from dynamics_cli.config import RunConfig, run_hash
from dynamics_cli.config.identity import run_directory_name
from dynamics_cli.config.optimizer import GradientFlow, Optimizer
from dynamics_cli.errors import RunError, UsageError
from dynamics_cli.runs.errors import CorruptRunError
from dynamics_cli.runs.run import Run
from dynamics_cli.runs.store import layout
from dynamics_cli.runs.store.layout import clear_run, is_run
from dynamics_cli.runs.store.locks import run_lock
from dynamics_cli.runs.writer import RunWriter, check_space
from dynamics_cli.training.backends import Choice, build_stepper, choose
from dynamics_cli.training.clock import Clock, build_clock
from dynamics_cli.training.estimate import (
    Estimate,
    estimate,
    loss_interval,
    recorded_parameters,
    refuse_if_too_large,
)
from dynamics_cli.training.loop import Outcome, Progress, TrainingLoop
from dynamics_cli.training.observers import Observer, chosen_observers
from dynamics_cli.training.problem import Problem, build_problem
from dynamics_cli.training.recorder import Recorder
from dynamics_cli.training.schedule import snapshot_iterations
from dynamics_cli.training.signals import Interrupted
from dynamics_cli.training.steppers.base import Stepper

S = TypeVar("S", bound=Stepper)


@dataclass(frozen=True)
class Plan:
    """A run that could start: everything is checked, nothing is allocated or written."""

    problem: Problem
    choice: Choice
    needs: Estimate
    hash: str
    directory: Path

    @property
    def config(self) -> RunConfig:
        """The config with device and backend resolved."""
        return self.problem.config.model_copy(update={"device": self.choice.device, "backend": self.choice.backend})


@dataclass(frozen=True)
class Obtained:
    """A run, and whether it was there already."""

    run: Run
    reused: bool
    seconds: float
    """Wall time that obtaining it took now."""


def plan_run(config: RunConfig, directory: Path | None = None) -> Plan:
    """Resolve and check everything about a run before it starts.

    Args:
        config: the validated config.
        directory: the run directory itself; by default one named after the config under the root of all runs.

    Raises:
        InputError: the data, the device or the size of the run make it impossible.
        DataMissingError: a data file is not there.

    """
    problem = build_problem(config)
    choice = choose(problem)
    chosen_observers(problem)
    needs = estimate(problem, choice)
    refuse_if_too_large(problem, needs)
    identity = run_hash(problem.config, device=choice.device, backend=choice.backend)
    directory = directory or layout.runs_root() / run_directory_name(config, identity)
    return Plan(problem, choice, needs, identity, directory)


def obtain_run(
    plan: Plan,
    *,
    resume: bool = False,
    force: bool = False,
    wait: bool = True,
    progress: Progress | None = None,
    on_wait: Callable[[str], None] | None = None,
) -> Obtained:
    """Return the run of a plan: reused when it is finished, continued when `resume` is given, trained otherwise.

    A run that another process was training, for which this one has waited, is continued too if that one died.

    Raises:
        UsageError: the directory holds another run, or an unfinished one and neither `resume` nor `force` is given.
        RunError: the run cannot go on (disk full, corrupt, locked).
        Interrupted: SIGINT or SIGTERM came; the state is saved.

    """
    began = time.monotonic()
    _make_directory(plan.directory)
    check_space(plan.directory, plan.needs.disk_bytes)
    with run_lock(plan.directory, wait=wait, on_wait=on_wait) as waited:
        if force:
            clear_run(plan.directory)
        if is_run(plan.directory) and (plan.directory / layout.INFO).exists():
            run = Run(plan.directory)
            if run.hash != plan.hash:
                raise UsageError(
                    f"{plan.directory} holds a run of another config: "
                    "give --out another directory, or --force to replace it"
                )
            if run.info["status"] in ("complete", "diverged"):
                return Obtained(run, reused=True, seconds=time.monotonic() - began)
            if not resume and not waited:
                raise UsageError(
                    f"{plan.directory} holds an unfinished run{_reached(run)}: "
                    "--resume continues it, --force starts over"
                )
            writer = RunWriter.reopen(plan.directory)
        else:
            writer = RunWriter.create(plan.directory, plan.config, _info(plan))
        with writer:
            _train(plan, writer, progress)
        return Obtained(Run(plan.directory), reused=False, seconds=time.monotonic() - began)


def _reached(run: Run) -> str:
    """Say how far a run has come; after a power cut, what it recorded last may be damaged, which resuming drops."""
    try:
        return f" at iteration {run.iterations}"
    except CorruptRunError as error:
        return f" ({error})"


def _make_directory(directory: Path) -> None:
    """Make the run directory, so that a place that cannot be written is told before anything else."""
    try:
        directory.mkdir(parents=True, exist_ok=True)
    except FileExistsError as error:
        raise UsageError(f"{directory} is a file, not a directory; give --out another name") from error
    except OSError as error:
        raise RunError(
            f"the run directory {directory} cannot be made ({error.strerror}); give --out a place that can be written"
        ) from error


def _info(plan: Plan) -> dict[str, object]:
    return {
        "hash": plan.hash,
        "device": plan.choice.device,
        "backend": plan.choice.backend,
        "estimate": plan.needs.as_dict(),
    }


def _train(plan: Plan, writer: RunWriter, progress: Progress | None) -> None:
    problem, optimizer = plan.problem, plan.problem.config.optimizer
    stepper, outcome, seconds = train(
        writer,
        problem,
        lambda: build_stepper(problem, plan.choice),
        observers=chosen_observers(problem),
        clock=build_clock(optimizer),
        stop_below=optimizer.stop_below,
        progress=progress,
    )
    _finish(writer, outcome, seconds, optimizer, stepper.numbers())


def train(
    writer: RunWriter,
    problem: Problem,
    build: Callable[[], S],
    *,
    observers: Mapping[str, Observer],
    clock: Clock | None = None,
    stop_below: float | None = None,
    progress: Progress | None = None,
) -> tuple[S, Outcome, float]:
    """Build a stepper, train and record; return it with the outcome and the seconds of the training.

    `problem` says what is recorded and for how long; of replicas it is any one, since they agree on that.

    Raises:
        RunError: the run could not go on; it has ended as failed.

    """
    try:
        stepper = build()
    except (MemoryError, RuntimeError) as error:  # torch tells of too little memory with the latter
        raise _failed(writer, error, writer.resumed_at, 0.0) from error
    loss_every, names = loss_interval(problem), recorded_parameters(problem)
    loop = TrainingLoop(
        stepper,
        writer,
        Recorder(writer, loss_every=loss_every, parameters=names, observers=observers, clock=clock),
        total=problem.iterations,
        snapshots=snapshot_iterations(problem.config.record.snapshots, problem.iterations),
        loss_every=loss_every,
        stop_below=stop_below,
        progress=progress,
    )
    try:
        return stepper, loop.run(), loop.seconds()
    except (MemoryError, RuntimeError, ArithmeticError) as error:
        raise _failed(writer, error, stepper.iteration, loop.seconds()) from error


def _failed(writer: RunWriter, error: Exception, iteration: int, seconds: float) -> RunError:
    """End a run that cannot go on; return what to raise."""
    why = str(error) or type(error).__name__
    writer.finish("failed", iterations=iteration, final_loss=math.nan, seconds=seconds, messages=[why])
    return RunError(f"{writer.directory}: the run failed at iteration {iteration}: {why}")


def _finish(
    writer: RunWriter, outcome: Outcome, seconds: float, optimizer: Optimizer, numbers: dict[str, float]
) -> None:
    messages = [divergence_message(outcome.iterations, optimizer)] if outcome.status == "diverged" else []
    writer.finish(
        outcome.status,
        iterations=outcome.iterations,
        final_loss=outcome.final_loss,
        seconds=seconds,
        messages=messages,
        stopped_early=outcome.stopped,
        **numbers,
    )
    raise_if_interrupted(writer, outcome)


def raise_if_interrupted(writer: RunWriter, outcome: Outcome) -> None:
    """Raise `Interrupted` when a signal came, be it in the last moment of the training."""
    if outcome.signal is not None and outcome.status != "interrupted":
        raise Interrupted(f"interrupted; the run in {writer.directory} had come to its end", outcome.signal)
    if outcome.signal is not None:
        raise Interrupted(
            f"interrupted at iteration {outcome.iterations}; the state is saved in {writer.directory}: "
            "--resume continues it",
            outcome.signal,
        )


def divergence_message(iteration: int, optimizer: Optimizer) -> str:
    """Return what a diverged run says of itself."""
    told = f"the loss is not finite at iteration {iteration}; everything up to it is kept. "
    if isinstance(optimizer, GradientFlow):
        return told + "Gradient flow never raises the loss: the initial weights or the data are too large"
    return told + f"Try a smaller step, e.g. --set optimizer.lr={optimizer.lr / 10:.3g}"

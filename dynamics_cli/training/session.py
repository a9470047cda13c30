"""From configs to a finished run: identity, reuse, lock, training, entries of `run.json`.

A run is one network, or several of equal shape that are trained side by side, its replicas.
"""

from __future__ import annotations

import hashlib
import math
import os
import time
import traceback
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from dynamics_cli.config import RunConfig, run_hash
from dynamics_cli.config.identity import run_directory_name
from dynamics_cli.errors import RunError, UsageError
from dynamics_cli.kinds import Problem
from dynamics_cli.kinds.registry import KindError, blamed
from dynamics_cli.process import plain_process
from dynamics_cli.runs.errors import CorruptRunError
from dynamics_cli.runs.info import Status, begun_info
from dynamics_cli.runs.room import check_room
from dynamics_cli.runs.run import Run
from dynamics_cli.runs.store import files, layout
from dynamics_cli.runs.store.locks import is_locked, run_lock
from dynamics_cli.runs.writer import Listener, RunWriter
from dynamics_cli.training.backends import Choice, choose
from dynamics_cli.training.course import Course
from dynamics_cli.training.estimate import Estimate, estimate_legs, refuse_if_too_large
from dynamics_cli.training.legs import Leg, legs_of
from dynamics_cli.training.loop import Progress, TrainingLoop
from dynamics_cli.training.parent import parent_of
from dynamics_cli.training.problem import build_problem
from dynamics_cli.training.signals import Interrupted


@dataclass(frozen=True)
class Plan:
    """A run that could start: everything is checked, nothing is allocated or written."""

    legs: Sequence[Leg]
    """The parts of the run between its changes, one where there are none."""
    choice: Choice
    needs: Estimate
    """Needs of each network."""
    hash: str
    files: Mapping[str, str]
    """SHA-256 of each file that a config names, such as its data."""
    directory: Path
    about: Mapping[str, Any] = field(default_factory=dict)
    """More entries of `run.json`, such as the sweep whose jobs these are."""
    parent: Path | None = None
    """The run with which it may begin."""

    @property
    def problems(self) -> Sequence[Problem]:
        """The problem at the beginning, one for each replica.

        Replicas share everything but what `replicas.batch_key` leaves free.
        """
        return self.legs[0].problems

    @property
    def problem(self) -> Problem:
        """The first problem; all problems record the same states."""
        return self.problems[0]

    @property
    def config(self) -> RunConfig:
        """The config that the run keeps: with device and backend resolved.

        Of several networks, it is the config of the first.

        What the others change is kept in `run.json`.
        """
        if len(self.problems) > 1:
            return self.problem.config
        return self.problem.config.model_copy(
            update={"device": self.choice.device, "backend": self.choice.backend}
        )


@dataclass(frozen=True)
class Obtained:
    """A run, and whether it was there already."""

    run: Run
    reused: bool
    seconds: float
    """Wall time that obtaining it took now."""


def plan_run(config: RunConfig, directory: Path | None = None) -> Plan:
    """Return the plan of one network; see `build_problem` and `plan_problems`."""
    return plan_problems([build_problem(config)], directory)


@blamed()
def plan_problems(
    problems: Sequence[Problem], directory: Path | None = None, root: Path | None = None
) -> Plan:
    """Resolve and check a run of one network, or of several with one `replicas.batch_key`.

    `directory` is the run directory itself; by default it is named after the config, below `root`,
    which is by default the root of all runs.

    Raises:
        InputError: the data, the device or the size of the run make it impossible.
    """
    first = problems[0]
    legs = legs_of(problems)
    choice = choose(problems, [leg.problem for leg in legs[1:]])
    needs = estimate_legs(legs, choice)
    refuse_if_too_large(first, needs)
    digests: dict[str, str] = {}
    configs = [problem.config for problem in problems]
    identity = identity_of(configs, choice.device, choice.backend, digests)
    if directory is None:
        name = run_directory_name(first.config, identity)
        if len(problems) > 1:
            name = f"{first.config.name}-x{len(problems)}-{identity[:10]}"
        directory = (root or layout.runs_root()) / name
    return Plan(legs, choice, needs, identity, digests, directory)


def identity_of(
    configs: Sequence[RunConfig],
    device: str,
    backend: str,
    digests: dict[str, str],
) -> str:
    """Return the identity of a run of one network, or of several, whose data sets are resolved.

    `digests` gets the SHA-256 of each file that a config names; those that it has are not computed
    again.
    """
    hashes = [
        run_hash(config, device=device, backend=backend, digests=digests) for config in configs
    ]
    if len(hashes) == 1:
        return hashes[0]
    return hashlib.sha256("\n".join(hashes).encode()).hexdigest()


def obtain_run(
    plan: Plan,
    *,
    resume: bool = False,
    force: bool = False,
    wait: bool = True,
    progress: Progress | None = None,
    on_wait: Callable[[str], None] | None = None,
    listener: Listener | None = None,
) -> Obtained:
    """Return the run of a plan.

    A finished run is reused, an unfinished one continued with `resume`.

    A run that another process was training, for which this one has waited, is continued too if that
    one died. A `listener` gets the rows of losses and measures as they are recorded, after the rows
    of a run that is continued.

    Raises:
        UsageError: the directory holds another run, or an unfinished one and neither `resume` nor
            `force` is given.
        RunError: the run cannot go on (disk full, corrupt, locked).
        Interrupted: SIGINT or SIGTERM came; the state is saved.
    """
    began = time.monotonic()
    remedy = "the same command" if resume else files.RESUME
    if not force and (kept := finished_read_only(plan)) is not None:
        return Obtained(kept, reused=True, seconds=time.monotonic() - began)
    _make_directory(plan.directory)
    with files.continued_by(remedy), run_lock(plan.directory, wait=wait, on_wait=on_wait) as waited:
        run = None if force else begun_run(plan)
        if run is None:
            parent = None if force else parent_of(plan.config, plan.legs, plan.parent)
            if parent is not None:
                parent.check()  # its damage is told before a run begins
            writer = RunWriter.create(plan.directory, plan.config, _info(plan), force=force)
            if writer.aside is not None and on_wait is not None:
                on_wait(f"the run that was there is in {writer.aside}")
            if parent is not None:
                parent.begin(writer, plan.legs)
        elif obstacle := why_not_trained(plan, run, resume=resume or waited):
            raise UsageError(obstacle)
        elif run.ended:
            run.check_all(usable="--force trains the run again")
            return Obtained(run, reused=True, seconds=time.monotonic() - began)
        else:
            writer = RunWriter.reopen(plan.directory)
        if listener is not None:
            writer.listen(listener)
        _train(plan, writer, progress, remedy)
        run = begun_run(plan)
        assert run is not None
        seconds = time.monotonic() - began
        run.check_all()  # while the lock is held: whoever waits for it may start the run over
        return Obtained(run, reused=False, seconds=seconds)


def finished_read_only(plan: Plan) -> Run | None:
    """Return the finished run of a plan in a read-only directory, where no lock can be held.

    Else None.

    Raises RunError: it is damaged.
    """
    if not plan.directory.is_dir() or os.access(plan.directory, os.W_OK):
        return None
    run = begun_run(plan)
    if run is None or run.hash != plan.hash or not run.ended:
        return None
    run.check_all()
    return run


def begun_run(plan: Plan) -> Run | None:
    """Return the run in the directory of a plan; None without one.

    Where both are the same run it has the plan's config.

    The config that the run recorded may name files of a checkout that moved; equal identities mean
    equal contents.

    Raises RunError: it is damaged.
    """
    if begun_info(plan.directory) is None:
        return None
    run = Run(plan.directory)
    if run.hash == plan.hash:
        run.config = plan.config
    return run


def why_not_trained(plan: Plan, run: Run, *, resume: bool) -> str | None:
    """Return why the run that is there keeps a plan from being trained; None where it does not."""
    if run.hash != plan.hash:
        another = "give --out another directory, or --force to move it aside"
        return f"{plan.directory} holds a run of another config: {another}"
    if resume or run.ended:
        return None
    try:
        reached = f" at iteration {run.iterations}"
    except CorruptRunError as error:  # as after a power cut; resuming drops the damaged rows
        reached = f" ({error})"
    return (
        f"{plan.directory} holds an unfinished run{reached}: --resume continues it, --force starts"
        " over"
    )


@dataclass(frozen=True)
class Prospect:
    """A plan, and the action of training it now."""

    plan: Plan
    status: str | None
    """Status of the run that is there; None without one."""
    action: str
    """In words."""

    def as_dict(self) -> dict[str, Any]:
        """Return the JSON of `--json`: the run, the action, and the needs (see `Estimate`)."""
        plan = self.plan
        run = {
            "path": plan.directory,
            "hash": plan.hash,
            "status": self.status,
            "action": self.action,
        }
        return {**run, **asdict(plan.choice), **asdict(plan.needs)}


def prospect(plan: Plan, *, resume: bool = False, force: bool = False) -> Prospect:
    """Return the action of training a plan with these options.

    Raises:
        RunError: the run that is there is damaged.
    """
    run = begun_run(plan)
    aside = None
    if run is None or force:
        try:
            aside = check_room(plan.directory, force=force)
        except UsageError as error:
            return Prospect(plan, getattr(run, "status", None), f"refuse: {error}")
    if run is None:
        parent = None if force else parent_of(plan.config, plan.legs, plan.parent)
        if parent is not None:
            from_there = f"train from iteration {parent.checkpoint.iteration} of {parent.run.path}"
            return Prospect(plan, None, from_there)
        return Prospect(plan, None, "train from iteration 0")
    if is_locked(plan.directory):
        action = "wait for another process that holds the directory"
    elif aside is not None:
        action = f"move the {run.status} run that is there to {aside} and train from iteration 0"
    elif obstacle := why_not_trained(plan, run, resume=resume):
        action = f"refuse: {obstacle}"
    elif run.ended:
        action = f"reuse the {run.status} run that is there"
    else:
        action = "continue the unfinished run that is there from its last checkpoint"
    return Prospect(plan, run.status, action)


def _make_directory(directory: Path) -> None:
    """Make the run directory; a place that cannot be written is refused first."""
    try:
        directory.mkdir(parents=True, exist_ok=True)
    except FileExistsError as error:
        raise UsageError(
            f"{directory} is a file, not a directory; give --out another name"
        ) from error
    except OSError as error:
        way = "give --out"
        if directory.is_relative_to(layout.outputs_root()):
            way = "set DYN_OUTPUTS to"
        text = (
            f"the run directory {directory} cannot be made ({error.strerror}); {way} a place that"
            " can be written"
        )
        raise RunError(text) from error


def _info(plan: Plan) -> dict[str, Any]:
    about: dict[str, Any] = {
        "hash": plan.hash,
        "device": plan.choice.device,
        "backend": plan.choice.backend,
        **plan.about,
    }
    if plan.files:
        about["files"] = dict(plan.files)
    if len(plan.problems) == 1:
        return about | {"estimate": asdict(plan.needs)}
    return about | {
        "replicas": [differences(plan.problem.config, problem.config) for problem in plan.problems]
    }


def differences(base: RunConfig, config: RunConfig) -> dict[str, Any]:
    """Return the top-level keys of `config` that differ from `base`, as plain data."""
    pairs = zip(base, config, strict=True)  # most sections are shared: comparing them takes long
    keys = {key for (key, old), (_, new) in pairs if new is not old and new != old}
    return config.model_dump(include=keys, exclude_none=True)


def _train(plan: Plan, writer: RunWriter, progress: Progress | None, remedy: str) -> None:
    """Build the stepper, train, record, and say in `run.json` how it ended.

    `remedy` continues an interrupted run.
    """
    course = Course(plan.legs, plan.choice, writer, progress)
    try:
        # a message tells of a loss that is not finite
        with plain_process(), blamed(plan.problem.config.architecture), np.errstate(all="ignore"):
            status = course.run()
    except KeyboardInterrupt:  # before the loop watches, or at the second signal
        raise KeyboardInterrupt(
            f"interrupted; the run is in {writer.directory}: {remedy} continues it"
        ) from None
    # torch tells of too little memory with a RuntimeError
    except (KindError, MemoryError, RuntimeError, ArithmeticError, np.linalg.LinAlgError) as error:
        reached = writer.resumed_at
        seconds = 0.0
        if (loop := course.loop) is not None:
            reached = loop.stepper.iteration
            seconds = loop.seconds()
        why = str(error) or type(error).__name__
        writer.finish(
            "failed", iterations=reached, final_loss=math.nan, seconds=seconds, messages=[why]
        )
        lines = "".join(traceback.format_exception(error))
        files.save(writer.directory / layout.TRACEBACK, lines.encode(errors="replace"))
        raise RunError(
            f"{writer.directory}: the run failed at iteration {reached}: {why} ({layout.TRACEBACK}"
            " there says more)"
        ) from error
    assert course.loop is not None
    loop = course.loop
    _finish(writer, loop, course.leg, status)
    if loop.watch.received is None:
        return
    # in the last moment of the training
    told = f"interrupted; the run in {writer.directory} had come to its end"
    if status == "interrupted":
        saved = (
            f"interrupted at iteration {loop.stepper.iteration}; the state is saved in"
            f" {writer.directory}"
        )
        told = f"{saved}: {remedy} continues it"
    raise Interrupted(told, loop.watch.received)


def _finish(writer: RunWriter, loop: TrainingLoop, leg: Leg, status: Status) -> None:
    stepper = loop.stepper
    iteration = stepper.iteration
    messages = []
    numbers: dict[str, Any] = {"final_loss": loop.recorder.last_loss, **stepper.numbers()}
    if len(leg.problems) == 1:
        numbers["stopped_early"] = stepper.halted == "stopped"
    elif status == "interrupted":
        numbers["replica_statuses"] = ["interrupted"] * len(leg.problems)
    if status == "diverged":
        diverged = f"the loss is not finite at iteration {iteration}; everything up to it is kept."
        messages = [f"{diverged} {leg.problem.config.optimizer.advice()}"]
    writer.finish(
        status, iterations=iteration, seconds=loop.seconds(), messages=messages, **numbers
    )

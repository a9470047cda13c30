"""The training loop of every stepper, architecture and paper, and its recorder."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from dynamics_cli.kinds import Clock, Floats, Problem
from dynamics_cli.kinds.arrays import stacked
from dynamics_cli.kinds.snapshots import Iterations, between, next_after
from dynamics_cli.runs.errors import CorruptRunError
from dynamics_cli.runs.store import layout
from dynamics_cli.runs.store.checkpoints import Checkpoint
from dynamics_cli.runs.writer import RunWriter
from dynamics_cli.training.estimate import loss_interval, recorded_parameters
from dynamics_cli.training.measuring import BEFORE, DONE, Measuring, Seen
from dynamics_cli.training.signals import SignalWatch
from dynamics_cli.training.steppers.base import Halt, StateDict, Stepper

Progress = Callable[[int, float], None]
"""Called with the iteration reached and the last loss."""

CALL_SECONDS = 0.1
"""Aimed duration of one call of `advance`, so that a signal takes effect quickly."""
CHECKPOINT_SECONDS = 10.0
"""Time between two checkpoints: the most that a kill can cost."""
FIRST_CHECKPOINT_SECONDS = 1.0
"""Time until the first checkpoint, before which an unfinished run reads as empty."""
HELD_SECONDS = 0.1
HELD_BYTES = 2**20
"""Rows are held so long, and so many bytes of them, before they are written: a write takes as
long as many updates.
"""
MOST_WATCHED = 1024
"""States that a call of a stepper measures, at most."""
_MEASURE = "measure/"
CLOCK = "clock/time"
"""In checkpoints: the name of the time of the clock."""
HISTORY = f"{_MEASURE}{BEFORE}/"
"""In checkpoints: the start of the names of weights before the state."""


class RecordBuffer:
    """Hands losses, weights and measures to the writer some times a second.

    Attributes:
        last_loss: that of the last state that was looked at; of replicas, their mean.
        loss_at, snapshot_at: the last states whose loss, and whose weights and measures, are
            recorded.
    """

    def __init__(self, writer: RunWriter, problems: Sequence[Problem], clock: Clock | None) -> None:
        problem = problems[0]
        self.writer = writer
        self.loss_every = loss_interval(problem)
        self.measuring = Measuring(problems)
        self.clock = clock

        self.last_loss = math.nan
        self.loss_at = writer.last_loss
        self.snapshot_at = writer.last_snapshot

        self._parameters = recorded_parameters(problem)
        self._losses: list[tuple[NDArray[Any], ...]] = []
        self._snapshots: list[tuple[int, *Seen]] = []
        self._bytes = 0
        self._written = time.monotonic()

    def losses(self, first: int, values: Floats, *, last_state: bool = False) -> None:
        """Record every `loss_every`-th of the losses of states `first, first + 1, ...`.

        `values` is (k,) or, of replicas, (k, R). `last_state` marks the last of them as the run's
        last state, which is always recorded.
        """
        if len(values) == 0:
            return
        self.last_loss = float(np.mean(values[-1]))

        # the clock may need each loss, also those that are not recorded
        times = None
        if self.clock is not None:
            times = self.clock.advance(first, values)

        iterations = np.arange(first, first + len(values))
        kept: NDArray[np.bool_] = iterations % self.loss_every == 0
        kept[-1] |= last_state
        kept &= iterations > self.loss_at  # at a change, the loss before it counts
        if not kept.any():
            return
        rows = [iterations[kept], values[kept]]
        if times is not None:
            rows.append(times[kept])
        self._losses.append(tuple(rows))
        self.loss_at = int(rows[0][-1])
        self._hold(sum(array.nbytes for array in rows))

    def snapshot(self, stepper: Stepper) -> None:
        """Record the current weights and measures, unless that has been done."""
        if self.snapshot_at == stepper.iteration:
            return
        weights = stepper.parameters()
        recorded = {name: weights[name] for name in self._parameters}
        preconditioner = stepper.preconditioner() if self.measuring.preconditioned else {}
        ends = [end if end is None or end > self.snapshot_at else DONE for end in stepper.ends]
        measures = self.measuring.at(weights, stepper.iteration, preconditioner, ends)
        self._keep(stepper.iteration, (recorded, measures))

    def _keep(self, iteration: int, seen: Seen) -> None:
        recorded, measures = seen
        self._snapshots.append((iteration, recorded, measures))
        self.snapshot_at = iteration
        self._hold(sum(array.nbytes for array in (*recorded.values(), *measures.values())))

    def advance(self, stepper: Stepper, target: int, due: Iterations) -> bool:
        """Have a stepper train up to `target`; record losses and the states `due` on the way.

        Return whether it could: measures may have to be asked state by state.
        """
        first = stepper.iteration
        done = self.measuring.advance(stepper, target - first, due, self._parameters)
        if done is None:
            return False
        losses, states = done
        self.losses(first, losses, last_state=stepper.halted is not None)
        for iteration, seen in zip(due.tolist(), states, strict=False):
            self._keep(iteration, seen)
        return True

    def _hold(self, size: int) -> None:
        self._bytes += size
        if self._bytes > HELD_BYTES or not 0.0 <= time.monotonic() - self._written <= HELD_SECONDS:
            self.write()

    def write(self) -> None:
        """Write all that is held.

        Raises RunError: the disk is full, not writable or failing.
        """
        losses = self._losses
        snapshots = self._snapshots
        self._losses = []
        self._snapshots = []
        self._bytes = 0

        if losses:
            self.writer.append_losses(*map(np.concatenate, zip(*losses, strict=True)))
        if snapshots:
            iterations, weights, measures = zip(*snapshots, strict=True)
            self.writer.append_snapshots(iterations, stacked(weights), stacked(measures))
        self._written = time.monotonic()


@dataclass
class TrainingLoop:
    """Trains until the last iteration, a halt or a signal, and records on the way.

    Calls of `advance` end where something is recorded, and after about `CALL_SECONDS`; neither
    changes a bit of the result.
    """

    stepper: Stepper
    recorder: RecordBuffer
    total: int
    snapshots: Iterations
    progress: Progress | None = None
    resumed: Checkpoint | None = None
    """The checkpoint from which it goes on."""
    carried: StateDict = field(default_factory=dict)
    """Arrays that each of its checkpoints holds, besides the state."""
    about: Mapping[str, Any] = field(default_factory=dict)
    """Entries that the `meta` of each of its checkpoints has."""
    kept: Sequence[int] = ()
    """The states whose checkpoints are kept, ascending."""
    holding: Callable[[], AbstractContextManager[None]] = nullcontext
    """The context of what calls kinds; see `repeatable.holding`."""
    spent: float = field(default=0.0, init=False)
    """Seconds of training before it began."""

    def __post_init__(self) -> None:
        self._writer = self.recorder.writer
        self.watch = SignalWatch()
        self._began = time.monotonic()

    def seconds(self) -> float:
        """Return the wall time of the training so far, that before interruptions included."""
        return self.spent + max(0.0, time.monotonic() - self._began)

    def run(self) -> Literal["complete", "diverged", "interrupted"]:
        """Train to the end, from the writer's checkpoint where it has one; return how it ended."""
        with SignalWatch() as self.watch:
            try:
                with self.holding():
                    self._start()
                self._train()
                if self.stepper.halted or self.stepper.iteration == self.total:
                    with self.holding():
                        self._end()
                    if self.stepper.halted == "diverged":
                        return "diverged"
                    return "complete"
            except Exception:  # such as that of a measure: the rows before it are kept
                self.recorder.write()
                raise
            self.checkpoint()
            return "interrupted"

    def _start(self) -> None:
        resumed = self.resumed
        if resumed is not None:
            try:
                self._restore(resumed)
            except (
                LookupError,
                TypeError,
                ValueError,
                AttributeError,
                OverflowError,
                RuntimeError,
            ) as error:
                problem = "its contents are not the state of this run"
                file = self._writer.directory / layout.CHECKPOINT
                raise CorruptRunError(file, problem, "start again with --force") from error
        self._record()

    def _restore(self, resumed: Checkpoint) -> None:
        self.spent = float(resumed.meta["seconds"])
        state: StateDict = dict(resumed.arrays)
        summed = state.pop(CLOCK, None)  # that of a parent run may have none
        if self.recorder.clock is not None and summed is not None:
            self.recorder.clock.time = float(summed)
        memories = {}
        for key in list(state):
            if key.startswith(_MEASURE):
                memories[key.removeprefix(_MEASURE)] = state.pop(key)
        self.recorder.measuring.load_state_dict(memories)
        self.stepper.load_state_dict(state)
        self.stepper.halted = resumed.meta.get("halted")
        self.recorder.last_loss = float(resumed.meta.get("last_loss", math.nan))
        recorded = max(self.recorder.loss_at, self.recorder.snapshot_at)
        if self.stepper.halted not in (None, *get_args(Halt)):
            raise ValueError(self.stepper.halted)
        if not recorded <= self.stepper.iteration <= self.total:
            raise ValueError(self.stepper.iteration)

    def _train(self) -> None:
        chunk = 1
        saved = time.monotonic() + FIRST_CHECKPOINT_SECONDS - CHECKPOINT_SECONDS
        while (
            not self.stepper.halted
            and self.stepper.iteration < self.total
            and self.watch.received is None
        ):
            began = time.monotonic()
            first = self.stepper.iteration
            with self.holding():
                self._advance(chunk)
            now = time.monotonic()
            chunk = _next_chunk(chunk, self.stepper.iteration - first, now - began)
            if self.progress is not None:
                self.progress(self.stepper.iteration, self.recorder.last_loss)
            due = not 0.0 <= now - saved <= CHECKPOINT_SECONDS  # also where a clock was set back
            if due and not self.stepper.halted:  # a halted run has only its end to write
                self.checkpoint()
                saved = time.monotonic()

    def _advance(self, chunk: int) -> None:
        """Do up to `chunk` updates, not past the next recording point, and record."""
        stepper = self.stepper
        first = self.stepper.iteration
        kept = [i for i in self.kept if i > first][:1]
        last = min([first + chunk, self.total, *kept])
        due = between(self.snapshots, first, last)[:MOST_WATCHED]
        watched = len(due) > 1 and stepper.watchable
        if not watched or not self.recorder.advance(stepper, int(due[-1]), due):
            self._advance_unwatched(last, kept)
        self._record()
        if stepper.iteration in self.kept and not stepper.halted:
            self.recorder.write()
            self._writer.keep(*self._state())

    def _advance_unwatched(self, last: int, kept: Sequence[int]) -> None:
        """Do updates up to state `last`, not past the next recording point.

        Keep the weights that measures of updates will need there, and at the next `kept` state.
        """
        stepper = self.stepper
        first = self.stepper.iteration
        history = self.recorder.measuring.history
        stops = [next_after(self.snapshots, first), *kept]
        if any(history.wants(first, stop) for stop in stops):
            history.keep(first, stepper.parameters())
        target = min([last, *(history.next_stop(first, i) for i in stops)])
        if not stepper.full_batch:
            target = min(target, (first // self.recorder.loss_every + 1) * self.recorder.loss_every)
        losses = stepper.advance(target - first)
        if stepper.full_batch:
            self.recorder.losses(first, losses, last_state=stepper.halted is not None)

    def _record(self) -> None:
        """Record the loss and the snapshot of the current state, where they are due."""
        i = self.stepper.iteration
        looked_at = self.stepper.full_batch or self.stepper.halted or self.recorder.loss_at == i
        if not looked_at and (i % self.recorder.loss_every == 0 or i == self.total):
            self._look()
        if next_after(self.snapshots, i - 1) == i and (not self.stepper.halted or i == 0):
            self.recorder.snapshot(self.stepper)

    def _look(self) -> None:
        """Record the loss of the current state, which no update gave.

        The stepper halts where that ends the run.
        """
        loss = self.stepper.look()
        if self.recorder.loss_at < self.stepper.iteration:
            self.recorder.losses(self.stepper.iteration, loss, last_state=True)

    def _end(self) -> None:
        """Record the loss and the snapshot of the last state."""
        if self.stepper.full_batch and not self.stepper.halted:
            self._look()
        self.recorder.snapshot(self.stepper)
        self.recorder.write()

    def checkpoint(self) -> None:
        """Save the state from which the run can go on."""
        self.recorder.write()
        self._writer.checkpoint(*self._state())

    def _state(self) -> tuple[StateDict, dict[str, Any]]:
        """Return the arrays and the `meta` of a checkpoint of the current state."""
        state = self.stepper.state_dict()
        if self.recorder.clock is not None:
            state[CLOCK] = np.array(self.recorder.clock.time)
        state |= self.carried
        memories = self.recorder.measuring.state_dict()
        state |= {f"{_MEASURE}{key}": value for key, value in memories.items()}
        meta = {
            "iteration": self.stepper.iteration,
            "seconds": self.seconds(),
            "halted": self.stepper.halted,
            **self.about,
        }
        if np.isfinite(self.recorder.last_loss):
            meta["last_loss"] = self.recorder.last_loss
        return state, meta


def _next_chunk(chunk: int, done: int, seconds: float) -> int:
    """Return the updates of the next call, given those and the seconds of the last one."""
    # a recording point may have cut the call short
    wanted = done * CALL_SECONDS / max(seconds, 1e-6)
    return max(1, int(min(wanted, 4.0 * chunk)))

"""The training loop: one for every stepper, architecture and paper."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np

from dynamics_cli.runs.writer import RunWriter
from dynamics_cli.training.recorder import Recorder
from dynamics_cli.training.schedule import Iterations, next_after
from dynamics_cli.training.signals import SignalWatch
from dynamics_cli.training.steppers.base import Halt, State, Stepper, first_halt

Progress = Callable[[int, float], None]
"""Called with the iteration reached and the last loss."""

CALL_SECONDS = 0.1
"""Aimed duration of one call of `advance`, so that signals are heard."""
CHECKPOINT_SECONDS = 10.0
"""Time between two checkpoints: what a kill can cost at most."""
_CLOCK = "clock/time"


@dataclass(frozen=True)
class Outcome:
    """How a training loop ended."""

    status: Literal["complete", "diverged", "interrupted"]
    iterations: int
    final_loss: float
    stopped: bool = False
    """Whether the run is complete because its loss reached `stop_below`."""
    signal: int | None = None
    """The signal that interrupted it."""


@dataclass
class TrainingLoop:
    """Trains until the last iteration, a halt or a signal, and records on the way.

    Calls of `advance` end where something is recorded, and after about `CALL_SECONDS`; neither changes a bit of the
    result.
    """

    stepper: Stepper
    writer: RunWriter
    recorder: Recorder
    total: int
    snapshots: Iterations
    loss_every: int
    stop_below: float | None = None
    progress: Progress | None = None

    def __post_init__(self) -> None:
        resumed = self.writer.resumed
        self._began = time.monotonic()
        self._before = 0.0 if resumed is None else float(resumed.meta["seconds"])

    def seconds(self) -> float:
        """Return the wall time of the training so far, that before interruptions included."""
        return self._before + time.monotonic() - self._began

    def run(self) -> Outcome:
        """Train to the end, from the writer's checkpoint where it has one."""
        with SignalWatch() as watch:
            halted = self._start()
            chunk, saved = 1, time.monotonic()
            while halted is None and self.stepper.iteration < self.total and watch.received is None:
                began, first = time.monotonic(), self.stepper.iteration
                halted = self._advance(chunk)
                now = time.monotonic()
                chunk = _next_chunk(chunk, self.stepper.iteration - first, now - began)
                if self.progress is not None:
                    self.progress(self.stepper.iteration, self.recorder.last_loss)
                if now - saved > CHECKPOINT_SECONDS:
                    self._checkpoint()
                    saved = time.monotonic()
            if halted is None and self.stepper.iteration < self.total:
                self._checkpoint()
                return Outcome("interrupted", self.stepper.iteration, self.recorder.last_loss, signal=watch.received)
            return self._end(halted)

    def _start(self) -> Halt | None:
        if self.writer.resumed is not None:
            state: State = dict(self.writer.resumed.arrays)
            clock_time = state.pop(_CLOCK, None)
            if self.recorder.clock is not None and clock_time is not None:
                self.recorder.clock.time = float(clock_time)
            self.stepper.load_state_dict(state)
            return self.stepper.halted
        self.recorder.snapshot(self.stepper)
        return None if self.stepper.full_batch else self._look()

    def _advance(self, chunk: int) -> Halt | None:
        """Do up to `chunk` updates, not past the next recording point, and record."""
        stepper, first = self.stepper, self.stepper.iteration
        due = next_after(self.snapshots, first)
        target = min(self.total, first + chunk, due)
        if not stepper.full_batch:
            target = min(target, (first // self.loss_every + 1) * self.loss_every)
        losses = stepper.advance(target - first)
        halted = stepper.halted
        if stepper.full_batch:
            self.recorder.losses(first, losses, last_state=halted is not None)
        elif stepper.iteration % self.loss_every == 0 or stepper.iteration == self.total:
            halted = self._look()
        if stepper.iteration == due and halted is None:
            self.recorder.snapshot(stepper)
        return halted

    def _look(self) -> Halt | None:
        """Record the loss of the current state, which no update gave; return why it ends the run, if it does."""
        loss = self.stepper.loss_row()
        halt = first_halt(loss, self.stop_below) if loss.ndim == 1 else None  # replicas halt one by one
        self.recorder.losses(self.stepper.iteration, loss, last_state=True)
        return None if halt is None else halt[1]

    def _end(self, halted: Halt | None) -> Outcome:
        """Record what is still missing of the last state."""
        stepper = self.stepper
        if stepper.full_batch and halted is None:
            halted = self._look()
        if self.writer.last_snapshot < stepper.iteration:
            self.recorder.snapshot(stepper)
        status: Literal["complete", "diverged"] = "diverged" if halted == "diverged" else "complete"
        return Outcome(status, stepper.iteration, self.recorder.last_loss, stopped=halted == "stopped")

    def _checkpoint(self) -> None:
        state = self.stepper.state_dict()
        if self.recorder.clock is not None:
            state[_CLOCK] = np.array(self.recorder.clock.time)
        meta = {"iteration": self.stepper.iteration, "seconds": self.seconds()}
        self.writer.checkpoint(state, meta)


def _next_chunk(chunk: int, done: int, seconds: float) -> int:
    """Return how many updates the next call may do, given how many the last one did in which time."""
    wanted = done * CALL_SECONDS / max(seconds, 1e-6)  # a recording point may have cut the call short
    return max(1, int(min(wanted, 4.0 * chunk)))

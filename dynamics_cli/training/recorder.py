"""What a run records while it trains: losses, snapshots and measures, gathered and written in blocks."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from dynamics_cli.runs.writer import RunWriter
from dynamics_cli.training.clock import Clock
from dynamics_cli.training.observers import Observer
from dynamics_cli.training.steppers.base import Floats, Stepper

Seen = tuple[dict[str, NDArray[np.floating]], dict[str, NDArray[np.float64]]]
"""Recorded weights and measures of one state."""


class Recorder:
    """Hands a run's records to its writer and remembers the last loss."""

    def __init__(
        self,
        writer: RunWriter,
        *,
        loss_every: int,
        parameters: list[str],
        observers: Mapping[str, Observer],
        clock: Clock | None,
    ) -> None:
        self._writer = writer
        self._loss_every = loss_every
        self._parameters = parameters
        self._observers = observers
        self.clock = clock
        self.last_loss = float("nan")
        """Loss of the last state that was looked at; of replicas, their mean."""

    def losses(self, first: int, values: Floats, *, last_state: bool = False) -> None:
        """Record the losses (k,) or, of replicas, (k, R) of states `first, first + 1, ...`, every `loss_every`-th.

        `last_state` marks the last of them as the run's last state, which is always recorded.
        """
        if len(values) == 0:
            return
        self.last_loss = float(np.mean(values[-1]))
        iterations = np.arange(first, first + len(values))
        times = self.clock.advance(first, values) if self.clock is not None else None
        kept: NDArray[np.bool_] = iterations % self._loss_every == 0
        kept[-1] |= last_state
        if kept.any():
            self._writer.append_losses(iterations[kept], values[kept], None if times is None else times[kept])

    def look_at(self, stepper: Stepper) -> Seen:
        """Return the current weights and what the observers make of them; nothing is written."""
        weights = stepper.parameters()
        measures = {name: np.asarray(observe(weights), np.float64) for name, observe in self._observers.items()}
        return {name: weights[name] for name in self._parameters}, measures

    def snapshot(self, iteration: int, seen: Seen) -> None:
        """Record what `look_at` has given at an iteration."""
        self._writer.append_snapshot(iteration, *seen)

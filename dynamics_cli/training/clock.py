"""Time along a run, where it is not iterations times the step."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dynamics_cli.config.optimizer import GradientDescent, Optimizer

Floats = NDArray[np.float64]


class RescaledClock:
    """Time of gradient flow along loss-scaled gradient descent: the step from state i takes `lr / L_i`."""

    def __init__(self, lr: float, time: float = 0.0) -> None:
        self.lr, self.time = lr, time

    def advance(self, losses: Floats) -> Floats:
        """Return the times of the states with these losses, and move on to the state after the last one."""
        if len(losses) == 0:
            return np.empty(0)
        # a running sum from the left, so that chunks of any size give the same bits
        with np.errstate(divide="ignore", invalid="ignore"):
            times = np.cumsum(np.concatenate([[self.time], self.lr / losses]))
        self.time = float(times[-1])
        return times[:-1]


def build_clock(optimizer: Optimizer) -> RescaledClock | None:
    """Return the clock of an optimizer; None where time is iterations times the step."""
    if isinstance(optimizer, GradientDescent) and optimizer.loss_scaled:
        return RescaledClock(optimizer.lr)
    return None

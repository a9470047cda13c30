"""Time along a run, where it is not iterations times the step."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dynamics_cli.kinds.arrays import Floats


class Clock:
    """Tells the time of successive states, from a state at which it begins.

    Times are known up front, are gradient flow's, or are sums of scheduled steps.
    """

    time = 0.0
    """Time of the first state; of the next one where times are summed along the run. A checkpoint
    keeps it.
    """
    first = 0
    """The state at which it begins."""

    def __init__(self, times: Floats) -> None:
        self.times = times

    def elapsed(self, states: NDArray[np.int64]) -> Floats:
        """Return the times (k,) of states since the first one."""
        return np.asarray(self.times[states] - self.times[self.first])

    def of(self, states: NDArray[np.int64]) -> Floats:
        """Return the times (k,) of states, where they are known up front."""
        return self.time + self.elapsed(states)

    def advance(self, first: int, losses: Floats) -> Floats:
        """Return the times of states `first, ...` with these losses, and move past the last."""
        return self.of(np.arange(first, first + len(losses)))


class SteadyClock(Clock):
    """Time of steps of one size."""

    def __init__(self, lr: float) -> None:
        self.lr = lr

    def elapsed(self, states: NDArray[np.int64]) -> Floats:
        """Return the times of states; see `Clock.elapsed`."""
        return np.asarray(self.lr * (states - self.first), np.float64)


class RescaledClock(SteadyClock):
    """Time of gradient flow along loss-scaled gradient descent.

    The step from state i takes `lr / L_i`.
    """

    def advance(self, first: int, losses: Floats) -> Floats:
        """Return the times of states `first, ...`; see `Clock.advance`."""
        if len(losses) == 0:
            return np.empty(0)
        # a running sum from the left, so that chunks of any size give the same bits
        with np.errstate(divide="ignore", invalid="ignore"):
            times = np.cumsum(np.concatenate([[self.time], self.lr / losses]))
        self.time = float(times[-1])
        return times[:-1]

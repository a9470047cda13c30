"""Time along a run, where it is not iterations times the step."""

from __future__ import annotations

import numpy as np

from dynamics_cli.kinds.arrays import Floats


class Clock:
    """Tells the time of successive states.

    Times are known up front, are gradient flow's, or are sums of scheduled steps.
    """

    time = 0.0
    """Time of the next state where times are summed along the run; a checkpoint keeps it."""

    def __init__(self, times: Floats) -> None:
        self.times = times

    def advance(self, first: int, losses: Floats) -> Floats:
        """Return the times of states `first, ...` with these losses, and move past the last."""
        return self.times[first : first + len(losses)]


class RescaledClock(Clock):
    """Time of gradient flow along loss-scaled gradient descent.

    The step from state i takes `lr / L_i`.
    """

    def __init__(self, lr: float) -> None:
        self.lr = lr

    def advance(self, first: int, losses: Floats) -> Floats:
        """Return the times of states `first, ...`; see `Clock.advance`."""
        if len(losses) == 0:
            return np.empty(0)
        # a running sum from the left, so that chunks of any size give the same bits
        with np.errstate(divide="ignore", invalid="ignore"):
            times = np.cumsum(np.concatenate([[self.time], self.lr / losses]))
        self.time = float(times[-1])
        return times[:-1]

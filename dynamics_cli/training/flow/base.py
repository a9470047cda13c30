"""The contract of an integrator of gradient flow, and the times at which a run looks at it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar

import numpy as np

from dynamics_cli.kinds import Floats
from dynamics_cli.training.steppers.base import StateDict

SMALLEST_STEP = 1e-13
"""A step below this times the time reached (or the first step) cannot be taken."""
_COUNTED = ("time", "steps", "rejected", "error")


class Integrator(ABC):
    """Follows the flow step by step, in float64; the steps know nothing of when they are looked at.

    Dense output reads the flow at any time within the last step.
    """

    kept: ClassVar[tuple[str, ...]]
    """Names of the numbers and arrays of a checkpoint, besides the time and the counters of all integrators."""
    time: float = 0.0
    """The end of the last step."""
    rtol: float
    """Local error allowed in a step, relative to the sizes of neurons."""
    error: float = 0.0
    """Local errors of the steps done, summed: the error of the weights where the flow neither contracts nor expands."""
    steps: int = 0
    """Number of steps done."""
    rejected: int = 0
    """Number of steps that did not meet the tolerance and were tried again, shorter."""

    @abstractmethod
    def step(self) -> None:
        """Do one step.

        Raises:
            FloatingPointError: no step, however small, meets the tolerance.

        """

    @abstractmethod
    def losses(self, times: Floats) -> Floats:
        """Return the losses (k,) at ascending `times` (k,) in the last step; before the first step at time 0 only."""

    @abstractmethod
    def weights(self, time: float) -> dict[str, Floats]:
        """Return the weights by name at a time in the last step; before the first step at time 0 only."""

    def state_dict(self) -> StateDict:
        """Return everything that `load_state_dict` needs to go on bit for bit."""
        return {name: np.array(getattr(self, name)) for name in (*_COUNTED, *self.kept)}

    def load_state_dict(self, state: StateDict) -> None:
        """Go on from a former `state_dict()`."""
        for name in (*_COUNTED, *self.kept):
            value = np.array(state[name])
            setattr(self, name, value if value.ndim else value.item())

    def achieved(self) -> dict[str, float]:
        """Return the tolerance, the error estimate, and the steps done and rejected."""
        numbers = {"tolerance": self.rtol, "error_estimate": self.error}
        return {**numbers, "steps": self.steps, "rejected": self.rejected}

    @abstractmethod
    def numbers(self) -> dict[str, float]:
        """Return the work of the integration: steps, gradients and kernels computed."""


def too_small(step: float, time: float, rtol: float) -> FloatingPointError:
    """Return the error of a step that cannot be made smaller."""
    return FloatingPointError(
        f"gradient flow needs steps below {step:.1e} at time {time:.6g} for rtol {rtol:g}; "
        "a larger optimizer.rtol may pass"
    )

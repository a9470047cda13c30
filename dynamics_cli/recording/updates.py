"""Measures of the last update `u = theta_i - theta_(i-1)` of a state i, and of the loss along it.

A run keeps the weights before each recorded state, `dyn.Recorder` those of the model one step
before a record is due, and `dyn.measure` takes checkpoints that follow each other. Where they are
not known, at state 0 and where a run ends before its time, numbers are NaN.
"""

from __future__ import annotations

import math
from typing import Literal

import numpy as np

from dynamics_cli.gradients.derivatives import derivatives_of
from dynamics_cli.kinds import Floats, Problem, Sections, State
from dynamics_cli.recording.curvature import Curvature, OfBlocks

FARTHEST = 2.0**30
"""Largest multiple of an update, and one over the smallest, at which the loss is looked at."""
ACCURACY = 1e-6
"""Relative accuracy of the multiple at which the loss is as at first."""


def last_update(state: State) -> Floats | None:
    """Return the last update of the trained weights (P,); None where it is not known."""
    if not state.before:
        return None
    derivatives = derivatives_of(state)
    return derivatives.weights(state.parameters) - derivatives.weights(state.before[0])


class OfUpdates(Curvature):
    """The base of measures of the last update."""

    needs = "updates of a single network; a flow has none"

    @property
    def updates(self) -> int:
        """1: the last."""
        return 1

    def offered(self, problem: Problem) -> bool:
        """Return whether a single network is trained by updates."""
        return super().offered(problem) and not problem.config.optimizer.is_flow


class Update(OfUpdates, OfBlocks, kind="update"):
    """Norm or direction of the last update `u = theta_i - theta_(i-1)` of a state i.

    The measure is called `update_norm`, `update_relative`, `update_cosine_last` or
    `update_cosine_gradient`; with `blocks: layer` it has a number for each tensor. It is of all
    trained weights, momentum and decay included. NaN where the weights before are not known: at
    state 0, and where a run ends before its time; a cosine is NaN where a vector is 0. A state
    takes a copy of the weights, or two, and `cosine_gradient` a gradient.
    """

    example = "{kind: update, of: cosine_gradient}"
    bounded = False
    of: Literal["norm", "relative", "cosine_last", "cosine_gradient"] = "norm"
    """Norm; norm over the norm of the weights before; cosine with the update before; cosine with
    minus the gradient of the training loss at the weights before.
    """

    @property
    def name(self) -> str:
        """`update_norm` and so on, and whether it is by layer or by blocks."""
        return super().name.replace(self.kind, f"{self.kind}_{self.of}", 1)

    @property
    def updates(self) -> int:
        """1, or 2 with the update before."""
        return 1 + (self.of == "cosine_last")

    def measure(self, state: State) -> float | Floats:
        """Return the number, or a number for each block."""
        derivatives = derivatives_of(state)
        places = self.places(derivatives)
        u = last_update(state)
        if u is None or len(state.before) < self.updates:
            return self.of_blocks(np.full(len(places), np.nan))
        before = derivatives.weights(state.before[0])
        values = []
        other = before
        if self.of == "cosine_last":
            other = before - derivatives.weights(state.before[1])
        elif self.of == "cosine_gradient":
            assert state.previous is not None
            other = -derivatives_of(state.previous).gradient()
        for place in places:
            size = float(np.linalg.norm(u[place]))
            against = float(np.linalg.norm(other[place]))
            if not len(place):  # frozen
                values.append(math.nan)
            elif self.of == "norm":
                values.append(size)
            elif self.of == "relative":
                values.append(size / against if against else math.nan)
            elif size and against:
                values.append(float(u[place] @ other[place]) / (size * against))
            else:
                values.append(math.nan)
        return self.of_blocks(np.array(values))


class DirectionalSharpness(OfUpdates, kind="directional_sharpness"):
    """Curvature along the last update, `u^T H u / ||u||^2`.

    The Hessian H of the training loss is that at the weights before the update `u = theta_i -
    theta_(i-1)`, so that `g^T u + 1/2 u^T H u` is the change of the loss to second order. NaN
    where the weights before are not known: at state 0, and where a run ends before its time; and
    where u is 0. A state takes one product with the Hessian.
    """

    def measure(self, state: State) -> float:
        """Return the curvature."""
        u = last_update(state)
        if u is None or not u.any():
            return math.nan
        assert state.previous is not None
        v = u / np.linalg.norm(u)
        return float(v @ derivatives_of(state.previous).hessian_product(v))


class CriticalLr(OfUpdates, kind="critical_lr"):
    """Step size at which the last update would not have lowered the loss, over its own.

    The loss is the training loss (Kalra and Barkeshli 2024).

    It is the `c > 0` with `L(theta_(i-1) + c u) = L(theta_(i-1))`, for the update `u = theta_i -
    theta_(i-1)`: below 1 the update raised the loss. Of gradient descent on a quadratic it is `(2 /
    eta) / (u^T H u / ||u||^2)`. 0 where the loss rises from the start, infinite where it falls as
    far as it was looked at; of several, one between the multiples 2^k and 2^(k+1) nearest to the
    update. NaN where the weights before are not known: at state 0, and where a run ends before its
    time; and where u is 0. A state takes a gradient and about 25 losses of the training samples.
    """

    def bound(self, sections: Sections) -> tuple[str, float] | None:
        """Return 1, the update itself."""
        return "1", 1.0

    def measure(self, state: State) -> float:
        """Return the multiple of the update."""
        u = last_update(state)
        if u is None or not u.any():
            return math.nan
        assert state.previous is not None
        derivatives = derivatives_of(state.previous)
        samples = state.problem.dataset
        potential = derivatives.potential(samples.n, samples.y)
        before = derivatives.weights(state.before[0])

        def loss(multiple: float) -> float:
            losses, _ = potential((before + multiple * u)[None], None)
            return float(losses[0])

        at_first = loss(0.0)
        if not math.isfinite(at_first):
            return math.nan
        if not derivatives.gradient() @ u < 0:
            return 0.0

        def rise(multiple: float) -> float:
            with np.errstate(all="ignore"):
                change = loss(multiple) - at_first
            return math.inf if math.isnan(change) else change

        high = 1.0
        while rise(high) < 0:
            high *= 2
            if high > FARTHEST:
                return math.inf
        low = high / 2
        while rise(low) >= 0:
            high = low
            low /= 2
            if low < 1 / FARTHEST:
                return 0.0
        from scipy.optimize import bisect  # which takes as long to load as a short run

        return float(bisect(rise, low, high, rtol=ACCURACY))

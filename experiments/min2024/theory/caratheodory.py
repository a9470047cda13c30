"""The single neuron of Min et al. 2024, Appendix E: `L = exp(-y v sigma(<x, w>))` with a chosen subgradient at 0."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy.integrate import solve_ivp

from dynamics_cli.measures.arrays import Floats, as_floats


@dataclass(frozen=True)
class CaratheodoryNeuron:
    """One data point `x (d,)` with label y = +-1, and the value `at_zero` of sigma'(0)."""

    x: Floats
    y: float
    at_zero: float = 0.0

    def field(self, w: ArrayLike, v: ArrayLike) -> tuple[Floats, Floats]:
        """Return the flow `(w', v')` for neurons `w (..., d)` and output weights `v (...)`: minus the gradient."""
        weights, output = as_floats(w, "w", axes=1, batched=True), as_floats(v, "v", axes=0, batched=True)
        z = weights @ self.x
        slope = np.where(z > 0, 1.0, np.where(z == 0, self.at_zero, 0.0))
        pull = self.y * np.exp(-self.y * output * np.maximum(z, 0.0))
        return (pull * slope * output)[..., None] * self.x, np.asarray(pull * np.maximum(z, 0.0))

    def descend(self, w: ArrayLike, v: float, step: float, count: int) -> Floats:
        """Return `count + 1` states (w, v) of gradient descent with the given step, `(count + 1, d + 1)`."""
        states = np.empty((count + 1, len(self.x) + 1))
        states[0] = [*as_floats(w, "w", axes=1), v]
        for k in range(count):
            turn, growth = self.field(states[k, :-1], states[k, -1])
            states[k + 1] = states[k] + step * np.append(turn, growth)
        return states

    def leave(self, w: ArrayLike, v: float, leaves_at: float, times: ArrayLike) -> Floats:
        """Return a Caratheodory solution (T, d + 1) at `times (T,)`: it waits until `leaves_at`, then follows Eq. 47.

        Eq. 47 is the flow of the active side, continued to the boundary. With `leaves_at` infinite it stays for ever.
        """
        moments = as_floats(times, "times", axes=1)
        start = np.append(as_floats(w, "w", axes=1), v)
        states = np.tile(start, (len(moments), 1))
        moving = moments > leaves_at
        if moving.any():
            span = float(moments[moving].max() - leaves_at)
            active = CaratheodoryNeuron(self.x, self.y, at_zero=1.0)
            solved = solve_ivp(
                lambda _, state: np.append(*active.field(state[:-1], state[-1])), (0.0, span), start,
                t_eval=moments[moving] - leaves_at, rtol=1e-10, atol=1e-13,
            )  # fmt: skip
            states[moving] = solved.y.T
        return states

    def defect(self, times: ArrayLike, states: ArrayLike) -> float:
        """Return the largest `||theta(t) - theta(0) - int_0^t F(theta)||` of `states (T, d + 1)` over `times (T,)`.

        It is 0, up to the trapezoidal rule, for a Caratheodory solution.
        """
        moments, path = as_floats(times, "times", axes=1), as_floats(states, "states", axes=2)
        turn, growth = self.field(path[:, :-1], path[:, -1])
        rates = np.column_stack([turn, growth])
        pieces = 0.5 * (rates[1:] + rates[:-1]) * np.diff(moments)[:, None]
        integral = np.concatenate([np.zeros((1, path.shape[1])), np.cumsum(pieces, axis=0)])
        return float(np.linalg.norm(path - path[0] - integral, axis=1).max())


def boundary_rates(x: ArrayLike, y: ArrayLike, w: ArrayLike, sample: int) -> tuple[float, float]:
    """Return `<x_a(w), x_i>` on the inactive and on the active side of the boundary `<x_i, w> = 0` of one sample.

    `x_a(w) = sum_{<x_k, w> > 0} y_k x_k` (Eq. 5) over the other samples, and with sample i added. Both of one sign: the
    flow crosses the boundary; positive, negative: it is caught there and no Caratheodory solution goes on (Figure 18).
    """
    points, labels = as_floats(x, "x", axes=2), as_floats(y, "y", axes=1)
    active = points @ as_floats(w, "w", axes=1) > 0
    active[sample] = False
    off = (labels[active] @ points[active]) @ points[sample]
    return float(off), float(off + labels[sample] * (points[sample] @ points[sample]))

"""The single neuron of Min et al. 2024, Appendix E: `L = exp(-y v sigma(<x, w>))` with a chosen
subgradient at 0.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.integrate import cumulative_trapezoid, solve_ivp

from dynamics_cli.measures.arrays import Floats


@dataclass(frozen=True)
class CaratheodoryNeuron:
    """One data point `x (d,)` with label y = +-1, and the value `at_zero` of sigma'(0).

    States (d + 1,) are the neuron `w (d,)` and its output weight v.
    """

    x: Floats
    y: float
    at_zero: float = 0.0

    def field(self, states: Floats) -> Floats:
        """Return the flow `(w', v')` at `states (..., d + 1)`: minus the gradient."""
        z = states[..., :-1] @ self.x
        v = states[..., -1]
        slope = np.select([z > 0, z == 0], [1.0, self.at_zero], 0.0)
        pull = self.y * np.exp(-self.y * v * np.maximum(z, 0.0))
        turn = (pull * slope * v)[..., None] * self.x
        growth = (pull * np.maximum(z, 0.0))[..., None]
        return np.concatenate([turn, growth], axis=-1)

    def descend(self, start: Floats, step: float, count: int) -> Floats:
        """Return the states `(count + 1, d + 1)` of gradient descent with the given step from
        `start (d + 1,)`.
        """
        states = [start]
        for _ in range(count):
            states.append(states[-1] + step * self.field(states[-1]))
        return np.array(states)

    def leave(self, start: Floats, leaves_at: float, times: Floats) -> Floats:
        """Return a Caratheodory solution (T, d + 1) at `times (T,)`: it waits until `leaves_at`,
        then follows Eq. 47.

        Eq. 47 is the flow of the active side, continued to the boundary. With `leaves_at` infinite
        it stays for ever.
        """
        states = np.tile(start, (len(times), 1))
        moving = times > leaves_at
        if moving.any():
            active = CaratheodoryNeuron(self.x, self.y, at_zero=1.0)
            since = times[moving] - leaves_at
            states[moving] = solve_ivp(
                lambda _, state: active.field(state),
                (0.0, since[-1]),
                start,
                t_eval=since,
                rtol=1e-10,
                atol=1e-13,
            ).y.T
        return states

    def defect(self, times: Floats, states: Floats) -> float:
        """Return the largest `||theta(t) - theta(0) - int_0^t F(theta)||` of `states (T, d + 1)`
        over `times (T,)`.

        It is 0, up to the trapezoidal rule, for a Caratheodory solution.
        """
        integral = cumulative_trapezoid(self.field(states), times, axis=0, initial=0.0)
        return float(np.linalg.norm(states - states[0] - integral, axis=1).max())

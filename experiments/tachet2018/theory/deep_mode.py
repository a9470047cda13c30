"""A balanced mode of a deep diagonal network (Tachet des Combes et al. 2018, Section 4, Appendix B).

With N weights in a row (N - 1 hidden layers), all equal to `z = y / ||x||` (y the first preactivation), the logit obeys

    u' = p N ||x||^(2/N) u^(2 - 2/N) / (1 + exp(u))                                  (Eqs. 5, 25)

The inner diagonals must be positive for both classes: with D_2's negative, as printed in Appendix B, the
ReLU makes that class dead for every N > 2. For a class D_2 the output is `-u`. Time is (learning rate) x (updates) with
samples drawn from the data set, where the class has the share p.
"""

from __future__ import annotations

import numpy as np
from scipy.integrate import solve_ivp
from scipy.special import expit

from dynamics_cli.measures.arrays import Floats


def deep_logit(t: Floats, u0: float, depth: int, norm: float = 1.0, *, p: float = 1.0) -> Floats:
    """Return the logit (K,) at ascending times `t` (K,), the last above 0, of a mode of `depth` >= 2 weights.

    It starts at `u0` > 0; Eq. 5 is integrated in the variable `ln u` with the relative tolerance 1e-12.
    """
    front = p * depth * norm ** (2.0 / depth)

    def field(_: float, x: Floats) -> Floats:
        return np.asarray(front * np.exp((1.0 - 2.0 / depth) * x) * expit(-np.exp(x)))

    times = np.asarray(t, np.float64)
    path = solve_ivp(
        field, (0.0, times[-1]), [np.log(u0)], t_eval=times, method="DOP853", rtol=1e-12, atol=1e-14
    )
    return np.asarray(np.exp(path.y[0]))

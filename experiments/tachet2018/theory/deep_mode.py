"""A balanced mode of a deep diagonal network (Tachet des Combes et al. 2018, Section 4, Appendix
B).

With N weights in a row (N - 1 hidden layers), all equal to `z = y / ||x||` (y the first
preactivation), the logit obeys

    u' = p N ||x||^(2/N) u^(2 - 2/N) / (1 + exp(u))                                  (Eqs. 5, 25)

The inner diagonals must be positive for both classes: with D_2's negative, as printed in Appendix
B, the ReLU makes that class dead for every N > 2. For a class D_2 the output is `-u`. Time is
(learning rate) x (updates) with samples drawn from the data set, where the class has the share p.
"""

from __future__ import annotations

import numpy as np
from scipy.integrate import quad, solve_ivp
from scipy.optimize import brentq
from scipy.special import expit

from dynamics_cli.measures.arrays import Floats

from .confidence_times import required_logit

LEAST = 1e-8
LARGEST = 1.0
"""Initial logits between which `even_start` looks."""


def deep_logit(t: Floats, u0: float, depth: int, norm: float = 1.0, *, p: float = 1.0) -> Floats:
    """Return the logit (K,) at ascending times `t` (K,), the last above 0, of a mode of `depth` >=
    2 weights.

    It starts at `u0` > 0; Eq. 5 is integrated in the variable `ln u` with the relative tolerance
    1e-12.
    """
    front = p * depth * norm ** (2.0 / depth)

    def field(_: float, x: Floats) -> Floats:
        return np.asarray(front * np.exp((1.0 - 2.0 / depth) * x) * expit(-np.exp(x)))

    times = np.asarray(t, np.float64)
    path = solve_ivp(
        field, (0.0, times[-1]), [np.log(u0)], t_eval=times, method="DOP853", rtol=1e-12, atol=1e-14
    )
    return np.asarray(np.exp(path.y[0]))


def deep_time(delta: float, u0: float, depth: int, norm: float = 1.0, *, p: float = 1.0) -> float:
    """Return when a mode of `depth` weights that starts at `u0` > 0 has the confidence `1 - delta`
    (Eq. 5 as an integral).

    It is in the variable `ln u`, with the relative tolerance 1e-10.
    """

    def slowness(x: float) -> float:
        return float(np.exp((2.0 / depth - 1.0) * x) / expit(-np.exp(x)))

    ends = np.log(u0), np.log(required_logit(delta))
    front = p * depth * float(norm ** (2.0 / depth))
    return float(quad(slowness, *ends, epsabs=0.0, epsrel=1e-10, limit=200)[0]) / front


def even_start(delta: float, depths: tuple[int, int], norm: float = 1.0) -> float:
    """Return the initial logit from which both depths take the same time to `1 - delta`; below,
    the deeper takes longer.
    """

    def lead(log: float) -> float:
        shallow, deep = (deep_time(delta, float(np.exp(log)), depth, norm) for depth in depths)
        return deep - shallow

    return float(np.exp(brentq(lead, np.log(LEAST), np.log(LARGEST))))

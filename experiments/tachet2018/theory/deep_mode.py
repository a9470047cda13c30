"""A balanced mode of a deep diagonal network (Tachet des Combes et al. 2018, Section 4, Appendix B).

With N weights in a row (N - 1 hidden layers), all equal to `z = y / ||x||` (y the first preactivation), the logit obeys

    u' = p N ||x||^(2/N) u^(2 - 2/N) / (1 + exp(u))                                  (Eqs. 5, 25)

and time is an integral that ends in known functions: Eq. 2 for N = 2, and for N > 2, with `s = 1 - 2/N`,

    p N ||x||^(2/N) t = J(u) - J(u_0),   J(u) = int (1 + exp(v)) v^(-1-s) dv = -u^(-s) (1 + 1F1(-s; 1 - s; u)) / s.

The inner diagonals must be positive for both classes: with those of class D_2 negative, as printed in Appendix B, the
ReLU makes that class dead for every N > 2. For a class D_2 the output is `-u`. Time is (learning rate) x (updates) with
samples drawn from the data set, of which the class is a share p.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import hyp1f1

from dynamics_cli.measures.arrays import Floats, Ints

from .logistic_integral import LARGE, log_residual, logit_at, progress, scaled_power_integral, solve_increasing


def _front(depth: int, norm: ArrayLike, p: ArrayLike) -> Floats:
    """Return the factor `p N ||x||^(2/N)` of Eq. 5."""
    return np.asarray(np.multiply(p, depth) * np.asarray(norm, np.float64) ** (2.0 / depth))


def deep_logit(t: ArrayLike, u0: ArrayLike, depth: int, norm: ArrayLike = 1.0, *, p: ArrayLike = 1.0) -> Floats:
    """Return the logit at times `t` of a mode of `depth` N weights, from `u0 > 0` (Eq. 5).

    `t`, `u0`, `norm` and `p` broadcast; times up to 1e300 are fine. `depth` is at least 2.
    """
    if depth == 2:
        return balanced_logit(t, u0, norm, p=p)
    times, start, front = np.broadcast_arrays(np.asarray(t, np.float64), u0, _front(depth, norm, p))
    with np.errstate(divide="ignore"):
        log_time = np.log(times) + np.log(front)
    return _deep(log_time.ravel(), start.ravel(), 1.0 - 2.0 / depth).reshape(times.shape)


def balanced_logit(t: ArrayLike, u0: ArrayLike, norm: ArrayLike = 1.0, *, p: ArrayLike = 1.0) -> Floats:
    """Return the logit of its own class for N = 2: `(log + Ei)^-1 (2 ||x|| p t + log u0 + Ei(u0))` (Eq. 2).

    For `u0 < 0` it is the mode on the line of A.6, whose logit rises to 0. By A.4 it also holds for the sum of the
    logits of any number of balanced neurons. For a class D_2 take `u0 = |v_0|`: the network's output is `-u`. Arguments
    broadcast; u0 is not 0, from where a balanced mode does not move.
    """
    times, start, rate = np.broadcast_arrays(t, np.asarray(u0, np.float64), np.multiply(norm, p))
    a, b = np.maximum(start, 0.0), np.maximum(-start, 0.0)
    return np.where(times > 0, logit_at(progress(times, rate, a, b), a, b), start)


def _scaled_integral(u: Floats, s: float) -> Floats:
    """Return `exp(-u) J(u)` for `u (n,) > 0`."""
    near, far = np.minimum(u, LARGE), np.maximum(u, LARGE)
    plain = -(near**-s) / s * (1.0 + hyp1f1(-s, 1.0 - s, near)) * np.exp(-near)
    return np.where(u < LARGE, plain, scaled_power_integral(far, 1.0 + s) - far**-s / s * np.exp(-far))


def _log_elapsed(u: Floats, u_0: Floats, s: float) -> Floats:
    """Return `ln(J(u) - J(u_0))` for `u >= u_0 > 0`, minus infinity where they are equal."""
    gap = _scaled_integral(u, s) - _scaled_integral(u_0, s) * np.exp(u_0 - u)
    with np.errstate(divide="ignore"):
        return np.where(u > u_0, u + np.log(np.maximum(gap, 0.0)), -np.inf)


def _deep(log_time: Floats, start: Floats, s: float) -> Floats:
    """Invert `J(u) - J(u_0) = exp(log_time)` in the variable `ln u`."""
    u = start.copy()
    moving = np.flatnonzero(log_time > -np.inf)
    target, u_0 = log_time[moving], start[moving]
    # exp(u) u^(-1-s) exceeds the target here
    log1p_time = np.logaddexp(0.0, target)
    top = u_0 + log1p_time + 3.0 * np.log(2.0 + log1p_time + u_0) + 5.0

    def residual(x: Floats, index: Ints) -> tuple[Floats, Floats]:
        here = np.exp(x)
        return log_residual(_log_elapsed(here, u_0[index], s), np.logaddexp(0.0, here) - s * x, target[index])

    u[moving] = np.exp(solve_increasing(residual, np.log(u_0), np.log(top)))
    return np.maximum(u, start)

"""One mode under binary cross-entropy, solved for every start (Tachet des Combes et al. 2018, Theorem 3.2, A.3, A.6).

    y' = s p ||x||^2 z / (1 + exp(s y z)),   z' = s p y / (1 + exp(s y z))          (Eqs. 1, 12, 16)

Time is (learning rate) x (updates) with samples drawn from the data set, of which the class is a share p; `p = 1` is
one sample of the class per update. A full batch with mean loss is the same, with a summed loss n times as fast.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from dynamics_cli.measures.arrays import Floats
from dynamics_cli.theory.arguments import as_finite, as_positive, as_times
from dynamics_cli.theory.hyperbola import Mode, ModePath, Outcome
from dynamics_cli.theory.logistic_integral import log_elapsed, logit_at, progress


def logistic_mode(
    t: ArrayLike, y0: ArrayLike, z0: ArrayLike, norm: ArrayLike = 1.0, *, p: ArrayLike = 1.0, label: int = 1
) -> ModePath:
    """Return y, z, logit and confidence at times `t` from `(y0, z0)`: Theorem 3.2 for all hyperbolas and both classes.

    All arguments but `label` (1: D_1, -1: D_2) broadcast; `norm` is `||x||`. Times up to 1e300 and beyond are fine.
    With the ReLU y stops at 0 (Section 3.3). Raises ValueError for negative or non-finite times, non-finite weights, a
    norm or p that is not positive.
    """
    mode, times = Mode.of(y0, z0, norm, p, label).spread(t)
    tau = _progress(times, mode.rate, mode.a, mode.b)
    return mode.at(tau, times)


def balanced_logit(t: ArrayLike, u0: ArrayLike, norm: ArrayLike = 1.0, *, p: ArrayLike = 1.0) -> Floats:
    """Return the logit of its own class for `c = 0`: `(log + Ei)^-1 (2 ||x|| p t + log u0 + Ei(u0))` (Eq. 2).

    For `u0 < 0` it is the mode on the line of A.6, whose logit rises to 0. By A.4 it also holds for the sum of the
    logits of any number of balanced neurons. For a class D_2 take `u0 = |v_0|`: the network's output is `-u`. Arguments
    broadcast. Raises ValueError when u0 is 0 or not finite; otherwise as `logistic_mode`.
    """
    start = as_finite(u0, "u0")
    if (start == 0).any():
        raise ValueError("u0 must not be 0: from there a balanced mode does not move")
    times, start, rate = np.broadcast_arrays(as_times(t), start, as_positive(norm, "norm") * as_positive(p, "p"))
    a, b = np.maximum(start, 0.0), np.maximum(-start, 0.0)
    tau = _progress(times, rate, a, b)
    return np.where(times > 0, logit_at(tau, a, b), start)


def time_to_logit(
    logit: ArrayLike, y0: ArrayLike, z0: ArrayLike, norm: ArrayLike = 1.0, *, p: ArrayLike = 1.0, label: int = 1
) -> Floats:
    """Return when `s z y` reaches `logit` (Eq. 15; for `c > 0` A.3): 0 if it has, infinity if it never will.

    Arguments broadcast; time as in `logistic_mode`, infinite also where it exceeds 1.8e308. Raises as `logistic_mode`.
    """
    mode = Mode.of(y0, z0, norm, p, label)
    return _time_after(mode, mode.progress_to(logit))


def death_time(y0: ArrayLike, z0: ArrayLike, norm: ArrayLike = 1.0, *, p: ArrayLike = 1.0, label: int = 1) -> Floats:
    """Return when y reaches 0 (Section 3.3, case 3); infinity where it never does. Arguments as in `logistic_mode`."""
    mode = Mode.of(y0, z0, norm, p, label)
    return _time_after(mode, np.where(mode.outcome == Outcome.DIES, mode.last_progress, np.inf))


def logit_bound(t: ArrayLike, u0: ArrayLike, norm: ArrayLike = 1.0, *, p: ArrayLike = 1.0) -> Floats:
    """Return the bound `2 log(||x|| p t + exp(u0 / 2))` on a balanced logit that started at `u0 > 0` (Eq. 19).

    It holds for `c = 0` only; the hyperbolas with `c > 0` exceed it. Raises ValueError when u0 is not positive.
    """
    start, rate = as_positive(u0, "u0"), as_positive(norm, "norm") * as_positive(p, "p")
    with np.errstate(divide="ignore"):
        return np.asarray(2.0 * np.logaddexp(np.log(rate) + np.log(as_times(t)), 0.5 * start))


def vanishing_time_bound(u: ArrayLike, u0: ArrayLike, norm: ArrayLike = 1.0, *, p: ArrayLike = 1.0) -> Floats:
    """Return `log(u0 / u) / (2 ||x|| p)`, at least the time that a logit on the line takes from `u0 < 0` to `u < 0`.

    Eq. 23, whose last expression lacks the factor `1 / (2 ||x||)` in print. Raises ValueError unless both are negative.
    """
    far, near = as_positive(-as_finite(u0, "u0"), "-u0"), as_positive(-as_finite(u, "u"), "-u")
    return np.asarray(np.log(far / near) / (2.0 * as_positive(norm, "norm") * as_positive(p, "p")))


def _progress(times: Floats, rate: Floats, a: Floats, b: Floats, g: float = 1.0) -> Floats:
    """Return the progress at `times`; all arrays have one shape."""
    with np.errstate(divide="ignore"):
        log_time = (np.log(times) + np.log(rate)).ravel()
    flat_a, flat_b = np.ravel(a), np.ravel(b)
    return progress(log_time, flat_a, flat_b, np.full(flat_a.shape, g)).reshape(times.shape)


def _time_after(mode: Mode, tau: Floats) -> Floats:
    """Return the times at which the progress is `tau`, infinity included."""
    tau, a, b, rate = np.broadcast_arrays(tau, mode.a, mode.b, mode.rate)
    reached = np.isfinite(tau).ravel()
    log_time = np.full(tau.size, np.inf)
    flat = [array.ravel()[reached] for array in (tau, a, b)]
    log_time[reached] = log_elapsed(flat[0], flat[1], flat[2], np.ones(flat[0].shape))
    with np.errstate(over="ignore"):
        return np.asarray(np.exp(log_time.reshape(tau.shape) - np.log(rate)))

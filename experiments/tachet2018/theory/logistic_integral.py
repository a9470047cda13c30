"""How long a logistic mode takes: the integral of Eqs. 15 and 22 of Tachet des Combes et al. 2018 and its inverse.

A mode of two weights in a row has the logit `u = a exp(2 tau) - b exp(-2 tau)`, where its progress tau obeys
`tau' = p ||x|| / (1 + g exp(u))` with `g = 1` (for C classes `1 / (C - 1)`), hence

    p ||x|| t = tau + g (tau + H(u) - H(u_0)),   H(u) = int_0^u (exp(v) - 1) / (2 sqrt(v^2 + k^2)) dv,

where `k = 2 sqrt(a b) = c / (2 ||x||)`. For `c = 0` this is Eq. 15, `2 H(u) = Ei(u) - ln u - gamma`; for `c > 0` it is
the integral of A.3 in the variable u, which has no closed form. Everything is scaled by `exp(-u)` or logarithmic, so
that neither `Ei(u)` nor `t` overflows where u itself is harmless.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.special import exp1, expi, roots_legendre

from dynamics_cli.measures.arrays import Floats, Ints

NODES, WEIGHTS = roots_legendre(16)
LARGE = 50.0
"""From here on asymptotic series are exact to rounding."""


def scaled_power_integral(u: Floats, q: float) -> Floats:
    """Return `exp(-u) int^u exp(v) v^-q dv` for `u >= 50` by its asymptotic series `u^-q sum_n (q)_n / u^n`."""
    term = u**-q
    total = np.zeros_like(u)
    for n in range(40):
        total = total + term
        term = term * (q + n) / u
    return total


def scaled_ei(u: Floats) -> Floats:
    """Return `exp(-u) Ei(u)` for `u > 0` without overflow."""
    near = np.minimum(u, LARGE)
    return np.where(u < LARGE, np.exp(-near) * expi(near), scaled_power_integral(np.maximum(u, LARGE), 1.0))


def scaled_rise(u: Floats, k: Floats) -> Floats:
    """Return `exp(-max(u, 0)) H(u)` for `u (n,)` and `k (n,) >= 0`, to a relative error of about 1e-15.

    Where `k = 0` and |u| >= 1 this is the exponential integral. Else Gauss quadrature on panels that shrink by 4
    towards 0 (the singularities are at +-i k), and no longer than 4 (the exponential), until the rest is negligible.
    """
    w, up = np.abs(u), u > 0
    total = np.zeros_like(u)
    exact = (k == 0) & (w >= 1)
    far = w[exact]
    grown = scaled_ei(far) - np.exp(-far) * (np.log(far) + np.euler_gamma)
    total[exact] = 0.5 * np.where(up[exact], grown, exp1(far) + np.log(far) + np.euler_gamma)
    index = np.flatnonzero(~exact & (w > 0))
    top = w[index]
    while index.size:
        scale, curved, rising = w[index], k[index], up[index]
        bottom = np.maximum(top / 4.0, np.where(rising, top - 4.0, 0.0))
        last = (top <= np.maximum(curved, np.where(curved == 0, 1.0, 0.0))) & (top <= 4.0)
        bottom = np.where(last, 0.0, bottom)
        half = 0.5 * (top - bottom)
        v = 0.5 * (top + bottom)[:, None] + half[:, None] * NODES  # (active, nodes)
        lifted = np.where(rising[:, None], v - scale[:, None], 0.0)
        values = -np.expm1(-v) * np.exp(lifted) / (2.0 * np.hypot(v, curved[:, None]))
        total[index] += half * (values @ WEIGHTS)
        negligible = (bottom <= 1e-18 * np.minimum(scale, 1.0)) | (rising & (scale - bottom > 44.0))
        index, top = index[~(last | negligible)], bottom[~(last | negligible)]
    return total


def logit_at(tau: Floats, a: Floats, b: Floats) -> Floats:
    """Return `a exp(2 tau) - b exp(-2 tau)`, also where `a = 0` and tau is astronomic."""
    with np.errstate(divide="ignore", over="ignore"):
        return np.asarray(np.exp(np.log(a) + 2.0 * tau) - b * np.exp(-2.0 * tau))


def elapsed(tau: Floats, rate: Floats, a: Floats, b: Floats) -> Floats:
    """Return when the progress is `tau`, from logit `a - b` at the rate `p ||x||`, for `g = 1`. Arguments broadcast.

    Infinity where tau is infinite, and beyond 1.8e308.
    """
    tau, rate, a, b = np.broadcast_arrays(tau, rate, a, b)
    reached = np.isfinite(tau)
    log_time = np.full(tau.shape, np.inf)
    log_time[reached] = _log_elapsed(tau[reached], a[reached], b[reached], np.ones(int(reached.sum())))
    with np.errstate(over="ignore"):
        return np.asarray(np.exp(log_time - np.log(rate)))


def progress(times: Floats, rate: Floats, a: Floats, b: Floats, g: float = 1.0) -> Floats:
    """Return the progress at `times`, the inverse of `elapsed` for any `0 < g <= 1`. Arguments but g broadcast."""
    times, rate, a, b = np.broadcast_arrays(times, rate, a, b)
    with np.errstate(divide="ignore"):
        log_time = (np.log(times) + np.log(rate)).ravel()
    return _invert(log_time, a.ravel(), b.ravel(), np.full(log_time.shape, g)).reshape(times.shape)


def _log_elapsed(tau: Floats, a: Floats, b: Floats, g: Floats) -> Floats:
    """Return `ln(p ||x|| t)` at the finite progress `tau (n,)`; minus infinity at 0. All arguments have shape (n,)."""
    u, u_0, k = logit_at(tau, a, b), a - b, 2.0 * np.sqrt(a) * np.sqrt(b)
    shift = np.maximum(u, 0.0)  # u grows with tau, so that this is the largest exponent
    start = scaled_rise(u_0, k) * np.exp(np.maximum(u_0, 0.0) - shift)
    total = (1.0 + g) * tau * np.exp(-shift) + g * (scaled_rise(u, k) - start)
    with np.errstate(divide="ignore"):
        return np.where(tau > 0, shift + np.log(np.maximum(total, 0.0)), -np.inf)


def _invert(log_time: Floats, a: Floats, b: Floats, g: Floats) -> Floats:
    """Return tau after `p ||x|| t = exp(log_time)`, the inverse of `_log_elapsed`; minus infinity stands for t = 0."""
    tau = np.zeros_like(log_time)
    moving = np.flatnonzero(log_time > -np.inf)
    target, a, b, g = log_time[moving], a[moving], b[moving], g[moving]
    high = np.log(_largest_progress(target, a, b, g))
    with np.errstate(over="ignore"):
        low = np.minimum(target - np.logaddexp(0.0, logit_at(np.exp(high), a, b)), high)

    def residual(x: Floats, index: Ints) -> tuple[Floats, Floats]:
        here = np.exp(x)
        arguments = a[index], b[index], g[index]
        log_slope = np.logaddexp(0.0, np.log(arguments[2]) + logit_at(here, *arguments[:2])) + x  # d / d ln(tau)
        return log_residual(_log_elapsed(here, *arguments), log_slope, target[index])

    tau[moving] = np.exp(solve_increasing(residual, low, high))
    return tau


def _largest_progress(log_time: Floats, a: Floats, b: Floats, g: Floats) -> Floats:
    """Return an upper bound: `tau <= p ||x|| t`, and `g exp(u) / (2 sqrt(u^2 + k^2))` is at most about `p ||x|| t`."""
    u_0, k = a - b, 2.0 * np.sqrt(a) * np.sqrt(b)
    log1p_time = np.logaddexp(0.0, log_time)
    u = np.maximum(u_0, 0.0) + log1p_time - np.log(g) + 5.0
    u = u + 2.0 * np.log(2.0 + log1p_time - np.log(g) + k + np.abs(u_0))
    with np.errstate(divide="ignore"):
        by_logit = 0.5 * (np.log(u + np.hypot(u, k)) - np.log(2.0 * a))
    by_time = np.exp(np.minimum(log_time, 700.0))
    return np.where(by_logit > 0, np.minimum(by_logit, by_time), by_time)


NEWTON_ROUNDS = 60
"""After so many rounds an element that has not converged is bisected."""
ROUNDS = 200

Residual = Callable[[Floats, Ints], tuple[Floats, Floats]]
"""Values and slopes at `x (k,)` of the elements `index (k,)`."""


def solve_increasing(f: Residual, low: Floats, high: Floats) -> Floats:
    """Return for each element where `f` is 0 between `low (n,)` and `high (n,)`, to about 4 ulp of max(1, |x|).

    `f(x, index)` is an increasing function for each element, called with the elements that have not converged; its
    values may be infinite, its slopes need not be exact. Raises ArithmeticError when some element does not converge.
    """
    low, high = low.copy(), high.copy()
    x, index = high.copy(), np.arange(high.size)
    for number in range(ROUNDS):
        if index.size == 0:
            return x
        here = x[index]
        value, slope = f(here, index)
        low[index] = np.where(value <= 0, here, low[index])
        high[index] = np.where(value >= 0, here, high[index])
        middle = 0.5 * (low[index] + high[index])
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            newton = here - value / slope
        # both ends are allowed: a root at the end of the bracket is met there
        inside = (newton >= low[index]) & (newton <= high[index]) & (number < NEWTON_ROUNDS)
        there = np.where(inside, newton, middle)
        x[index] = there
        tolerance = 4.0 * np.finfo(np.float64).eps * np.maximum(1.0, np.abs(there))
        index = index[(np.abs(there - here) > tolerance) & (high[index] - low[index] > 0)]
    raise ArithmeticError(f"{index.size} of {x.size} inversions did not converge in {ROUNDS} rounds")


def log_residual(log_value: Floats, log_slope: Floats, log_target: Floats) -> tuple[Floats, Floats]:
    """Return residual and slope for `solve_increasing` of `value(x) = target`, given as logarithms.

    It is `ln(value / target)` above the target, where values may be astronomic, and `value / target - 1` below it.
    `log_slope` is the logarithm of the derivative of the value.
    """
    gap = log_value - log_target
    with np.errstate(over="ignore", invalid="ignore"):
        slope = np.where(gap > 0, np.exp(log_slope - log_value), np.exp(log_slope - log_target))
        return np.where(gap > 0, gap, np.expm1(np.minimum(gap, 0.0))), slope

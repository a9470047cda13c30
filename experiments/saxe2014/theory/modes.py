"""The strength of a mode of a deep linear network along gradient flow (Saxe et al. 2014), tau = 1.

With n weight matrices that share the strength u of a mode evenly, `u' = n u^(2 - 2/n) (s - u)` (Eq.
15), s the singular value that it learns (`dynamics_cli.theory.linear_modes`). For n to infinity
time, in units of 1/n, is Eq. 16.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike
from scipy.integrate import quad

from dynamics_cli.measures.arrays import Floats


def half_time(s: ArrayLike, u0: float) -> Floats:
    """Return when u is s/2 for two layers: `ln((s - u0) / u0) / (2 s)`."""
    s = np.asarray(s, np.float64)
    return np.asarray(np.log((s - u0) / u0) / (2 * s))


def time_between(u0: float, u: float, s: float, n: int) -> float:
    """Return the time from u0 to u < s with n matrices (Eq. 15), integrated in ln u. Raises
    ValueError for u >= s.
    """
    if not 0 < u0 <= u < s:
        raise ValueError(f"a mode goes from u0 > 0 to u < s; u0 = {u0}, u = {u}, s = {s}")
    # of (ln u)' = n u^(1 - 2/n) (s - u)
    return float(
        quad(
            lambda x: np.exp((2 / n - 1) * x) / (s - np.exp(x)) / n,
            np.log(u0),
            np.log(u),
            limit=200,
        )[0]
    )


def infinite_depth(u0: float, u: float, s: float) -> float:
    """Return n times the time from u0 to u for n to infinity (Eqs. 16, 17)."""
    return float(np.log(u * (s - u0) / (u0 * (s - u))) / s**2 + 1 / (s * u0) - 1 / (s * u))


def descent(
    n: int, rates: ArrayLike, u0: float, u: float, s: float, limit: int = 20000, stays: int = 20
) -> Floats:
    """Return after how many updates `a += rate a^(n-1) (s - a^n)` comes within s - u of s and stays
    there; else inf.

    It stays where the next `stays` updates are as close: fast steps jump through s and away again.
    """
    rates = np.atleast_1d(np.asarray(rates, np.float64))
    a = np.full(rates.shape, u0 ** (1 / n))
    since = np.full(rates.shape, np.inf)
    for k in range(1, limit + 1):
        with np.errstate(over="ignore", invalid="ignore"):
            a = a + rates * a ** (n - 1) * (s - a**n)
            a[~np.isfinite(a) | (a <= 0) | (a > (2 * s) ** (1 / n))] = np.nan  # beyond recovery
            since = np.where(np.abs(a**n - s) <= s - u, np.minimum(since, k), np.inf)
        if (np.isnan(a) | (since <= k - stays)).all():
            break
    return since

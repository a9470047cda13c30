"""Inversion of increasing functions, element by element: Newton's method kept inside a bracket."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from dynamics_cli.measures.arrays import Floats, Ints

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

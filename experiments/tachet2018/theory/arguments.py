"""Arguments of closed forms, and the inversion of closed forms for the time at which a value is reached."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike

from dynamics_cli.measures.arrays import Floats, Ints, as_floats


def as_times(t: ArrayLike) -> Floats:
    """Return times of any shape as float64; raises ValueError unless all are finite and at least 0."""
    times = as_floats(t, "t", axes=0, batched=True)
    if not (np.isfinite(times).all() and (times >= 0).all()):
        raise ValueError("times must be finite and at least 0")
    return times


def as_positive(values: ArrayLike, name: str) -> Floats:
    """Return `values` of any shape as float64; raises ValueError, naming `name`, unless all are finite and positive."""
    array = as_finite(values, name)
    if not (array > 0).all():
        raise ValueError(f"{name} must be positive, not {array.min()}")
    return array


def as_finite(values: ArrayLike, name: str) -> Floats:
    """Return `values` of any shape as float64; raises ValueError, naming `name`, unless all are finite."""
    array = as_floats(values, name, axes=0, batched=True)
    if not np.isfinite(array).all():
        raise ValueError(f"{name} must be finite")
    return array


def as_share(values: ArrayLike, name: str, *, closed: bool = False) -> Floats:
    """Return `values` as float64; raises ValueError unless all are in (0, 1), in (0, 1] when `closed`."""
    array = as_finite(values, name)
    if not ((array > 0) & ((array <= 1) if closed else (array < 1))).all():
        raise ValueError(f"{name} must be in (0, 1{']' if closed else ')'}, not in [{array.min()}, {array.max()}]")
    return array


def check_label(label: int) -> int:
    """Return `label`, 1 for a point of class D_1 and -1 for a point of D_2; raises ValueError for anything else."""
    if label not in {1, -1}:
        raise ValueError(f"label must be 1 (class D_1) or -1 (class D_2), not {label}")
    return label


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

"""Measures of curves: plateaus, crossings of a level, falls, and distances from predictions.

Everywhere `iterations (k,)` are ascending and `losses (k,)` stand under them. From the first loss
that is not finite on (a run that diverged) everything is ignored. ValueError is raised for arrays
that are empty or do not match.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from dynamics_cli.measures.arrays import Bools, Floats, Ints, as_floats


@dataclass(frozen=True)
class Plateau:
    """A stretch of iterations over which the loss hardly changes."""

    value: float
    """Median loss of the stretch."""
    first: int
    """First iteration."""
    last: int
    """Last iteration."""

    @property
    def length(self) -> int:
        """Number of iterations between first and last."""
        return self.last - self.first


def _curve(iterations: ArrayLike, losses: ArrayLike) -> tuple[Floats, Floats]:
    steps = as_floats(iterations, "iterations", axes=1)
    values = as_floats(losses, "losses", axes=1)
    if steps.shape != values.shape:
        raise ValueError(f"{len(steps)} iterations but {len(values)} losses")
    bad = np.flatnonzero(~np.isfinite(values))
    end = int(bad[0]) if bad.size else len(values)
    if end == 0:
        raise ValueError("there is no finite loss")
    if (np.diff(steps) <= 0).any():
        raise ValueError("iterations must be ascending")
    return steps[:end], values[:end]


def value_at(iterations: ArrayLike, values: ArrayLike, iteration: float) -> float:
    """Return the value `(k,)` recorded nearest to an iteration; of two as near, the first."""
    steps = as_floats(iterations, "iterations", axes=1)
    return float(as_floats(values, "values", axes=1)[np.argmin(np.abs(steps - iteration))])


def crossing(times: Floats | Ints, values: Floats, level: float) -> float:
    """Return when values (k,) at `times` (k,) first rise to a level, interpolated.

    NaN where they never do, or are there from the first on.
    """
    above = np.flatnonzero(values >= level)
    if not above.size or above[0] == 0:
        return float("nan")
    ends = slice(above[0] - 1, above[0] + 1)
    return float(np.interp(level, values[ends], times[ends]))


def find_plateaus(
    iterations: ArrayLike,
    losses: ArrayLike,
    *,
    relative_tolerance: float = 1e-2,
    minimum_fraction: float = 0.05,
    floor: float = 0.0,
) -> list[Plateau]:
    """Return the plateaus in order of time.

    The largest loss of a plateau is at most (1 + tolerance) times the smallest.

    A stretch counts when it covers at least `minimum_fraction` of the recorded iterations; the
    longest is taken first, then the longest to its left and right. Losses at or below `floor` times
    the first loss are the end of training, not a saddle, and never count.
    """
    steps, values = _curve(iterations, losses)
    shortest = minimum_fraction * (steps[-1] - steps[0])
    ends = _flat_ends(values, relative_tolerance, floor * values[0])
    plateaus: list[tuple[int, int]] = []
    todo = [(0, len(values) - 1)]
    while todo:
        low, high = todo.pop()
        if low > high:
            continue
        stops = np.minimum(ends[low : high + 1], high)  # -1 where the loss is below the floor
        lengths = np.where(stops >= 0, steps[stops] - steps[low : high + 1], -1.0)
        best = int(np.argmax(lengths))
        if lengths[best] < shortest or lengths[best] <= 0:
            continue
        first = low + best
        last = int(stops[best])
        plateaus.append((first, last))
        todo += [(low, first - 1), (last + 1, high)]
    return [
        Plateau(float(np.median(values[i : j + 1])), int(steps[i]), int(steps[j]))
        for i, j in sorted(plateaus)
    ]


def _flat_ends(values: Floats, tolerance: float, floor: float) -> Ints:
    """Return for every index the last index up to which the curve is flat, -1 below the floor.

    Extremes of all windows of 2^k values are known; every flat stretch grows by windows, the
    longest first.
    """
    n = len(values)
    tables = [(values, np.where(values > floor, values, -np.inf))]
    while 2 ** len(tables) <= n:
        high, low = tables[-1]
        step = 2 ** (len(tables) - 1)
        tables.append((np.maximum(high[:-step], high[step:]), np.minimum(low[:-step], low[step:])))
    stop = np.arange(n)
    top = np.full(n, -np.inf)
    bottom = np.full(n, np.inf)
    for k, (high, low) in reversed([*enumerate(tables)]):
        at = stop.clip(max=len(high) - 1)
        wider_top = np.maximum(top, high[at])
        wider_bottom = np.minimum(bottom, low[at])
        flat = (stop < len(high)) & (wider_top <= (1.0 + tolerance) * wider_bottom)
        stop = np.where(flat, stop + 2**k, stop)
        top = np.where(flat, wider_top, top)
        bottom = np.where(flat, wider_bottom, bottom)
    return np.where(stop > np.arange(n), stop - 1, -1)


def first_below(iterations: ArrayLike, losses: ArrayLike, value: float) -> int | None:
    """Return the first recorded iteration with a loss below `value`; None where there is none."""
    steps, values = _curve(iterations, losses)
    below = np.flatnonzero(values < value)
    return int(steps[below[0]]) if below.size else None


def first_at(times: Floats | Ints, holds: Bools) -> float:
    """Return the first of `times` (k,) at which a condition (k,) holds; NaN where it never does."""
    places = np.flatnonzero(holds)
    return float(times[places[0]]) if places.size else float("nan")


def power(x: ArrayLike, y: ArrayLike) -> float:
    """Return the power of x (k,) with which y (k,) grows, the slope of their logarithms.

    NaN where a number has no logarithm.
    """
    both = np.array([x, y], np.float64)
    if not (np.isfinite(both) & (both > 0)).all():
        return float("nan")
    log_x, log_y = np.log(both)
    return float(np.polyfit(log_x, log_y, 1)[0])


def farthest(ratios: ArrayLike) -> float:
    """Return the ratio farthest from 1 on a logarithmic axis; NaN where any or all are missing."""
    flat = np.ravel(np.asarray(ratios, np.float64))
    if not (len(flat) and np.isfinite(flat).all()):
        return float("nan")
    return float(flat[np.argmax(np.abs(np.log(flat)))])

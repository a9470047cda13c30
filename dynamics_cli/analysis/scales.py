"""Whether an axis is better logarithmic, decided from what is drawn on it."""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from dynamics_cli.measures.arrays import Floats
from dynamics_cli.plotting.time_axis import TimeScale

LOG_RANGE = 20.0
"""A positive curve whose largest value is so many times its smallest is drawn on a log axis."""
EARLY = 0.02
"""Share of the iterations that a linear axis hardly shows."""


def value_scale(values: ArrayLike) -> Literal["log", "linear"]:
    """Return `log` for values that are never negative and span more than a factor `LOG_RANGE`, else `linear`.

    Values of exactly 0 and those that are not finite do not count.
    """
    array = np.asarray(values, dtype=np.float64)
    array = array[np.isfinite(array)]
    positive = array[array > 0]
    if len(positive) == 0 or (array < 0).any():
        return "linear"
    return "log" if float(positive.max()) > LOG_RANGE * float(positive.min()) else "linear"


def time_scale(iterations: ArrayLike, *curves: ArrayLike) -> TimeScale:
    """Return `log` when most of what `curves` do over `iterations` (k,) is over after `EARLY` of them.

    Each of `curves` is (k,) or (k, m). What it does is its total variation, of the logarithm where `value_scale` is
    logarithmic; several curves have equal weight, the m columns of one count by their variation. Non-finite values are
    skipped.
    """
    steps = np.asarray(iterations, dtype=np.float64)
    if len(steps) < 8 or steps[-1] <= 100:
        return "linear"
    early = steps[1:] <= steps[0] + EARLY * (steps[-1] - steps[0])
    changes = [_variation(np.asarray(curve, dtype=np.float64).reshape(len(steps), -1)) for curve in curves]
    shares = [change[early].sum() / change.sum() for change in changes if change.sum() > 0]
    return "log" if shares and float(np.mean(shares)) > 0.5 else "linear"


def _variation(array: Floats) -> Floats:
    """Return how much the columns of (k, m) change from row to row, together (k - 1,)."""
    if value_scale(array) == "log":
        array = np.log(np.where(array > 0, array, np.nan))
    change: Floats = np.abs(np.diff(np.where(np.isfinite(array), array, np.nan), axis=0))
    return np.asarray(np.nan_to_num(change, nan=0.0).sum(axis=1), dtype=np.float64)

"""Fewer points for the same picture.

A curve of 300 000 points drawn 1 000 pixels wide shows, in each pixel column, its first, last, lowest and highest value
and nothing else. Keeping exactly those (Jugel et al., "M4", VLDB 2014) leaves the picture as it was.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

COLUMNS = 1600
"""Pixel columns that a panel has at most: 5.5 inches at 300 dots an inch."""


def decimate(
    x: ArrayLike, y: ArrayLike, *, columns: int = COLUMNS, log: bool = False
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return at most 6 points for each of `columns` pixel columns, among them all that can be seen.

    `x` (k,) must be finite and must not decrease; `y` (k,) may hold gaps (NaN or infinite), which stay gaps. Of every
    column the first, last, lowest and highest point and the ends of its gaps are kept, so the curve keeps its endpoints
    and its extremes. `log` makes columns of equal width in log x (x > 0; what is not positive is the first column).
    Short curves come back unchanged. Raises ValueError for shapes that differ or an `x` that goes back.
    """
    x = np.asarray(x, dtype=np.float64)
    y = np.asarray(y, dtype=np.float64)
    if x.ndim != 1 or x.shape != y.shape:
        raise ValueError(f"a curve needs x and y of the same length, not shapes {x.shape} and {y.shape}")
    if columns < 1:
        raise ValueError(f"columns must be at least 1, not {columns}")
    if not np.isfinite(x).all() or (np.diff(x) < 0).any():
        raise ValueError("x must be finite and must not decrease")
    if len(x) <= 4 * columns:
        return x, y
    keep = _kept(_column_of(x, columns, log=log), y)
    return x[keep], y[keep]


def _column_of(x: NDArray[np.float64], columns: int, *, log: bool) -> NDArray[np.int64]:
    """Return for each point the pixel column (k,) that it falls into; non-decreasing."""
    if log and (x > 0).any():
        x = np.log(np.maximum(x, x[x > 0][0]))
    span = x[-1] - x[0]
    if not 0 < span < np.inf:
        return np.zeros(len(x), dtype=np.int64)
    column: NDArray[np.int64] = np.floor((x - x[0]) / span * columns).astype(np.int64)
    return np.asarray(column.clip(max=columns - 1), dtype=np.int64)


def _kept(column: NDArray[np.int64], y: NDArray[np.float64]) -> NDArray[np.int64]:
    """Return the sorted indices of first, last, lowest and highest point and gap ends of every column."""
    finite = np.isfinite(y)
    gaps = np.flatnonzero(~finite)
    by_low = np.lexsort((np.where(finite, y, np.inf), column))
    by_high = np.lexsort((np.where(finite, y, -np.inf), column))
    first, last = _ends(column)
    gap_first, gap_last = _ends(column[gaps])
    return np.unique(np.concatenate([first, last, by_low[first], by_high[last], gaps[gap_first], gaps[gap_last]]))


def _ends(column: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the first and the last index of every run of equal values."""
    change = np.flatnonzero(np.diff(column)) + 1
    size = len(column)
    if size == 0:
        return np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64)
    return np.concatenate([[0], change]), np.concatenate([change, [size]]) - 1

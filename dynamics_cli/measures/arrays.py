"""Conversion of callers' arrays (memory maps, float32) to float64 with the expected axes."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]
Ints = NDArray[np.int64]


def as_floats(values: ArrayLike, name: str, *, axes: int, batched: bool = False) -> Floats:
    """Return `values` as a float64 array with `axes` axes (at least `axes` when `batched`).

    Float32 weights of scale 1e-20 must be converted before anything is squared, hence first thing
    everywhere. Raises ValueError, naming `name`, when the number of axes is another.
    """
    array: Floats = np.asarray(values, dtype=np.float64)
    if array.ndim < axes or (array.ndim > axes and not batched):
        wanted = f"at least {axes}" if batched else f"{axes}"
        raise ValueError(f"{name} has {array.ndim} axes (shape {array.shape}), but needs {wanted}")
    return array


def as_points(x: ArrayLike, y: ArrayLike) -> tuple[Floats, Floats]:
    """Return inputs `x (n, d)` and labels `y (n,)` as float64.

    Raises ValueError when they are empty, differ in length or hold a number that is not finite.
    """
    points = as_floats(x, "x", axes=2)
    labels = as_floats(y, "y", axes=1)
    if len(points) != len(labels):
        raise ValueError(f"x has {len(points)} points but y has {len(labels)} labels")
    if points.size == 0:
        raise ValueError(f"x of shape {points.shape} holds no data")
    if not (np.isfinite(points).all() and np.isfinite(labels).all()):
        raise ValueError("x and y must be finite")
    return points, labels


def as_network(W: ArrayLike, a: ArrayLike, *, batched: bool = False) -> tuple[Floats, Floats]:
    """Return `W (m, d)` and `a (m,)` as float64, or `(..., m, d)` and `(..., m)` when `batched`.

    Raises ValueError when their shapes do not belong together.
    """
    hidden = as_floats(W, "W", axes=2, batched=batched)
    output = as_floats(a, "a", axes=1, batched=batched)
    if hidden.shape[:-1] != output.shape:
        raise ValueError(
            f"W of shape {hidden.shape} and a of shape {output.shape} are not one network"
        )
    return hidden, output

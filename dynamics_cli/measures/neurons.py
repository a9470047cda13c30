"""Norm, direction, kink, sign and balance of neurons, of one network or a batch of snapshots."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from dynamics_cli.measures.arrays import Floats, as_floats


def norms(W: ArrayLike) -> Floats:
    """Return the norms `(..., m)` of neurons `W (..., m, d)`, without underflow at any scale."""
    weights = as_floats(W, "W", axes=1, batched=True)
    largest = np.abs(weights).max(axis=-1, initial=0.0, keepdims=True)  # (..., m, 1)
    scaled = np.divide(weights, largest, out=np.zeros_like(weights), where=largest > 0)
    result: Floats = largest[..., 0] * np.linalg.norm(scaled, axis=-1)
    return result


def directions(W: ArrayLike) -> Floats:
    """Return `w / ||w||` `(..., m, d)`.

    A neuron that is exactly 0 has no direction and gives NaN.
    """
    weights = as_floats(W, "W", axes=1, batched=True)
    lengths = norms(weights)[..., None]  # (..., m, 1)
    return np.divide(weights, lengths, out=np.full_like(weights, np.nan), where=lengths > 0)


def cosines(W: ArrayLike, v: ArrayLike) -> Floats:
    """Return the cosines `(..., m)` of the neurons `W (..., m, d)` with the vector `v (d,)`.

    They are within [-1, 1].

    `v` may also have the shape of `W` (one vector a neuron). Where a neuron or `v` is 0 the cosine
    is NaN.
    """
    w_bar = directions(W)
    v_bar = directions(v)
    result: Floats = np.clip(np.sum(w_bar * v_bar, axis=-1), -1.0, 1.0)
    return result


def kinks(W: ArrayLike) -> Floats:
    """Return the kinks `-b / w`, `(..., m)`, of neurons `W (..., m, 2)` = (weight, bias) on a line.

    A neuron without input weight has no kink: NaN. Raises ValueError unless the last axis has
    length 2.
    """
    weights = as_floats(W, "W", axes=1, batched=True)
    if weights.shape[-1] != 2:
        raise ValueError(
            f"kinks need neurons (weight, bias) of 1-D inputs, not of length {weights.shape[-1]}"
        )
    w = weights[..., 0]
    b = weights[..., 1]
    with np.errstate(over="ignore"):
        return np.divide(-b, w, out=np.full_like(w, np.nan), where=w != 0)


def signs(a: ArrayLike) -> Floats:
    """Return `s_j = sign(a_j)` as -1.0, 0.0 or 1.0, of the shape of `a`."""
    result: Floats = np.sign(as_floats(a, "a", axes=0, batched=True))
    return result


def angle_of(W: ArrayLike) -> Floats:
    """Return the angle of vectors `(..., 2)` from the first axis, in degrees, in (-180, 180].

    The vector 0 has no angle: NaN. Raises ValueError unless the last axis has length 2.
    """
    vectors = as_floats(W, "W", axes=1, batched=True)
    if vectors.shape[-1] != 2:
        raise ValueError(f"angles need vectors in the plane, not of length {vectors.shape[-1]}")
    degrees = np.degrees(np.arctan2(vectors[..., 1], vectors[..., 0]))
    degrees = np.where(degrees == -180.0, 180.0, degrees)
    result: Floats = np.where((vectors == 0).all(axis=-1), np.nan, degrees)
    return result

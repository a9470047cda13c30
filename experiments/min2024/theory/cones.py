"""Assumption 1 on any labelled data, and the cones S_+, S_- and S_dead (Section 3): which neurons are in them when."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from dynamics_cli.measures.arrays import Bools, Floats, Ints, as_floats, as_points
from dynamics_cli.measures.neurons import directions
from dynamics_cli.measures.two_layer import activation_patterns

BLOCK = 512
"""Rows of the matrix of cosines that are held at a time."""
OUTSIDE, PLUS, MINUS, DEAD = 0, 1, -1, 2
"""Codes of the regions that `regions` gives."""


@dataclass(frozen=True)
class Correlation:
    """How nearly Assumption 1 holds, over all pairs `i < j`."""

    mu: float
    """`min_{i != j} y_i y_j cos(x_i, x_j)`; Assumption 1 asks for more than 0. 1 for a single point."""
    same: float
    """Share of the pairs with the same label whose correlation is positive; NaN without such a pair."""
    different: float
    """Share of the pairs with different labels whose correlation is negative; NaN without such a pair."""


def correlation(x: ArrayLike, y: ArrayLike) -> Correlation:
    """Check Assumption 1 for inputs `x (n, d)` and labels `y (n,)`, which count by their sign.

    Cosines are computed in blocks of rows, so memory grows with n only. Raises ValueError for an input or a label that
    is 0, which has no direction or sign.
    """
    points, labels = as_points(x, y)
    if (labels == 0).any() or not points.any(axis=1).all():
        raise ValueError("Assumption 1 needs inputs and labels other than 0")
    signed = directions(points) * np.sign(labels)[:, None]  # (n, d) y_i x_i / ||x_i||
    mu, right, pairs = 1.0, np.zeros(2), np.zeros(2)
    for first in range(0, len(points), BLOCK):
        rows = np.arange(first, min(first + BLOCK, len(points)))
        cosines = signed[rows] @ signed[first:].T  # (b, n - first)
        later = np.arange(first, len(points))[None, :] > rows[:, None]
        same = labels[rows][:, None] * labels[None, first:] > 0
        mu = min(mu, float(cosines[later].min(initial=1.0)))
        for k, sort in enumerate((later & same, later & ~same)):
            right[k] += np.count_nonzero(cosines[sort] > 0)
            pairs[k] += np.count_nonzero(sort)
    shares = np.divide(right, pairs, out=np.full(2, np.nan), where=pairs > 0)
    return Correlation(mu, float(shares[0]), float(shares[1]))


def permuted_shares(x: ArrayLike, y: ArrayLike, draws: int, rng: np.random.Generator) -> Floats:
    """Return `same` and `different` of `correlation` (draws, 2) for random permutations of the labels `y (n,)`.

    Pairs count in both orders; memory grows with n as in `correlation`. Raises ValueError for inputs `x (n, d)` and
    labels that are no points, or labels of one sign.
    """
    points, labels = as_points(x, y)
    if not 0 < np.count_nonzero(labels > 0) < len(labels):
        raise ValueError("a permutation of equal labels changes nothing")
    units = directions(points).astype(np.float32)
    signs = np.stack([rng.permutation(np.sign(labels)) for _ in range(draws)], axis=1).astype(np.float32)  # (n, draws)
    right = np.zeros((2, draws))
    for first in range(0, len(units), BLOCK):
        rows = np.arange(first, min(first + BLOCK, len(units)))
        cosines = units[rows] @ units.T  # (b, n)
        cosines[np.arange(len(rows)), rows] = 0.0
        for k, sense in enumerate((1, -1)):
            pairs = (sense * cosines > 0).astype(np.float32)
            right[k] += pairs.sum(dtype=np.float64) + sense * (signs[rows] * (pairs @ signs)).sum(axis=0)
    n, plus = len(labels), np.count_nonzero(labels > 0)
    different = 2.0 * plus * (n - plus)
    shares: Floats = right / 2.0 / np.array([[n * (n - 1.0) - different], [different]])
    return shares.T


def centres(x: ArrayLike, y: ArrayLike) -> tuple[Floats, Floats]:
    """Return `x_+` and `x_-`, the sums of the inputs `x (n, d)` with positive and negative label: (d,) each."""
    points, labels = as_points(x, y)
    return points[labels > 0].sum(axis=0), points[labels <= 0].sum(axis=0)


def x_a(x: Floats, y: Floats, w: Floats) -> Floats:
    """Return `sum_{<x_i, w> > 0} y_i x_i` (d,), towards which a positive neuron `w (d,)` turns (Eq. 5)."""
    active = x @ w > 0
    total: Floats = y[active] @ x[active]
    return total


def regions(x: ArrayLike, y: ArrayLike, W: ArrayLike) -> Ints:
    """Return the region `(..., m)` of the neurons `W (..., m, d)` for inputs `x (n, d)` and labels `y (n,)`.

    `PLUS`: active on exactly the positive data; `MINUS`: on exactly the negative data; `DEAD`: on none; else `OUTSIDE`.
    Where there are no positive (negative) data, S_+ (S_-) is S_dead, and such neurons are `DEAD`.
    """
    active = activation_patterns(x, W)  # (..., n, m)
    positive = (as_floats(y, "y", axes=1) > 0)[:, None]
    result = np.full(active.shape[:-2] + active.shape[-1:], OUTSIDE, dtype=np.int64)
    result[(active == positive).all(axis=-2)] = PLUS
    result[(active != positive).all(axis=-2)] = MINUS
    result[~active.any(axis=-2)] = DEAD
    return result


def misplaced(reached: Ints, v: ArrayLike) -> Bools:
    """Return which neurons `(..., m)` are alive outside the region of their sign, S_+ for v_j > 0 and S_- else.

    `reached (..., m)` are the regions of the neurons, `v (..., m)` their output weights.
    """
    home = np.where(np.asarray(v) > 0, PLUS, MINUS)
    outside: Bools = (reached != home) & (reached != DEAD)
    return outside


def activation_counts(x: ArrayLike, y: ArrayLike, W: ArrayLike) -> Ints:
    """Return `(k_+, k_-)` `(..., m, 2)`: on how many positive and negative data each of `W (..., m, d)` is active.

    These are the coordinates of the paths of Appendix C (Figures 14 to 17).
    """
    active = activation_patterns(x, W)
    positive = as_floats(y, "y", axes=1) > 0
    return np.stack([active[..., positive, :].sum(axis=-2), active[..., ~positive, :].sum(axis=-2)], axis=-1)

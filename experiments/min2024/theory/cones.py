"""Assumption 1 on any labelled data, and the cones S_+, S_- and S_dead (Section 3): which
neurons are in them when.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from dynamics_cli.measures.arrays import Bools, Floats, Ints, as_floats, as_points
from dynamics_cli.measures.neurons import directions
from dynamics_cli.measures.two_layer import activation_patterns

BLOCK = 512
"""Rows of the matrix of cosines that are held at a time."""
OUTSIDE = 0
PLUS = 1
MINUS = -1
DEAD = 2
"""Codes of the regions that `regions` gives."""


def least_correlation(x: Floats, y: Floats) -> float:
    """Return `mu = min_{i != j} y_i y_j cos(x_i, x_j)` of inputs `x (n, d)` and labels `y (n,)`; 1
    for a single point.

    Assumption 1 asks for more than 0. Cosines are computed in blocks of rows, so memory grows with
    n only.
    """
    signed = directions(x) * np.sign(y)[:, None]
    mu = 1.0
    for first in range(0, len(signed), BLOCK):
        cosines = signed[first : first + BLOCK] @ signed[first:].T  # (b, n - first)
        later = np.triu(np.ones(cosines.shape, dtype=bool), 1)
        mu = min(mu, float(cosines[later].min(initial=1.0)))
    return mu


def correlated_shares(x: Floats, labels: Floats) -> Floats:
    """Return how many pairs of inputs `x (n, d)` agree with each of `labels (k, n)`, both signs in
    each: (k, 2).

    First the share of the pairs with the same label whose correlation is positive, then of the
    pairs with different labels whose correlation is negative. Memory grows with n as in
    `least_correlation`.
    """
    units = directions(x)
    signs = np.sign(labels, dtype=np.float32).T
    right = np.zeros((2, len(labels)))
    for first in range(0, len(units), BLOCK):
        cosines = units[first : first + BLOCK] @ units.T  # (b, n)
        np.fill_diagonal(cosines[:, first:], 0.0)
        for k, sense in enumerate((1, -1)):
            pairs = (sense * cosines > 0).astype(np.float32)  # holds all counts exactly
            agreeing = np.einsum(
                "bk,bk->k", signs[first : first + BLOCK], pairs @ signs, dtype=np.float64
            )
            right[k] += np.count_nonzero(pairs) + sense * agreeing
    n = len(units)
    plus = (signs > 0).sum(axis=0)
    different = 2.0 * plus * (n - plus)  # pairs count in both orders
    return np.asarray(right / 2.0 / np.array([n * (n - 1.0) - different, different])).T


def centres(x: ArrayLike, y: ArrayLike) -> tuple[Floats, Floats]:
    """Return `x_+` and `x_-`, the sums of the inputs `x (n, d)` with positive and negative
    label: (d,) each.
    """
    points, labels = as_points(x, y)
    return points[labels > 0].sum(axis=0), points[labels <= 0].sum(axis=0)


def x_a(x: Floats, y: Floats, w: Floats) -> Floats:
    """Return `sum_{<x_i, w> > 0} y_i x_i` (d,), towards which a positive neuron `w (d,)` turns
    (Eq. 5).
    """
    active = x @ w > 0
    total: Floats = y[active] @ x[active]
    return total


def regions(x: ArrayLike, y: ArrayLike, W: ArrayLike) -> Ints:
    """Return the region `(..., m)` of the neurons `W (..., m, d)` for inputs `x (n, d)` and labels
    `y (n,)`.

    `PLUS`: active on exactly the positive data; `MINUS`: on exactly the negative data; `DEAD`: on
    none; else `OUTSIDE`. Where there are no positive (negative) data, S_+ (S_-) is S_dead, and such
    neurons are `DEAD`.
    """
    active = activation_patterns(x, W)  # (..., n, m)
    positive = (as_floats(y, "y", axes=1) > 0)[:, None]
    result = np.full(active.shape[:-2] + active.shape[-1:], OUTSIDE, dtype=np.int64)
    result[(active == positive).all(axis=-2)] = PLUS
    result[(active != positive).all(axis=-2)] = MINUS
    result[~active.any(axis=-2)] = DEAD
    return result


def misplaced(reached: Ints, v: ArrayLike) -> Bools:
    """Return which neurons `(..., m)` are alive outside the region of their sign, S_+ for v_j > 0
    and S_- else.

    `reached (..., m)` are the regions of the neurons, `v (..., m)` their output weights.
    """
    home = np.where(np.asarray(v) > 0, PLUS, MINUS)
    outside: Bools = (reached != home) & (reached != DEAD)
    return outside


def activation_counts(x: ArrayLike, y: ArrayLike, W: ArrayLike) -> Ints:
    """Return `(k_+, k_-)` `(..., m, 2)`: on how many positive and negative data each of `W (..., m,
    d)` is active.

    These are the coordinates of the paths of Appendix C (Figures 14 to 17).
    """
    active = activation_patterns(x, W)
    positive = as_floats(y, "y", axes=1) > 0
    return np.stack(
        [active[..., positive, :].sum(axis=-2), active[..., ~positive, :].sum(axis=-2)], axis=-1
    )

"""Assumption 1 of Min et al. 2024 on any labelled data: same labels correlate positively, different ones negatively."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from dynamics_cli.measures.arrays import Floats, as_points
from dynamics_cli.measures.neurons import directions

BLOCK = 512
"""Rows of the matrix of cosines that are held at a time."""


@dataclass(frozen=True)
class Correlation:
    """How nearly Assumption 1 holds, over all pairs `i < j`."""

    mu: float
    """`min_{i != j} y_i y_j cos(x_i, x_j)`; Assumption 1 asks for more than 0. 1 for a single point."""
    same: float
    """Share of the pairs with the same label whose correlation is positive; NaN without such a pair."""
    different: float
    """Share of the pairs with different labels whose correlation is negative; NaN without such a pair."""

    @property
    def holds(self) -> bool:
        """Whether Assumption 1 holds."""
        return self.mu > 0


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


def centres(x: ArrayLike, y: ArrayLike) -> tuple[Floats, Floats]:
    """Return `x_+`, the sum of the inputs `x (n, d)` with positive label, and `x_-`, that of the others: (d,) each."""
    points, labels = as_points(x, y)
    return points[labels > 0].sum(axis=0), points[labels <= 0].sum(axis=0)

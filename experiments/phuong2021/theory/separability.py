"""Orthogonal separability of labelled points (Phuong and Lampert 2021, Eq. 1), and the products of pairs behind it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dynamics_cli.measures.arrays import Floats, Ints, as_points

BLOCK = 512
"""Rows of the matrix of products that are held at a time."""


def separability_violations(x: ArrayLike, y: ArrayLike) -> int:
    """Return how many pairs `i <= j` of inputs `x (n, d)` with labels `y (n,)` violate Eq. 1.

    Equal labels make a class; within a class, a point with itself included, products are > 0, across classes <= 0.
    Products are computed in blocks of rows. Raises ValueError for data of other shapes, or not finite.
    """
    points, labels = as_points(x, y)
    violations = 0
    for first in range(0, len(points), BLOCK):
        rows = np.arange(first, min(first + BLOCK, len(points)))
        products, same = points[rows] @ points.T, labels[rows][:, None] == labels
        upper = np.arange(len(points)) >= rows[:, None]
        violations += int(np.count_nonzero(upper & np.where(same, products <= 0, products > 0)))
    return violations


@dataclass(frozen=True)
class PairProducts:
    """The distribution of `<f_i, f_j>` over all pairs `i < j` of each sort."""

    edges: Floats
    """(b + 1,) edges of the bins, the same for all sorts."""
    counts: dict[str, Ints]
    """sort -> (b,) number of pairs in each bin; sorts are `across`, `first` and `second`."""
    means: dict[str, float]
    stds: dict[str, float]
    satisfied: dict[str, float]
    """sort -> share of its pairs that satisfy Eq. 1: > 0 within a class, <= 0 across."""

    @property
    def share(self) -> float:
        """Share of all pairs that satisfy Eq. 1."""
        sizes = {sort: int(counts.sum()) for sort, counts in self.counts.items()}
        total = sum(sizes.values())
        return sum(self.satisfied[sort] * size for sort, size in sizes.items() if size) / total

    def right(self, sort: str) -> float:
        """Return the probability, up to the bins, that a pair of `sort` has a larger product than one across."""
        mixed = self.counts["across"] / max(self.counts["across"].sum(), 1)
        same = self.counts[sort] / max(self.counts[sort].sum(), 1)
        return float(same @ (np.cumsum(mixed) - mixed / 2))


def pair_products(features: ArrayLike, y: ArrayLike, *, bins: int = 400) -> PairProducts:
    """Return the distributions of products of `features (n, D)` for pairs across and within the classes of `y (n,)`.

    `first` is the class of the smallest label, `second` the other. Two passes over blocks of rows: one for range and
    moments, one for the counts; no n x n array is ever held. Products are computed in the precision of `features` (at
    least float32), sums in float64. Raises ValueError unless there are two classes of two points or more.
    """
    points, labels = np.asarray(features), np.asarray(y)
    classes, sizes = np.unique(labels, return_counts=True)
    if points.ndim != 2 or labels.shape != points.shape[:1]:
        raise ValueError(f"features of shape {points.shape} and labels of shape {labels.shape} do not belong together")
    if len(classes) != 2 or sizes.min() < 2:
        raise ValueError(f"pairs need two classes of two points or more, not {sizes.tolist()}")
    masks = {"across": (0, 1), "first": (0, 0), "second": (1, 1)}
    sums = {sort: np.zeros(4) for sort in masks}
    low, high = np.inf, -np.inf
    for values, sort in _sorted_pairs(points, labels == classes[1], masks):
        wide = values.astype(np.float64)
        right = values <= 0 if sort == "across" else values > 0
        sums[sort] += [len(wide), wide.sum(), np.square(wide).sum(), np.count_nonzero(right)]
        low, high = min(low, float(wide.min(initial=low))), max(high, float(wide.max(initial=high)))
    if not low < high:
        low, high = low - 0.5, high + 0.5
    edges = np.linspace(low, high, bins + 1)
    counts = {sort: np.zeros(bins, np.int64) for sort in masks}
    for values, sort in _sorted_pairs(points, labels == classes[1], masks):
        counts[sort] += np.histogram(np.clip(values.astype(np.float64), low, high), edges)[0]
    means = {sort: float(s[1] / s[0]) for sort, s in sums.items()}
    stds = {sort: float(np.sqrt(max(s[2] / s[0] - means[sort] ** 2, 0.0))) for sort, s in sums.items()}
    return PairProducts(edges, counts, means, stds, {sort: float(s[3] / s[0]) for sort, s in sums.items()})


def _sorted_pairs(
    points: NDArray[np.floating], second: NDArray[np.bool_], masks: dict[str, tuple[int, int]]
) -> Iterator[tuple[NDArray[np.floating], str]]:
    """Yield the products of the pairs of each sort, every pair once, some rows at a time."""
    features = points if points.dtype.kind == "f" and points.itemsize >= 4 else points.astype(np.float64)
    groups = (features[~second], features[second])
    for sort, (i, j) in masks.items():
        for first in range(0, len(groups[i]), BLOCK):
            products = groups[i][first : first + BLOCK] @ groups[j].T
            if i == j:
                rows = first + np.arange(len(products))
                yield products[np.arange(products.shape[1]) > rows[:, None]], sort
            else:
                yield products.ravel(), sort

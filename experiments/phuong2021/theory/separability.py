"""Orthogonal separability of labelled points (Phuong and Lampert 2021, Eq. 1), and the products
of pairs behind it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dynamics_cli.measures.arrays import Floats, Ints


def separability_violations(x: Floats, y: Floats) -> int:
    """Return how many pairs `i <= j` of inputs `x (n, d)` with labels `y (n,)` violate Eq. 1.

    Equal labels make a class; within a class, a point with itself included, products are > 0,
    across classes <= 0.
    """
    products = x @ x.T
    wrong = np.where(y[:, None] == y, products <= 0, products > 0)
    return int(np.count_nonzero(np.triu(wrong)))


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
        """Return the probability, up to the bins, that a pair of `sort` has a larger product
        than one across.
        """
        mixed = self.counts["across"] / max(self.counts["across"].sum(), 1)
        same = self.counts[sort] / max(self.counts[sort].sum(), 1)
        return float(same @ (np.cumsum(mixed) - mixed / 2))


def pair_products(features: NDArray[np.floating], y: Floats, *, bins: int = 400) -> PairProducts:
    """Return the distributions of products of `features (n, D)` for pairs across and within the two
    classes `y (n,)`.

    `first` is the class of the smallest label, `second` the other. Products are computed in the
    precision of `features`, sums in float64.
    """
    first, second = (features[y == label] for label in np.unique(y))
    pairs = {
        "across": np.ravel(first @ second.T),
        "first": _within(first),
        "second": _within(second),
    }
    low = min(values.min() for values in pairs.values())
    high = max(values.max() for values in pairs.values())
    limits = (low, high if high > low else low + 1.0)
    edges = np.linspace(*limits, bins + 1, dtype=np.float64)
    return PairProducts(
        edges,
        counts={
            sort: np.histogram(values.astype(np.float64), bins, limits)[0]
            for sort, values in pairs.items()
        },
        means={sort: float(values.mean(dtype=np.float64)) for sort, values in pairs.items()},
        stds={sort: float(values.std(dtype=np.float64)) for sort, values in pairs.items()},
        satisfied={
            sort: float(np.mean(values <= 0 if sort == "across" else values > 0))
            for sort, values in pairs.items()
        },
    )


def mixed_share(features: NDArray[np.floating], y: Floats) -> float:
    """Return the share of pairs across the two classes `y (n,)` whose product is at most 0, of
    `features (n, D)`.
    """
    first, second = (features[y == label] for label in np.unique(y))
    rows = 1000
    parts = [first[k : k + rows] @ second.T <= 0 for k in range(0, len(first), rows)]
    return float(sum(np.count_nonzero(part) for part in parts) / (len(first) * len(second)))


def _within(features: NDArray[np.floating]) -> NDArray[np.floating]:
    """Return the products of all pairs `i < j` of one class."""
    products = features @ features.T
    return np.asarray(products[np.triu(np.ones(products.shape, dtype=bool), 1)])

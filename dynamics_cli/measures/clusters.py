"""Groups of neurons that point the same way, and the kinks that a 1-D network really has."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components

from dynamics_cli.measures.arrays import Bools, Floats, Ints, as_floats
from dynamics_cli.measures.neurons import directions, kinks, norms


@dataclass(frozen=True)
class Clusters:
    """Groups of neurons by direction, the heaviest first."""

    labels: Ints
    """(m,) the group of each neuron, -1 for a neuron of negligible norm."""
    directions: Floats
    """(c, d) unit vectors: the norm-weighted mean of each group."""
    masses: Floats
    """(c,) sum of the squared norms of each group."""
    sizes: Ints
    """(c,) number of neurons of each group."""

    @property
    def count(self) -> int:
        """Number of groups."""
        return len(self.masses)


def significant(W: ArrayLike, relative_norm: float = 1e-2) -> Bools:
    """Return which neurons `(..., m)` of `W (..., m, d)` have a norm above `relative_norm` times the largest.

    The largest norm is taken in the same network (of each snapshot).
    """
    lengths = norms(as_floats(W, "W", axes=2, batched=True))
    largest = lengths.max(axis=-1, initial=0.0, keepdims=True)
    result: Bools = (lengths > 0) & (lengths >= relative_norm * largest)
    return result


def cluster_directions(
    W: ArrayLike, *, angle_tolerance: float = 5.0, relative_norm: float = 1e-2, signs: ArrayLike | None = None
) -> Clusters:
    """Group the neurons `W (m, d)`: two are linked when their angle is at most `angle_tolerance` degrees.

    Groups are the connected components of these links, so neither the order of the neurons nor chance plays a part;
    with `signs (m,)` (or output weights) neurons of different sign are never linked. Neurons below `relative_norm`
    times the largest norm are left out. Groups are sorted by mass, ties by their first neuron. Raises ValueError on
    shapes that do not match.
    """
    weights = as_floats(W, "W", axes=2)
    kept = np.flatnonzero(significant(weights, relative_norm))
    w_bar, lengths = directions(weights[kept]), norms(weights[kept])
    linked = _within_angle(w_bar, angle_tolerance)  # (k, k)
    if signs is not None:
        s = np.sign(as_floats(signs, "signs", axes=1))
        if len(s) != len(weights):
            raise ValueError(f"{len(s)} signs for {len(weights)} neurons")
        linked &= s[kept][:, None] == s[kept]
    return _sorted_groups(weights.shape, kept, w_bar, lengths, linked)


def _within_angle(w_bar: Floats, tolerance: float) -> Bools:
    """Return which pairs of unit vectors are at most `tolerance` degrees apart, with room for rounding."""
    result: Bools = w_bar @ w_bar.T >= np.cos(np.radians(tolerance)) - 1e-14
    return result


def _sorted_groups(shape: tuple[int, ...], kept: Ints, w_bar: Floats, lengths: Floats, linked: Bools) -> Clusters:
    """Return the connected components of `linked` as Clusters of a `(m, d)` layer."""
    m, d = shape
    count, component = connected_components(csr_array(linked), directed=False) if len(kept) else (0, np.empty(0, int))
    masses = np.array([np.sum(lengths[component == c] ** 2) for c in range(count)])
    first = np.array([np.flatnonzero(component == c)[0] for c in range(count)])
    order = np.lexsort((first, -masses)) if count else np.empty(0, dtype=np.int64)
    labels = np.full(m, -1, dtype=np.int64)
    heads, sizes = np.empty((count, d)), np.empty(count, dtype=np.int64)
    for new, old in enumerate(order):
        members = component == old
        labels[kept[members]] = new
        relative = lengths[members] / lengths[members].max()
        heads[new] = relative @ w_bar[members]
        sizes[new] = np.count_nonzero(members)
    return Clusters(labels=labels, directions=directions(heads), masses=masses[order].astype(np.float64), sizes=sizes)


def distinct_kinks(
    W: ArrayLike,
    *,
    tolerance: float = 1e-2,
    relative_norm: float = 1e-2,
    within: tuple[float, float] | None = None,
) -> Floats:
    """Return the distinct kinks, ascending, of neurons `W (m, 2)` = (weight, bias) of non-negligible norm.

    Kinks less than `tolerance` (in units of the input) apart, or chained so, count once and are averaged with the
    slopes of their neurons as weights. `within` keeps the kinks of an interval, e.g. the range of the data. Raises
    ValueError when W is not `(m, 2)`.
    """
    weights = as_floats(W, "W", axes=2)
    weights = weights[significant(weights, relative_norm)]
    places = kinks(weights)
    low, high = within if within is not None else (-np.inf, np.inf)
    keep = np.isfinite(places) & (places >= low) & (places <= high)
    order = np.argsort(places[keep], kind="stable")
    places, slopes = places[keep][order], np.abs(weights[keep, 0])[order]
    if places.size == 0:
        return places
    group = np.concatenate([[0], np.cumsum(np.diff(places) > tolerance)])
    shares = slopes / slopes.max()
    merged: Floats = np.bincount(group, weights=shares * places) / np.bincount(group, weights=shares)
    return merged

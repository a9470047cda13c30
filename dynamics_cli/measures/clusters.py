"""Groups of neurons that point the same way."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components

from dynamics_cli.measures.arrays import Bools, Floats, Ints, as_floats
from dynamics_cli.measures.neurons import directions, norms


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
    """Return which neurons `(..., m)` of `W (..., m, d)` are large.

    Their norm is above `relative_norm` times the largest.

    The largest norm is taken in the same network (of each snapshot).
    """
    lengths = norms(as_floats(W, "W", axes=2, batched=True))
    largest = lengths.max(axis=-1, initial=0.0, keepdims=True)
    result: Bools = (lengths > 0) & (lengths >= relative_norm * largest)
    return result


def cluster_directions(
    W: ArrayLike,
    *,
    angle_tolerance: float = 5.0,
    relative_norm: float = 1e-2,
    signs: ArrayLike | None = None,
) -> Clusters:
    """Group the neurons `W (m, d)` by direction.

    Two are linked when their angle is at most `angle_tolerance` degrees.

    Groups are the connected components of these links, so neither the order of the neurons nor
    chance plays a part; with `signs (m,)` (or output weights) neurons of different sign are never
    linked. Neurons below `relative_norm` times the largest norm are left out. Groups are sorted by
    mass, ties by their first neuron. Raises ValueError on shapes that do not match.
    """
    weights = as_floats(W, "W", axes=2)
    kept = np.flatnonzero(significant(weights, relative_norm))
    w_bar = directions(weights[kept])
    lengths = norms(weights[kept])
    linked = w_bar @ w_bar.T >= np.cos(np.radians(angle_tolerance)) - 1e-14  # (k, k)
    if signs is not None:
        s = np.sign(as_floats(signs, "signs", axes=1))
        if len(s) != len(weights):
            raise ValueError(f"{len(s)} signs for {len(weights)} neurons")
        linked &= s[kept][:, None] == s[kept]
    component = connected_components(csr_array(linked), directed=False)[1] if len(kept) else kept
    groups = [np.flatnonzero(component == c) for c in range(component.max(initial=-1) + 1)]
    groups.sort(key=lambda members: (-np.sum(lengths[members] ** 2), members[0]))
    labels = np.full(len(weights), -1)
    heads = np.empty((len(groups), weights.shape[1]))
    for c, members in enumerate(groups):
        labels[kept[members]] = c
        heads[c] = lengths[members] / lengths[members].max() @ w_bar[members]
    masses = [np.sum(lengths[members] ** 2) for members in groups]
    sizes = [len(members) for members in groups]
    return Clusters(
        labels, directions(heads), np.array(masses, np.float64), np.array(sizes, np.int64)
    )

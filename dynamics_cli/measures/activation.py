"""Which neurons are active on which data points."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from dynamics_cli.measures.arrays import Bools, Floats, Ints, as_floats
from dynamics_cli.measures.clusters import significant
from dynamics_cli.measures.two_layer import preactivations


def activation_patterns(x: ArrayLike, W: ArrayLike) -> Bools:
    """Return `<w_j, x_k> > 0` `(..., n, m)` for inputs `x (n, d)` and neurons `W (..., m, d)`.

    Column j is `A(w_j)` of Boursier et al. 2022, Section 2.2.
    """
    result: Bools = preactivations(x, W) > 0
    return result


def count_patterns(x: ArrayLike, W: ArrayLike, *, relative_norm: float = 0.0) -> int:
    """Return the number of distinct activation patterns on `x (n, d)` among the neurons of `W (m, d)`.

    Neurons of norm 0, or below `relative_norm` times the largest, do not count.
    """
    weights = as_floats(W, "W", axes=2)
    patterns = activation_patterns(x, weights[significant(weights, relative_norm)])
    return len(np.unique(patterns, axis=1).T) if patterns.size else 0


def active_counts(x: ArrayLike, W: ArrayLike) -> Ints:
    """Return on how many points of `x (n, d)` each neuron of `W (..., m, d)` is active, `(..., m)`; 0 is a dead one."""
    result: Ints = np.sum(activation_patterns(x, W), axis=-2, dtype=np.int64)
    return result


def changed_patterns(x: ArrayLike, W: ArrayLike, W_0: ArrayLike) -> Floats:
    """Return which fraction `(...)` of (point, neuron) pairs is active in one of `W (..., m, d)` and `W_0` only."""
    changed = activation_patterns(x, W) != activation_patterns(x, W_0)
    return np.asarray(np.mean(changed, axis=(-2, -1)))

"""Which neurons are active on which data points."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from dynamics_cli.measures.arrays import Bools, Floats
from dynamics_cli.measures.two_layer import preactivations


def activation_patterns(x: ArrayLike, W: ArrayLike) -> Bools:
    """Return `<w_j, x_k> > 0` `(..., n, m)` for inputs `x (n, d)` and neurons `W (..., m, d)`.

    Column j is `A(w_j)` of Boursier et al. 2022, Section 2.2.
    """
    result: Bools = preactivations(x, W) > 0
    return result


def changed_patterns(x: ArrayLike, W: ArrayLike, W_0: ArrayLike) -> Floats:
    """Return which fraction `(...)` of (point, neuron) pairs is active in one of `W (..., m, d)` and `W_0` only."""
    changed = activation_patterns(x, W) != activation_patterns(x, W_0)
    return np.asarray(np.mean(changed, axis=(-2, -1)))

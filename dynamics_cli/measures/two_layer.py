"""The two-layer network `h(x) = sum_j a_j sigma(<w_j, x>)` in float64.

Activations are told by their slope for negative arguments: 0 is ReLU, 1 is linear, anything between
is leaky ReLU. The derivative at 0 is that slope, so it is 0 for ReLU (Boursier et al. 2022,
Appendix D).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from dynamics_cli.measures.arrays import Bools, Floats, as_floats, as_network


def activate(z: ArrayLike, slope: float = 0.0) -> Floats:
    """Return `sigma(z) = max(z, slope z)` elementwise for a slope in [0, 1]."""
    values = as_floats(z, "z", axes=0, batched=True)
    return np.where(values > 0, values, slope * values)


def activation_derivative(z: ArrayLike, slope: float = 0.0) -> Floats:
    """Return `sigma'(z)`: 1 where z > 0 and `slope` elsewhere (at 0 too)."""
    return np.where(as_floats(z, "z", axes=0, batched=True) > 0, 1.0, slope)


def activation_patterns(x: ArrayLike, W: ArrayLike) -> Bools:
    """Return `<w_j, x_k> > 0` `(..., n, m)` for inputs `x (n, d)` and neurons `W (..., m, d)`.

    Column j is `A(w_j)` of Boursier et al. 2022, Section 2.2.
    """
    result: Bools = preactivations(x, W) > 0
    return result


def preactivations(x: ArrayLike, W: ArrayLike) -> Floats:
    """Return `<w_j, x_k>` `(..., n, m)` for inputs `x (n, d)` and neurons `W (..., m, d)`.

    Raises ValueError when the dimensions differ (a bias column that was forgotten).
    """
    points = as_floats(x, "x", axes=2)
    weights = as_floats(W, "W", axes=2, batched=True)
    if points.shape[1] != weights.shape[-1]:
        raise ValueError(f"x has dimension {points.shape[1]} but the neurons {weights.shape[-1]}")
    result: Floats = points @ np.swapaxes(weights, -1, -2)
    return result


def outputs(x: ArrayLike, W: ArrayLike, a: ArrayLike, slope: float = 0.0) -> Floats:
    """Return `h(x)` `(..., n)` for inputs `x (n, d)` and weights `W (..., m, d)`, `a (..., m)`."""
    hidden, output = as_network(W, a, batched=True)
    result: Floats = (activate(preactivations(x, hidden), slope) @ output[..., None])[..., 0]
    return result

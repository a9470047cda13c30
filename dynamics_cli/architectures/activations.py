"""The activations of the papers, all of the form `sigma(z) = max(z, 0) + alpha min(z, 0)`."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dynamics_cli.config.architecture import Activation

Floats = NDArray[np.float64]


def negative_slope(activation: Activation, slope: float | None) -> float:
    """Return `alpha`: 0 for relu, the slope for leaky_relu, 1 for linear."""
    return {"relu": 0.0, "linear": 1.0, "leaky_relu": slope or 0.0}[activation]


def activate(z: Floats, alpha: float) -> Floats:
    """Return `sigma(z)`, of the shape of `z`."""
    if alpha == 1.0:
        return z
    positive: Floats = np.maximum(z, 0.0)
    return positive if alpha == 0.0 else positive + alpha * np.minimum(z, 0.0)

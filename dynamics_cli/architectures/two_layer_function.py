"""Evaluation of a two-layer network in float64 NumPy, light enough for plotting without torch."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
from numpy.typing import NDArray

from dynamics_cli.architectures.activations import activate, negative_slope
from dynamics_cli.config.architecture import TwoLayerArchitecture

Floats = NDArray[np.float64]


def shapes(config: TwoLayerArchitecture, d: int) -> dict[str, tuple[int, ...]]:
    """Return the shapes of the parameters for inputs of `d` columns."""
    return {"hidden_weight": (config.width, d), "output_weight": (config.width,)}


def function(
    config: TwoLayerArchitecture, parameters: Mapping[str, NDArray[np.floating]]
) -> Callable[[Floats], Floats]:
    """Return `x (n, d) -> h(x) (n,)` for weights `hidden_weight` (m, d) and `output_weight` (m,)."""
    W = np.asarray(parameters["hidden_weight"], dtype=np.float64)
    a = np.asarray(parameters["output_weight"], dtype=np.float64)
    alpha = negative_slope(config.activation, config.slope)

    def h(x: Floats) -> Floats:
        outputs: Floats = activate(np.asarray(x, dtype=np.float64) @ W.T, alpha) @ a  # (n, m) @ (m,)
        return outputs

    return h

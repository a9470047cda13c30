"""The residual network of Phuong and Lampert 2021, Section 5.2."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from dynamics_cli.config.architecture import ResidualArchitecture

Floats = NDArray[np.float64]


class Residual(nn.Module):
    """`f_1 = W_1 x`, `f_l = f_(l-1) + W_l relu(f_(l-1))`, `h = W_L relu(f_(L-1))`; parameters `weight_1`, ..."""

    def __init__(self, config: ResidualArchitecture, d: int) -> None:
        super().__init__()
        self.depth = config.depth
        for layer in range(1, config.depth + 1):
            shape = (1 if layer == config.depth else config.width, d if layer == 1 else config.width)
            self.register_parameter(f"weight_{layer}", nn.Parameter(torch.zeros(shape)))

    def forward(self, x: Tensor) -> Tensor:
        """Return the outputs (n,) for inputs (n, d)."""
        f = x @ self.get_parameter("weight_1").T  # (n, p)
        for layer in range(2, self.depth):
            f = f + torch.relu(f) @ self.get_parameter(f"weight_{layer}").T
        return (torch.relu(f) @ self.get_parameter(f"weight_{self.depth}").T).squeeze(-1)


def build(config: ResidualArchitecture, d: int) -> Residual:
    """Return the network, all weights 0, for inputs of `d` columns."""
    return Residual(config, d)


def function(
    config: ResidualArchitecture, parameters: Mapping[str, NDArray[np.floating]]
) -> Callable[[Floats], Floats]:
    """Return `x (n, d) -> h(x) (n,)` in float64."""
    W = [np.asarray(parameters[f"weight_{layer}"], np.float64) for layer in range(1, config.depth + 1)]

    def h(x: Floats) -> Floats:
        f = np.asarray(x, np.float64) @ W[0].T
        for weight in W[1:-1]:
            f = f + np.maximum(f, 0.0) @ weight.T
        outputs: Floats = (np.maximum(f, 0.0) @ W[-1].T)[:, 0]
        return outputs

    return h

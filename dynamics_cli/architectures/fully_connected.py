"""A deep fully connected network."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from dynamics_cli.architectures.activations import negative_slope
from dynamics_cli.config.architecture import FullyConnectedArchitecture

Floats = NDArray[np.float64]


class FullyConnected(nn.Module):
    """`h(x) = W_L sigma(... sigma(W_1 x + b_1) ...) + b_L`; parameters are named `weight_1`, `bias_1`, ..."""

    def __init__(self, config: FullyConnectedArchitecture, d: int) -> None:
        super().__init__()
        self.alpha = negative_slope(config.activation, config.slope)
        self.outputs = config.outputs
        sizes = [d, *config.widths, config.outputs]
        self.depth = len(sizes) - 1
        for layer in range(1, self.depth + 1):
            rows, columns = sizes[layer], sizes[layer - 1]
            self.register_parameter(f"weight_{layer}", nn.Parameter(torch.zeros(rows, columns)))
            if config.bias:
                self.register_parameter(f"bias_{layer}", nn.Parameter(torch.zeros(rows)))

    def forward(self, x: Tensor) -> Tensor:
        """Return the outputs for inputs (n, d): (n,) for one output, (n, C) for several."""
        for layer in range(1, self.depth + 1):
            bias = getattr(self, f"bias_{layer}", None)
            x = nn.functional.linear(x, getattr(self, f"weight_{layer}"), bias)
            if layer < self.depth and self.alpha != 1.0:
                x = nn.functional.leaky_relu(x, self.alpha) if self.alpha else torch.relu(x)
        return x.squeeze(-1) if self.outputs == 1 else x


def build(config: FullyConnectedArchitecture, d: int) -> FullyConnected:
    """Return the network, all weights 0, for inputs of `d` columns."""
    return FullyConnected(config, d)


def function(
    config: FullyConnectedArchitecture, parameters: Mapping[str, NDArray[np.floating]]
) -> Callable[[Floats], Floats]:
    """Return `x (n, d) -> h(x)` in float64, (n,) or (n, C)."""
    model = build(config, parameters["weight_1"].shape[1]).double()
    model.load_state_dict(
        {name: torch.from_numpy(np.array(value, dtype=np.float64)) for name, value in parameters.items()}
    )

    def h(x: Floats) -> Floats:
        with torch.no_grad():
            outputs: Floats = model(torch.from_numpy(np.asarray(x, dtype=np.float64))).numpy()
        return outputs

    return h

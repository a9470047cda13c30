"""The two-layer network `h(x) = sum_j a_j sigma(<w_j, x>)` (Boursier et al. 2022, Eq. 1)."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from dynamics_cli.config.architecture import TwoLayerArchitecture


class TwoLayer(nn.Module):
    """Two-layer network; a bias is a constant 1 appended to the input, its weight the last column of `hidden_weight`.

    Both weights may carry leading replica axes: `hidden_weight` (..., m, d) and `output_weight` (..., m).
    """

    def __init__(self, config: TwoLayerArchitecture, d: int) -> None:
        super().__init__()
        self.config = config
        self.hidden_weight = nn.Parameter(torch.zeros(config.width, d))  # (m, d)
        self.output_weight = nn.Parameter(torch.zeros(config.width), requires_grad=config.train_output)  # (m,)

    def forward(self, x: Tensor) -> Tensor:
        """Return the outputs (..., n) for inputs (n, d)."""
        z = x @ self.hidden_weight.mT  # (..., n, m)
        if self.config.activation == "relu":
            z = torch.relu(z)
        elif self.config.activation == "leaky_relu":
            z = nn.functional.leaky_relu(z, self.config.slope or 0.0)
        return (z @ self.output_weight.unsqueeze(-1)).squeeze(-1)


def build(config: TwoLayerArchitecture, d: int) -> TwoLayer:
    """Return the network, all weights 0, for inputs of `d` columns (the bias column included)."""
    return TwoLayer(config, d)

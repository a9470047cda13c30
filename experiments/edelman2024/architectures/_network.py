"""The network of `minimal_induction` as a torch module (torch is imported only where it is
built).
"""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from dynamics_cli.kinds import Shapes


class MinimalInductionNetwork(nn.Module):
    """The outputs of two layers of attention at every token; see `MinimalInduction`."""

    def __init__(self, shapes: Shapes, *, mask: bool) -> None:
        super().__init__()
        self.weight_lag = nn.Parameter(torch.zeros(shapes["weight_lag"]))
        self.weight_match = nn.Parameter(torch.zeros(shapes["weight_match"]))
        (self.tokens,) = shapes["weight_lag"]
        self.mask = mask

    def forward(self, x: Tensor) -> Tensor:
        """Return the outputs (n, T, k) for samples (n, T k)."""
        T = self.tokens
        x = x.reshape(len(x), T, -1)  # (n, T, k)
        position = torch.arange(T, device=x.device)
        lag = position[:, None] - position  # (T, T)
        scores = self.weight_lag[lag.clamp(min=0)]
        if self.mask:
            scores = scores.masked_fill(lag < 0, -math.inf)
        average = scores.softmax(-1) @ x  # (n, T, k)

        # sum_{s <= t} average_s x_s^T, which is smaller than the attention (n, T, T)
        pairs = (average.unsqueeze(-1) * x.unsqueeze(-2)).cumsum(1)  # (n, T, k, k)
        query = x @ self.weight_match
        return (query.unsqueeze(-2) @ pairs).squeeze(-2)

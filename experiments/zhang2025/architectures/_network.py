"""The network of `linear_attention` as a torch module (torch is imported only where it is
built).
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from dynamics_cli.kinds import Shapes


class LinearAttentionNetwork(nn.Module):
    """The output of linear attention for the last token; see `LinearAttention`."""

    def __init__(self, shapes: Shapes) -> None:
        super().__init__()
        self.D = shapes["weight_value_input"][1]
        for name, shape in shapes.items():
            self.register_parameter(name, nn.Parameter(torch.zeros(shape)))

    def forward(self, x: Tensor) -> Tensor:
        """Return the outputs (n,) for samples (n, (D + 1)^2 + D)."""
        weights = dict(self.named_parameters())
        D = self.D
        if "weight_query" in weights:
            keys = torch.cat(
                [weights["weight_key"], weights["weight_key_label"].unsqueeze(-1)], -1
            )  # (H, R, D + 1)
            U = keys.mT @ weights["weight_query"]  # (H, D + 1, D)
        else:
            U = torch.cat(
                [weights["weight_key_query"], weights["weight_key_query_label"].unsqueeze(-2)], -2
            )
        V = torch.cat([weights["weight_value_input"], weights["weight_value"]], -1)  # (H, D + 1)
        heads = torch.einsum("ha,hbq->qab", V, U).flatten(1)  # (D, (D + 1)^2)
        # (n, (D + 1)^2), (n, D)
        S = x[:, :-D]
        x_q = x[:, -D:]
        return (S * (x_q @ heads)).sum(-1)

"""The two networks of `gan` as a torch module (torch is imported only where it is built)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise

import torch
from torch import Tensor, nn


class GanNetwork(nn.Module):
    """Both networks; their parameters are `generator_weight_<layer>`,
    `discriminator_bias_<layer>` and so on.
    """

    def __init__(self, sizes: Mapping[str, Sequence[int]]) -> None:
        """Take the numbers of inputs, of neurons of each hidden layer, and of outputs of every
        player.
        """
        super().__init__()
        self.depths = {player: len(widths) - 1 for player, widths in sizes.items()}
        for player, widths in sizes.items():
            for layer, (columns, rows) in enumerate(pairwise(widths), 1):
                weight, bias = (f"{player}_{kind}_{layer}" for kind in ("weight", "bias"))
                self.register_parameter(weight, nn.Parameter(torch.zeros(rows, columns)))
                self.register_parameter(bias, nn.Parameter(torch.zeros(rows)))

    def of(self, player: str) -> list[nn.Parameter]:
        """Return the parameters of the generator or the discriminator."""
        return [value for name, value in self.named_parameters() if name.startswith(player)]

    def _network(self, player: str, x: Tensor) -> Tensor:
        for layer in range(1, self.depths[player] + 1):
            weight, bias = (
                self.get_parameter(f"{player}_{kind}_{layer}") for kind in ("weight", "bias")
            )
            x = nn.functional.linear(x, weight, bias)
            x = torch.relu(x) if layer < self.depths[player] else x
        return x

    def generate(self, z: Tensor) -> Tensor:
        """Return `G(z)`, (n, d), for noise (n, noise_dim)."""
        return self._network("generator", z)

    def forward(self, x: Tensor) -> Tensor:
        """Return the discriminator's logits `D(x)`, (n,), for points (n, d)."""
        return self._network("discriminator", x).squeeze(-1)

"""A generator and a discriminator (Tachet des Combes et al. 2018, Appendix E.1)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from dynamics_cli.config.architecture import GanArchitecture

Floats = NDArray[np.float64]


class Gan(nn.Module):
    """Both networks; their parameters are `generator_weight_<layer>`, `discriminator_bias_<layer>` and so on."""

    def __init__(self, config: GanArchitecture, d: int) -> None:
        super().__init__()
        self.depths = {
            "generator": self._register("generator", [config.noise_dim, *config.generator_widths, d]),
            "discriminator": self._register("discriminator", [d, *config.discriminator_widths, 1]),
        }

    def _register(self, player: str, sizes: Sequence[int]) -> int:
        for layer, (columns, rows) in enumerate(pairwise(sizes), 1):
            self.register_parameter(f"{player}_weight_{layer}", nn.Parameter(torch.zeros(rows, columns)))
            self.register_parameter(f"{player}_bias_{layer}", nn.Parameter(torch.zeros(rows)))
        return len(sizes) - 1

    def of(self, player: str) -> list[nn.Parameter]:
        """Return the parameters of the generator or the discriminator."""
        return [value for name, value in self.named_parameters() if name.startswith(player)]

    def _network(self, player: str, x: Tensor) -> Tensor:
        for layer in range(1, self.depths[player] + 1):
            weight, bias = (self.get_parameter(f"{player}_{kind}_{layer}") for kind in ("weight", "bias"))
            x = nn.functional.linear(x, weight, bias)
            x = torch.relu(x) if layer < self.depths[player] else x
        return x

    def generate(self, z: Tensor) -> Tensor:
        """Return `G(z)`, (n, d), for noise (n, noise_dim)."""
        return self._network("generator", z)

    def forward(self, x: Tensor) -> Tensor:
        """Return the discriminator's logits `D(x)`, (n,), for points (n, d)."""
        return self._network("discriminator", x).squeeze(-1)


def build(config: GanArchitecture, d: int) -> Gan:
    """Return both networks, all weights 0, for points of `d` coordinates."""
    return Gan(config, d)


def function(config: GanArchitecture, parameters: Mapping[str, NDArray[np.floating]]) -> Callable[[Floats], Floats]:
    """Return the discriminator `x (n, d) -> D(x)`, (n,), in float64."""
    model = _model(config, parameters)

    def h(x: Floats) -> Floats:
        with torch.no_grad():
            logits: Floats = model(torch.from_numpy(np.asarray(x, dtype=np.float64))).numpy()
        return logits

    return h


def generate(config: GanArchitecture, parameters: Mapping[str, NDArray[np.floating]], z: Floats) -> Floats:
    """Return the generator's samples (n, d) for noise `z` (n, noise_dim), in float64."""
    with torch.no_grad():
        samples: Floats = _model(config, parameters).generate(torch.from_numpy(np.asarray(z, np.float64))).numpy()
    return samples


def _model(config: GanArchitecture, parameters: Mapping[str, NDArray[np.floating]]) -> Gan:
    """Return the networks; of one whose weights are not given, all weights are 0."""
    last = max(int(name.rsplit("_", 1)[1]) for name in parameters if name.startswith("generator_weight"))
    model = build(config, parameters[f"generator_weight_{last}"].shape[0]).double()
    tensors = {name: torch.from_numpy(np.array(value, dtype=np.float64)) for name, value in parameters.items()}
    model.load_state_dict(tensors, strict=False)
    return model

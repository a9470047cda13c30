"""Networks in the papers' notation; a new one is a schema class, a module with `build` and `function`, a line here."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
    from torch import nn

MODELS = {
    "two_layer": "dynamics_cli.models.two_layer",
    "fully_connected": "dynamics_cli.models.fully_connected",
    "residual": "dynamics_cli.models.residual",
    "convolutional": "dynamics_cli.models.convolutional",
    "vgg16": "dynamics_cli.models.vgg16",
    "gan": "dynamics_cli.models.gan",
}
"""kind -> module with `build(config, d)` (an `nn.Module`) and `function(config, parameters)` (float64 evaluation)."""

TORCH_FREE = {"two_layer": "dynamics_cli.models.two_layer_function"}
"""kind -> module with `shapes` and `function` that needs no torch: importing torch takes longer than many a run."""


def parameter_shapes(config: Any, d: int) -> dict[str, tuple[int, ...]]:
    """Return name -> shape of every parameter of a network for inputs of `d` columns; nothing is allocated."""
    if config.kind in TORCH_FREE:
        shapes: dict[str, tuple[int, ...]] = import_module(TORCH_FREE[config.kind]).shapes(config, d)
        return shapes
    import torch

    with torch.device("meta"):
        model = build_model(config, d)
    return {name: tuple(parameter.shape) for name, parameter in model.named_parameters()}


def build_model(config: Any, d: int) -> nn.Module:
    """Return the network of a config section for inputs of `d` columns, all weights 0."""
    model: nn.Module = import_module(MODELS[config.kind]).build(config, d)
    return model


def network_function(
    config: Any, parameters: Mapping[str, NDArray[np.floating]]
) -> Callable[[NDArray[np.float64]], NDArray[np.float64]]:
    """Return `x (n, d) -> h(x)` in float64 for the given parameters; `d` includes the bias column."""
    module = import_module(TORCH_FREE.get(config.kind, MODELS[config.kind]))
    network: Callable[[NDArray[np.float64]], NDArray[np.float64]] = module.function(config, parameters)
    return network


__all__ = ["MODELS", "build_model", "network_function", "parameter_shapes"]

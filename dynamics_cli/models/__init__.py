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
}
"""kind -> module with `build(config, d)` (an `nn.Module`) and `function(config, parameters)` (float64 evaluation)."""

TORCH_FREE = {"two_layer": ("dynamics_cli.models.two_layer_function", "two_layer_function")}
"""kind -> evaluation that needs no torch, so that plots of finished runs start fast."""


def build_model(config: Any, d: int) -> nn.Module:
    """Return the network of a config section for inputs of `d` columns, all weights 0."""
    model: nn.Module = import_module(MODELS[config.kind]).build(config, d)
    return model


def network_function(
    config: Any, parameters: Mapping[str, NDArray[np.floating]]
) -> Callable[[NDArray[np.float64]], NDArray[np.float64]]:
    """Return `x (n, d) -> h(x)` in float64 for the given parameters; `d` includes the bias column."""
    module, name = TORCH_FREE.get(config.kind, (MODELS[config.kind], "function"))
    network: Callable[[NDArray[np.float64]], NDArray[np.float64]] = getattr(import_module(module), name)(
        config, parameters
    )
    return network


__all__ = ["MODELS", "build_model", "network_function"]

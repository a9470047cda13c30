"""Networks in the papers' notation; a new one is a schema class, a module with `build` and `function`, a line here."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from dynamics_cli.architectures.blocks import block_samples
from dynamics_cli.errors import InputError

if TYPE_CHECKING:
    from torch import nn

MODELS = {
    "two_layer": "dynamics_cli.architectures.two_layer",
    "fully_connected": "dynamics_cli.architectures.fully_connected",
    "residual": "dynamics_cli.architectures.residual",
    "convolutional": "dynamics_cli.architectures.convolutional",
    "vgg16": "dynamics_cli.architectures.vgg16",
    "gan": "dynamics_cli.architectures.gan",
}
"""kind -> module with `build(config, d)` (an `nn.Module`) and `function(config, parameters)` (float64 evaluation)."""

TORCH_FREE = {"two_layer": "dynamics_cli.architectures.two_layer_function"}
"""kind -> module with `shapes` and `function` that needs no torch: importing torch takes longer than many a run."""


SHARING = ("convolutional", "vgg16")
"""Kinds that use a weight at many places of an image; their modules have `multiply_adds` and `layer_sizes`."""


def parameter_shapes(config: Any, d: int) -> dict[str, tuple[int, ...]]:
    """Return name -> shape of every parameter of a network for inputs of `d` columns; nothing is allocated.

    Raises:
        InputError: the network does not suit the inputs, or has more weights than can be counted.

    """
    if config.kind in TORCH_FREE:
        shapes: dict[str, tuple[int, ...]] = import_module(TORCH_FREE[config.kind]).shapes(config, d)
        return shapes
    import torch

    try:
        with torch.device("meta"):
            model = build_model(config, d)
    except (RuntimeError, OverflowError, TypeError) as error:  # torch counts in 64 bits
        raise InputError(f"architecture: the network is too large ({str(error).splitlines()[0]})") from error
    return {name: tuple(parameter.shape) for name, parameter in model.named_parameters()}


def multiply_adds(config: Any, shapes: Mapping[str, tuple[int, ...]], d: int) -> int:
    """Return the multiply-adds that a network with these parameters takes for one input of `d` columns."""
    if config.kind in SHARING:
        return int(import_module(MODELS[config.kind]).multiply_adds(config, d))
    return sum(math.prod(shape) for shape in shapes.values())


def build_model(config: Any, d: int) -> nn.Module:
    """Return the network of a config section for inputs of `d` columns, all weights 0."""
    model: nn.Module = import_module(MODELS[config.kind]).build(config, d)
    return model


def network_function(
    config: Any, parameters: Mapping[str, NDArray[np.floating]]
) -> Callable[[NDArray[np.float64]], NDArray[np.float64]]:
    """Return `x (n, d) -> h(x)` in float64 for the given parameters; `d` includes the bias column."""
    module = import_module(TORCH_FREE.get(config.kind, MODELS[config.kind]))
    at_once: Callable[[NDArray[np.float64]], NDArray[np.float64]] = module.function(config, parameters)
    shapes = {name: value.shape for name, value in parameters.items()}

    def h(x: NDArray[np.float64]) -> NDArray[np.float64]:
        x = np.asarray(x)
        d = x.shape[1]
        block = block_samples(multiply_adds(config, shapes, d), sum(layer_sizes(config, shapes, d)))
        if len(x) <= block:
            return at_once(x)
        return np.concatenate([at_once(x[first : first + block]) for first in range(0, len(x), block)])

    return h


def layer_sizes(config: Any, shapes: Mapping[str, tuple[int, ...]], d: int) -> list[int]:
    """Return how many numbers every layer of a network with these parameters gives for one input of `d` columns."""
    if config.kind in SHARING:
        sizes: list[int] = import_module(MODELS[config.kind]).layer_sizes(config, d)
        return sizes
    return [shape[0] for shape in shapes.values() if len(shape) > 1]


__all__ = ["MODELS", "build_model", "layer_sizes", "multiply_adds", "network_function", "parameter_shapes"]

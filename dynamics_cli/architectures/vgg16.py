"""A network like VGG16 (Simonyan and Zisserman 2014), of any width and for images of any size."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from dynamics_cli.config.architecture import Vgg16Architecture
from dynamics_cli.errors import InputError

Floats = NDArray[np.float64]

BLOCKS = ((64, 2), (128, 2), (256, 3), (512, 3), (512, 3))
"""Kernels and convolutions of each block."""
HIDDEN = (4096, 4096)


class Vgg16(nn.Module):
    """Thirteen convolutions and three fully connected layers, with `weight_1`, `bias_1` to `weight_16`, `bias_16`."""

    def __init__(self, config: Vgg16Architecture) -> None:
        super().__init__()
        self.image, self.outputs = tuple(config.image), config.outputs
        self.pools: dict[int, int] = {}  # number of a convolution -> size of the pooling after it
        self.pixels: dict[int, int] = {}  # number of a convolution -> pixels of its output
        channels, rows, columns = config.image
        layer = 0
        for kernels, convolutions in BLOCKS:
            width = _times(config.width_multiplier, kernels)
            for _ in range(convolutions):
                layer += 1
                self._register(layer, (width, channels, 3, 3))
                self.pixels[layer] = rows * columns
                channels = width
            if min(rows, columns) >= 2:
                self.pools[layer] = 2
                rows, columns = rows // 2, columns // 2
        self.convolutions = layer
        inputs = channels * rows * columns
        for width in (*(_times(config.width_multiplier, hidden) for hidden in HIDDEN), config.outputs):
            layer += 1
            self._register(layer, (width, inputs))
            inputs = width
        self.depth = layer

    def _register(self, layer: int, shape: tuple[int, ...]) -> None:
        self.register_parameter(f"weight_{layer}", nn.Parameter(torch.zeros(shape)))
        self.register_parameter(f"bias_{layer}", nn.Parameter(torch.zeros(shape[0])))

    def forward(self, x: Tensor) -> Tensor:
        """Return the outputs for flat images (n, pixels): (n,) for one output, (n, C) for several."""
        x = x.view(len(x), *self.image).contiguous(memory_format=torch.channels_last)
        for layer in range(1, self.depth + 1):
            weight, bias = (self.get_parameter(f"{kind}_{layer}") for kind in ("weight", "bias"))
            if layer <= self.convolutions:
                kernels = weight.contiguous(memory_format=torch.channels_last)
                x = torch.relu(nn.functional.conv2d(x, kernels, bias, padding=1))
                x = nn.functional.max_pool2d(x, 2) if layer in self.pools else x
            else:
                x = nn.functional.linear(x.flatten(1), weight, bias)
                x = torch.relu(x) if layer < self.depth else x
        return x.squeeze(-1) if self.outputs == 1 else x


def _times(multiplier: float, width: int) -> int:
    return max(1, round(multiplier * width))


def build(config: Vgg16Architecture, d: int) -> Vgg16:
    """Return the network, all weights 0, for flat images of `d` numbers.

    Raises InputError when the images have another number of pixels.
    """
    if d != math.prod(config.image):
        raise InputError(
            f"architecture.image: {config.image} has {math.prod(config.image)} numbers, the inputs have {d}"
        )
    return Vgg16(config)


def multiply_adds(config: Vgg16Architecture, d: int) -> int:
    """Return the multiply-adds for one image: every weight once for each pixel of its layer's output."""
    return sum(math.prod(weight) * pixels for weight, pixels in _layers(config, d))


def layer_sizes(config: Vgg16Architecture, d: int) -> list[int]:
    """Return how many numbers every layer gives for one image, before the pooling."""
    return [weight[0] * pixels for weight, pixels in _layers(config, d)]


def _layers(config: Vgg16Architecture, d: int) -> list[tuple[tuple[int, ...], int]]:
    """Return the shape of every layer's weight and the pixels of its output."""
    with torch.device("meta"):
        model = build(config, d)
    layers = range(1, model.depth + 1)
    return [(tuple(model.get_parameter(f"weight_{k}").shape), model.pixels.get(k, 1)) for k in layers]


def function(config: Vgg16Architecture, parameters: Mapping[str, NDArray[np.floating]]) -> Callable[[Floats], Floats]:
    """Return `x (n, pixels) -> h(x)`, (n,) or (n, C), evaluated in the precision of the parameters."""
    tensors = {name: torch.from_numpy(np.array(value)) for name, value in parameters.items()}
    dtype = tensors["weight_1"].dtype
    model = build(config, math.prod(config.image)).to(dtype)
    model.load_state_dict(tensors)

    def h(x: Floats) -> Floats:
        with torch.no_grad():
            return model(torch.from_numpy(np.asarray(x)).to(dtype)).double().numpy()  # type: ignore[no-any-return]

    return h

"""A convolutional network with named layers whose outputs can be looked at (Phuong and Lampert 2021, Table 1)."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from dynamics_cli.architectures.blocks import block_samples
from dynamics_cli.config.architecture import ConvolutionalArchitecture
from dynamics_cli.errors import InputError

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Layer:
    """One layer: `conv(n, k, s, p)` or `fc(n, o)`; its parameters are `weight_<number>` and `bias_<number>`."""

    number: int
    """1, 2, ... from the input on."""
    name: str
    """As Table 1 writes it."""
    weight: tuple[int, ...]
    """Shape of the weight."""
    output: tuple[int, ...]
    """Shape of the output of one sample."""
    stride: int = 1
    padding: int = 0

    @property
    def parameters(self) -> int:
        """Number of weights and biases."""
        return math.prod(self.weight) + self.weight[0]


def layers(config: ConvolutionalArchitecture) -> list[Layer]:
    """Return all layers with their shapes.

    Raises InputError for a convolution that leaves no pixel, or with kernels, size or stride 0.
    """
    found: list[Layer] = []
    channels, rows, columns = config.image
    for kernels, size, stride, padding in config.convolutions:
        name = f"conv({kernels},{size},{stride},{padding})"
        if min(kernels, size, stride) < 1 or min(rows, columns) + 2 * padding < size:
            raise InputError(f"architecture.convolutions[{len(found)}]: {name} does not fit {rows} x {columns} pixels")
        weight = (kernels, channels, size, size)
        rows, columns = ((pixels + 2 * padding - size) // stride + 1 for pixels in (rows, columns))
        channels = kernels
        found.append(Layer(len(found) + 1, name, weight, (channels, rows, columns), stride, padding))
    inputs = channels * rows * columns
    for width in (*config.widths, config.outputs):
        found.append(Layer(len(found) + 1, f"fc({inputs},{width})", (width, inputs), (width,)))
        inputs = width
    return found


def layer_sizes(config: ConvolutionalArchitecture, d: int) -> list[int]:
    """Return how many numbers every layer gives for one image."""
    return [math.prod(layer.output) for layer in layers(config)]


class Convolutional(nn.Module):
    """Convolutions, then fully connected layers; ReLU after every layer but the last."""

    def __init__(self, config: ConvolutionalArchitecture) -> None:
        super().__init__()
        self.image, self.outputs = tuple(config.image), config.outputs
        self.layers = layers(config)
        for layer in self.layers:
            self.register_parameter(f"weight_{layer.number}", nn.Parameter(torch.zeros(layer.weight)))
            self.register_parameter(f"bias_{layer.number}", nn.Parameter(torch.zeros(layer.weight[0])))

    def preactivations(self, x: Tensor) -> Iterator[Tensor]:
        """Yield what every layer gives for inputs (n, pixels), before its ReLU: (n, *output).

        Channels come last in memory, which is twice as fast on a CPU.
        """
        x = x.view(len(x), *self.image)
        for layer in self.layers:
            weight, bias = (self.get_parameter(f"{kind}_{layer.number}") for kind in ("weight", "bias"))
            if len(layer.weight) == 4:
                last = torch.channels_last
                x, kernels = x.contiguous(memory_format=last), weight.contiguous(memory_format=last)
                z = nn.functional.conv2d(x, kernels, bias, stride=layer.stride, padding=layer.padding)
            else:
                z = nn.functional.linear(x.flatten(1), weight, bias)
            yield z
            x = torch.relu(z)

    def forward(self, x: Tensor) -> Tensor:
        """Return the outputs for inputs (n, pixels): (n,) for one output, (n, C) for several."""
        *_, z = self.preactivations(x)
        return z.squeeze(-1) if self.outputs == 1 else z


def build(config: ConvolutionalArchitecture, d: int) -> Convolutional:
    """Return the network, all weights 0, for flat images of `d` pixels.

    Raises InputError when the images have another number of pixels, or a convolution does not fit them.
    """
    if d != math.prod(config.image):
        raise InputError(
            f"architecture.image: {config.image} has {math.prod(config.image)} pixels, the inputs have {d}"
        )
    return Convolutional(config)


def multiply_adds(config: ConvolutionalArchitecture, d: int) -> int:
    """Return the multiply-adds for one image: every weight once for each pixel of its layer's output."""
    return sum(math.prod(layer.weight) * math.prod(layer.output[1:]) for layer in layers(config))


def function(
    config: ConvolutionalArchitecture, parameters: Mapping[str, NDArray[np.floating]]
) -> Callable[[Floats], Floats]:
    """Return `x (n, pixels) -> h(x)`, (n,) or (n, C), evaluated in the precision of the parameters."""
    model, dtype = _model(config, parameters)

    def h(x: Floats) -> Floats:
        with torch.no_grad():
            return model(torch.from_numpy(np.asarray(x)).to(dtype)).double().numpy()  # type: ignore[no-any-return]

    return h


def layer_outputs(
    config: ConvolutionalArchitecture, parameters: Mapping[str, NDArray[np.floating]], x: Floats, number: int
) -> NDArray[np.floating]:
    """Return what layer `number` (1, 2, ...) gives for inputs `x` (n, pixels), before its ReLU, flat: (n, features).

    Evaluated in the precision of the parameters, some samples at a time. Raises ValueError when there is no such layer.
    """
    model, dtype = _model(config, parameters)
    if not 1 <= number <= len(model.layers):
        raise ValueError(f"there is no layer {number}; layers are 1 to {len(model.layers)}")
    parts, block = [], block_samples(multiply_adds(config, x.shape[1]), sum(layer_sizes(config, x.shape[1])))
    with torch.no_grad():
        for part in torch.split(torch.from_numpy(np.asarray(x)).to(dtype), block):
            z = next(z for k, z in enumerate(model.preactivations(part), 1) if k == number)
            parts.append(z.flatten(1))
    return torch.cat(parts).numpy()


def _model(
    config: ConvolutionalArchitecture, parameters: Mapping[str, NDArray[np.floating]]
) -> tuple[Convolutional, torch.dtype]:
    tensors = {name: torch.from_numpy(np.array(value)) for name, value in parameters.items()}
    dtype = tensors["weight_1"].dtype
    model = build(config, math.prod(config.image)).to(dtype)
    model.load_state_dict(tensors)
    return model, dtype

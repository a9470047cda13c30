"""Convolutional networks: named layers with visible outputs (Phuong and Lampert 2021, Table 1)."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from dynamics_cli.errors import InputError
from dynamics_cli.kinds import Architecture, Floats, Parameters, PositiveInt, Shapes
from dynamics_cli.memory import block_samples

if TYPE_CHECKING:
    from dynamics_cli.architectures._networks import ConvolutionalNetwork

Convolution = Annotated[
    list[Annotated[int, Field(ge=0, lt=2**63)]], Field(min_length=4, max_length=4)
]


@dataclass(frozen=True)
class ImageLayer:
    """One layer, `conv(n, k, s, p)` or `fc(n, o)`, with `weight_<number>` and `bias_<number>`."""

    number: int
    """1, 2, ... from the input on."""
    name: str
    """As Table 1 writes it."""
    weight: tuple[int, ...]
    """Shape of the weight."""
    output: tuple[int, ...]
    """Shape of the output of a sample, before the pooling."""
    stride: int = 1
    padding: int = 0
    pool: int = 1
    """Size of the max pooling after the ReLU."""

    @property
    def parameters(self) -> int:
        """Number of weights and biases."""
        return math.prod(self.weight) + self.weight[0]


class OfImages(Architecture):
    """The base of networks of images: convolutions, then fully connected layers, ReLUs between."""

    own_precision = True
    image: Annotated[list[PositiveInt], Field(min_length=3, max_length=3)]
    """Channels, rows and columns of an image; inputs are flattened images."""

    @abstractmethod
    def layers(self) -> list[ImageLayer]:
        """Return all layers with their shapes; InputError where a convolution does not fit."""

    def chain(
        self, convolutions: Iterable[Sequence[int]], widths: Iterable[int]
    ) -> list[ImageLayer]:
        """Return layers: convolutions (kernels, size, stride, padding, pool), then widths.

        Images are pooled while there are pixels left to pool.

        Raises InputError for a convolution that leaves no pixel, or with kernels, size or stride 0.
        """
        layers: list[ImageLayer] = []
        channels, rows, columns = self.image
        for kernels, size, stride, padding, pool in convolutions:
            name = f"conv({kernels},{size},{stride},{padding})"
            if min(kernels, size, stride) < 1 or min(rows, columns) + 2 * padding < size:
                place = f"architecture.convolutions[{len(layers)}]"
                raise InputError(f"{place}: {name} does not fit {rows} x {columns} pixels")
            weight = (kernels, channels, size, size)
            rows, columns = (
                (pixels + 2 * padding - size) // stride + 1 for pixels in (rows, columns)
            )
            pooled = 1
            if min(rows, columns) >= pool:
                pooled = pool
            layers.append(
                ImageLayer(
                    len(layers) + 1, name, weight, (kernels, rows, columns), stride, padding, pooled
                )
            )
            channels = kernels
            rows = rows // pooled
            columns = columns // pooled
        inputs = channels * rows * columns
        for width in widths:
            layers.append(
                ImageLayer(len(layers) + 1, f"fc({inputs},{width})", (width, inputs), (width,))
            )
            inputs = width
        return layers

    def build(self, d: int) -> ConvolutionalNetwork:
        """Return the network for flat images of `d` numbers.

        Raises InputError when the images have another number of pixels, or a convolution does not
        fit them.
        """
        from dynamics_cli.architectures._networks import ConvolutionalNetwork

        if d != math.prod(self.image):
            size = math.prod(self.image)
            raise InputError(
                f"architecture.image: {self.image} has {size} numbers, the inputs have {d}"
            )
        layers = [
            (layer.weight, layer.stride, layer.padding, layer.pool) for layer in self.layers()
        ]
        return ConvolutionalNetwork(self.image, layers)

    def multiply_adds(self, shapes: Shapes, d: int) -> int:
        """Return the multiply-adds for one image: each weight once for each pixel of its output."""
        return sum(math.prod(layer.weight) * math.prod(layer.output[1:]) for layer in self.layers())

    def layer_sizes(self, shapes: Shapes, d: int) -> list[int]:
        """Return how many numbers every layer gives for one image."""
        return [math.prod(layer.output) for layer in self.layers()]

    def layer_outputs(self, parameters: Parameters, x: Floats, number: int) -> NDArray[np.floating]:
        """Return the output (n, features) of layer `number` (1, 2, ...) for `x` (n, pixels).

        It is that before the ReLU.

        Evaluated in the precision of the parameters, some samples at a time. Raises ValueError when
        there is no such layer.
        """
        import torch

        model, dtype = self.loaded(parameters, x.shape[1])
        if not 1 <= number <= len(model.layers):
            raise ValueError(f"there is no layer {number}; layers are 1 to {len(model.layers)}")
        block = block_samples(
            self.multiply_adds({}, x.shape[1]), sum(self.layer_sizes({}, x.shape[1]))
        )
        parts = []
        with torch.no_grad():
            for part in torch.split(torch.tensor(np.asarray(x), dtype=dtype), block):
                z = next(z for k, z in enumerate(model.preactivations(part), 1) if k == number)
                parts.append(z.flatten(1))
        return torch.cat(parts).numpy()


class Convolutional(OfImages, kind="convolutional"):
    """Convolutions, then fully connected layers, with biases, and a ReLU between two layers."""

    example = """\
dataset: {kind: mnist_pair, digits: [1, 0], per_class: 10, test_per_class: 10}
architecture: {kind: convolutional, convolutions: [[4, 5, 2, 0]], widths: [10]}
initialization: {kind: default_scaled}
"""
    stateful = False
    image: Annotated[list[PositiveInt], Field(min_length=3, max_length=3)] = Field(
        default=[1, 28, 28]
    )
    """Channels, rows and columns of an image; inputs are flattened images."""
    convolutions: list[Convolution] = Field(min_length=1)
    """Layers `[kernels, size, stride, padding]`, square, from the input on."""
    widths: list[PositiveInt] = Field(default_factory=list)
    """Widths of the hidden fully connected layers."""
    outputs: PositiveInt = 1
    """Number of outputs: 1 for regression and margin losses, C for cross entropy over C classes."""

    def layers(self) -> list[ImageLayer]:
        """Return all layers with their shapes.

        Raises InputError for a convolution that leaves no pixel, or with kernels, size or stride 0.
        """
        return self.chain(
            [(*convolution, 1) for convolution in self.convolutions], (*self.widths, self.outputs)
        )

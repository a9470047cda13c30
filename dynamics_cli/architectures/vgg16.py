"""A network like VGG16 (Simonyan and Zisserman 2014), of any width and for images of any size."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, ClassVar

from pydantic import Field

from dynamics_cli.config.base import Positive, PositiveInt
from dynamics_cli.config.bases import Architecture, Shapes
from dynamics_cli.errors import InputError

if TYPE_CHECKING:
    from dynamics_cli.architectures._networks import Vgg16Network


class Vgg16(Architecture, kind="vgg16"):
    """A network like VGG16 (Simonyan and Zisserman 2014, configuration D), without regularisation.

    Thirteen 3 x 3 convolutions in five blocks, each followed by 2 x 2 max pooling while there are pixels left to pool,
    then three fully connected layers; ReLU and biases.
    """

    example = """\
dataset: {kind: mnist_pair, digits: [1, 0], per_class: 10, test_per_class: 10}
architecture: {kind: vgg16, image: [1, 28, 28], width_multiplier: 0.05}
initialization: {kind: default_scaled}
"""
    own_precision = True
    BLOCKS: ClassVar = ((64, 2), (128, 2), (256, 3), (512, 3), (512, 3))
    """Kernels and convolutions of each block."""
    HIDDEN: ClassVar = (4096, 4096)
    """Widths of the hidden fully connected layers."""
    image: list[PositiveInt] = Field(default_factory=lambda: [3, 224, 224], min_length=3, max_length=3)
    """Channels, rows and columns of an image; inputs are flat rows of so many numbers."""
    width_multiplier: Positive = 1.0
    """Multiplies the numbers of kernels (64 to 512) and of hidden neurons (4096), rounded, at least 1."""
    outputs: PositiveInt = 1
    """Number of outputs: 1 for regression and margin losses, C for cross entropy over C classes."""

    def times(self, width: int) -> int:
        """Return a width of VGG16 times the multiplier, at least 1."""
        return max(1, round(self.width_multiplier * width))

    def build(self, d: int) -> Vgg16Network:
        """Return the network for flat images of `d` numbers.

        Raises InputError when the images have another number of pixels.
        """
        from dynamics_cli.architectures._networks import Vgg16Network

        if d != math.prod(self.image):
            raise InputError(
                f"architecture.image: {self.image} has {math.prod(self.image)} numbers, the inputs have {d}"
            )
        return Vgg16Network(self)

    def multiply_adds(self, shapes: Shapes, d: int) -> int:
        """Return the multiply-adds for one image: every weight once for each pixel of its layer's output."""
        return sum(math.prod(weight) * pixels for weight, pixels in self._layers(d))

    def layer_sizes(self, shapes: Shapes, d: int) -> list[int]:
        """Return how many numbers every layer gives for one image, before the pooling."""
        return [weight[0] * pixels for weight, pixels in self._layers(d)]

    def _layers(self, d: int) -> list[tuple[tuple[int, ...], int]]:
        """Return the shape of every layer's weight and the pixels of its output."""
        import torch

        with torch.device("meta"):
            model = self.build(d)
        layers = range(1, model.depth + 1)
        return [(tuple(model.get_parameter(f"weight_{k}").shape), model.pixels.get(k, 1)) for k in layers]

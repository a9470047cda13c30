"""VGG16, scaled."""

from __future__ import annotations

from typing import ClassVar

from pydantic import Field

from dynamics_cli.architectures.convolutional import ImageLayer, OfImages
from dynamics_cli.kinds import Positive, PositiveInt


class Vgg16(OfImages, kind="vgg16"):
    """A network like VGG16 (Simonyan and Zisserman 2014, configuration D), without regularisation.

    Thirteen 3 x 3 convolutions in five blocks, each followed by 2 x 2 max pooling while there are
    pixels left to pool, then three fully connected layers; ReLU and biases.
    """

    example = """\
dataset: {kind: mnist_pair, digits: [1, 0], per_class: 10, test_per_class: 10}
architecture: {kind: vgg16, image: [1, 28, 28], width_multiplier: 0.05}
initialization: {kind: default_scaled}
"""
    BLOCKS: ClassVar = ((64, 2), (128, 2), (256, 3), (512, 3), (512, 3))
    """Kernels and convolutions of each block."""
    HIDDEN: ClassVar = (4096, 4096)
    """Widths of the hidden fully connected layers."""
    image: list[PositiveInt] = Field(
        default_factory=lambda: [3, 224, 224], min_length=3, max_length=3
    )
    """Channels, rows and columns of an image; inputs are flat rows of so many numbers."""
    width_multiplier: Positive = 1.0
    """Multiplies the numbers of kernels (64 to 512) and of hidden neurons (4096), rounded, at
    least 1.
    """
    outputs: PositiveInt = 1
    """Number of outputs: 1 for regression and margin losses, C for cross entropy over C classes."""

    def times(self, width: int) -> int:
        """Return a width of VGG16 times the multiplier, at least 1."""
        return max(1, round(self.width_multiplier * width))

    def layers(self) -> list[ImageLayer]:
        """Return all layers with their shapes."""
        convolutions = [
            (self.times(kernels), 3, 1, 1, 2 if last == count else 1)
            for kernels, count in self.BLOCKS
            for last in range(1, count + 1)
        ]
        return self.chain(convolutions, (*map(self.times, self.HIDDEN), self.outputs))

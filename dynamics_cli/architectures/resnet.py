"""Residual networks of images (He et al. 2016), in the form for small images."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import Field

from dynamics_cli.errors import InputError
from dynamics_cli.kinds import Architecture, Finding, PositiveInt, Sections, Shapes

if TYPE_CHECKING:
    from torch import nn


class ResNet(Architecture, kind="resnet"):
    """The residual network for CIFAR-10 (He et al. 2016, Section 4.2), of `depth = 6n + 2` layers.

    A convolution of 3 x 3 pixels, three stages of n blocks with W, 2W and 4W channels on images of
    full, half and a quarter of the size, the mean over pixels, and a linear layer. A block is `x <-
    relu(S x + N conv(relu(N conv(x))))`. Its shortcut S is the identity; where the size halves, it
    takes every second pixel and adds channels of 0 (option A). N is a normalisation.

    The initialization `as_built` draws its weights as its authors' code does: convolutions by He et
    al. 2015 (`fan_out`), gains 1, biases 0.
    """

    example = """\
dataset: {kind: mnist_pair, digits: [1, 0], per_class: 10, test_per_class: 10}
architecture: {kind: resnet, depth: 8, width: 4, image: [1, 28, 28]}
initialization: {kind: as_built}
"""
    image: Annotated[list[PositiveInt], Field(min_length=3, max_length=3)] = Field(
        default=[3, 32, 32]
    )
    """Channels, rows and columns of an image; inputs are flattened images."""
    depth: Annotated[int, Field(ge=8, le=1202)] = 20
    """Number of layers with weights, 6n + 2: 8, 14, 20, 32, 44, 56, ..."""
    width: PositiveInt = 16
    """Channels W of the first stage."""
    norm: Literal["batch", "group", "none"] = "batch"
    """The normalisation after each convolution."""
    groups: PositiveInt = 4
    """Groups of channels of `norm: group` (Wu and He 2018)."""
    outputs: PositiveInt = 1
    """Number of outputs: 1 for regression and margin losses, C for cross entropy over C classes."""

    def check(self, sections: Sections) -> Iterator[Finding]:
        """Yield a depth that is not 6n + 2, and groups that do not divide the channels."""
        yield from super().check(sections)
        if self.depth % 6 != 2:
            below = self.depth - (self.depth - 2) % 6
            yield (
                ("architecture", "depth"),
                f"must be 6n + 2, such as {below} or {below + 6}, not {self.depth}",
            )
        if self.norm == "group" and self.width % self.groups:
            told = f"{self.groups} does not divide the {self.width} channels of architecture.width"
            yield ("architecture", "groups"), told

    def build(self, d: int) -> nn.Module:
        """Return the network for flat images of `d` numbers.

        Raises InputError: the images have another size.
        """
        from dynamics_cli.architectures._modules import ResNetNetwork

        size = math.prod(self.image)
        if d != size:
            raise InputError(
                f"architecture.image: {self.image} has {size} numbers, the inputs have {d}"
            )
        return ResNetNetwork(
            self.image,
            blocks=(self.depth - 2) // 6,
            width=self.width,
            norm=self.norm,
            groups=self.groups,
            outputs=self.outputs,
        )

    def _pixels(self, name: str) -> int:
        """Return the pixels of the outputs of a convolution; 1 of other layers."""
        _, rows, columns = self.image
        if name.startswith("first"):
            return rows * columns
        if not name.startswith("stages"):
            return 1
        halvings = 1 << int(name.split(".")[1])
        return -(-rows // halvings) * -(-columns // halvings)

    def multiply_adds(self, shapes: Shapes, d: int) -> int:
        """Return the multiply-adds for one image: each weight once for each pixel of its output."""
        return sum(math.prod(shape) * self._pixels(name) for name, shape in shapes.items())

    def layer_sizes(self, shapes: Shapes, d: int) -> list[int]:
        """Return how many numbers every layer gives for one image; normalisations give as many."""
        sizes = [shape[0] * self._pixels(name) for name, shape in shapes.items() if len(shape) > 1]
        return [2 * size for size in sizes]

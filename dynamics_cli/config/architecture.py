"""The network of a run: one class per kind."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from dynamics_cli.config.base import NonNegative, Positive, PositiveInt, Section

Activation = Literal["relu", "leaky_relu", "linear"]
Convolution = Annotated[list[Annotated[int, Field(ge=0, lt=2**63)]], Field(min_length=4, max_length=4)]


class TwoLayerArchitecture(Section):
    """`h(x) = sum_j a_j sigma(<w_j, x>)`; a bias is a constant 1 appended to `x`."""

    kind: Literal["two_layer"]
    width: PositiveInt
    """Number m of hidden neurons."""
    activation: Activation = "relu"
    """sigma; its derivative at 0 is 0 (relu) or the slope (leaky_relu)."""
    slope: NonNegative | None = None
    """Slope of leaky_relu for negative arguments (leaky_relu only)."""
    train_output: bool = True
    """Whether the output weights a_j are trained or stay as initialised."""


class FullyConnectedArchitecture(Section):
    """A deep fully connected network with one activation after every layer but the last."""

    kind: Literal["fully_connected"]
    widths: list[PositiveInt] = Field(min_length=1)
    """Widths of the hidden layers, from the input on."""
    outputs: PositiveInt = 1
    """Number of outputs: 1 for regression and margin losses, C for cross entropy over C classes."""
    activation: Activation = "relu"
    """The activation between layers."""
    slope: NonNegative | None = None
    """Slope of leaky_relu for negative arguments (leaky_relu only)."""
    bias: bool = True
    """Whether layers have bias vectors."""


class ResidualArchitecture(Section):
    """`f_1 = W_1 x`, `f_l = f_(l-1) + W_l relu(f_(l-1))`, `h = W_L relu(f_(L-1))`, no biases (Phuong 2021, 5.2)."""

    kind: Literal["residual"]
    width: PositiveInt
    """Number p of neurons in every hidden layer."""
    depth: Annotated[int, Field(ge=2, le=10_000)] = 4
    """Number L of weight matrices; 2 is the two-layer network."""


class ConvolutionalArchitecture(Section):
    """Convolutions, then fully connected layers, all with biases and a ReLU after every layer but the last."""

    kind: Literal["convolutional"]
    image: Annotated[list[PositiveInt], Field(min_length=3, max_length=3)] = Field(default=[1, 28, 28])
    """Channels, rows and columns of an image; inputs are flat rows of so many numbers."""
    convolutions: list[Convolution] = Field(min_length=1)
    """Layers `[kernels, size, stride, padding]`, square, from the input on."""
    widths: list[PositiveInt] = Field(default_factory=list)
    """Widths of the hidden fully connected layers."""
    outputs: PositiveInt = 1
    """Number of outputs: 1 for regression and margin losses, C for cross entropy over C classes."""


class Vgg16Architecture(Section):
    """A network like VGG16 (Simonyan and Zisserman 2014, configuration D), without regularisation.

    Thirteen 3 x 3 convolutions in five blocks, each followed by 2 x 2 max pooling while there are pixels left to pool,
    then three fully connected layers; ReLU and biases.
    """

    kind: Literal["vgg16"]
    image: list[PositiveInt] = Field(default_factory=lambda: [3, 224, 224], min_length=3, max_length=3)
    """Channels, rows and columns of an image; inputs are flat rows of so many numbers."""
    width_multiplier: Positive = 1.0
    """Multiplies the numbers of kernels (64 to 512) and of hidden neurons (4096), rounded, at least 1."""
    outputs: PositiveInt = 1
    """Number of outputs: 1 for regression and margin losses, C for cross entropy over C classes."""


class GanArchitecture(Section):
    """A generator and a discriminator, trained against each other; fully connected, ReLU after all layers but the last.

    The discriminator's loss is `ell(D(x)) + ell(-D(G(z)))`; the generator's is `ell(D(G(z)))`, or `-D(G(z))` for the
    hinge.
    """

    kind: Literal["gan"]
    noise_dim: PositiveInt = 128
    """Length of the Gaussian noise z."""
    generator_widths: list[PositiveInt] = Field(default_factory=lambda: [256, 256, 256, 256], min_length=1)
    """Widths of the generator's hidden layers."""
    discriminator_widths: list[PositiveInt] = Field(default_factory=lambda: [256, 256, 256, 256], min_length=1)
    """Widths of the discriminator's hidden layers."""
    discriminator_updates: PositiveInt = 1
    """Updates of the discriminator before each update of the generator; an iteration is all of them."""


Architecture = Annotated[
    TwoLayerArchitecture
    | FullyConnectedArchitecture
    | ResidualArchitecture
    | ConvolutionalArchitecture
    | Vgg16Architecture
    | GanArchitecture,
    Field(discriminator="kind"),
]

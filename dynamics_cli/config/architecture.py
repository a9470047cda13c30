"""The network of a run: one class per kind."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from dynamics_cli.config.base import NonNegative, PositiveInt, Section

Activation = Literal["relu", "leaky_relu", "linear"]


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


Architecture = Annotated[TwoLayerArchitecture | FullyConnectedArchitecture, Field(discriminator="kind")]

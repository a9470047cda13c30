"""How a run is trained: one class per kind."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from dynamics_cli.config.base import NonNegative, Positive, PositiveInt, Section

Beta = Annotated[float, Field(ge=0, lt=1)]


class DescentSection(Section):
    """What all optimizers that take steps of a given size share."""

    lr: Positive
    """Step size."""
    stop_below: NonNegative | None = None
    """Stop at the first recorded loss at or below this value."""


class GradientDescent(DescentSection):
    """Full-batch gradient descent."""

    kind: Literal["gd"]
    iterations: PositiveInt
    """Number of updates."""
    loss_scaled: bool = False
    """Divide the gradient by the loss: the same path in rescaled time."""


class MinibatchSection(DescentSection):
    """What optimizers that may work on batches share; exactly one of `iterations` and `epochs` is given."""

    iterations: PositiveInt | None = None
    """Number of updates."""
    epochs: PositiveInt | None = None
    """Number of passes over the training set."""
    replacement: bool = False
    """Draw every batch with replacement instead of splitting a permutation per epoch."""


class StochasticGradientDescent(MinibatchSection):
    """Stochastic gradient descent; the recorded loss is that of the full training set."""

    kind: Literal["sgd"]
    batch_size: PositiveInt = 1
    """Samples per update; the last batch of an epoch may be smaller."""


class Adam(MinibatchSection):
    """Adam (Kingma and Ba 2015), full batch unless a batch size is given."""

    kind: Literal["adam"]
    batch_size: PositiveInt | None = None
    """Samples per update; all of them when absent."""
    beta1: Beta = 0.9
    """Decay of the first moment."""
    beta2: Beta = 0.999
    """Decay of the second moment."""
    eps: Positive = 1e-8
    """Added to the denominator."""


class GradientFlow(Section):
    """Gradient flow `theta' = -grad L` itself, integrated with adaptive steps; state i is the flow at time `t_i`."""

    kind: Literal["gradient_flow"]
    until: Positive
    """Time `t_N` of the last state; gradient descent with step lr takes `until / lr` iterations for it."""
    points: PositiveInt = 2000
    """Number N of states after the initial one; how they are chosen does not change the integration."""
    spacing: Literal["uniform", "geometric"] = "uniform"
    """`t_i = i until / N`, or `t_1 = first` and a constant ratio from there on."""
    first: Positive | None = None
    """Time `t_1` (geometric spacing only)."""
    rtol: Annotated[float, Field(ge=1e-12, le=0.5)] = 1e-6
    """Local error allowed in a step, relative to the size of each neuron."""
    stop_below: NonNegative | None = None
    """Stop at the first recorded loss at or below this value."""


Optimizer = Annotated[GradientDescent | StochasticGradientDescent | Adam | GradientFlow, Field(discriminator="kind")]

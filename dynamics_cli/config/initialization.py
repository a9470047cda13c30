"""The initial weights of a run: one class per kind."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from dynamics_cli.config.base import Positive, Section

DivideBy = Literal["none", "sqrt_width", "sqrt_dim", "sqrt_width_times_dim"]


class ScaledInitialization(Section):
    """What the drawn initialisations share: a scale, what divides it, and optional fixed output values."""

    scale: Positive
    """Scale lambda of the weights, before the division."""
    divide_by: DivideBy = "none"
    """Divide the scale by 1, sqrt(m), sqrt(d) or sqrt(m d); m is the width, d the input dimension without the bias."""
    output_value: Positive | None = None
    """If given, output weights are ± this value instead of what the kind draws."""
    output_signs: Literal["random", "halves"] = "random"
    """Signs of the output weights: uniform on ±1, or + for the first half of the neurons and - for the second."""


class BalancedInitialization(ScaledInitialization):
    """Gaussian hidden weights and `a_j = ± ||w_j||` (Boursier et al. 2022, Eq. 4)."""

    kind: Literal["balanced"]


class UnbalancedInitialization(ScaledInitialization):
    """Independent Gaussians for all weights."""

    kind: Literal["unbalanced"]


class DominatedInitialization(ScaledInitialization):
    """Hidden weights uniform in ± s and `|a_j| = s sqrt(columns)`, so that `|a_j| >= ||w_j||`."""

    kind: Literal["dominated"]


class DefaultScaledInitialization(Section):
    """PyTorch's default initialisation of a linear layer, times a factor."""

    kind: Literal["default_scaled"]
    factor: Positive = 1.0
    """Multiplies every initial weight."""
    only: list[str] | None = None
    """Names of the parameters that the factor multiplies, the others stay as drawn; by default all."""


class ValuesInitialization(Section):
    """Weights of a two-layer network written in the config itself, e.g. one neuron whose start is swept over a grid."""

    kind: Literal["values"]
    hidden_weight: list[Annotated[list[float], Field(min_length=1)]] = Field(min_length=1)
    """Hidden weights, one list per neuron (m, d), the weight of an appended bias last."""
    output_weight: list[float] = Field(min_length=1)
    """Output weights (m,)."""


class IndependentModesInitialization(Section):
    """Neurons that are each active on one class only (Tachet des Combes et al. 2018, assumptions H1 to H6, Appendix B).

    One list per class: D_1 (label 1, or class 0) first, then D_2 (label -1, or class 1), and so on. Data or starts that
    violate the assumptions are refused. There are no biases; inner layers of a deep network are diagonal.
    """

    kind: Literal["independent_modes"]
    y: list[list[Positive]] = Field(min_length=2)
    """Preactivation of each neuron on its class, in least squares where no weight treats all points alike."""
    z: list[list[Positive]] = Field(min_length=2)
    """Size of each neuron's weight towards its class; with a single output the weights of D_2 are minus these."""
    inner: Positive | None = None
    """Diagonal of the inner layers of a deep network; by default each neuron's z."""
    others: Annotated[float, Field(le=0)] = 0.0
    """Weight of each neuron towards the outputs of other classes (several outputs only)."""


class FileInitialization(Section):
    """Weights read from a `.npz` file: `hidden_weight` (m, d), optional `hidden_bias` (m,), `output_weight` (m,)."""

    kind: Literal["file"]
    path: str
    """The file, relative to the config that names it."""
    suffix: str = ""
    """Appended to the names of the arrays, e.g. `_0`."""


Initialization = Annotated[
    BalancedInitialization
    | UnbalancedInitialization
    | DominatedInitialization
    | DefaultScaledInitialization
    | ValuesInitialization
    | IndependentModesInitialization
    | FileInitialization,
    Field(discriminator="kind"),
]

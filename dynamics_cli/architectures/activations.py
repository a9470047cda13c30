"""Activations, and the base of networks with a choice of them."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Annotated, Any

from pydantic import model_validator

from dynamics_cli.kinds import Activation, Architecture, Array, OneOf, formulas
from dynamics_cli.kinds.base import Finding, NonNegative, Positive, Sections


class Relu(Activation, kind="relu"):
    """`max(z, 0)`; its derivative at 0 is 0."""

    negative_slope = 0.0

    def value(self, z: Array) -> Array:
        """Return `max(z, 0)`."""
        return formulas.maximum(z, 0.0)


class LeakyRelu(Activation, kind="leaky_relu"):
    """`max(z, 0) + slope min(z, 0)`; its derivative at 0 is the slope."""

    example = "{kind: leaky_relu, slope: 0.1}"
    slope: NonNegative | None = None
    """Slope for negative arguments."""

    @property
    def negative_slope(self) -> float:  # type: ignore[override]
        """The slope, by default 0."""
        return self.slope or 0.0

    def value(self, z: Array) -> Array:
        """Return `max(z, 0) + slope min(z, 0)`."""
        return formulas.where(z > 0, z, (0.0 if self.slope is None else self.slope) * z)


class Linear(Activation, kind="linear"):
    """`z` itself."""

    smooth = True
    negative_slope = 1.0

    def value(self, z: Array) -> Array:
        """Return `z`."""
        return z


class Tanh(Activation, kind="tanh"):
    """`tanh(z)`."""

    smooth = True

    def value(self, z: Array) -> Array:
        """Return `tanh(z)`."""
        return formulas.tanh(z)


class Erf(Activation, kind="erf"):
    """`erf(beta z)`, `erf(u) = 2/sqrt(pi) int_0^u exp(-t^2) dt`.

    Saad and Solla 1995 take `beta = 1/sqrt(2)`.
    """

    example = "{kind: erf, beta: 0.7071067811865476}"
    smooth = True
    beta: Positive = 1.0
    """Multiplies the argument."""

    def value(self, z: Array) -> Array:
        """Return `erf(beta z)`."""
        return formulas.erf(self.beta * z)


class Sigmoid(Activation, kind="sigmoid"):
    """`s(z) = 1 / (1 + exp(-z))`."""

    smooth = True

    def value(self, z: Array) -> Array:
        """Return `s(z)`."""
        return formulas.sigmoid(z)


class Softplus(Activation, kind="softplus"):
    """`log(1 + exp(z))`, a smooth `max(z, 0)`."""

    smooth = True

    def value(self, z: Array) -> Array:
        """Return `log(1 + exp(z))`, without overflow."""
        return formulas.softplus(z)


class Gelu(Activation, kind="gelu"):
    """`z Phi(z)`, Phi the standard Gaussian's distribution function (Hendrycks and Gimpel 2016)."""

    smooth = True

    def value(self, z: Array) -> Array:
        """Return `z Phi(z)`."""
        return 0.5 * z * (1 + formulas.erf(z * math.sqrt(0.5)))


class Silu(Activation, kind="silu"):
    """`z / (1 + exp(-z))`, also called swish (Ramachandran et al. 2017)."""

    smooth = True

    def value(self, z: Array) -> Array:
        """Return `z s(z)`, s the sigmoid."""
        return z * formulas.sigmoid(z)


class Quadratic(Activation, kind="quadratic"):
    """`z^2`, as in phase retrieval and matrix sensing (e.g. Sarao Mannelli et al. 2020)."""

    smooth = True

    def value(self, z: Array) -> Array:
        """Return `z^2`."""
        return z * z


class Cubic(Activation, kind="cubic"):
    """`z^3`."""

    smooth = True

    def value(self, z: Array) -> Array:
        """Return `z^3`."""
        return z * z * z


class Activated(Architecture):
    """A network whose neurons have one activation."""

    activation: Annotated[Activation, OneOf("activation", word=True)] = Relu()
    """The activation of hidden neurons."""
    slope: NonNegative | None = None
    """Slope of leaky_relu for negative arguments: `{activation: leaky_relu, slope: 0.1}`."""

    @model_validator(mode="before")
    @classmethod
    def _slope_beside_the_word(cls, data: Any) -> Any:
        """Take `activation: {kind: leaky_relu, slope: s}` for the word with its slope beside it."""
        match data:
            case {"activation": LeakyRelu(slope=slope)}:
                return {**data, "activation": "leaky_relu", "slope": slope}
            case {"activation": {"kind": "leaky_relu", "slope": slope}}:
                return {**data, "activation": "leaky_relu", "slope": slope}
        return data

    @property
    def sigma(self) -> Activation:
        """The activation, its slope filled in."""
        if self.slope is None:
            return self.activation
        return self.activation.model_copy(update={"slope": self.slope})

    def check(self, sections: Sections) -> Iterator[Finding]:
        """Yield whether leaky_relu, and no other, has a slope."""
        leaky = isinstance(self.activation, LeakyRelu)
        if leaky and self.slope is None:
            yield ("architecture", "slope"), "is missing; leaky_relu needs a number >= 0"
        if not leaky and self.slope is not None:
            yield (
                ("architecture", "slope"),
                f"belongs to activation leaky_relu, not to {self.activation.kind}",
            )

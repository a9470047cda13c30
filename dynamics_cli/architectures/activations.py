"""Activations, and what networks with a choice of them share."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from types import ModuleType
from typing import Annotated, Any

import numpy as np
from pydantic import model_validator

from dynamics_cli.config.base import Finding, NonNegative, Positive, Sections
from dynamics_cli.config.bases import Activation, Architecture, Array, Floats, namespace
from dynamics_cli.config.registry import OneOf


class Relu(Activation, kind="relu"):
    """`max(z, 0)`; its derivative at 0 is 0."""

    @property
    def negative_slope(self) -> float:
        """`alpha = 0`."""
        return 0.0

    def value(self, z: Array) -> Array:
        """Return `max(z, 0)`."""
        return np.maximum(z, 0.0) if namespace(z) is np else namespace(z).relu(z)

    def derivative(self, z: Array) -> Array:
        """Return 1 where `z > 0`, 0 elsewhere."""
        return (z > 0) * namespace(z).ones_like(z)


class LeakyRelu(Activation, kind="leaky_relu"):
    """`max(z, 0) + slope min(z, 0)`; its derivative at 0 is the slope."""

    example = "{kind: leaky_relu, slope: 0.1}"
    slope: NonNegative | None = None
    """Slope for negative arguments."""

    @property
    def negative_slope(self) -> float:
        """`alpha`, the slope."""
        return self.slope or 0.0

    def value(self, z: Array) -> Array:
        """Return `max(z, 0) + slope min(z, 0)`."""
        if namespace(z) is np:
            return np.maximum(z, 0.0) + self.negative_slope * np.minimum(z, 0.0)
        return namespace(z).nn.functional.leaky_relu(z, self.negative_slope)

    def derivative(self, z: Array) -> Array:
        """Return 1 where `z > 0`, the slope elsewhere."""
        xp = namespace(z)
        return xp.where(z > 0, xp.ones_like(z), self.negative_slope * xp.ones_like(z))


class Linear(Activation, kind="linear"):
    """`z` itself."""

    smooth = True

    @property
    def negative_slope(self) -> float:
        """`alpha = 1`."""
        return 1.0

    def value(self, z: Array) -> Array:
        """Return `z`."""
        return z

    def derivative(self, z: Array) -> Array:
        """Return 1."""
        return namespace(z).ones_like(z)


class Tanh(Activation, kind="tanh"):
    """`tanh(z)`."""

    smooth = True

    def value(self, z: Array) -> Array:
        """Return `tanh(z)`."""
        return namespace(z).tanh(z)

    def derivative(self, z: Array) -> Array:
        """Return `1 - tanh(z)^2`."""
        return 1 - namespace(z).tanh(z) ** 2

    def second_derivative(self, z: Floats) -> Floats:
        """Return `-2 tanh(z) (1 - tanh(z)^2)`."""
        if type(self) is not Tanh:  # one of somebody's own, which may be another function
            return super().second_derivative(z)
        t = np.tanh(z)
        return np.asarray(-2 * t * (1 - t * t))


class Erf(Activation, kind="erf"):
    """`erf(beta z)`, `erf(u) = 2/sqrt(pi) int_0^u exp(-t^2) dt`; Saad and Solla 1995 take `beta = 1/sqrt(2)`."""

    example = "{kind: erf, beta: 0.7071067811865476}"
    smooth = True
    beta: Positive = 1.0
    """Multiplies the argument."""

    def value(self, z: Array) -> Array:
        """Return `erf(beta z)`."""
        return _special(z).erf(self.beta * z)

    def derivative(self, z: Array) -> Array:
        """Return `2 beta / sqrt(pi) exp(-beta^2 z^2)`."""
        return 2 * self.beta / math.sqrt(math.pi) * _bell(self.beta * z, 1.0)


class Sigmoid(Activation, kind="sigmoid"):
    """`s(z) = 1 / (1 + exp(-z))`."""

    smooth = True

    def value(self, z: Array) -> Array:
        """Return `s(z)`."""
        return _special(z).expit(z)

    def derivative(self, z: Array) -> Array:
        """Return `s(z) s(-z)`."""
        return _special(z).expit(z) * _special(z).expit(-z)


class Softplus(Activation, kind="softplus"):
    """`log(1 + exp(z))`, a smooth `max(z, 0)`."""

    smooth = True

    def value(self, z: Array) -> Array:
        """Return `log(1 + exp(z))`, without overflow."""
        xp = namespace(z)
        return xp.logaddexp(z, xp.zeros_like(z))  # torch's own softplus is only z from 20 on

    def derivative(self, z: Array) -> Array:
        """Return `1 / (1 + exp(-z))`."""
        return _special(z).expit(z)


class Gelu(Activation, kind="gelu"):
    """`z Phi(z)`, Phi the distribution function of the standard Gaussian (Hendrycks and Gimpel 2016)."""

    smooth = True

    def value(self, z: Array) -> Array:
        """Return `z Phi(z)`."""
        return z * _special(z).ndtr(z) if namespace(z) is np else namespace(z).nn.functional.gelu(z)

    def derivative(self, z: Array) -> Array:
        """Return `Phi(z) + z exp(-z^2 / 2) / sqrt(2 pi)`."""
        return _special(z).ndtr(z) + z * _bell(z, 0.5) / math.sqrt(2 * math.pi)


class Silu(Activation, kind="silu"):
    """`z / (1 + exp(-z))`, also called swish (Ramachandran et al. 2017)."""

    smooth = True

    def value(self, z: Array) -> Array:
        """Return `z s(z)`, s the sigmoid."""
        return z * _special(z).expit(z) if namespace(z) is np else namespace(z).nn.functional.silu(z)

    def derivative(self, z: Array) -> Array:
        """Return `s(z) (1 + z s(-z))`."""
        special = _special(z)
        return special.expit(z) * (1 + z * special.expit(-z))


class Quadratic(Activation, kind="quadratic"):
    """`z^2`, as in phase retrieval and matrix sensing (e.g. Sarao Mannelli et al. 2020)."""

    smooth = True

    def value(self, z: Array) -> Array:
        """Return `z^2`."""
        return z * z

    def derivative(self, z: Array) -> Array:
        """Return `2 z`."""
        return 2 * z


class Cubic(Activation, kind="cubic"):
    """`z^3`."""

    smooth = True

    def value(self, z: Array) -> Array:
        """Return `z^3`."""
        return z * z * z

    def derivative(self, z: Array) -> Array:
        """Return `3 z^2`."""
        return 3 * z * z


def _special(array: Array) -> ModuleType:
    """Return the module (`scipy.special` or `torch.special`) whose `erf`, `expit` and `ndtr` apply to `array`."""
    if namespace(array) is not np:
        return namespace(array).special  # type: ignore[no-any-return]
    import scipy.special

    return scipy.special  # type: ignore[no-any-return]


def _bell(z: Array, rate: float) -> Array:
    """Return `exp(-rate z^2)`; beyond 40 it is 0, and squares of large numbers would overflow."""
    clipped = namespace(z).clip(z, -40.0, 40.0)
    return namespace(z).exp(-rate * clipped * clipped)


class Activated(Architecture):
    """A network whose neurons have one activation."""

    activation: Annotated[Activation, OneOf("activation", word=True)] = Relu()
    """The activation of hidden neurons."""
    slope: NonNegative | None = None
    """Slope of leaky_relu for negative arguments: `{activation: leaky_relu, slope: 0.1}`."""

    @model_validator(mode="before")
    @classmethod
    def _slope_beside_the_word(cls, data: Any) -> Any:
        """Take `activation: {kind: leaky_relu, slope: s}` for the same as the word with its slope beside it."""
        activation = data.get("activation") if isinstance(data, Mapping) else None
        if isinstance(activation, LeakyRelu):
            activation = activation.model_dump()
        if isinstance(activation, Mapping) and activation.get("kind") == "leaky_relu" and "slope" in activation:
            return {**data, "activation": "leaky_relu", "slope": activation["slope"]}
        return data

    @property
    def sigma(self) -> Activation:
        """The activation, its slope filled in."""
        return self.activation if self.slope is None else self.activation.model_copy(update={"slope": self.slope})

    def check(self, sections: Sections) -> Iterator[Finding]:
        """Yield whether leaky_relu, and no other, has a slope."""
        leaky = isinstance(self.activation, LeakyRelu)
        if leaky and self.slope is None:
            yield ("architecture", "slope"), "is missing; leaky_relu needs a number >= 0"
        if not leaky and self.slope is not None:
            yield ("architecture", "slope"), f"belongs to activation leaky_relu, not to {self.activation.kind}"

"""Activations, and what networks with a choice of them share."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Annotated, Any

import numpy as np
from pydantic import model_validator

from dynamics_cli.config.base import Finding, NonNegative, Sections
from dynamics_cli.config.bases import Activation, Architecture, Array, namespace
from dynamics_cli.config.choice import OneOf


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

"""What networks with a choice of activation share."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Annotated, Any

from pydantic import model_validator

from dynamics_cli.architectures.activations import LeakyRelu, Relu
from dynamics_cli.config.base import Finding, NonNegative, Sections
from dynamics_cli.config.bases import Activation, Architecture
from dynamics_cli.config.choice import OneOf


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

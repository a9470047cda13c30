"""Activations."""

from __future__ import annotations

import numpy as np

from dynamics_cli.config.base import NonNegative
from dynamics_cli.config.bases import Activation, Array, namespace


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

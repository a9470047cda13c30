"""A deep fully connected network."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pydantic import Field

from dynamics_cli.architectures.activations import Activated
from dynamics_cli.config.base import PositiveInt

if TYPE_CHECKING:
    from dynamics_cli.architectures._networks import FullyConnectedNetwork


class FullyConnected(Activated, kind="fully_connected"):
    """A deep fully connected network with one activation after every layer but the last."""

    example = """\
architecture: {kind: fully_connected, widths: [50, 50]}
initialization: {kind: default_scaled}
"""
    widths: list[PositiveInt] = Field(min_length=1)
    """Widths of the hidden layers, from the input on."""
    outputs: PositiveInt = 1
    """Number of outputs: 1 for regression and margin losses, C for cross entropy over C classes."""
    bias: bool = True
    """Whether layers have bias vectors."""

    def build(self, d: int) -> FullyConnectedNetwork:
        """Return the network for inputs of `d` columns."""
        from dynamics_cli.architectures._networks import FullyConnectedNetwork

        return FullyConnectedNetwork(self, d)

"""The residual network of Phuong and Lampert 2021, Section 5.2."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import numpy as np
from pydantic import Field

from dynamics_cli.config.base import PositiveInt
from dynamics_cli.config.bases import Architecture, Evaluation, Floats, Parameters

if TYPE_CHECKING:
    from dynamics_cli.architectures._networks import ResidualNetwork


class Residual(Architecture, kind="residual"):
    """`f_1 = W_1 x`, `f_l = f_(l-1) + W_l relu(f_(l-1))`, `h = W_L relu(f_(L-1))`, no biases (Phuong 2021, 5.2)."""

    example = """\
architecture: {kind: residual, width: 50, depth: 4}
initialization: {kind: default_scaled, factor: 0.1}
"""
    width: PositiveInt
    """Number p of neurons in every hidden layer."""
    depth: Annotated[int, Field(ge=2, le=10_000)] = 4
    """Number L of weight matrices; 2 is the two-layer network."""

    def build(self, d: int) -> ResidualNetwork:
        """Return the network for inputs of `d` columns."""
        from dynamics_cli.architectures._networks import ResidualNetwork

        return ResidualNetwork(self, d)

    def evaluation(self, parameters: Parameters, d: int) -> Evaluation:
        """Return `x (n, d) -> h(x) (n,)` without torch."""
        W = [np.asarray(parameters[f"weight_{layer}"], np.float64) for layer in range(1, self.depth + 1)]

        def h(x: Floats) -> Floats:
            f = np.asarray(x, np.float64) @ W[0].T
            for weight in W[1:-1]:
                f = f + np.maximum(f, 0.0) @ weight.T
            outputs: Floats = (np.maximum(f, 0.0) @ W[-1].T)[:, 0]
            return outputs

        return h

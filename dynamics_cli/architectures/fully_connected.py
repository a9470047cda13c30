"""Deep fully connected networks, the residual network of Phuong and Lampert 2021, Section 5.2, tied autoencoders."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Annotated, Literal

import numpy as np
from pydantic import Field

from dynamics_cli.architectures.activations import Activated
from dynamics_cli.kinds import Architecture, Evaluation, Finding, Floats, Parameters, PositiveInt, Sections, Shapes

if TYPE_CHECKING:
    from dynamics_cli.architectures._networks import FullyConnectedNetwork, ResidualNetwork


class FullyConnected(Activated, kind="fully_connected"):
    """A deep fully connected network with one activation after every layer but the last.

    `parametrization` multiplies the weights `w` of every layer, and the steps, by powers of the widths, so that wide
    networks have a limit; `w` is then drawn from standard Gaussians (`initialization: {kind: unbalanced, scale: 1.0}`):

    - `ntk`: `W = w / sqrt(fan in)` (Jacot et al. 2018): the lazy limit.
    - `mean_field`, one hidden layer of width m: `W_1 = w / sqrt(d)`, `W_2 = w / m`, step m lr (Mei et al. 2018).
    - `mup`: `W_1 = w / sqrt(d)`, `W_l = w / sqrt(fan in)`, the last `w / fan in`; step m lr; for optimizers
      like Adam lr / sqrt(m) between first and last layer (Yang and Hu 2021, Definition 5.1, shifted to unit Gaussians).
    """

    example = """\
architecture: {kind: fully_connected, widths: [50, 50]}
initialization: {kind: default_scaled}
"""
    engine = True
    widths: list[PositiveInt]
    """Widths of the hidden layers, from the input on; `[]` is a linear model, `h(x) = W_1 x + b_1`."""
    outputs: PositiveInt = 1
    """Number of outputs: 1 for numbers and margin losses, C for vectors of labels and cross entropy over C classes."""
    bias: bool = True
    """Whether layers have bias vectors."""
    parametrization: Literal["standard", "ntk", "mean_field", "mup"] | None = None
    """How weights and steps scale with the widths; by default, and for `standard`, not at all."""

    @property
    def matrices(self) -> tuple[str, ...]:
        """`weight_1`, `weight_2`, ..."""
        return tuple(f"weight_{layer + 1}" for layer in range(len(self.widths) + 1))

    def multipliers(self, sizes: Sequence[int]) -> list[float] | None:
        """Return the multiplier of each layer's weights, for layers of `sizes`, inputs first; None where all are 1."""
        if self.parametrization in (None, "standard"):
            return None
        factors = [1 / math.sqrt(fan_in) for fan_in in sizes[:-1]]
        return factors if self.parametrization == "ntk" else [*factors[:-1], 1 / sizes[-2]]

    def rates(self, shapes: Shapes, *, adaptive: bool) -> Mapping[str, float]:
        """Return the factors of the step size of `mean_field` and `mup`."""
        if self.parametrization not in ("mean_field", "mup"):
            return {}
        m, last = self.widths[-1], len(self.widths) + 1
        inner = [f"{kind}_{layer}" for kind in ("weight", "bias") for layer in range(2, last)]
        if adaptive:
            return {name: 1 / math.sqrt(m) for name in inner if name in shapes and name.startswith("weight")}
        return {name: float(m) for name in shapes if name != f"bias_{last}"}

    def check(self, sections: Sections) -> Iterator[Finding]:
        """Yield a depth that the parametrisation is not defined for."""
        yield from super().check(sections)
        if self.parametrization == "mean_field" and len(self.widths) != 1:
            yield ("architecture", "parametrization"), "mean_field needs one hidden layer; mup is its form for more"
        if self.parametrization == "mup" and not self.widths:
            yield ("architecture", "parametrization"), "mup needs a hidden layer"
        optimizer = sections.get("optimizer")
        if (
            self.parametrization in ("mean_field", "mup")
            and optimizer is not None
            and not hasattr(optimizer, "layer_lr")
        ):
            yield (
                ("architecture", "parametrization"),
                f"{self.parametrization} scales steps: optimizer {optimizer.kind} has none",
            )

    def shapes(self, d: int) -> dict[str, tuple[int, ...]]:
        """Return the shapes of weights and biases, layer by layer."""
        found: dict[str, tuple[int, ...]] = {}
        for layer, (columns, rows) in enumerate(pairwise([d, *self.widths, self.outputs]), 1):
            found[f"weight_{layer}"] = (rows, columns)
            if self.bias:
                found[f"bias_{layer}"] = (rows,)
        return found

    def build(self, d: int) -> FullyConnectedNetwork:
        """Return the network for inputs of `d` columns."""
        from dynamics_cli.architectures._networks import FullyConnectedNetwork

        multipliers = self.multipliers([d, *self.widths, self.outputs])
        return FullyConnectedNetwork(self.sigma, self.shapes(d), multipliers)


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

        return ResidualNetwork(self.width, self.depth, d)

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

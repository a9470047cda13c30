"""Deep fully connected networks, and the residual network of Phuong and Lampert 2021, 5.2."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import Field

from dynamics_cli.architectures.activations import Activated
from dynamics_cli.kinds import PositiveInt

if TYPE_CHECKING:
    from dynamics_cli.architectures._networks import FullyConnectedNetwork, ResidualNetwork


class FullyConnected(Activated, kind="fully_connected"):
    """A deep fully connected network with one activation after every layer but the last."""

    example = """\
architecture: {kind: fully_connected, widths: [50, 50]}
initialization: {kind: default_scaled}
"""
    engine = True
    widths: list[PositiveInt]
    """Widths of the hidden layers, inputs first; `[]` is a linear model, `h(x) = W_1 x + b_1`."""
    outputs: PositiveInt = 1
    """Number of outputs: 1 for numbers and margin losses, C for vectors of labels and classes."""
    bias: bool = True
    """Whether layers have bias vectors."""

    @property
    def matrices(self) -> tuple[str, ...]:
        """`weight_1`, `weight_2`, ..."""
        return tuple(f"weight_{layer + 1}" for layer in range(len(self.widths) + 1))

    def shapes(self, d: int) -> dict[str, tuple[int, ...]]:
        """Return the shapes of weights and biases, layer by layer."""
        shapes: dict[str, tuple[int, ...]] = {}
        for layer, (columns, rows) in enumerate(pairwise([d, *self.widths, self.outputs]), 1):
            shapes[f"weight_{layer}"] = (rows, columns)
            if self.bias:
                shapes[f"bias_{layer}"] = (rows,)
        return shapes

    def build(self, d: int) -> FullyConnectedNetwork:
        """Return the network for inputs of `d` columns."""
        from dynamics_cli.architectures._networks import FullyConnectedNetwork

        return FullyConnectedNetwork(self.sigma, self.shapes(d))


class Residual(Activated, kind="residual"):
    """`f_1 = W_1 x`, `f_l = f_(l-1) + W_l sigma(f_(l-1))`, `h = W_L sigma(f_(L-1))`.

    Phuong and Lampert 2021, with ReLU.

    With `norm`, each sigma takes `N f_(l-1)`, a normalisation without gain and shift.
    """

    example = """\
architecture: {kind: residual, width: 50, depth: 4}
initialization: {kind: default_scaled, factor: 0.1}
"""
    width: PositiveInt
    """Number p of neurons in every hidden layer."""
    depth: Annotated[int, Field(ge=2, le=10_000)] = 4
    """Number L of weight matrices; 2 is the two-layer network."""
    norm: Literal["layer", "batch"] | None = None
    """`layer`: of the neurons of a layer (Ba et al. 2016), `batch`: of the samples of a batch, with
    running statistics (Ioffe and Szegedy 2015); by default none.
    """

    @property
    def engine(self) -> bool:  # type: ignore[override]
        """The engine knows no norms."""
        return self.norm is None

    @property
    def matrices(self) -> tuple[str, ...]:
        """`weight_1`, `weight_2`, ..., `weight_L`; none with a norm between them."""
        return tuple(self._names()) if self.norm is None else ()

    @property
    def skips(self) -> tuple[str, ...]:
        """All matrices but the first and the last."""
        return self.matrices[1:-1]

    def shapes(self, d: int) -> dict[str, tuple[int, ...]]:
        """Return the shapes of the matrices, from the input on."""
        sizes = [d, *[self.width] * (self.depth - 1), 1]
        sides = pairwise(sizes)
        return {name: (m, k) for name, (k, m) in zip(self._names(), sides, strict=True)}

    def _names(self) -> list[str]:
        return [f"weight_{layer}" for layer in range(1, self.depth + 1)]

    def build(self, d: int) -> ResidualNetwork:
        """Return the network for inputs of `d` columns."""
        from dynamics_cli.architectures._networks import ResidualNetwork

        return ResidualNetwork(self.sigma, self.shapes(d), self.norm)

"""Models linear in their inputs and deep in their weights: diagonal, and products of matrices."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import numpy as np
from pydantic import Field

from dynamics_cli.architectures.activations import Linear
from dynamics_cli.errors import InputError
from dynamics_cli.kinds import (
    Activation,
    Architecture,
    Evaluation,
    Floats,
    Parameters,
    PositiveInt,
    Shapes,
)

if TYPE_CHECKING:
    from torch import nn


class LinearModel(Architecture):
    """The base of models linear in their inputs."""

    @property
    def is_linear(self) -> bool:
        """True."""
        return True

    @property
    def sigma(self) -> Activation:
        """The identity: nothing has a kink."""
        return Linear()


class DiagonalLinear(LinearModel, kind="diagonal_linear"):
    """`h(x) = <u^D - v^D, x>`, powers taken entry by entry (Woodworth et al. 2020, Section 4).

    From `u = v = alpha w_0` its output is 0 at first, and `alpha` alone moves gradient flow from
    lazy to sparse.
    """

    example = """\
architecture: {kind: diagonal_linear, depth: 2}
initialization: {kind: constant, scale: 0.1}
"""
    engine = True
    depth: PositiveInt = 2
    """The power D; 2 is a network of two layers with shared weights."""

    def build(self, d: int) -> nn.Module:
        """Return the network for inputs of `d` columns."""
        from dynamics_cli.architectures._networks import DiagonalLinearNetwork

        return DiagonalLinearNetwork(self.depth, d)

    def shapes(self, d: int) -> dict[str, tuple[int, ...]]:
        """Return the shapes of `u` and `v`, (d,)."""
        return {"u": (d,), "v": (d,)}

    def layer_sizes(self, shapes: Shapes, d: int) -> list[int]:
        """Return the numbers of the predictor, and the output."""
        return [d, 1]

    def predictor(self, parameters: Parameters) -> Floats:
        """Return `beta = u^D - v^D`, shape (..., d), float64."""
        u = np.asarray(parameters["u"], np.float64)
        v = np.asarray(parameters["v"], np.float64)
        beta: Floats = u**self.depth - v**self.depth
        return beta

    def product(self, parameters: Parameters) -> Floats:
        """Return the predictor."""
        return self.predictor(parameters)

    def evaluation(self, parameters: Parameters, d: int) -> Evaluation:
        """Return `x (n, d) -> <beta, x>` (n,)."""
        beta = self.predictor(parameters)
        return lambda x: np.asarray(x, np.float64) @ beta


class MatrixProduct(LinearModel, kind="matrix_product"):
    """`W = W_N ... W_1` by its entries: a sample is a pair (row, column) (Arora et al. 2019)."""

    example = """\
dataset: {kind: matrix_completion, rows: 20, rank: 2, observed: 200}
architecture: {kind: matrix_product, rows: 20, depth: 2}
initialization: {kind: unbalanced, scale: 0.01}
"""
    engine = factors = True
    rows: PositiveInt
    """Rows of `W`."""
    columns: PositiveInt | None = None
    """Columns of `W`; by default as many as rows."""
    depth: Annotated[int, Field(ge=1, le=100)] = 2
    """Number N of factors."""
    width: PositiveInt | None = None
    """Rows of the factors between first and last (default: the smaller side, no restriction)."""

    @property
    def between_samples(self) -> bool:
        """False: there is nothing between the entries of a matrix."""
        return False

    def sides(self) -> list[int]:
        """Return the columns of `W_1`, then the rows of `W_1` to `W_N`."""
        columns = self.columns or self.rows
        return [columns, *[self.width or min(self.rows, columns)] * (self.depth - 1), self.rows]

    def shapes(self, d: int) -> dict[str, tuple[int, ...]]:
        """Return the shapes of the factors; InputError where samples (`d` columns) are no pairs."""
        sides = self.sides()
        if d != 2:
            raise InputError(
                f"dataset: samples of {d} columns; architecture.kind matrix_product needs pairs"
            )
        return {f"weight_{k}": (sides[k], sides[k - 1]) for k in range(1, len(sides))}

    def build(self, d: int) -> nn.Module:
        """Return the network for samples of `d` columns."""
        from dynamics_cli.architectures._networks import MatrixProductNetwork

        return MatrixProductNetwork(self.shapes(d))

    def product(self, parameters: Parameters) -> Floats:
        """Return `W_N ... W_1`, shape (..., rows, columns), float64."""
        W = np.asarray(parameters["weight_1"], np.float64)
        for k in range(2, self.depth + 1):
            W = np.asarray(parameters[f"weight_{k}"], np.float64) @ W
        return W

    def evaluation(self, parameters: Parameters, d: int) -> Evaluation:
        """Return `x (n, d) -> h(x)` (n,)."""
        W = self.product(parameters)
        return lambda x: W[tuple(np.asarray(x, np.int64).T)]

    def multiply_adds(self, shapes: Shapes, d: int) -> int:
        """Return the multiply-adds of one sample; all samples share the product of the factors."""
        return d

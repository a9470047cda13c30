"""Linear attention, seen through the output that it gives the last token."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING, Literal

import numpy as np

from dynamics_cli.architectures.activations import Linear
from dynamics_cli.errors import InputError
from dynamics_cli.kinds import (
    Activation,
    Architecture,
    Finding,
    Floats,
    Parameters,
    PositiveInt,
    Sections,
    Shapes,
)

if TYPE_CHECKING:
    from torch import nn


class LinearAttention(Architecture, kind="linear_attention"):
    """`h(X) = sum_i (v_i, v_i^y) S (U_i; u_i) x_q`, `S = sum_t X_t X_t^T` (`ATTN_M` and `ATTN_S` of
    Zhang et al. 2025).

    A sample is `S` by rows, then `x_q`, the form `moments` of `in_context_regression`, for tokens
    `X_t = (x_t, y_t)` of D + 1 numbers, the query `(x_q, 0)` last. The output is the last number of
    the query's vector in attention without softmax, `sum_i W_V,i X X^T W_KQ,i X`. Other rows of
    `W_V` do not enter, nor the column of `W_KQ` that meets the query's 0; the sum is not divided by
    the number of pairs, as in the released code.

    Of merged keys and queries `U_i` is `weight_key_query` (heads, D, D) and `u_i`
    `weight_key_query_label` (heads, D). Separate, `U_i = K_i^T Q_i` and `u_i = k_i^T Q_i` of
    `weight_key`, `weight_query` (heads, rank, D) and `weight_key_label` (heads, rank). Values are
    `weight_value` (heads, 1), `v_i^y`, and `weight_value_input` (heads, D), `v_i`. With `scales` of
    0 for `weight_value_input` and the weight `..._label` both begin at 0, where they stay on
    infinitely many sequences; then `h(X) = sum_i v_i^y <U_i, z>` for the cubic features z of
    `in_context_regression`.
    """

    example = """\
dataset:
  {kind: in_context_regression, n: 200, context: 31, eigenvalues: [0.4, 0.3],
   features: moments}
architecture: {kind: linear_attention, heads: 5, key_query: separate, rank: 1}
initialization:
  {kind: unbalanced, scale: 1.0e-2, scales: {weight_key_label: 0.0, weight_value_input: 0.0}}
optimizer: {kind: gd, lr: 1.0e-2, iterations: 1000}
"""
    heads: PositiveInt = 1
    """Number of heads, whose outputs are added."""
    key_query: Literal["merged", "separate"] = "merged"
    """Whether `W_KQ` is one matrix, or the product of a key and a query matrix."""
    rank: PositiveInt | None = None
    """Rows R of separate key and query matrices; by default D."""

    @property
    def sigma(self) -> Activation:
        """The identity: nothing has a kink."""
        return Linear()

    def check(self, sections: Sections) -> Iterator[Finding]:
        """Yield a rank of merged matrices."""
        if self.rank is not None and self.key_query == "merged":
            yield (
                ("architecture", "rank"),
                "is that of separate keys and queries; leave it out, or separate them",
            )

    def shapes(self, d: int) -> dict[str, tuple[int, ...]]:
        """Return the shapes of all weights; InputError where samples of `d` columns have another
        form.
        """
        D = self.inputs(d)
        H = self.heads
        R = self.rank or D
        parts = (
            {"key_query": (H, D, D)}
            if self.key_query == "merged"
            else {"key": (H, R, D), "query": (H, R, D)}
        )
        label = {"key_query_label": (H, D)} if self.key_query == "merged" else {"key_label": (H, R)}
        shapes: dict[str, tuple[int, ...]] = {
            **parts,
            "value": (H, 1),
            **label,
            "value_input": (H, D),
        }
        return {f"weight_{name}": shape for name, shape in shapes.items()}

    def inputs(self, d: int) -> int:
        """Return D for samples of `d` columns; InputError where they have another form."""
        D = math.isqrt(d + 2) - 1
        if D < 1 or d != (D + 1) ** 2 + D:
            form = "moments of D + 1 columns, (D + 1)^2 + D numbers"
            raise InputError(
                f"architecture.kind linear_attention: expected {form}, got samples with {d} columns"
            )
        return D

    def build(self, d: int) -> nn.Module:
        """Return the network for samples of `d` columns."""
        from ._network import LinearAttentionNetwork

        return LinearAttentionNetwork(self.shapes(d))

    def multiply_adds(self, shapes: Shapes, d: int) -> int:
        """Return the multiply-adds of one sample: `S`, and its product with the query and the
        weights of all heads.
        """
        return (self.inputs(d) + 1) ** 3

    def layer_sizes(self, shapes: Shapes, d: int) -> list[int]:
        """Return the numbers of `S`, of its weights, and the output."""
        columns = self.inputs(d) + 1
        return [columns**2, columns**2, 1]

    def regression(self, parameters: Parameters) -> Floats:
        """Return `sum_i v_i^y U_i` (..., D, D), float64: the output is its product with z where
        it is alone.
        """
        P = {name: np.asarray(value, np.float64) for name, value in parameters.items()}
        if self.key_query == "merged":
            return np.asarray(
                np.einsum("...h,...hkq->...kq", P["weight_value"][..., 0], P["weight_key_query"])
            )
        return np.asarray(
            np.einsum(
                "...h,...hrk,...hrq->...kq",
                P["weight_value"][..., 0],
                P["weight_key"],
                P["weight_query"],
            )
        )

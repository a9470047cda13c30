"""The smallest network that learns an induction head (Edelman et al. 2024, the minimal model)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from pydantic import Field

from dynamics_cli.architectures.activations import Linear
from dynamics_cli.errors import InputError
from dynamics_cli.kinds import Activation, Architecture, PositiveInt, Shapes

if TYPE_CHECKING:
    from torch import nn


class MinimalInduction(Architecture, kind="minimal_induction"):
    """`h_t = sum_{s <= t} (x_t^T W (A x)_s) x_s` with `A_sj = softmax_j(v_{s-j})`, two layers of
    attention (the minimal model of Edelman et al. 2024).

    Tokens `x_t` are one-hot vectors of k symbols, a sample is T of them side by side, and each
    token has k outputs. The first layer attends by the lag `s - j` of tokens `j <= s` alone, with
    `weight_lag` v (T,). The second adds, without softmax, the tokens whose average by the first
    suits the token at hand, by `weight_match` W (k, k). With a large `v_1` and W a multiple of the
    identity it counts which symbols follow the one at hand.

    It may begin at 0, with `scales` of 0. The released code leaves out the mask of the first layer.
    """

    example = """\
dataset: {kind: markov_chains, n: 100, length: 20, symbols: 3}
architecture: {kind: minimal_induction, tokens: 20, outputs: 3}
initialization: {kind: unbalanced, scale: 1.0e-2}
loss: {kind: cross_entropy}
optimizer: {kind: sgd, lr: 1.0e-2, layer_lr: {weight_lag: 100.0}, batch_size: 50, iterations: 20}
"""
    stateful = False
    tokens: PositiveInt
    """Number T of tokens of a sample."""
    outputs: Annotated[int, Field(ge=2)]
    """Number k of symbols: each is an output of every token."""
    mask: bool = True
    """Whether the first layer sees only tokens up to its own; otherwise all later ones too, each
    with `v_0`, as in the released code.
    """

    @property
    def sigma(self) -> Activation:
        """The identity: nothing has a kink."""
        return Linear()

    @property
    def at_positions(self) -> bool:
        """True: each token has outputs."""
        return True

    def shapes(self, d: int) -> dict[str, tuple[int, ...]]:
        """Return the shapes of both weights, for samples of `d` columns.

        Raises:
            InputError: they are not so many tokens of so many symbols.
        """
        T = self.tokens
        k = self.outputs
        if d != T * k:
            raise InputError(
                f"architecture.kind minimal_induction: samples of {d} columns are not tokens: {T}"
                f" vectors of outputs: {k} numbers"
            )
        return {"weight_lag": (T,), "weight_match": (k, k)}

    def build(self, d: int) -> nn.Module:
        """Return the network for samples of `d` columns."""
        from ._network import MinimalInductionNetwork

        return MinimalInductionNetwork(self.shapes(d), mask=self.mask)

    def multiply_adds(self, shapes: Shapes, d: int) -> int:
        """Return the multiply-adds of one sample: averages by lags, then pairs of symbols."""
        return self.tokens * d + 3 * self.tokens * self.outputs**2

    def layer_sizes(self, shapes: Shapes, d: int) -> list[int]:
        """Return the numbers of the averages, of the pairs of symbols, and of the outputs."""
        return [d, self.tokens * self.outputs**2, d]

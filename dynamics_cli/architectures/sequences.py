"""Networks of sequences that are modules of torch: GPT and recurrent networks.

A sample is `tokens` blocks `x_t` of equally many numbers, such as one-hot vectors of tokens.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import Field

from dynamics_cli.architectures.transformer import OfTokens
from dynamics_cli.kinds import Finding, PositiveInt, Sections, Shapes

if TYPE_CHECKING:
    from torch import nn

Share = Annotated[float, Field(ge=0, lt=1)]


class OfSequences(OfTokens):
    """The base of networks that read a sequence from its first token on."""

    layers: Annotated[int, Field(ge=1, le=100)] = 1
    """Number of layers."""
    dropout: Share = 0.0
    """Share of the numbers that training sets to 0, the others divided by the rest of 1."""

    @abstractmethod
    def module(self, columns: int) -> nn.Module:
        """Return the network for blocks of a given size."""

    def build(self, d: int) -> nn.Module:
        """Return the network for samples of `d` columns."""
        return self.module(self.columns(d))

    def settings(self) -> dict[str, Any]:
        """Return the arguments that all networks of sequences take."""
        return {
            "tokens": self.tokens,
            "width": self.width,
            "layers": self.layers,
            "dropout": self.dropout,
            "every": self.at_positions,
        }

    def multiply_adds(self, shapes: Shapes, d: int) -> int:
        """Return the multiply-adds of one sample: each weight once for each token."""
        return self.tokens * super().multiply_adds(shapes, d)

    def layer_sizes(self, shapes: Shapes, d: int) -> list[int]:
        """Return the numbers that the layers give for all tokens."""
        return [self.tokens * size for size in super().layer_sizes(shapes, d)]


class Gpt(OfSequences, kind="gpt"):
    """The transformer GPT-2 (Radford et al. 2019).

    `r = W_E x_t + p_t`, then layers `r <- r + attention(N r)`, `r <- r + MLP(N r)`, and `h =
    W_U N r`. Attention is causal, MLPs have 4 D neurons and GELU, `N` is layer normalisation with
    gain and shift, before each part. Dropout is on the embedding, on the weights of attention, and
    on what both parts add. Beside the kind `transformer`, whose every weight is a matrix with a
    name of its own, it has what language models have.

    The initialization `as_built` draws weights as GPT-2 does: Gaussians of 0.02, those that add to
    the stream of `0.02 / sqrt(2 layers)`, gains 1, biases 0.
    """

    example = """\
dataset: {kind: modular_arithmetic, p: 7, train_fraction: 0.7, labels: classes}
architecture: {kind: gpt, tokens: 2, width: 16, heads: 2, dropout: 0.1, outputs: 7}
initialization: {kind: as_built}
loss: {kind: cross_entropy}
"""
    heads: PositiveInt = 1
    """Attention heads of every layer, each of width D / heads."""
    positions: Literal["learned", "rotary"] = "learned"
    """`learned` vectors `p_t`, or `rotary`: instead of them, queries and keys are turned by angles
    that grow with the position (Su et al. 2021).
    """
    tied: bool = True
    """Whether `W_U` is the transpose of `W_E`, where there are as many outputs as numbers of a
    block.
    """

    def check(self, sections: Sections) -> Iterator[Finding]:
        """Yield a width that the heads do not divide, and heads that rotations do not."""
        yield from super().check(sections)
        if self.width % self.heads:
            told = f"{self.width} is not a multiple of heads = {self.heads}"
            yield ("architecture", "width"), told
        elif self.positions == "rotary" and (self.width // self.heads) % 2:
            told = f"rotary turns pairs: width / heads = {self.width // self.heads} must be even"
            yield ("architecture", "width"), told

    def module(self, columns: int) -> nn.Module:
        """Return the network; its head is tied where there are as many outputs as columns."""
        from dynamics_cli.architectures._modules import GptNetwork

        return GptNetwork(
            columns,
            self.outputs,
            heads=self.heads,
            rotary=self.positions == "rotary",
            tied=self.tied and self.outputs == columns,
            **self.settings(),
        )

    def multiply_adds(self, shapes: Shapes, d: int) -> int:
        """Return the multiply-adds of one sample: matrices, and pairs of tokens in every head."""
        pairs = 2 * self.layers * self.tokens**2 * self.width
        return super().multiply_adds(shapes, d) + pairs

    def layer_sizes(self, shapes: Shapes, d: int) -> list[int]:
        """Return the numbers that matrices give for all tokens, and the attention of layers."""
        attention = [self.heads * self.tokens**2] * self.layers
        return super().layer_sizes(shapes, d) + attention


class Recurrent(OfSequences, kind="recurrent"):
    """A recurrent network: `s_t = cell(x_t, s_(t-1))` from `s_0 = 0` in layers, `h = W s_T + b`.

    The cell is from `torch.nn.RNN` with tanh (Elman 1990), `torch.nn.GRU` (Cho et al. 2014) or
    `torch.nn.LSTM` (Hochreiter and Schmidhuber 1997). Dropout is on the outputs of each layer but
    the last. The initialization `as_built` draws weights as torch does.
    """

    example = """\
dataset: {kind: sparse_parity, n: 40, dim: 5, k: 2}
architecture: {kind: recurrent, cell: gru, tokens: 5, width: 8}
initialization: {kind: as_built}
"""
    cell: Literal["rnn", "gru", "lstm"] = "gru"
    """The cell of each layer."""

    def check(self, sections: Sections) -> Iterator[Finding]:
        """Yield dropout of a single layer, which has none to drop."""
        yield from super().check(sections)
        if self.dropout and self.layers == 1:
            yield ("architecture", "dropout"), "is between layers; give layers >= 2"

    def module(self, columns: int) -> nn.Module:
        """Return the network."""
        from dynamics_cli.architectures._modules import RecurrentNetwork

        return RecurrentNetwork(columns, self.outputs, cell=self.cell, **self.settings())

    def layer_sizes(self, shapes: Shapes, d: int) -> list[int]:
        """Return the numbers that gates give for all tokens, with as many for the way back."""
        return [2 * size for size in super().layer_sizes(shapes, d)]

"""A small transformer for sequences of few tokens, such as algorithmic tasks."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import Field

from dynamics_cli.architectures.activations import Activated, Linear
from dynamics_cli.errors import InputError
from dynamics_cli.kinds import Activation, Architecture, Finding, PositiveInt, Sections, Shapes

if TYPE_CHECKING:
    from torch import nn


class OfTokens(Architecture):
    """The base of networks of samples that are blocks of equally many numbers."""

    tokens: PositiveInt
    """Number T of blocks that a sample is split into: 2 for the pairs of `modular_arithmetic`."""
    width: PositiveInt
    """Numbers D of the state of a token."""
    predict: Literal["every"] | None = None
    """`every` gives outputs at every token, of it and the tokens before it; by default at the
    last one.
    """
    outputs: PositiveInt = 1
    """Number of outputs: 1 for numbers and margin losses, C for vectors of labels and classes."""

    @property
    def at_positions(self) -> bool:
        """Whether outputs are given at every token."""
        return self.predict == "every"

    def columns(self, d: int) -> int:
        """Return the numbers of a block of samples of `d` columns.

        Raises:
            InputError: samples cannot be split into the tokens.
        """
        if d % self.tokens:
            divisors = ", ".join(str(k) for k in range(1, min(d, 1000) + 1) if d % k == 0)
            raise InputError(
                f"architecture.tokens: samples of {d} columns are not {self.tokens} tokens of equal"
                f" length; divisors of {d} will do: {divisors}"
            )
        return d // self.tokens


class Transformer(Activated, OfTokens, kind="transformer"):
    """`r = W_E x_t + p_t`, layers `r <- r + attention(N r)`, `r <- r + MLP(N r)`, `h = W_U N r_T`.

    A sample is `tokens` blocks `x_t` of equally many numbers. The one-hot blocks of
    `modular_arithmetic` choose columns of the embedding `W_E`; blocks of real numbers are tokens as
    well. The last token T gives the output, with `predict: every` each token one. With heads of
    width k, side by side, `attention(r)_t = W_O [sum_{s <= t} softmax_s(<q_t, k_s> / sqrt(k)) v_s]`
    for `q, k, v = W_Q r, W_K r, W_V r`
    (causal; Vaswani et al. 2017, Eq. 1), and `MLP(r) = W_out sigma(W_in r)`. `N` is layer
    normalisation without gain and shift, before each part (pre-LN: Xiong et al. 2020, Figure 1b).

    Weights are `weight_embedding`, `weight_positions`, in layer 1 `weight_query1`, `weight_key1`,
    `weight_value1`, `weight_attention1` (`W_O`), `weight_in1`, `weight_out1`, at last
    `weight_unembedding`; `initialization.scales` can name them. Every initialisation of matrices of
    any shape will do, such as `lecun` or `default_scaled`.
    """

    example = """\
dataset: {kind: modular_arithmetic, p: 7, train_fraction: 0.7, labels: classes}
architecture: {kind: transformer, tokens: 2, width: 16, heads: 2, outputs: 7}
initialization: {kind: lecun, scales: {weight_embedding: 2.0}}
loss: {kind: cross_entropy}
"""
    stateful = False
    heads: PositiveInt = 1
    """Attention heads of every layer, each of width k = D / heads."""
    layers: Annotated[int, Field(ge=1, le=100)] = 1
    """Number of layers, each of attention and MLP."""
    mlp_width: Annotated[int, Field(ge=0)] | None = None
    """Neurons of every MLP; by default 4 D, 0 for attention alone."""
    layer_norm: bool = True
    """Whether there is a normalisation `N`."""
    bias: bool = False
    """Whether attention, MLPs and the output have bias vectors."""

    @property
    def sigma(self) -> Activation:
        """The activation of the MLPs; without MLPs nothing has a kink."""
        if self.mlp_width == 0:
            return Linear()
        return super().sigma

    def check(self, sections: Sections) -> Iterator[Finding]:
        """Yield a width that the number of heads does not divide."""
        yield from super().check(sections)
        if self.width % self.heads:
            told = f"{self.width} is not a multiple of heads = {self.heads}"
            yield ("architecture", "width"), told

    def shapes(self, d: int) -> dict[str, tuple[int, ...]]:
        """Return the shapes of all weights, for samples of `d` columns.

        Raises:
            InputError: samples cannot be split into the tokens.
        """
        columns = self.columns(d)
        D = self.width
        M = self.mlp_width
        if M is None:
            M = 4 * D
        shapes: dict[str, tuple[int, ...]] = {}

        def matrix(name: str, rows: int, columns: int, *, bias: bool = self.bias) -> None:
            shapes[f"weight_{name}"] = (rows, columns)
            if bias:
                shapes[f"bias_{name}"] = (rows,)

        matrix("embedding", D, columns, bias=False)
        matrix("positions", self.tokens, D, bias=False)
        for layer in range(1, self.layers + 1):
            for part in ("query", "key", "value"):
                matrix(f"{part}{layer}", D, D)
            matrix(f"attention{layer}", D, D)
            if M:
                matrix(f"in{layer}", M, D)
                matrix(f"out{layer}", D, M)
        matrix("unembedding", self.outputs, D)
        return shapes

    def build(self, d: int) -> nn.Module:
        """Return the network for samples of `d` columns."""
        from dynamics_cli.architectures._networks import TransformerNetwork

        return TransformerNetwork(
            self.sigma,
            self.shapes(d),
            tokens=self.tokens,
            heads=self.heads,
            normalised=self.layer_norm,
            every=self.at_positions,
        )

    def multiply_adds(self, shapes: Shapes, d: int) -> int:
        """Return the multiply-adds of one sample: matrices, and pairs of tokens in every head."""
        matrices = sum(shape[0] * shape[-1] for shape in shapes.values() if len(shape) > 1)
        return self.tokens * matrices + 2 * self.layers * self.tokens**2 * self.width

    def layer_sizes(self, shapes: Shapes, d: int) -> list[int]:
        """Return the numbers that matrices give for all tokens, and the attention of layers."""
        attention = [self.heads * self.tokens**2] * self.layers
        return [self.tokens * size for size in super().layer_sizes(shapes, d)] + attention

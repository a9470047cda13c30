"""The networks themselves, as torch modules; the kind of its name builds each."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial

import torch
from torch import Tensor, nn

from dynamics_cli.kinds import Activation, Shapes


def _register(network: nn.Module, shapes: Shapes) -> None:
    for name, shape in shapes.items():
        network.register_parameter(name, nn.Parameter(torch.zeros(shape)))


def _single(outputs: Tensor) -> Tensor:
    """Return outputs (n, C), without their axis where C is 1: (n,)."""
    if outputs.shape[-1] == 1:
        return outputs.squeeze(-1)
    return outputs


class Units(nn.Module):
    """The activations of a layer, as a module, so that hooks see them."""

    def __init__(self, sigma: Activation) -> None:
        super().__init__()
        self.value = sigma.value

    def forward(self, z: Tensor) -> Tensor:
        """Return the activations of preactivations `z`, of their shape."""
        activations: Tensor = self.value(z)
        return activations


def _units(network: nn.Module, layers: Iterable[int], kind: Callable[[], nn.Module]) -> None:
    """Give a network a module of activations `hidden_1`, ... for each of some layers."""
    for layer in layers:
        network.add_module(f"hidden_{layer}", kind())


def _activated(network: nn.Module, layer: int, z: Tensor) -> Tensor:
    activations: Tensor = getattr(network, f"hidden_{layer}")(z)
    return activations


class TwoLayerNetwork(nn.Module):
    """Two-layer network; a bias is the last column of `hidden_weight`, its input a constant 1.

    Both weights may carry leading replica axes: `hidden_weight` (..., m, d) and `output_weight`
    (..., m).
    """

    def __init__(self, sigma: Activation, shapes: Shapes, *, train_output: bool) -> None:
        super().__init__()
        self.hidden = Units(sigma)
        self.hidden_weight = nn.Parameter(torch.zeros(shapes["hidden_weight"]))  # (m, d)
        self.several = len(shapes["output_weight"]) > 1
        self.output_weight = nn.Parameter(
            torch.zeros(shapes["output_weight"]), requires_grad=train_output
        )

    def forward(self, x: Tensor) -> Tensor:
        """Return the outputs (..., n) for inputs (n, d), or (..., n, C)."""
        z = self.hidden(x @ self.hidden_weight.mT)  # (..., n, m)
        if self.several:
            outputs: Tensor = z @ self.output_weight.mT
            return outputs
        h: Tensor = (z @ self.output_weight.unsqueeze(-1)).squeeze(-1)
        return h


class FullyConnectedNetwork(nn.Module):
    """`h(x) = W_L sigma(... sigma(W_1 x + b_1) ...) + b_L`, of `weight_1`, `bias_1`, ..."""

    def __init__(self, sigma: Activation, shapes: Shapes) -> None:
        super().__init__()
        self.depth = sum(name.startswith("weight") for name in shapes)
        _register(self, shapes)
        _units(self, range(1, self.depth), partial(Units, sigma))

    def forward(self, x: Tensor) -> Tensor:
        """Return the outputs for inputs (n, d): (n,) for one output, (n, C) for several."""
        for layer in range(1, self.depth + 1):
            bias = getattr(self, f"bias_{layer}", None)
            weight = getattr(self, f"weight_{layer}")
            x = nn.functional.linear(x, weight, bias)
            if layer < self.depth:
                x = _activated(self, layer, x)
        return _single(x)


class DiagonalLinearNetwork(nn.Module):
    """`h(x) = <u^D - v^D, x>`."""

    def __init__(self, depth: int, d: int) -> None:
        super().__init__()
        self.depth = depth
        self.u = nn.Parameter(torch.zeros(d))
        self.v = nn.Parameter(torch.zeros(d))

    def forward(self, x: Tensor) -> Tensor:
        """Return the outputs (n,) for inputs (n, d)."""
        return x @ (self.u**self.depth - self.v**self.depth)


class MatrixProductNetwork(nn.Module):
    """Entries of `W_N ... W_1`."""

    def __init__(self, shapes: Shapes) -> None:
        super().__init__()
        _register(self, shapes)

    def forward(self, x: Tensor) -> Tensor:
        """Return the outputs (n,) for pairs (n, 2) of row and column."""
        factors = list(self.parameters())
        W: Tensor = factors[0]
        for factor in factors[1:]:
            W = factor @ W
        return W[x[:, 0].long(), x[:, 1].long()]


def _norm_of_rows(norm: str, width: int) -> nn.Module:
    """Return a normalisation without gain and shift of rows (n, width)."""
    if norm == "batch":
        return nn.BatchNorm1d(width, affine=False)
    return nn.LayerNorm(width, elementwise_affine=False)


class ResidualNetwork(nn.Module):
    """`f_1 = W_1 x`, `f_l = f_(l-1) + W_l sigma(f_(l-1))`, `h = W_L sigma(f_(L-1))`."""

    def __init__(self, sigma: Activation, shapes: Shapes, norm: str | None = None) -> None:
        super().__init__()
        self.depth = len(shapes)
        self.norms: Sequence[nn.Module] | None = None
        if norm is not None:
            (width, _), *_ = shapes.values()
            self.norms = nn.ModuleList(_norm_of_rows(norm, width) for _ in range(1, self.depth))  # type: ignore[assignment]
        _register(self, shapes)
        _units(self, range(1, self.depth), partial(Units, sigma))

    def forward(self, x: Tensor) -> Tensor:
        """Return the outputs (n,) for inputs (n, d)."""
        first, *others, last = (
            getattr(self, f"weight_{layer}") for layer in range(1, self.depth + 1)
        )
        f: Tensor = x @ first.T  # (n, p)
        for layer, weight in enumerate(others, 1):
            f = f + self._hidden(layer, f) @ weight.T
        h: Tensor = (self._hidden(self.depth - 1, f) @ last.T).squeeze(-1)
        return h

    def _hidden(self, layer: int, f: Tensor) -> Tensor:
        if self.norms is not None:
            f = self.norms[layer - 1](f)
        return _activated(self, layer, f)


def _channels_last(kernels: Tensor, x: Tensor) -> tuple[Tensor, Tensor]:
    """Return kernels and images with channels last in memory, which is twice as fast on a CPU."""
    last = torch.channels_last
    try:
        return kernels.contiguous(memory_format=last), x.contiguous(memory_format=last)
    except RuntimeError:
        # `torch.func.vmap` has no such layout, and makes its convolutions those of groups
        return kernels, x


class ConvolutionalNetwork(nn.Module):
    """Convolutions, some with max pooling, then fully connected layers; ReLUs between layers."""

    def __init__(
        self, image: Sequence[int], layers: Sequence[tuple[tuple[int, ...], int, int, int]]
    ) -> None:
        super().__init__()
        self.image = tuple(image)
        self.layers = layers
        """Shape of the weight, stride, padding and pooling of every layer."""
        for number, (shape, *_) in enumerate(layers, 1):
            _register(self, {f"weight_{number}": shape, f"bias_{number}": shape[:1]})
        _units(self, range(1, len(layers)), nn.ReLU)

    def preactivations(self, x: Tensor) -> Iterator[Tensor]:
        """Yield the output of every layer for inputs (n, pixels), before its ReLU: (n, *output).

        Channels come last in memory, which is twice as fast on a CPU.
        """
        x = x.view(len(x), *self.image)
        for number, (shape, stride, padding, pool) in enumerate(self.layers, 1):
            weight, bias = (getattr(self, f"{kind}_{number}") for kind in ("weight", "bias"))
            if len(shape) == 4:
                kernels, x = _channels_last(weight, x)
                z = nn.functional.conv2d(x, kernels, bias, stride=stride, padding=padding)
            else:
                z = nn.functional.linear(x.flatten(1), weight, bias)
            yield z
            if number < len(self.layers):
                x = _activated(self, number, z)
                if pool > 1:
                    x = nn.functional.max_pool2d(x, pool)

    def forward(self, x: Tensor) -> Tensor:
        """Return the outputs for inputs (n, pixels): (n,) for one output, (n, C) for several."""
        *_, z = self.preactivations(x)
        return _single(z)


class TransformerNetwork(nn.Module):
    """Attention and MLPs on a residual stream, normalised before each; see `Transformer`."""

    def __init__(
        self,
        sigma: Activation,
        shapes: Shapes,
        *,
        tokens: int,
        heads: int,
        normalised: bool,
        every: bool,
    ) -> None:
        super().__init__()
        self.shapes = shapes
        self.tokens = tokens
        self.heads = heads
        self.normalised = normalised
        self.every = every
        _register(self, shapes)
        layers = sum(name.startswith("weight_query") for name in shapes)
        self.layers = range(1, layers + 1)
        _units(self, (k for k in self.layers if f"weight_in{k}" in shapes), partial(Units, sigma))

    def forward(self, x: Tensor) -> Tensor:
        """Return the outputs for samples (n, tokens V): (n,) for one output, (n, C) for several.

        With `every`, they are (n, T) or (n, T, C).
        """
        r = x.reshape(len(x), self.tokens, -1)  # (n, T, V)
        r = self._map("embedding", r) + self._weight("positions")  # (n, T, D)
        for layer in self.layers:
            r = r + self._attention(layer, self._normal(r))
            if f"weight_in{layer}" in self.shapes:
                hidden = _activated(self, layer, self._map(f"in{layer}", self._normal(r)))
                r = r + self._map(f"out{layer}", hidden)
        if not self.every:
            r = r[:, -1]
        return _single(self._map("unembedding", self._normal(r)))

    def _weight(self, name: str) -> Tensor:
        weight: Tensor = getattr(self, f"weight_{name}")
        return weight

    def _map(self, name: str, r: Tensor) -> Tensor:
        return nn.functional.linear(r, self._weight(name), getattr(self, f"bias_{name}", None))

    def _normal(self, r: Tensor) -> Tensor:
        if not self.normalised:
            return r
        return nn.functional.layer_norm(r, r.shape[-1:])

    def _attention(self, layer: int, r: Tensor) -> Tensor:
        """Return attention's change of the stream (n, T, D).

        It is written out, since fused kernels have no second derivative.
        """
        n, T, _ = r.shape
        parts = (self._map(f"{part}{layer}", r) for part in ("query", "key", "value"))
        # (n, H, T, k)
        q, k, v = (part.reshape(n, T, self.heads, -1).transpose(1, 2) for part in parts)
        scores = q @ k.mT / math.sqrt(q.shape[-1])  # (n, H, T, T)
        later = torch.ones(T, T, dtype=torch.bool, device=r.device).triu(1)
        scores = scores.masked_fill(later, -math.inf)
        mixed = (scores.softmax(-1) @ v).transpose(1, 2).reshape(n, T, -1)  # heads side by side
        return self._map(f"attention{layer}", mixed)

"""Networks made of the modules of torch, which draw their own weights; see `as_built`."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial

import torch
from torch import Tensor, nn

from dynamics_cli.architectures._networks import _single

INITIAL = 0.02
"""Standard deviation of GPT-2's initial weights."""


def _norm_of_images(norm: str, groups: int, channels: int) -> nn.Module:
    if norm == "batch":
        return nn.BatchNorm2d(channels)
    if norm == "group":
        return nn.GroupNorm(groups, channels)
    return nn.Identity()


def _dropout(share: float) -> nn.Module:
    """Return dropout; of nothing a module without modes, so that replicas are trained together."""
    return nn.Dropout(share) if share else nn.Identity()


class ResidualBlock(nn.Module):
    """Two convolutions with a shortcut around them."""

    def __init__(self, before: int, channels: int, stride: int, norm: str, groups: int) -> None:
        super().__init__()
        conv = partial(nn.Conv2d, kernel_size=3, padding=1, bias=norm == "none")
        self.stride = stride
        self.added = channels - before
        self.conv1 = conv(before, channels, stride=stride)
        self.norm1 = _norm_of_images(norm, groups, channels)
        self.relu1 = nn.ReLU()
        self.conv2 = conv(channels, channels)
        self.norm2 = _norm_of_images(norm, groups, channels)
        self.relu2 = nn.ReLU()

    def forward(self, x: Tensor) -> Tensor:
        """Return the images (n, channels, rows, columns) after the block."""
        z = self.relu1(self.norm1(self.conv1(x)))
        z = self.norm2(self.conv2(z))
        shortcut = x[..., :: self.stride, :: self.stride]
        # channels of 0 after those that are there
        shortcut = nn.functional.pad(shortcut, (0, 0, 0, 0, 0, self.added))
        out: Tensor = self.relu2(shortcut + z)
        return out


class ResNetNetwork(nn.Module):
    """The residual network for small images; see `ResNet`."""

    def __init__(
        self,
        image: Sequence[int],
        *,
        blocks: int,
        width: int,
        norm: str,
        groups: int,
        outputs: int,
    ) -> None:
        super().__init__()
        self.image = tuple(image)
        self.first = nn.Conv2d(image[0], width, 3, padding=1, bias=norm == "none")
        self.norm = _norm_of_images(norm, groups, width)
        self.relu = nn.ReLU()
        channels = width
        stages = []
        for stage in range(3):
            parts = []
            for k in range(blocks):
                halves = stage > 0 and k == 0
                wanted = width * 2**stage
                parts.append(ResidualBlock(channels, wanted, 2 if halves else 1, norm, groups))
                channels = wanted
            stages.append(nn.Sequential(*parts))
        self.stages = nn.Sequential(*stages)
        self.last = nn.Linear(channels, outputs)
        for part in self.modules():
            if isinstance(part, nn.Conv2d):
                nn.init.kaiming_normal_(part.weight, mode="fan_out", nonlinearity="relu")

    def forward(self, x: Tensor) -> Tensor:
        """Return the outputs for inputs (n, pixels): (n,) for one output, (n, C) for several."""
        x = x.reshape(len(x), *self.image)
        x = self.relu(self.norm(self.first(x)))
        x = self.stages(x)
        return _single(self.last(x.mean((-2, -1))))


class CausalAttention(nn.Module):
    """Causal attention with heads side by side.

    It is written out, since fused kernels have no second derivative.
    """

    def __init__(
        self, tokens: int, width: int, heads: int, dropout: float, *, rotary: bool
    ) -> None:
        super().__init__()
        self.heads = heads
        self.rotary = rotary
        self.into = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)
        self.drop = _dropout(dropout)
        later = torch.ones(tokens, tokens, dtype=torch.bool).triu(1)
        self.register_buffer("later", later, persistent=False)

    later: Tensor

    def _turned(self, q: Tensor) -> Tensor:
        """Return queries or keys (n, H, T, k), each pair of numbers turned by its angle."""
        T, k = q.shape[-2:]
        # as precise as the network: a buffer would keep the digits of float32
        pairs = torch.arange(0, k, 2, dtype=q.dtype, device=q.device)
        positions = torch.arange(T, dtype=q.dtype, device=q.device)
        angles = positions[:, None] / 10_000 ** (pairs / k)  # (T, k/2)
        cosines = angles.cos()
        sines = angles.sin()
        a, b = q.chunk(2, -1)
        return torch.cat((a * cosines - b * sines, a * sines + b * cosines), -1)

    def forward(self, r: Tensor) -> Tensor:
        """Return attention's change of the stream (n, T, D)."""
        n, T, _ = r.shape
        parts = self.into(r).chunk(3, -1)
        # (n, H, T, k)
        q, k, v = (part.reshape(n, T, self.heads, -1).transpose(1, 2) for part in parts)
        if self.rotary:
            q = self._turned(q)
            k = self._turned(k)
        scores = q @ k.mT / math.sqrt(q.shape[-1])  # (n, H, T, T)
        scores = scores.masked_fill(self.later, -math.inf)
        weights = self.drop(scores.softmax(-1))
        mixed = (weights @ v).transpose(1, 2).reshape(n, T, -1)
        change: Tensor = self.out(mixed)
        return change


class GptLayer(nn.Module):
    """Attention and an MLP, each normalised before and added to the stream."""

    def __init__(
        self, tokens: int, width: int, heads: int, dropout: float, *, rotary: bool
    ) -> None:
        super().__init__()
        self.norm1 = nn.LayerNorm(width)
        self.attention = CausalAttention(tokens, width, heads, dropout, rotary=rotary)
        self.norm2 = nn.LayerNorm(width)
        self.into = nn.Linear(width, 4 * width)
        self.gelu = nn.GELU()
        self.out = nn.Linear(4 * width, width)
        self.drop = _dropout(dropout)

    def forward(self, r: Tensor) -> Tensor:
        """Return the stream (n, T, D) after the layer."""
        r = r + self.drop(self.attention(self.norm1(r)))
        hidden = self.gelu(self.into(self.norm2(r)))
        after: Tensor = r + self.drop(self.out(hidden))
        return after


class GptNetwork(nn.Module):
    """GPT-2; see `Gpt`."""

    def __init__(
        self,
        columns: int,
        outputs: int,
        *,
        tokens: int,
        width: int,
        layers: int,
        heads: int,
        dropout: float,
        rotary: bool,
        tied: bool,
        every: bool,
    ) -> None:
        super().__init__()
        self.tokens = tokens
        self.every = every
        self.embedding = nn.Linear(columns, width, bias=False)
        self.positions = None if rotary else nn.Parameter(torch.zeros(tokens, width))
        self.drop = _dropout(dropout)
        self.layers = nn.Sequential(
            *(GptLayer(tokens, width, heads, dropout, rotary=rotary) for _ in range(layers))
        )
        self.norm = nn.LayerNorm(width)
        self.head = None if tied else nn.Linear(width, outputs, bias=False)
        self._draw(layers)

    def _draw(self, layers: int) -> None:
        """Draw the initial weights."""
        for name, weight in self.named_parameters():
            if name.endswith("bias"):
                nn.init.zeros_(weight)
            elif "norm" not in name:
                adds = name.endswith("out.weight")
                nn.init.normal_(weight, std=INITIAL / math.sqrt(2 * layers) if adds else INITIAL)

    def forward(self, x: Tensor) -> Tensor:
        """Return outputs (n,) or (n, C) of samples (n, tokens V).

        At every token they are (n, T) or (n, T, C).
        """
        r = self.embedding(x.reshape(len(x), self.tokens, -1))  # (n, T, D)
        if self.positions is not None:
            r = r + self.positions
        r = self.norm(self.layers(self.drop(r)))
        if not self.every:
            r = r[:, -1]
        if self.head is None:
            return _single(r @ self.embedding.weight)
        return _single(self.head(r))


CELLS = {"rnn": nn.RNN, "gru": nn.GRU, "lstm": nn.LSTM}


class RecurrentNetwork(nn.Module):
    """Layers of recurrent cells, and a linear map of their state; see `Recurrent`."""

    def __init__(
        self,
        columns: int,
        outputs: int,
        *,
        cell: str,
        tokens: int,
        width: int,
        layers: int,
        dropout: float,
        every: bool,
    ) -> None:
        super().__init__()
        self.tokens = tokens
        self.every = every
        self.cells = CELLS[cell](columns, width, layers, batch_first=True, dropout=dropout)
        self.last = nn.Linear(width, outputs)

    def forward(self, x: Tensor) -> Tensor:
        """Return outputs (n,) or (n, C) of samples (n, tokens V).

        At every token they are (n, T) or (n, T, C).
        """
        states, _ = self.cells(x.reshape(len(x), self.tokens, -1))  # (n, T, D)
        if not self.every:
            states = states[:, -1]
        return _single(self.last(states))

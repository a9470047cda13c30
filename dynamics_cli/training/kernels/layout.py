"""Between the papers' layout of weights (neurons first) and that of the kernels (neurons last, padded)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Weights = NDArray[np.floating]
LANES = 16
"""Neurons are padded to a multiple of this: padding starts at 0, and every update of a zero neuron is 0."""
_LINE = 64
_UNPADDED = 8
"""Fewer neurons are not padded: that would only be more work."""


def pack(hidden: Weights, output: Weights, block: int | None = None) -> tuple[Weights, Weights]:
    """Return `W` (G, d, B) and `a` (G, B) from `hidden` (G, m, d) and `output` (G, m).

    With `block`, one network (1, m, d) becomes G blocks of `block` neurons each.
    """
    G, m, d = hidden.shape
    padded = m if m < _UNPADDED and block is None else round_up(m, block or LANES)
    block = block or padded
    W = aligned_zeros((G * padded // block, d, block), hidden.dtype)
    a = aligned_zeros((G * padded // block, block), output.dtype)
    a.reshape(G, padded)[:, :m] = output
    neurons_first = np.zeros((G, padded, d), hidden.dtype)
    neurons_first[:, :m] = hidden
    W[:] = neurons_first.reshape(-1, block, d).swapaxes(-1, -2)
    return W, a


def aligned_zeros(shape: tuple[int, ...], dtype: np.dtype[Any]) -> Weights:
    """Return zeros that start at a cache line, so that no vector of `LANES` numbers lies on two."""
    size = int(np.prod(shape)) * dtype.itemsize
    raw = np.zeros(size + _LINE, np.uint8)
    start = -raw.ctypes.data % _LINE
    return raw[start : start + size].view(dtype).reshape(shape)


def unpack(W: Weights, a: Weights, m: int, *, blocks: bool = False) -> tuple[Weights, Weights]:
    """Return `hidden` (G, m, d) and `output` (G, m), copies; the inverse of `pack`."""
    d = W.shape[1]
    hidden = W.swapaxes(-1, -2)
    if blocks:
        hidden, a = hidden.reshape(1, -1, d), a.reshape(1, -1)
    return np.array(hidden[:, :m]), np.array(a[:, :m])


def round_up(m: int, multiple: int) -> int:
    """Return the least multiple that is not below `m`."""
    return -(-m // multiple) * multiple


@dataclass(frozen=True)
class Rows:
    """Inputs as entries: `values[q, p]` stands in column `indices[p]`, sample k has those from `starts[k]` on."""

    values: Weights
    """(Q, entries): Q data sets of the same pattern."""
    indices: NDArray[np.int64]
    starts: NDArray[np.int64]


def dense_rows(x: Weights) -> Rows:
    """Return all entries of inputs (Q, n, d)."""
    Q, n, d = x.shape
    return Rows(np.ascontiguousarray(x.reshape(Q, n * d)), np.tile(np.arange(d), n), np.arange(n + 1) * d)


def sparse_rows(x: Weights) -> Rows:
    """Return the non-zero entries of inputs (1, n, d); all entries where several data sets would differ in pattern."""
    if len(x) > 1:
        return dense_rows(x)
    samples, columns = np.nonzero(x[0])
    counts = np.bincount(samples, minlength=x.shape[1])
    return Rows(x[0][samples, columns][None], columns.astype(np.int64), np.concatenate([[0], np.cumsum(counts)]))

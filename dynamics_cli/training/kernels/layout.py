"""Between the papers' layout of weights (neurons first) and that of the kernels (neurons last, padded)."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Weights = NDArray[np.floating]
LANES = 16
"""Neurons are padded to a multiple of this: padding starts at 0, and every update of a zero neuron is 0."""
_LINE = 64
_UNPADDED = 8
"""Fewer neurons are not padded: that would only be more work."""


def pack(hidden: Weights, output: Weights, block: int = 0) -> tuple[Weights, Weights]:
    """Return `W` (R, d, m') and `a` (R, m') from `hidden` (R, m, d) and `output` (R, m).

    With a size of blocks, `W` is (R, blocks, d, block) and `a` (R, blocks, block).
    """
    R, m, d = hidden.shape
    size = block or (m if m < _UNPADDED else -(-m // LANES) * LANES)
    lead = (R, -(-m // block)) if block else (R,)
    W, a = aligned_zeros((*lead, d, size), hidden.dtype), aligned_zeros((*lead, size), output.dtype)
    padding = ((0, 0), (0, -m % size))
    W[:] = np.pad(hidden, (*padding, (0, 0))).reshape(*lead, size, d).swapaxes(-1, -2)
    a[:] = np.pad(output, padding).reshape(a.shape)
    return W, a


def aligned_zeros(shape: tuple[int, ...], dtype: np.dtype[Any]) -> Weights:
    """Return zeros that start at a cache line, so that no vector of `LANES` numbers lies on two."""
    size = int(np.prod(shape)) * dtype.itemsize
    raw = np.zeros(size + _LINE, np.uint8)
    start = -raw.ctypes.data % _LINE
    return raw[start : start + size].view(dtype).reshape(shape)


def unpack(W: Weights, a: Weights, m: int) -> tuple[Weights, Weights]:
    """Return `hidden` (R, m, d) and `output` (R, m), copies; the inverse of `pack`."""
    R, d = len(W), W.shape[-2]
    return np.array(W.swapaxes(-1, -2).reshape(R, -1, d)[:, :m]), np.array(a.reshape(R, -1)[:, :m])


def sparse_rows(x: Weights) -> tuple[Weights, NDArray[np.int64], NDArray[np.int64]]:
    """Return the non-zero entries of inputs (Q, n, d), of all columns where several data sets differ in pattern.

    Entry `[q, p]` (Q, entries) stands in column `indices[p]`; those of sample k begin at `starts[k]`.
    """
    Q, n, d = x.shape
    seen = x[0] != 0 if Q == 1 else np.ones((n, d), bool)
    samples, columns = np.nonzero(seen)
    starts = np.concatenate([[0], np.cumsum(np.bincount(samples, minlength=n))])
    return np.ascontiguousarray(x[:, samples, columns]), columns.astype(np.int64), starts

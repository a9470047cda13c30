"""The kernels of two-layer networks, which `training/steppers/compiled.py` alone calls.

`run_dense`, `run_dense_replicas` and `run_wide` train by full batches on few input columns: a thread a network, all
for a wide one. `run_samples` trains sample by sample, on inputs given by their non-zero entries: black pixels are free.
Weights stand with neurons last, `W` (d, m) and `a` (m,), so that the inner loops run over neurons and vectorise.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numba
import numpy as np
from numpy.typing import NDArray

from dynamics_cli.compiling import INLINE, OPTIONS
from dynamics_cli.engine.subnormals import flush, put_back

Array = NDArray[Any]
_Decorator = Callable[[Callable[..., Any]], Any]
_inline: _Decorator = numba.njit(**INLINE)
_kernel: _Decorator = numba.njit(**OPTIONS)
_kernel_and_piece: _Decorator = numba.njit(inline="always", **OPTIONS)
_kernel_on_all_cores: _Decorator = numba.njit(parallel=True, **OPTIONS)

BLOCK = 1024
"""Neurons of a block of a wide network: the weights and activations of a block stay in the caches."""
WIDE = 2**19
"""Weights and activations from which on a network is wide: less would not repay that the cores wait for each other."""


# -- losses, by the numbers of `LOSS_NUMBERS`; `one` is 1 in the precision of the run, so that literals do not widen it


@_inline
def loss_value(kind: int, h: Any, y: Any, one: Any) -> Any:
    """Return `l(h, y)`."""
    if kind == 0:
        return (h - y) * (h - y)
    if kind == 1:
        return (h - y) * (h - y) * (one / (one + one))
    z = y * h
    if kind == 2:
        return max(-z, one - one) + np.log1p(np.exp(-abs(z)))
    if kind == 3:
        return np.exp(-z)
    return max(one - z, one - one)


@_inline
def loss_derivative(kind: int, h: Any, y: Any, one: Any) -> Any:
    """Return `dl/dh`."""
    if kind == 0:
        return (h - y) + (h - y)
    if kind == 1:
        return h - y
    z = y * h
    if kind == 2:
        s = np.exp(-abs(z))
        return -y * (s if z > 0 else one) / (one + s)
    if kind == 3:
        return -y * np.exp(-z)
    return -y if z < one else one - one


# -- full batches of few columns


@_inline
def forward(W: Array, a: Array, x: Array, columns: Any, k: int, z: Array, alpha: Any) -> Any:
    """Return the output on sample k, and write the pre-activations into `z[k]`."""
    D, zero = len(columns), W.dtype.type(0)
    h = zero
    for j in range(a.shape[0]):
        s = zero
        for i in range(D):
            s += x[k * D + i] * W[i, j]
        z[k, j] = s
        h += a[j] * (s if s > zero else alpha * s)
    return h


@_inline
def update(
    W: Array, a: Array, x: Array, columns: Any, z: Array, gW: Array, r: Array, loss: Any, alpha: Any,
    train_output: bool, loss_scaled: bool,
) -> None:  # fmt: skip
    """Update the weights, given the weighted derivatives `r` (n,) of the loss; `gW` (d, m) is work space.

    The gradient of `a_j` is `<w_j, g_j>`, where `a_j g_j` is the gradient of `w_j`: activations are homogeneous.
    """
    D, zero = len(columns), W.dtype.type(0)
    gW[:] = zero
    for k in range(r.shape[0]):
        active = r[k] / loss if loss_scaled else r[k]
        passive = alpha * active
        for j in range(a.shape[0]):
            g = active if z[k, j] > zero else passive
            for i in range(D):
                gW[i, j] += g * x[k * D + i]
    for j in range(a.shape[0]):
        aj = a[j]
        ga = zero
        for i in range(D):
            ga += W[i, j] * gW[i, j]
            W[i, j] -= aj * gW[i, j]
        if train_output:
            a[j] = aj - ga


@_kernel_and_piece
def run_dense(
    W: Array, a: Array, x: Array, columns: Any, y: Array, losses: Array, count: int, lr: Any, weight: Any, alpha: Any,
    kind: int, train_output: bool, loss_scaled: bool, stop_below: Any,
) -> Any:  # fmt: skip
    """Train one network on few input columns, in place; return the number of updates done.

    `columns` is a tuple with an entry for each column: its length is a constant for the compiler, which
    unrolls the loops over columns. `x` (n d,) is flat.
    """
    former, done = flush(), count
    n, one = y.shape[0], W.dtype.type(1)
    z, r, gW = np.empty((n, a.shape[0]), W.dtype), np.empty(n, W.dtype), np.empty_like(W)
    for t in range(count):
        loss = one - one
        for k in range(n):
            h = forward(W, a, x, columns, k, z, alpha)
            loss += loss_value(kind, h, y[k], one)
            r[k] = loss_derivative(kind, h, y[k], one) * weight * lr
        loss *= weight
        losses[t] = loss
        if not np.isfinite(loss) or loss <= stop_below:
            done = t
            break
        update(W, a, x, columns, z, gW, r, loss, alpha, train_output, loss_scaled)
    put_back(former)
    return done


@_kernel_on_all_cores
def run_dense_replicas(
    W: Array, a: Array, x: Array, columns: Any, y: Array, losses: Array, done: Array, count: int, lr: Array,
    weight: Any, alpha: Array, kind: int, train_output: bool, loss_scaled: bool, stop_below: Array,
) -> None:  # fmt: skip
    """Train R networks as `run_dense` does, each on one thread; `done` (R,) gets the numbers of updates."""
    for r in numba.prange(W.shape[0]):
        q = np.int64(r) % y.shape[0]  # one data set for all, or one each
        done[r] = run_dense(
            W[r], a[r], x[q], columns, y[q], losses[r], count, lr[r], weight, alpha[r], kind,
            train_output, loss_scaled, stop_below[r],
        )  # fmt: skip


@_kernel_on_all_cores
def run_wide(
    W: Array, a: Array, x: Array, columns: Any, y: Array, losses: Array, count: int, lr: Any, weight: Any, alpha: Any,
    kind: int, train_output: bool, loss_scaled: bool, stop_below: Any,
) -> Any:  # fmt: skip
    """Train one network as `run_dense` does, in blocks of neurons on all cores: `W` (blocks, d, m), `a` (blocks, m).

    A block is updated and its outputs in the next state are computed while it is in the cache. Blocks are summed in a
    fixed order, so the number of threads does not change a bit.
    """
    done, n, blocks, one = count, y.shape[0], W.shape[0], W.dtype.type(1)
    z = np.empty((blocks, n, W.shape[2]), W.dtype)
    parts, r, loss = np.empty((blocks, n), W.dtype), np.empty(n, W.dtype), one
    for t in range(count + 1):
        for b in numba.prange(blocks):
            q, own = np.int64(b), flush()
            if t > 0:
                gW = np.empty(W.shape[1:], W.dtype)
                update(W[q], a[q], x, columns, z[q], gW, r, loss, alpha, train_output, loss_scaled)
            if t < count:
                for k in range(n):
                    parts[q, k] = forward(W[q], a[q], x, columns, k, z[q], alpha)
            put_back(own)
        if t == count:
            break
        former = flush()  # not before: threads that start take over the flags of this one
        loss = one - one
        for k in range(n):
            h = parts[0, k]
            for b in range(1, blocks):
                h += parts[b, k]
            loss += loss_value(kind, h, y[k], one)
            r[k] = loss_derivative(kind, h, y[k], one) * weight * lr
        loss *= weight
        put_back(former)
        losses[t] = loss
        if not np.isfinite(loss) or loss <= stop_below:
            done = t
            break
    return done


# -- sample by sample, from non-zero entries


@_inline
def preactivations(W: Array, values: Array, indices: Array, starts: Array, k: int, z: Array) -> None:
    """Write `<w_j, x_k>` of all neurons into `z` (m,), from the non-zero entries of `x_k`, four at a time."""
    z[:] = W.dtype.type(0)
    p, end = starts[k], starts[k + 1]
    while p + 4 <= end:
        w0, w1, w2, w3 = W[indices[p]], W[indices[p + 1]], W[indices[p + 2]], W[indices[p + 3]]
        v0, v1, v2, v3 = values[p], values[p + 1], values[p + 2], values[p + 3]
        for j in range(z.shape[0]):
            z[j] += (v0 * w0[j] + v1 * w1[j]) + (v2 * w2[j] + v3 * w3[j])
        p += 4
    while p < end:
        i, v = indices[p], values[p]
        for j in range(z.shape[0]):
            z[j] += v * W[i, j]
        p += 1


@_inline
def output(a: Array, z: Array, alpha: Any) -> Any:
    """Return `sum_j a_j sigma(z_j)`."""
    zero = a.dtype.type(0)
    h = zero
    for j in range(z.shape[0]):
        h += a[j] * (z[j] if z[j] > zero else alpha * z[j])
    return h


@_inline
def subtract_outer(W: Array, values: Array, indices: Array, starts: Array, k: int, z: Array) -> None:
    """Subtract `x_ki z_j` from `W` (d, m) for the non-zero entries of `x_k`, two at a time."""
    p, end = starts[k], starts[k + 1]
    while p + 2 <= end:
        w0, w1, v0, v1 = W[indices[p]], W[indices[p + 1]], values[p], values[p + 1]
        for j in range(z.shape[0]):
            w0[j] -= v0 * z[j]
            w1[j] -= v1 * z[j]
        p += 2
    if p < end:
        i, v = indices[p], values[p]
        for j in range(z.shape[0]):
            W[i, j] -= v * z[j]


@_kernel
def run_samples(
    W: Array, a: Array, values: Array, indices: Array, starts: Array, y: Array, samples: Array, lr: Any, alpha: Any,
    kind: int, train_output: bool,
) -> None:  # fmt: skip
    """Do one update for each of `samples`: only the rows of its non-zero entries change."""
    former, m, zero, one = flush(), a.shape[0], W.dtype.type(0), W.dtype.type(1)
    z, ga = np.empty(m, W.dtype), np.empty(m, W.dtype)
    for k in samples:
        preactivations(W, values, indices, starts, k, z)
        r = loss_derivative(kind, output(a, z, alpha), y[k], one) * lr
        for j in range(m):
            s = z[j]
            ga[j] = r * (s if s > zero else alpha * s)
            z[j] = a[j] * (r if s > zero else alpha * r)
        subtract_outer(W, values, indices, starts, k, z)
        if train_output:
            for j in range(m):
                a[j] -= ga[j]
    put_back(former)


@_kernel
def summed_loss(
    W: Array, a: Array, values: Array, indices: Array, starts: Array, y: Array, first: int, last: int, alpha: Any,
    kind: int,
) -> Any:  # fmt: skip
    """Return the sum of the losses of samples `first` to `last`, this one excluded, in float64."""
    former, one = flush(), W.dtype.type(1)
    z = np.empty(a.shape[0], W.dtype)
    total = 0.0
    for k in range(first, last):
        preactivations(W, values, indices, starts, k, z)
        total += loss_value(kind, output(a, z, alpha), y[k], one)
    put_back(former)
    return total

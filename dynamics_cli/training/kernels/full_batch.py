"""Full-batch gradient descent of two-layer networks on few input columns: a thread a network, all for a wide one."""

from __future__ import annotations

import numba
import numpy as np

from dynamics_cli.compiling import INLINE, OPTIONS
from dynamics_cli.engine.subnormals import flush, put_back
from dynamics_cli.training.kernels.common import loss_derivative, loss_value

BLOCK = 1024
"""Neurons of a block of a wide network: the weights and activations of a block stay in the caches."""
WIDE = 2**19
"""Weights and activations from which on a network is wide: less would not repay that the cores wait for each other."""


@numba.njit(**INLINE)
def output(W, a, x, columns, k, z, alpha):  # type: ignore[no-untyped-def]
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


@numba.njit(**INLINE)
def update(W, a, x, columns, z, gW, r, loss, alpha, train_output, loss_scaled):  # type: ignore[no-untyped-def]
    """Update the weights, given the weighted derivatives `r` (n,) of the loss; `gW` (d, m) is work space.

    The gradient of `a_j` is `<w_j, g_j>`, where `a_j g_j` is that of `w_j`: activations are homogeneous.
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


@numba.njit(inline="always", **OPTIONS)
def run_dense(  # type: ignore[no-untyped-def]
    W, a, x, columns, y, losses, count, lr, weight, alpha, kind, train_output, loss_scaled, stop_below
):
    """Train one network on few input columns, in place; return the number of updates done.

    `columns` is a tuple of as many entries as there are columns: its length is a constant for the compiler, which
    unrolls the loops over columns. `x` (n d,) is flat.
    """
    former, done = flush(), count
    n, one = y.shape[0], W.dtype.type(1)
    z, r, gW = np.empty((n, a.shape[0]), W.dtype), np.empty(n, W.dtype), np.empty_like(W)
    for t in range(count):
        loss = one - one
        for k in range(n):
            h = output(W, a, x, columns, k, z, alpha)
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


@numba.njit(parallel=True, **OPTIONS)
def run_dense_replicas(  # type: ignore[no-untyped-def]
    W, a, x, columns, y, losses, done, count, lr, weight, alpha, kind, train_output, loss_scaled, stop_below
):
    """Train R networks as `run_dense` does, each on one thread; `done` (R,) gets the numbers of updates."""
    for r in numba.prange(W.shape[0]):
        q = np.int64(r) % y.shape[0]  # one data set for all, or one each
        done[r] = run_dense(
            W[r], a[r], x[q], columns, y[q], losses[r], count, lr[r], weight, alpha[r], kind,
            train_output, loss_scaled, stop_below[r],
        )  # fmt: skip


@numba.njit(parallel=True, **OPTIONS)
def run_wide(  # type: ignore[no-untyped-def]
    W, a, x, columns, y, losses, count, lr, weight, alpha, kind, train_output, loss_scaled, stop_below
):
    """Train one network as `run_dense` does, in blocks of neurons on all cores: `W` (blocks, d, m), `a` (blocks, m).

    A block is updated and its outputs in the next state are computed while it is in the cache. Blocks are summed in a
    fixed order, so the number of threads does not change a bit.
    """
    former, done = flush(), count
    n, blocks, one = y.shape[0], W.shape[0], W.dtype.type(1)
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
                    parts[q, k] = output(W[q], a[q], x, columns, k, z[q], alpha)
            put_back(own)
        if t == count:
            break
        loss = one - one
        for k in range(n):
            h = parts[0, k]
            for b in range(1, blocks):
                h += parts[b, k]
            loss += loss_value(kind, h, y[k], one)
            r[k] = loss_derivative(kind, h, y[k], one) * weight * lr
        loss *= weight
        losses[t] = loss
        if not np.isfinite(loss) or loss <= stop_below:
            done = t
            break
    put_back(former)
    return done

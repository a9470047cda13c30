"""Full-batch gradient descent of very wide two-layer networks: one pass over the neurons per iteration, all cores.

Neurons are stored in blocks, `W` (blocks, d, BLOCK) and `a` (blocks, BLOCK), padded with neurons that are and stay 0.
The update of iteration t and the outputs of iteration t + 1 are computed while a block is in the first cache. Blocks
are summed in a fixed order, so the number of threads does not change a bit.
"""

from __future__ import annotations

import numba
import numpy as np

from dynamics_cli.compiling import INLINE, OPTIONS
from dynamics_cli.training.kernels.common import loss_derivative, loss_value
from dynamics_cli.training.kernels.full_batch import move_few_columns

BLOCK = 1024
"""Neurons a block."""
PARTS = 64
"""Most pieces of work that go to the cores."""


@numba.njit(**INLINE)
def step(W, a, x, columns, gW, r, h, alpha, train_output, updating):  # type: ignore[no-untyped-def]
    """Update one block with the weighted derivatives `r` (n,), then add up its part of the outputs `h` (n,).

    Samples are taken three at a time, whose numbers stay in registers. `gW` (d, BLOCK) is work space.
    """
    n = h.shape[0]
    if updating:
        gW[:] = W.dtype.type(0)
        for k in range(0, n - 2, 3):
            add_three(W, gW, x, columns, k, r, alpha)
        for k in range(n - n % 3, n):
            add_one(W, gW, x, columns, k, r, alpha)
        move_few_columns(W, a, gW, columns, train_output)
    for k in range(0, n - 2, 3):
        h[k], h[k + 1], h[k + 2] = three_outputs(W, a, x, columns, k, alpha)
    for k in range(n - n % 3, n):
        h[k] = one_output(W, a, x, columns, k, alpha)


@numba.njit(**INLINE)
def add_three(W, gW, x, columns, k, r, alpha):  # type: ignore[no-untyped-def]
    """Add samples k, k + 1, k + 2 to `gW`, the gradient of W before its factor `a_j`."""
    D, zero = len(columns), W.dtype.type(0)
    p0, p1, p2 = k * D, (k + 1) * D, (k + 2) * D
    r0, r1, r2 = r[k], r[k + 1], r[k + 2]
    q0, q1, q2 = alpha * r0, alpha * r1, alpha * r2
    for j in range(W.shape[1]):
        s0, s1, s2 = zero, zero, zero
        for i in range(D):
            w = W[i, j]
            s0 += x[p0 + i] * w
            s1 += x[p1 + i] * w
            s2 += x[p2 + i] * w
        g0, g1, g2 = r0 if s0 > zero else q0, r1 if s1 > zero else q1, r2 if s2 > zero else q2
        for i in range(D):
            gW[i, j] += g0 * x[p0 + i] + g1 * x[p1 + i] + g2 * x[p2 + i]


@numba.njit(**INLINE)
def add_one(W, gW, x, columns, k, r, alpha):  # type: ignore[no-untyped-def]
    """Add sample k to `gW`."""
    D, zero = len(columns), W.dtype.type(0)
    for j in range(W.shape[1]):
        s = zero
        for i in range(D):
            s += x[k * D + i] * W[i, j]
        g = r[k] if s > zero else alpha * r[k]
        for i in range(D):
            gW[i, j] += g * x[k * D + i]


@numba.njit(**INLINE)
def three_outputs(W, a, x, columns, k, alpha):  # type: ignore[no-untyped-def]
    """Return the block's part of the outputs on samples k, k + 1, k + 2."""
    D, zero = len(columns), W.dtype.type(0)
    p0, p1, p2 = k * D, (k + 1) * D, (k + 2) * D
    h0, h1, h2 = zero, zero, zero
    for j in range(W.shape[1]):
        s0, s1, s2 = zero, zero, zero
        for i in range(D):
            w = W[i, j]
            s0 += x[p0 + i] * w
            s1 += x[p1 + i] * w
            s2 += x[p2 + i] * w
        h0 += a[j] * (s0 if s0 > zero else alpha * s0)
        h1 += a[j] * (s1 if s1 > zero else alpha * s1)
        h2 += a[j] * (s2 if s2 > zero else alpha * s2)
    return h0, h1, h2


@numba.njit(**INLINE)
def one_output(W, a, x, columns, k, alpha):  # type: ignore[no-untyped-def]
    """Return the block's part of the output on sample k."""
    D, zero = len(columns), W.dtype.type(0)
    h = zero
    for j in range(W.shape[1]):
        s = zero
        for i in range(D):
            s += x[k * D + i] * W[i, j]
        h += a[j] * (s if s > zero else alpha * s)
    return h


@numba.njit(parallel=True, **OPTIONS)
def sweep(W, a, x, columns, gW, r, partial, alpha, train_output, updating):  # type: ignore[no-untyped-def]
    """Take one step with every block, on all cores; `gW` (PARTS, d, BLOCK) is work space."""
    blocks, parts = W.shape[0], gW.shape[0]
    for p in numba.prange(parts):
        q = np.int64(p)
        for b in range(q * blocks // parts, (q + 1) * blocks // parts):
            step(W[b], a[b], x, columns, gW[q], r, partial[b], alpha, train_output, updating)


@numba.njit(**OPTIONS)
def run_wide(  # type: ignore[no-untyped-def]
    W, a, x, columns, y, losses, count, lr, weight, alpha, kind, train_output, loss_scaled, stop_below
):
    """Train one wide network, in place; `columns` as for `run_dense`. Return the number of updates done."""
    n = y.shape[0]
    zero, one = W.dtype.type(0), W.dtype.type(1)
    r = np.zeros(n, W.dtype)
    partial = np.empty((W.shape[0], n), W.dtype)
    gW = np.empty((min(PARTS, W.shape[0]), *W.shape[1:]), W.dtype)
    sweep(W, a, x, columns, gW, r, partial, alpha, train_output, False)
    for t in range(count):
        loss = zero
        for k in range(n):
            h = zero
            for b in range(partial.shape[0]):
                h += partial[b, k]
            loss += loss_value(kind, h, y[k], one)
            r[k] = loss_derivative(kind, h, y[k], one) * weight * lr
        loss *= weight
        losses[t] = loss
        if not np.isfinite(loss) or loss <= stop_below:
            return t
        if loss_scaled:
            for k in range(n):
                r[k] /= loss
        sweep(W, a, x, columns, gW, r, partial, alpha, train_output, True)
    return count

"""Full-batch gradient descent of very wide two-layer networks: one pass over the neurons per iteration, all cores.

Neurons are stored in blocks, `W` (blocks, d, BLOCK) and `a` (blocks, BLOCK), padded with neurons that are and stay 0.
The update of iteration t and the outputs of iteration t + 1 are computed while a block is in the first cache. Blocks
are summed in a fixed order, so the number of threads does not change a bit.
"""

from __future__ import annotations

import numba
import numpy as np

from dynamics_cli.training.kernels.common import OPTIONS, loss_derivative, loss_value

BLOCK = 1024
"""Neurons a block."""


@numba.njit(**OPTIONS)
def step(W, a, x, columns, r, h, alpha, train_output, updating):  # type: ignore[no-untyped-def]
    """Update one block with the weighted derivatives `r` (n,), then add up its part of the outputs `h` (n,)."""
    D = len(columns)
    n, m = h.shape[0], a.shape[0]
    zero = W.dtype.type(0)
    if updating:
        gW, ga = np.zeros((D, m), W.dtype), np.zeros(m, W.dtype)
        for k in range(n):
            rk = r[k]
            for j in range(m):
                s = zero
                for i in range(D):
                    s += x[k * D + i] * W[i, j]
                ga[j] += rk * (s if s > zero else alpha * s)
                g = rk if s > zero else alpha * rk
                for i in range(D):
                    gW[i, j] += g * x[k * D + i]
        for j in range(m):
            for i in range(D):
                W[i, j] -= a[j] * gW[i, j]
        if train_output:
            for j in range(m):
                a[j] -= ga[j]
    for k in range(n):
        total = zero
        for j in range(m):
            s = zero
            for i in range(D):
                s += x[k * D + i] * W[i, j]
            total += a[j] * (s if s > zero else alpha * s)
        h[k] = total


@numba.njit(parallel=True, **OPTIONS)
def sweep(W, a, x, columns, r, partial, alpha, train_output, updating):  # type: ignore[no-untyped-def]
    """Take one step with every block, on all cores."""
    for b in numba.prange(W.shape[0]):
        step(W[b], a[b], x, columns, r, partial[b], alpha, train_output, updating)


@numba.njit(**OPTIONS)
def run_wide(  # type: ignore[no-untyped-def]
    W, a, x, columns, y, losses, count, lr, weight, alpha, kind, train_output, loss_scaled, stop_below
):
    """Train one wide network, in place; `columns` as for `run_dense`. Return the number of updates done."""
    n = y.shape[0]
    zero, one = W.dtype.type(0), W.dtype.type(1)
    r = np.zeros(n, W.dtype)
    partial = np.empty((W.shape[0], n), W.dtype)
    sweep(W, a, x, columns, r, partial, alpha, train_output, False)
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
        sweep(W, a, x, columns, r, partial, alpha, train_output, True)
    return count

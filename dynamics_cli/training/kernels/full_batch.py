"""Full-batch gradient descent of two-layer networks on few input columns, one thread a network."""

from __future__ import annotations

import numba
import numpy as np

from dynamics_cli.compiling import OPTIONS
from dynamics_cli.training.kernels.common import loss_derivative, loss_value


@numba.njit(inline="always", **OPTIONS)
def run_dense(  # type: ignore[no-untyped-def]
    W, a, x, columns, y, losses, count, lr, weight, alpha, kind, train_output, loss_scaled, stop_below
):
    """Train one network on few input columns, in place; return the number of updates done.

    `columns` is a tuple of as many entries as there are columns: its length is a constant for the compiler, which
    unrolls the loops over columns. `x` (n d,) is flat. The gradient of `a_j` is `<w_j, g_j>`, where `a_j g_j` is that
    of `w_j`: activations are homogeneous.
    """
    D = len(columns)
    n, m = y.shape[0], a.shape[0]
    zero, one = W.dtype.type(0), W.dtype.type(1)
    z = np.empty((n, m), W.dtype)
    r = np.empty(n, W.dtype)
    gW = np.empty((D, m), W.dtype)
    for t in range(count):
        loss = zero
        for k in range(n):
            h = zero
            for j in range(m):
                s = zero
                for i in range(D):
                    s += x[k * D + i] * W[i, j]
                z[k, j] = s
                h += a[j] * (s if s > zero else alpha * s)
            loss += loss_value(kind, h, y[k], one)
            r[k] = loss_derivative(kind, h, y[k], one) * weight * lr
        loss *= weight
        losses[t] = loss
        if not np.isfinite(loss) or loss <= stop_below:
            return t
        gW[:] = zero
        for k in range(n):
            active = r[k] / loss if loss_scaled else r[k]
            passive = alpha * active
            for j in range(m):
                g = active if z[k, j] > zero else passive
                for i in range(D):
                    gW[i, j] += g * x[k * D + i]
        for j in range(m):
            aj = a[j]
            ga = zero
            for i in range(D):
                ga += W[i, j] * gW[i, j]
                W[i, j] -= aj * gW[i, j]
            if train_output:
                a[j] = aj - ga
    return count


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

"""Full-batch gradient descent of small two-layer networks, one thread a network."""

from __future__ import annotations

import numba
import numpy as np

from dynamics_cli.training.kernels.common import OPTIONS, loss_derivative, loss_value

UNROLLED = 4
"""Up to this many input columns `run_dense` is used."""


@numba.njit(**OPTIONS)
def run_dense(  # type: ignore[no-untyped-def]
    W, a, x, columns, y, losses, count, lr, weight, alpha, kind, train_output, loss_scaled, stop_below
):
    """Train one network on few input columns, in place; return the number of updates done.

    `columns` is a tuple of as many entries as there are columns: its length is a constant for the compiler, which
    unrolls the loops over columns. `x` (n d,) is flat.
    """
    D = len(columns)
    n, m = y.shape[0], a.shape[0]
    zero, one = W.dtype.type(0), W.dtype.type(1)
    z = np.empty((n, m), W.dtype)
    r = np.empty(n, W.dtype)
    gW, ga = np.empty((D, m), W.dtype), np.empty(m, W.dtype)
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
        ga[:] = zero
        gW[:] = zero
        for k in range(n):
            rk = r[k] / loss if loss_scaled else r[k]
            for j in range(m):
                s = z[k, j]
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
    return count


@numba.njit(**OPTIONS)
def run_sparse(  # type: ignore[no-untyped-def]
    W, a, values, indices, starts, y, losses, count, lr, weight, alpha, kind, train_output, loss_scaled, stop_below
):
    """Train one network on inputs given as their non-zero entries, in place; return the number of updates done."""
    n, m = y.shape[0], a.shape[0]
    zero, one = W.dtype.type(0), W.dtype.type(1)
    z = np.empty((n, m), W.dtype)
    r = np.empty(n, W.dtype)
    gW, ga = np.empty_like(W), np.empty(m, W.dtype)
    for t in range(count):
        loss = zero
        for k in range(n):
            preactivations(W, values, indices, starts, k, z[k])
            h = output(a, z[k], alpha)
            loss += loss_value(kind, h, y[k], one)
            r[k] = loss_derivative(kind, h, y[k], one) * weight * lr
        loss *= weight
        losses[t] = loss
        if not np.isfinite(loss) or loss <= stop_below:
            return t
        ga[:] = zero
        gW[:] = zero
        for k in range(n):
            rk = r[k] / loss if loss_scaled else r[k]
            accumulate(gW, ga, z[k], rk, values, indices, starts, k, alpha)
        for i in range(W.shape[0]):
            for j in range(m):
                W[i, j] -= a[j] * gW[i, j]
        if train_output:
            for j in range(m):
                a[j] -= ga[j]
    return count


@numba.njit(inline="always", **{**OPTIONS, "cache": False})
def preactivations(W, values, indices, starts, k, z):  # type: ignore[no-untyped-def]
    """Write `<w_j, x_k>` of all neurons into `z` (m,), from the non-zero entries of `x_k`."""
    z[:] = W.dtype.type(0)
    for p in range(starts[k], starts[k + 1]):
        i, v = indices[p], values[p]
        for j in range(z.shape[0]):
            z[j] += v * W[i, j]


@numba.njit(inline="always", **{**OPTIONS, "cache": False})
def output(a, z, alpha):  # type: ignore[no-untyped-def]
    """Return `sum_j a_j sigma(z_j)`."""
    zero = a.dtype.type(0)
    h = zero
    for j in range(z.shape[0]):
        h += a[j] * (z[j] if z[j] > zero else alpha * z[j])
    return h


@numba.njit(inline="always", **{**OPTIONS, "cache": False})
def accumulate(gW, ga, z, r, values, indices, starts, k, alpha):  # type: ignore[no-untyped-def]
    """Add sample k to `ga` (m,) and to `gW` (d, m), the gradient of W before its factor `a_j`; overwrites `z`."""
    zero = ga.dtype.type(0)
    for j in range(z.shape[0]):
        s = z[j]
        ga[j] += r * (s if s > zero else alpha * s)
        z[j] = r if s > zero else alpha * r
    for p in range(starts[k], starts[k + 1]):
        i, v = indices[p], values[p]
        for j in range(z.shape[0]):
            gW[i, j] += v * z[j]


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
def run_sparse_replicas(  # type: ignore[no-untyped-def]
    W, a, values, indices, starts, y, losses, done, count, lr, weight, alpha, kind, train_output, loss_scaled,
    stop_below,
):  # fmt: skip
    """Train R networks as `run_sparse` does, each on one thread; `done` (R,) gets the numbers of updates."""
    for r in numba.prange(W.shape[0]):
        q = np.int64(r) % y.shape[0]
        done[r] = run_sparse(
            W[r], a[r], values[q], indices, starts, y[q], losses[r], count, lr[r], weight, alpha[r], kind,
            train_output, loss_scaled, stop_below[r],
        )  # fmt: skip

"""Descent of two-layer networks on inputs given by their non-zero entries: black pixels are free."""

from __future__ import annotations

import numba
import numpy as np

from dynamics_cli.compiling import INLINE, OPTIONS
from dynamics_cli.engine.subnormals import flush, put_back
from dynamics_cli.training.kernels.common import loss_derivative, loss_value


@numba.njit(**INLINE)
def preactivations(W, values, indices, starts, k, z):  # type: ignore[no-untyped-def]
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


@numba.njit(**INLINE)
def output(a, z, alpha):  # type: ignore[no-untyped-def]
    """Return `sum_j a_j sigma(z_j)`."""
    zero = a.dtype.type(0)
    h = zero
    for j in range(z.shape[0]):
        h += a[j] * (z[j] if z[j] > zero else alpha * z[j])
    return h


@numba.njit(**INLINE)
def backward(ga, z, r, alpha):  # type: ignore[no-untyped-def]
    """Add `r sigma(z_j)` to `ga` (m,), and overwrite `z` (m,) with `r sigma'(z_j)`."""
    zero = ga.dtype.type(0)
    for j in range(z.shape[0]):
        s = z[j]
        ga[j] += r * (s if s > zero else alpha * s)
        z[j] = r if s > zero else alpha * r


@numba.njit(**INLINE)
def add_outer(M, values, indices, starts, k, z, sign):  # type: ignore[no-untyped-def]
    """Add `sign x_ki z_j` to `M` (d, m) for the non-zero entries of `x_k`, two at a time."""
    p, end = starts[k], starts[k + 1]
    while p + 2 <= end:
        m0, m1 = M[indices[p]], M[indices[p + 1]]
        v0, v1 = sign * values[p], sign * values[p + 1]
        for j in range(z.shape[0]):
            m0[j] += v0 * z[j]
            m1[j] += v1 * z[j]
        p += 2
    if p < end:
        i, v = indices[p], sign * values[p]
        for j in range(z.shape[0]):
            M[i, j] += v * z[j]


CHUNK = 512
"""Samples a chunk, at least; chunks go to all cores."""
MOST_CHUNKS = 8


@numba.njit(**INLINE)
def sparse_chunk(  # type: ignore[no-untyped-def]
    W, a, values, indices, starts, y, samples, first, last, step, alpha, kind, gW, ga
):
    """Fill `ga` (m,) and `gW` (d, m), before its factor `a_j`, from `samples[first:last]`; return the summed losses."""
    zero, one = W.dtype.type(0), W.dtype.type(1)
    z = np.empty(a.shape[0], W.dtype)
    ga[:] = zero
    gW[:] = zero
    loss = zero
    for q in range(first, last):
        k = samples[q]
        preactivations(W, values, indices, starts, k, z)
        h = output(a, z, alpha)
        loss += loss_value(kind, h, y[k], one)
        backward(ga, z, loss_derivative(kind, h, y[k], one) * step, alpha)
        add_outer(gW, values, indices, starts, k, z, one)
    return loss


@numba.njit(**OPTIONS)
def run_batches(  # type: ignore[no-untyped-def]
    W, a, values, indices, starts, y, samples, batch_ends, lr, mean, alpha, kind, train_output
):
    """Do one update per batch; batch b holds `samples[batch_ends[b] : batch_ends[b + 1]]`."""
    former = flush()
    m = a.shape[0]
    one = W.dtype.type(1)
    z = np.empty(m, W.dtype)
    gW, ga = np.empty_like(W), np.empty(m, W.dtype)
    for b in range(batch_ends.shape[0] - 1):
        first, last = batch_ends[b], batch_ends[b + 1]
        step = lr / W.dtype.type(last - first) if mean else lr
        if last - first > 1:
            sparse_chunk(W, a, values, indices, starts, y, samples, first, last, step, alpha, kind, gW, ga)
            move(W, a, gW, ga, train_output, one)
            continue
        k = samples[first]  # only the rows of its non-zero entries change
        preactivations(W, values, indices, starts, k, z)
        r = loss_derivative(kind, output(a, z, alpha), y[k], one) * step
        ga[:] = one - one
        backward(ga, z, r, alpha)
        for j in range(m):
            z[j] *= a[j]
        add_outer(W, values, indices, starts, k, z, -one)
        if train_output:
            for j in range(m):
                a[j] -= ga[j]
    put_back(former)


@numba.njit(parallel=True, **OPTIONS)
def run_full(  # type: ignore[no-untyped-def]
    W, a, values, indices, starts, y, losses, count, lr, weight, alpha, kind, train_output, loss_scaled, stop_below
):
    """Train by full batches, in chunks of samples on all cores, in place; return the number of updates done.

    Chunks are summed in a fixed order and their number depends on that of the samples only, so the number of threads
    does not change a bit.
    """
    former, done = flush(), count
    n, one = y.shape[0], W.dtype.type(1)
    chunks = min(MOST_CHUNKS, -(-n // CHUNK))
    samples = np.arange(n)
    gW, ga = np.empty((chunks, *W.shape), W.dtype), np.empty((chunks, a.shape[0]), W.dtype)
    parts = np.empty(chunks, W.dtype)
    for t in range(count):
        for c in numba.prange(chunks):
            q, own = np.int64(c), flush()
            parts[q] = sparse_chunk(
                W, a, values, indices, starts, y, samples, q * n // chunks, (q + 1) * n // chunks, weight * lr, alpha,
                kind, gW[q], ga[q],
            )  # fmt: skip
            put_back(own)
        loss = parts[0]
        for c in range(1, chunks):
            loss += parts[c]
            add(gW[0], ga[0], gW[c], ga[c])
        loss *= weight
        losses[t] = loss
        if not np.isfinite(loss) or loss <= stop_below:
            done = t
            break
        move(W, a, gW[0], ga[0], train_output, loss if loss_scaled else one)
    put_back(former)
    return done


@numba.njit(**INLINE)
def add(gW, ga, dW, da):  # type: ignore[no-untyped-def]
    """Add the gradients of one chunk to those of another."""
    for i in range(gW.shape[0]):
        for j in range(gW.shape[1]):
            gW[i, j] += dW[i, j]
    for j in range(ga.shape[0]):
        ga[j] += da[j]


@numba.njit(**INLINE)
def move(W, a, gW, ga, train_output, scale):  # type: ignore[no-untyped-def]
    """Update the weights, given the gradients, those of W before their factor `a_j`, to be divided by `scale`."""
    for i in range(W.shape[0]):
        for j in range(W.shape[1]):
            W[i, j] -= a[j] * (gW[i, j] / scale)
    if train_output:
        for j in range(a.shape[0]):
            a[j] -= ga[j] / scale


@numba.njit(**OPTIONS)
def total_loss(W, a, values, indices, starts, y, first, last, alpha, kind):  # type: ignore[no-untyped-def]
    """Return the sum of the losses of samples `first` to `last`, this one excluded, in float64."""
    former, one = flush(), W.dtype.type(1)
    z = np.empty(a.shape[0], W.dtype)
    total = 0.0
    for k in range(first, last):
        preactivations(W, values, indices, starts, k, z)
        total += loss_value(kind, output(a, z, alpha), y[k], one)
    put_back(former)
    return total

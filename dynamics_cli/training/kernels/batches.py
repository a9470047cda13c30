"""Stochastic gradient descent of two-layer networks; of inputs only non-zero entries count: black pixels are free."""

from __future__ import annotations

import numba
import numpy as np

from dynamics_cli.compiling import INLINE, OPTIONS
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


@numba.njit(**OPTIONS)
def run_batches(  # type: ignore[no-untyped-def]
    W, a, values, indices, starts, y, samples, batch_ends, lr, mean, alpha, kind, train_output
):
    """Do one update per batch; batch b holds `samples[batch_ends[b] : batch_ends[b + 1]]`."""
    m = a.shape[0]
    zero, one = W.dtype.type(0), W.dtype.type(1)
    longest = 0
    for b in range(batch_ends.shape[0] - 1):
        longest = max(longest, batch_ends[b + 1] - batch_ends[b])
    z = np.empty((longest, m), W.dtype)
    r = np.empty(longest, W.dtype)
    gW, ga = np.zeros_like(W), np.empty(m, W.dtype)
    for b in range(batch_ends.shape[0] - 1):
        first = batch_ends[b]
        size = batch_ends[b + 1] - first
        weight = one / W.dtype.type(size) if mean else one
        for q in range(size):
            k = samples[first + q]
            preactivations(W, values, indices, starts, k, z[q])
            r[q] = loss_derivative(kind, output(a, z[q], alpha), y[k], one) * weight * lr
        ga[:] = zero
        for q in range(size):
            backward(ga, z[q], r[q], alpha)
        if size == 1:  # only the rows of its non-zero entries change
            for j in range(m):
                z[0, j] *= a[j]
            add_outer(W, values, indices, starts, samples[first], z[0], -one)
        else:
            for q in range(size):
                add_outer(gW, values, indices, starts, samples[first + q], z[q], one)
            for i in range(W.shape[0]):
                for j in range(m):
                    W[i, j] -= a[j] * gW[i, j]
                    gW[i, j] = zero
        if train_output:
            for j in range(m):
                a[j] -= ga[j]


@numba.njit(**OPTIONS)
def total_loss(W, a, values, indices, starts, y, first, last, alpha, kind):  # type: ignore[no-untyped-def]
    """Return the sum of the losses of samples `first` to `last`, this one excluded, in float64."""
    one = W.dtype.type(1)
    z = np.empty(a.shape[0], W.dtype)
    total = 0.0
    for k in range(first, last):
        preactivations(W, values, indices, starts, k, z)
        total += loss_value(kind, output(a, z, alpha), y[k], one)
    return total

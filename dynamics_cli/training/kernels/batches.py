"""Stochastic gradient descent of two-layer networks; of inputs only non-zero entries count: black pixels are free."""

from __future__ import annotations

import numba
import numpy as np

from dynamics_cli.compiling import OPTIONS
from dynamics_cli.training.kernels.common import loss_derivative, loss_value
from dynamics_cli.training.kernels.full_batch import add_outer, backward, output, preactivations


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

"""Full-batch gradient descent of ReLU networks in pre-activation space, from active samples only.

As in `run_gram`, `Z = Z_0 + C G`. One update changes the row of neuron j by `-a_j q_j`, with
`q_j = sum_k r_k 1[z_jk > 0] G_k`: a sum over the samples that activate the neuron, half of them or fewer, where the
product takes all. Rounding would let Z and C drift apart over very many updates, so Z is formed anew from C every `REFRESH` iterations.
"""

from __future__ import annotations

import numba
import numpy as np

from dynamics_cli.training.kernels.common import OPTIONS, loss_derivative, loss_value
from dynamics_cli.training.kernels.rows import move_row

REFRESH = 256
"""Iterations, counted from the start of the run, between two products `C G`."""


@numba.njit(**OPTIONS)
def run_gram_relu(  # type: ignore[no-untyped-def]
    C, Z, a, Z0, G, y, first, losses, count, lr, weight, kind, train_output, loss_scaled, stop_below
):
    """Train from iteration `first` on, in place; return the number of updates done.

    `C`, `Z` and `Z0` are (m, N), `G` (N, N); N is the number n of samples, padded with samples that are 0 to whole
    vectors. `y` is (n,).
    """
    m, N = C.shape
    n = y.shape[0]
    one = C.dtype.type(1)
    h, r = np.empty(N, C.dtype), np.zeros(N, C.dtype)
    on = np.full((m, N), -one, C.dtype)  # 1 where the sample activates the neuron; -1: not known yet
    active, counts = np.empty((m, N), np.int64), np.zeros(m, np.int64)
    for t in range(count):
        if (first + t) % REFRESH == 0:
            np.dot(C, G, Z)
            Z += Z0
        outputs(Z, a, h)
        loss = one - one
        for k in range(n):
            loss += loss_value(kind, h[k], y[k], one)
            r[k] = loss_derivative(kind, h[k], y[k], one) * weight * lr
        loss *= weight
        losses[t] = loss
        if not np.isfinite(loss) or loss <= stop_below:
            return t
        if loss_scaled:
            for k in range(n):
                r[k] /= loss
        for j in range(m):
            changed, ga = inspect(Z[j], on[j], r)
            if changed:
                counts[j] = activate(Z[j], on[j], active[j])
            if counts[j] > 0:  # a dead neuron rests
                move_row(Z[j], C[j], G, r, on[j], active[j], counts[j], a[j])
                if train_output:
                    a[j] -= ga
    return count


@numba.njit(**OPTIONS)
def outputs(Z, a, h):  # type: ignore[no-untyped-def]
    """Fill `h` (N,) with the outputs of the network."""
    zero = a.dtype.type(0)
    m, N = Z.shape
    h[:] = zero
    j = 0
    while j + 4 <= m:
        z0, z1, z2, z3 = Z[j], Z[j + 1], Z[j + 2], Z[j + 3]
        a0, a1, a2, a3 = a[j], a[j + 1], a[j + 2], a[j + 3]
        for k in range(N):
            h[k] += (a0 * (z0[k] if z0[k] > zero else zero) + a1 * (z1[k] if z1[k] > zero else zero)) + (
                a2 * (z2[k] if z2[k] > zero else zero) + a3 * (z3[k] if z3[k] > zero else zero)
            )
        j += 4
    while j < m:
        aj = a[j]
        for k in range(N):
            h[k] += aj * (Z[j, k] if Z[j, k] > zero else zero)
        j += 1


@numba.njit(**OPTIONS)
def inspect(z, on, r):  # type: ignore[no-untyped-def]
    """Return whether a neuron's activations are not those in `on` (N,), and the gradient of its output weight."""
    zero, one = z.dtype.type(0), z.dtype.type(1)
    difference, ga = zero, zero
    for k in range(z.shape[0]):
        difference += abs((one if z[k] > zero else zero) - on[k])
        ga += r[k] * (z[k] if z[k] > zero else zero)
    return difference > zero, ga


@numba.njit(**OPTIONS)
def activate(z, on, active):  # type: ignore[no-untyped-def]
    """Note in `on` and `active` (N,) which samples activate a neuron; return their number."""
    zero, one = z.dtype.type(0), z.dtype.type(1)
    count = 0
    for k in range(z.shape[0]):
        active[count] = k
        if z[k] > zero:
            on[k] = one
            count += 1
        else:
            on[k] = zero
    return count

"""The tangent kernel of a two-layer network whose neurons slide along boundaries of their activations."""

from __future__ import annotations

import numba

from dynamics_cli.compiling import INLINE, STRICT
from dynamics_cli.training.kernels.boundaries import INDEX, OFF, ON, slides_along, solve_symmetric


@numba.njit(**STRICT)
def tangent_kernel(G, Z, a, mode, alpha, train_output, K, work):  # type: ignore[no-untyped-def]
    """Fill `K` (n, n), such that `dh/dt = -K r` for outputs h and weighted derivatives of the loss r (n,).

    `K_kl = sum_j a_j^2 s_jk s_jl <x_k, P_j x_l> + sigma(z_jk) sigma(z_jl)` with the slopes s of the activation, 0 where
    a neuron slides, and the projection `P_j` off the inputs along which it does.

    Args:
        G: Gram matrix of the inputs (n, n).
        Z: pre-activations (m, n).
        a: output weights (m,).
        mode: (m, n) modes of the samples, see `boundaries`.
        alpha: slope of the activation for negative arguments.
        train_output: whether output weights move.
        K: (n, n), overwritten.
        work: a `boundaries.workspace`, overwritten.

    """
    m, n = Z.shape
    for k in range(n):
        for i in range(n):
            K[k, i] = 0.0
    A, S, V, whole = work
    slope, index = V[0], whole[INDEX]
    for j in range(m):
        for k in range(n):
            slope[k] = 1.0 if mode[j, k] == ON else (alpha if mode[j, k] == OFF else 0.0)
        square = a[j] * a[j]
        for k in range(n):
            if slope[k] != 0.0:
                for i in range(n):
                    K[k, i] += square * slope[k] * slope[i] * G[k, i]
                    if train_output:
                        K[k, i] += slope[k] * Z[j, k] * slope[i] * Z[j, i]
        sliding = slides_along(mode[j], index)
        if sliding > 0:
            project(G, square, slope, index, sliding, K, A, S)


@numba.njit(**INLINE)
def project(G, square, slope, index, sliding, K, A, S):  # type: ignore[no-untyped-def]
    """Subtract from `K` the directions that a neuron of `slope` (n,) sliding along `sliding` of `index` leaves out."""
    n = len(slope)
    for p in range(sliding):
        for q in range(p + 1):
            S[p, q] = G[index[p], index[q]]
        for k in range(n):
            A[k, p] = slope[k] * G[k, index[p]]
    solve_symmetric(S, A, sliding)
    for k in range(n):
        if slope[k] != 0.0:
            for p in range(sliding):
                s = square * slope[k] * G[k, index[p]]
                for i in range(n):
                    K[k, i] -= s * A[i, p]

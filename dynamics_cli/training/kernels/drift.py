"""The drift `D(t) = sum_q t^q D_q` of a two-layer neuron, `dw/dt = a D`, in terms of the inputs."""

from __future__ import annotations

import numba
import numpy as np

from dynamics_cli.compiling import STRICT
from dynamics_cli.training.kernels.boundaries import OFF, ON, SLIDING, slides_along, solve_symmetric

TERMS = 3
"""Coefficients of the polynomials of time."""


@numba.njit(**STRICT)
def drift(G, mode, F, alpha, d, U):  # type: ignore[no-untyped-def]
    """Fill `d` (3, n), the coefficients of `D_q` on the inputs, and `U` (3, n), the products `<D_q, x_k>`."""
    n = G.shape[0]
    for q in range(TERMS):
        for k in range(n):
            U[q, k] = 0.0
    sliding = 0
    for k in range(n):
        sliding += mode[k] == SLIDING
        heard = 1.0 if mode[k] == ON else (alpha if mode[k] == OFF else 0.0)
        add(G, k, -heard * F[0, k], -heard * F[1, k], -heard * F[2, k], d, U)
    if sliding > 0:
        hold(G, mode, sliding, d, U)


@numba.njit(**STRICT)
def add(G, k, d0, d1, d2, d, U):  # type: ignore[no-untyped-def]
    """Set the coefficients of sample `k`, and add what it does to the products with all samples."""
    d[0, k], d[1, k], d[2, k] = d0, d1, d2
    if d0 != 0.0 or d1 != 0.0 or d2 != 0.0:
        for i in range(G.shape[0]):
            U[0, i] += d0 * G[k, i]
            U[1, i] += d1 * G[k, i]
            U[2, i] += d2 * G[k, i]


@numba.njit(**STRICT)
def hold(G, mode, sliding, d, U):  # type: ignore[no-untyped-def]
    """Give the samples along which the neuron slides the coefficients that keep their z constant."""
    S = slides_along(mode)
    A, B = np.empty((sliding, sliding)), np.empty((TERMS, sliding))
    for p in range(sliding):
        for r in range(p + 1):
            A[p, r] = G[S[p], S[r]]
        for q in range(TERMS):
            B[q, p] = -U[q, S[p]]
    solve_symmetric(A, B)
    for p in range(sliding):
        add(G, S[p], B[0, p], B[1, p], B[2, p], d, U)
    for p in range(sliding):
        for q in range(TERMS):
            U[q, S[p]] = 0.0

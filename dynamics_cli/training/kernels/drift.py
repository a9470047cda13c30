"""The drift `D(t) = sum_q t^q D_q` of a two-layer neuron, `dw/dt = a D`, in terms of the inputs."""

from __future__ import annotations

import numba

from dynamics_cli.compiling import INLINE, PIECE
from dynamics_cli.training.kernels.boundaries import INDEX, OFF, ON, slides_along, solve_symmetric

TERMS = 3
"""Coefficients of the polynomials of time."""


@numba.njit(**PIECE)
def drift(G, mode, F, alpha, d, U, work):  # type: ignore[no-untyped-def]
    """Fill `d` (3, n), the coefficients of `D_q` on the inputs, and `U` (3, n), the products `<D_q, x_k>`."""
    n = G.shape[0]
    for q in range(TERMS):
        for k in range(n):
            U[q, k] = 0.0
    for k in range(n):
        heard = 1.0 if mode[k] == ON else (alpha if mode[k] == OFF else 0.0)
        add(G, k, -heard * F[0, k], -heard * F[1, k], -heard * F[2, k], d, U)
    _, S, V, whole = work
    index = whole[INDEX]
    sliding = slides_along(mode, index)
    if sliding > 0:
        hold(G, index, sliding, d, U, S, V)


@numba.njit(**PIECE)
def add(G, k, d0, d1, d2, d, U):  # type: ignore[no-untyped-def]
    """Set the coefficients of sample `k`, and add its share to the products with all samples."""
    d[0, k], d[1, k], d[2, k] = d0, d1, d2
    if d0 != 0.0 or d1 != 0.0 or d2 != 0.0:
        for i in range(G.shape[0]):
            U[0, i] += d0 * G[k, i]
            U[1, i] += d1 * G[k, i]
            U[2, i] += d2 * G[k, i]


@numba.njit(**INLINE)
def hold(G, index, sliding, d, U, S, V):  # type: ignore[no-untyped-def]
    """Give the samples along which the neuron slides, `sliding` of `index`, the coefficients that keep z constant."""
    for p in range(sliding):
        for r in range(p + 1):
            S[p, r] = G[index[p], index[r]]
        for q in range(TERMS):
            V[q, p] = -U[q, index[p]]
    solve_symmetric(S, V[:TERMS], sliding)
    for p in range(sliding):
        add(G, index[p], V[0, p], V[1, p], V[2, p], d, U)
    for p in range(sliding):
        for q in range(TERMS):
            U[q, index[p]] = 0.0

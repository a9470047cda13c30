"""Routines of BLAS and LAPACK on flat arrays in kernels, and the Lanczos iteration, which is made of them.

Of every kind of `np.dot` numba compiles a function; and one without a signature for every True, False and 1 in a call.
"""

from __future__ import annotations

import numba
import numpy as np
from numba import types
from numba.np.linalg import _BLAS, _LAPACK

from dynamics_cli.compiling import STRICT

_gemm = _BLAS().numba_xxgemm(types.float64)  # type: ignore[no-untyped-call]
_syevd = _LAPACK().numba_ez_xxxevd(types.float64)  # type: ignore[no-untyped-call]
_DOUBLE, _AS_IS, _TRANSPOSED, _VECTORS, _LOWER = ord("d"), ord("n"), ord("t"), ord("V"), ord("L")
_FACTORS = np.array([0.0, 1.0])


@numba.njit("i8(f8[::1], b1, f8[::1], b1, i8, i8, i8, f8[::1], b1)", **STRICT)
def multiply(a, a_turned, b, b_turned, m, k, n, c, add):  # type: ignore[no-untyped-def]
    """Set `c` (m, n) to `A B`, or add it; `a` holds A (m, k), or where it is turned `A^T`, by rows, `b` B likewise."""
    # row by row is column by column of the transposed: C^T = B^T A^T
    of_b, of_a = (_TRANSPOSED if b_turned else _AS_IS), (_TRANSPOSED if a_turned else _AS_IS)
    _gemm(
        _DOUBLE, of_b, of_a, n, m, k, _FACTORS[1:].ctypes, b.ctypes, k if b_turned else n, a.ctypes,
        m if a_turned else k, _FACTORS[add:].ctypes, c.ctypes, n,
    )  # fmt: skip
    return a.size + b.size + c.size  # keeps them alive until here


@numba.njit("b1(f8[::1], f8[::1], i8, f8[::1], f8[::1])", **STRICT)
def lanczos_step(Q, w, j, alpha, beta):  # type: ignore[no-untyped-def]
    """Set `alpha_j`, `beta_j` and `q_{j+1}` from `w = H q_j` (P,), which is overwritten by `beta_j q_{j+1}`.

    `Q` holds `q_0`, `q_1`, ... one after the other. Return whether there is no further direction, or no finite one.
    """
    P, m, largest = w.size, j + 1, 0.0
    along, within = np.empty(m), np.empty(P)
    multiply(Q[j * P :], False, w, False, 1, P, 1, alpha[j:], False)
    for _ in range(2):  # twice is enough (Parlett)
        multiply(Q, False, w, False, m, P, 1, along, False)
        multiply(along, False, Q, False, 1, m, P, within, False)
        for i in range(P):
            w[i] -= within[i]
    multiply(w, False, w, False, 1, P, 1, beta[j:], False)
    beta[j] = np.sqrt(beta[j])
    for i in range(m):
        largest = max(largest, abs(alpha[i]), beta[i])
    if not beta[j] > 1e-14 * largest:
        return True
    for i in range(P):
        Q[m * P + i] = w[i] / beta[j]
    return False


@numba.njit("i8(f8[::1], f8[::1], i8, f8[::1], f8[::1])", **STRICT)
def tridiagonal_eigen(alpha, beta, m, values, vectors):  # type: ignore[no-untyped-def]
    """Set the eigenvalues (m,), ascending, and the eigenvectors, one after the other; return 0 where LAPACK did."""
    vectors[:] = 0.0
    for i in range(m):
        vectors[i * m + i] = alpha[i]
        if i + 1 < m:
            vectors[i * m + i + 1] = beta[i]
    failed = _syevd(_DOUBLE, _VECTORS, _LOWER, m, vectors.ctypes, m, values.ctypes)
    return failed + 0 * (values.size + vectors.size)  # keeps them alive until here

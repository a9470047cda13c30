"""Lanczos iterations, compiled: the largest eigenvalues of a symmetric operator, and its spectral density.

The operator is a function of Python, or a compiled unit, which the iterations call without leaving compiled code.

Source: Golub and Van Loan, Matrix Computations, Section 10.1.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
from scipy.linalg.lapack import dstev

from dynamics_cli.engine.native import Record, address_of, call, extending, offset, piece, unit
from dynamics_cli.engine.products import dots, product
from dynamics_cli.measures.arrays import Floats

REAL = np.dtype(np.float64)
LIMIT = 300
"""Products of the largest eigenvalues, at most."""
EIGENVALUES = extending.get_cython_function_address("scipy.linalg.cython_lapack", "dsterf")
"""LAPACK's `dsterf(order, diagonal, beside it, info)`, which replaces the diagonal by the eigenvalues."""
_DOTTED = 6
"""Rows from which on `dots` vectorises."""

Lanczos: TypeAlias = Any
LANCZOS = Record(
    "Lanczos",
    [
        ("multiply", "Unit", "(operator, v, A v); 0: Python writes A v"),
        ("operator", "Floats", "its first argument"),
        ("product", "Unit", "of two matrices"),
        ("dots", "Unit", "product of a matrix and a vector"),
        ("eigenvalues", "Unit", "LAPACK's dsterf"),
        ("size", "int", "P, numbers of a vector"),
        ("directions", "Floats", "(rows, P) q_0, q_1, ...: orthonormal, then A q of the last"),
        ("limit", "int", "iterations, at most"),
        (
            "wanted",
            "int",
            "k, largest eigenvalues whose residual ends the iterations; 0: they end at the limit",
        ),
        ("tolerance", "float", "of the largest relative residual"),
        ("alpha", "Floats", "(limit,) diagonal of the tridiagonal matrix"),
        ("beta", "Floats", "(limit,) beside its diagonal"),
        ("values", "Floats", "(limit,) its eigenvalues, ascending"),
        ("scratch", "Floats", "(limit + 6,)"),
        ("order", "Ints", "(2,) of the matrix, and whether LAPACK failed"),
        ("progress", "Ints", "(2,) iterations done, and whether they have ended"),
    ],
)


@piece
def subtract_projections(state: Lanczos, m: int) -> Any:
    """Subtract from vector m its projections on those before; return its squared length without them.

    The negative projections stand in `scratch`.
    """
    P, Q, along = state.size, state.directions, state.scratch
    w = offset(Q, m * P)
    call(state.dots, (Q, w, max(m + 1, _DOTTED), P, along))
    square = along[m]
    for i in range(m):
        square -= along[i] * along[i]
        along[i] = -along[i]
    call(state.product, (along, m, 1, Q, w, 1, m, P, 1))
    return square


@piece
def residual_of(state: Lanczos, m: int, length: float) -> Any:
    """Return the largest relative residual of the eigenvalues that are wanted.

    It is `length` times the last entry of the normalised eigenvector of the tridiagonal matrix, whose entries follow
    from the last to the first: in this direction they grow.
    """
    alpha, beta, values, beside, last = state.alpha, state.beta, state.values, state.scratch, 0.0
    for i in range(m):
        values[i], beside[i] = alpha[i], beta[i]
    state.order[0] = m
    call(state.eigenvalues, (state.order, values, beside, offset(state.order, 1)))
    for i in range(m - state.wanted, m):
        entry, after, squares = 1.0, 0.0, 1.0
        for j in range(m - 1, 0, -1):
            if beta[j - 1] == 0.0:  # vectors before j are of another invariant space
                break
            entry, after = ((values[i] - alpha[j]) * entry - beta[j] * after) / beta[j - 1], entry
            squares += entry * entry
            if squares > 1e40:
                break
        last = max(last, 1.0 / np.sqrt(squares))
    return length * last / max(abs(values[0]), abs(values[m - 1]), 1e-300)


@unit
def iterate(state: Lanczos, steps: int) -> float:
    """Do up to `steps` iterations, until they end; return the largest relative residual, where it was computed.

    They end at the limit, where there is no further direction, or where the residual is within the tolerance.
    """
    P, k, alpha, beta, progress, residual = (
        state.size,
        state.wanted,
        state.alpha,
        state.beta,
        state.progress,
        0.0,
    )
    for m in range(progress[0] + 1, progress[0] + 1 + steps):
        q, w, largest = offset(state.directions, (m - 1) * P), offset(state.directions, m * P), 0.0
        if state.multiply != 0:
            call(state.multiply, (state.operator, q, w))
        subtract_projections(state, m)
        alpha[m - 1] = -state.scratch[m - 1]
        length = np.sqrt(subtract_projections(state, m))  # twice is enough (Parlett)
        beta[m - 1] = length
        for i in range(m):
            largest = max(largest, abs(alpha[i]), beta[i])
        finished = not length > 1e-14 * largest or m == state.limit
        if m >= k > 0 and (finished or 2 < m < 9 or (m > 9 and m % 2 == 0)):
            residual = residual_of(state, m, length)
            finished = finished or residual <= state.tolerance
        progress[0], progress[1] = m, int(finished)
        if finished:
            break
        for i in range(P):
            w[i] /= length
    return residual


class Spectrum:
    """Lanczos iterations on vectors (P,). Their memory is kept from call to call: new memory takes long."""

    def __init__(
        self, P: int, limit: int, multiply: Callable[[Floats], Floats] | int, operator: Any = None
    ) -> None:
        """Take the most iterations, and `v -> A v` or the address of a unit that does so with a record."""
        limit = min(limit, P)
        self._multiply, self._directions = multiply, np.empty((min(limit, 8) + 8, P))
        self._alpha, self._beta, self._progress = (
            np.empty(limit),
            np.empty(limit),
            np.zeros(2, np.int64),
        )
        self._state = LANCZOS(
            multiply=multiply if isinstance(multiply, int) else 0,
            operator=operator,
            product=product(REAL).address,
            dots=dots(REAL).address,
            eigenvalues=EIGENVALUES,
            size=P,
            directions=self._directions,
            limit=limit,
            wanted=0,
            tolerance=0.0,
            alpha=self._alpha,
            beta=self._beta,
            values=np.empty(limit),
            scratch=np.empty(limit + _DOTTED),
            order=np.empty(2, np.int64),
            progress=self._progress,
        )

    def largest(self, start: Floats, k: int, tolerance: float) -> tuple[Floats, Floats, float]:
        """Return the k largest eigenvalues, descending, their vectors (P, k), and the largest relative residual."""
        values, inner, residual = self._decomposed(start, k, tolerance)
        rows, vectors = (
            np.ascontiguousarray(inner[:, : -k - 1 : -1].T),
            np.empty((k, self._state.size)),
        )
        m, *at = len(values), *(address_of(array) for array in (rows, self._directions, vectors))
        product(REAL).call(at[0], m, 1, *at[1:], k, m, self._state.size, 0)
        return values[: -k - 1 : -1].copy(), np.ascontiguousarray(vectors.T), residual

    def quadrature(self, start: Floats) -> tuple[Floats, Floats]:
        """Return all eigenvalues (m,), ascending, and the first entries of the eigenvectors (m,)."""
        values, inner, _ = self._decomposed(start, 0, 0.0)
        return values, inner[0]

    def _decomposed(self, start: Floats, k: int, tolerance: float) -> tuple[Floats, Floats, float]:
        """Return eigenvalues (m,), ascending, and vectors of the tridiagonal matrix, and the largest residual."""
        state, residual, m = self._state, 0.0, 0
        state.wanted, state.tolerance, self._progress[:] = k, tolerance, 0
        self._directions[0] = start / np.linalg.norm(start)
        while not self._progress[1]:
            if m + 2 > len(self._directions):
                self._directions, former = (
                    np.empty((2 * len(self._directions), state.size)),
                    self._directions,
                )
                self._directions[: len(former)] = former
                state.directions = address_of(self._directions)
            steps = len(self._directions) - 1 - m
            if not isinstance(self._multiply, int):
                self._directions[m + 1], steps = self._multiply(self._directions[m]), 1
            residual = iterate(REAL).call(ctypes.addressof(state), steps)
            m = int(self._progress[0])
            if (
                self._progress[1] and m < k
            ):  # the start lies in an invariant space of fewer than k dimensions
                self._begin_anew(m)
        values, vectors, failed = dstev(self._alpha[:m], self._beta[: max(m - 1, 1)])
        if failed:
            values[:], vectors[:] = np.nan, np.nan
        return values, vectors, residual

    def _begin_anew(self, m: int) -> None:
        """Set vector m to a random one that is orthogonal to those before."""
        Q, w = self._directions[:m], np.random.default_rng(m).standard_normal(self._state.size)
        for _ in range(2):
            w -= Q.T @ (Q @ w)
        self._directions[m], self._beta[m - 1], self._progress[1] = w / np.linalg.norm(w), 0.0, 0


def largest_eigenvalues(
    product: Callable[[Floats], Floats],
    start: Floats,
    k: int = 1,
    *,
    tolerance: float = 1e-6,
    limit: int = LIMIT,
) -> tuple[Floats, Floats, float]:
    """Return the k largest eigenvalues, descending, their vectors (P, k), and the largest relative residual.

    Args:
        product: `v -> A v` (P,).
        start: (P,), the closer to the wanted vectors, the fewer products are needed; not 0.
        k: how many.
        tolerance: on `||A v - lambda v|| / max |lambda|`; vectors are orthogonalised fully.
        limit: most products.
    """
    P = len(start)
    if k > min(limit, P):
        raise ValueError(f"a space of {P} dimensions has no {k} eigenvalues")
    return Spectrum(P, limit, product).largest(start, k, tolerance)


def quadrature(product: Callable[[Floats], Floats], start: Floats, steps: int) -> Floats:
    """Return nodes and weights (2, steps) with `v^T f(A) v / v^T v ~ sum_i weight_i f(node_i)` for a start `v` (P,).

    The rule is exact for polynomials of degree < 2 steps, and for every function once `v` spans an invariant space;
    NaN stands beyond it. The mean over random `v` is `tr f(A) / P`, the spectral density as a measure.

    Source: Golub and Welsch 1969; Ghorbani, Krishnan and Xiao 2019, Algorithm 1 (stochastic Lanczos quadrature).
    """
    values, first = Spectrum(len(start), steps, product).quadrature(start)
    rule = np.full((2, steps), np.nan)
    rule[:, : len(values)] = values, first**2 + 0.0 * values  # no weight where there is no node
    return rule

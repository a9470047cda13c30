"""Lanczos iterations: the largest eigenvalues of a symmetric operator, and its spectral density.

Iterations of one vector are compiled. Their operator is a function of Python, or a compiled unit,
which they call without leaving compiled code. From one vector an eigenvalue that occurs several
times is found once, so that several eigenvalues are found from as many vectors, `Block`.

Sources: Golub and Van Loan, Matrix Computations, Section 10.1; Ruhe 1979, Math. Comp. 33, 680
(vectors of a block one by one).
"""

from __future__ import annotations

import ctypes
import warnings
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from scipy.linalg import eig_banded
from scipy.linalg.lapack import dstev

from dynamics_cli.formulas.native import Structure, address_of, call, extending, offset, piece, unit
from dynamics_cli.gradients.engine.products import dots, product
from dynamics_cli.measures.arrays import Floats

REAL = np.dtype(np.float64)
LIMIT = 300
"""Products before iterations for the largest eigenvalues start again from the vectors that they
found.
"""
IMPROVED = 0.9
"""Iterations start again while a start lowers the residual to this share: then rounding of
products limits it.
"""
INACCURATE = (
    "an eigenvalue is less accurate than asked: rounding of products, or too many eigenvalues close"
    " to it"
)
EXHAUSTED = 1e-14
"""Length of a new direction, relative to the operator, that is rounding: the vectors span an
invariant space.
"""
EIGENVALUES = extending.get_cython_function_address("scipy.linalg.cython_lapack", "dsterf")
"""LAPACK's `dsterf(order, diagonal, beside it, info)`, which replaces the diagonal by the
eigenvalues.
"""
RIVAL = 0.5
"""An eigenvalue above this share of the last wanted one may pass it in a nearby operator."""
BESIDE = 1e-2
"""Part of its vector in the vector where iterations for that operator begin."""
_DOTTED = 6
"""Rows from which on `dots` vectorises."""


class Largest(NamedTuple):
    """The largest eigenvalues of a symmetric operator A."""

    values: Floats
    """(k,), the largest first."""
    vectors: Floats
    """(P, k)"""
    residual: float
    """The largest `||A v - lambda v|| / ||A||`; NaN where A is not finite."""
    size: float
    """`||A||`, a lower bound that the iterations found."""
    near: Floats
    """(P, k) where iterations for a nearby operator begin: the vectors, the last with a part of the
    next one where that may pass it. From the vectors alone iterations end before the next one,
    once it is the larger, is seen: up to a gap of the tolerance over its part of the start.
    """


Lanczos: TypeAlias = Any
LANCZOS = Structure(
    "Lanczos",
    [
        ("multiply", "Address", "(operator, v, A v); 0: Python writes A v"),
        ("operator", "Floats", "its first argument"),
        ("product", "Address", "of two matrices"),
        ("dots", "Address", "product of a matrix and a vector"),
        ("eigenvalues", "Address", "LAPACK's dsterf"),
        ("size", "int", "P, numbers of a vector"),
        ("directions", "Floats", "(rows, P) q_0, q_1, ...: orthonormal, then A q of the last"),
        ("limit", "int", "iterations, at most"),
        (
            "wanted",
            "int",
            (
                "1: the residual of the largest eigenvalue ends the iterations; 0: they end at the"
                " limit"
            ),
        ),
        ("tolerance", "float", "of the relative residual"),
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
    """Subtract from vector m its projections on those before.

    Return its squared length without them.

    The negative projections stand in `scratch`.
    """
    P = state.size
    Q = state.directions
    along = state.scratch
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
    """Return the relative residual of the largest eigenvalue.

    It is `length` times the last entry of the normalised eigenvector of the tridiagonal matrix,
    whose entries follow from the last to the first: in this direction they grow.
    """
    alpha = state.alpha
    beta = state.beta
    values = state.values
    beside = state.scratch
    for i in range(m):
        values[i] = alpha[i]
        beside[i] = beta[i]
    state.order[0] = m
    call(state.eigenvalues, (state.order, values, beside, offset(state.order, 1)))
    entry = 1.0
    after = 0.0
    squares = 1.0
    for j in range(m - 1, 0, -1):
        if beta[j - 1] == 0.0:  # vectors before j are of another invariant space
            break
        before = ((values[m - 1] - alpha[j]) * entry - beta[j] * after) / beta[j - 1]
        after = entry
        entry = before
        squares += entry * entry
        if squares > 1e40:
            break
    last = 1.0 / np.sqrt(squares)
    return length * last / max(abs(values[0]), abs(values[m - 1]), 1e-300)


@unit
def iterate(state: Lanczos, steps: int) -> float:
    """Do up to `steps` iterations, until they end.

    Return the relative residual, where it was computed.

    They end at the limit, where there is no further direction, or where the residual is within the
    tolerance.
    """
    P = state.size
    wanted = state.wanted
    alpha = state.alpha
    beta = state.beta
    progress = state.progress
    residual = 0.0
    for m in range(progress[0] + 1, progress[0] + 1 + steps):
        q = offset(state.directions, (m - 1) * P)
        w = offset(state.directions, m * P)
        largest = 0.0
        if state.multiply != 0:
            call(state.multiply, (state.operator, q, w))
        subtract_projections(state, m)
        alpha[m - 1] = -state.scratch[m - 1]
        length = np.sqrt(subtract_projections(state, m))  # twice is enough (Parlett)
        beta[m - 1] = length
        for i in range(m):
            largest = max(largest, abs(alpha[i]), beta[i])
        finished = not length > EXHAUSTED * largest or m == state.limit
        if wanted and (finished or 2 < m < 9 or (m > 9 and m % 2 == 0)):
            residual = residual_of(state, m, length)
            finished = finished or residual <= state.tolerance
        progress[0] = m
        progress[1] = int(finished)
        if finished:
            break
        for i in range(P):
            w[i] /= length
    return residual


@unit
def orthogonalise(state: Lanczos, m: int) -> float:
    """Subtract from vector m its projections on those before, which `values` keeps.

    Return its length.
    """
    for turn in range(2):  # twice is enough (Parlett)
        square = subtract_projections(state, m)
        for i in range(m):
            state.values[i] = (state.values[i] if turn else 0.0) - state.scratch[i]
    return float(np.sqrt(square))


class Spectrum:
    """Lanczos iterations from a vector (P,), for the largest eigenvalue or for a quadrature.

    Their memory is kept from call to call: new memory takes long.
    """

    def __init__(
        self, P: int, limit: int, multiply: Callable[[Floats], Floats] | int, operator: Any = None
    ) -> None:
        """Take the most iterations, and `v -> A v` or the address of a unit for it."""
        limit = min(limit, P)
        self._multiply = multiply
        self._directions = np.empty((min(limit, 8) + 8, P))
        self._alpha = np.empty(limit)
        self._beta = np.empty(limit)
        self._values = np.empty(limit)
        self._progress = np.zeros(2, np.int64)
        self.state = LANCZOS(
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
            values=self._values,
            scratch=np.empty(limit + _DOTTED),
            order=np.empty(2, np.int64),
            progress=self._progress,
        )

    def largest(self, start: Floats, tolerance: float, finest: float | None = None) -> Largest:
        """Return the largest eigenvalues.

        Iterations go on to a residual of `finest`, by default the tolerance, as long as there are
        products; they start again only for the tolerance.
        """
        aim = tolerance if finest is None else finest
        return _restarted(partial(self._largest, tolerance=aim), start, tolerance)

    def _largest(self, start: Floats, tolerance: float) -> Largest:
        values, inner, residual = self._decomposed(start.ravel(), 1, tolerance)
        return self._found(values, inner, 1, residual, float(np.abs(values).max()))

    def _found(
        self, values: Floats, inner: Floats, k: int, residual: float, size: float
    ) -> Largest:
        """Return the last k of ascending eigenvalues (j,), given vectors (m, j)."""
        rows = np.ascontiguousarray(inner[:, : -k - 2 : -1].T)  # and the next, if there is one
        vectors = self._combined(rows[:k])
        near = vectors
        if len(values) > k and values[-k - 1] > RIVAL * values[-k]:
            near = vectors.copy()
            near[-1] = self._combined(rows[k - 1 : k] + BESIDE * rows[k])[0]
        return Largest(
            values[: -k - 1 : -1].copy(), np.ascontiguousarray(vectors.T), residual, size, near.T
        )

    def _combined(self, rows: Floats) -> Floats:
        """Return sums (j, P) of the first m directions, weighted by rows (j, m)."""
        j, m = rows.shape
        sums = np.empty((j, self.state.size))
        a, b, c = map(address_of, (rows, self._directions, sums))
        product(REAL).call(a, m, 1, b, c, j, m, self.state.size, 0)
        return sums

    def quadrature(self, start: Floats) -> tuple[Floats, Floats]:
        """Return all eigenvalues (m,), ascending, and the first entry of each eigenvector (m,)."""
        values, inner, _ = self._decomposed(start, 0, 0.0)
        return values, inner[0]

    def _decomposed(
        self, start: Floats, wanted: int, tolerance: float
    ) -> tuple[Floats, Floats, float]:
        """Return ascending eigenvalues (m,), vectors along the directions, and the residual."""
        state = self.state
        residual = 0.0
        m = 0
        state.wanted = wanted
        state.tolerance = tolerance
        self._progress[:] = 0
        self._directions[0] = start / np.linalg.norm(start)
        while not self._progress[1]:
            self._make_room(m + 2)
            steps = len(self._directions) - 1 - m
            if not isinstance(self._multiply, int):
                self._directions[m + 1] = self._multiply(self._directions[m])
                steps = 1
            residual = iterate(REAL).call(ctypes.addressof(state), steps)
            m = int(self._progress[0])
        values, vectors, failed = dstev(self._alpha[:m], self._beta[: max(m - 1, 1)])
        if failed:
            values[:] = np.nan
            vectors[:] = np.nan
        return values, vectors, residual

    @property
    def rows(self) -> int:
        """Directions that there is room for."""
        return len(self._directions)

    def _make_room(self, rows: int) -> None:
        """Make room for this number of directions; the present ones stay."""
        former = self._directions
        if rows > len(former):
            self._directions = np.empty((2 * len(former), self.state.size))
            self._directions[: len(former)] = former
            self.state.directions = address_of(self._directions)


class Block(Spectrum):
    """Lanczos iterations from several vectors.

    Each new direction is orthogonalised against all before it.

    An eigenvalue is found as often as it occurs, at most as often as there are vectors at the
    start.
    """

    def __init__(self, P: int, k: int, limit: int, multiply: Callable[[Floats], Floats]) -> None:
        """Take the number of start vectors, the most products, and `v -> A v`."""
        self._most = min(P, max(limit, 4 * k))
        super().__init__(P, self._most + k, multiply)
        self._product = multiply
        self._k = k
        self._rng = np.random.default_rng(0)
        self._count = 0
        """Number of orthonormal directions."""
        self._projections = np.zeros((min(self._most + k, P), self._most), order="F")
        """`<q_i, A q_j>` for i >= j; rows below the first m give residuals after m products."""

    def _largest(self, start: Floats, tolerance: float) -> Largest:
        k = self._k
        T = self._projections
        P = self.state.size
        self._begin(start)
        size = 0.0
        check = 2 * k
        for m in range(1, self._most + 1):
            image = np.asarray(self._product(self._directions[m - 1]), np.float64)
            size = max(size, float(np.linalg.norm(image)))
            parts, length = self._append(image, EXHAUSTED * size)
            if not np.isfinite([size, *parts]).all():
                nowhere = np.full((P, k), np.nan)
                return Largest(np.full(k, np.nan), nowhere, np.nan, np.nan, nowhere)
            T[: len(parts), m - 1] = parts
            if length:
                T[len(parts), m - 1] = length
            else:
                self._complete(min(m + k, P))
            if m < check and m < self._most:
                continue
            check = m + max(k, m // 8)
            values, inner = _largest_of_band(T[:m, :m], k, min(m, k + 1))
            left = np.linalg.norm(T[m : self._count, :m] @ inner[:, -k:], axis=0)
            residual = float(left.max(initial=0.0)) / max(size, 1e-300)
            if residual <= tolerance:
                break
        return self._found(values, inner, k, residual, size)

    def _begin(self, start: Floats) -> None:
        """Begin with the vectors (P, j) of a start, completed by random vectors to k."""
        self._count = 0
        self._projections[:] = 0.0
        for column in start.T[: self._k]:
            length = float(np.linalg.norm(column))
            self._append(column, np.sqrt(EXHAUSTED) * length)
        self._complete(self._k)

    def _complete(self, count: int) -> None:
        """Append random directions up to this number."""
        while self._count < count:
            self._append(self._rng.standard_normal(self.state.size), 0.0)

    def _append(self, vector: Floats, shortest: float) -> tuple[Floats, float]:
        """Append the direction of a vector without its projections on those before.

        Return these and its length.

        The length is 0 where it is not above `shortest`, so that there is no new direction.
        """
        at = self._count
        self._make_room(at + 1)
        self._directions[at] = vector
        length = float(orthogonalise(REAL).call(ctypes.addressof(self.state), at))
        parts = self._values[:at].copy()
        if at == self.state.size or not length > shortest:
            return parts, 0.0
        self._directions[at] /= length
        self._count += 1
        return parts, length


def _largest_of_band(T: Floats, k: int, count: int) -> tuple[Floats, Floats]:
    """Return the largest eigenvalues, ascending, and their vectors, of a symmetric band matrix.

    It has k diagonals below its own.
    """
    m = len(T)
    band = np.zeros((k + 1, m))
    for below in range(min(k + 1, m)):
        band[below, : m - below] = T.diagonal(-below)
    values, vectors = eig_banded(
        band, lower=True, select="i", select_range=(m - count, m - 1), check_finite=False
    )
    return values, vectors


def _restarted(iterations: Callable[[Floats], Largest], start: Floats, tolerance: float) -> Largest:
    """Return what iterations give.

    They start again from their vectors while that lowers a residual above tolerance. A residual
    that overflows is not lowered.
    """
    before = float(np.finfo(np.float64).max)
    while True:
        found = iterations(start)
        if found.residual <= tolerance or not found.residual <= IMPROVED * before:
            break
        start = found.vectors
        before = found.residual
    if found.residual > tolerance:
        warnings.warn(INACCURATE, stacklevel=3)
    return found


def largest_eigenvalues(
    product: Callable[[Floats], Floats],
    start: Floats,
    k: int = 1,
    *,
    tolerance: float = 1e-6,
    finest: float | None = None,
    limit: int = LIMIT,
) -> Largest:
    """Return the k largest eigenvalues and their vectors.

    An eigenvalue that occurs several times is found as often. A warning says where the residual is
    above tolerance.

    Args:
        product: `v -> A v` (P,).
        start: (P,) or (P, j), not 0; the closer to the wanted vectors, the fewer products are
            needed. Random vectors complete it to k.
        k: how many.
        tolerance: on `||A v - lambda v|| / ||A||`; vectors are orthogonalised fully.
        finest: the residual to which iterations go on within `limit`, by default the tolerance.
        limit: most products before iterations start again from the vectors that they found.
    """
    P = len(start)
    if k > P:
        raise ValueError(f"a space of {P} dimensions has no {k} eigenvalues")
    if k == 1:
        return Spectrum(P, limit, product).largest(start, tolerance, finest)
    return Block(P, k, limit, product).largest(start.reshape(P, -1), tolerance, finest)


def quadrature(product: Callable[[Floats], Floats], start: Floats, steps: int) -> Floats:
    """Return nodes and weights (2, steps) with `v^T f(A) v / v^T v ~ sum_i weight_i f(node_i)`.

    The start `v` is (P,).

    The rule is exact for polynomials of degree < 2 steps, and for every function once `v` spans an
    invariant space; NaN stands beyond it. The mean over random `v` is `tr f(A) / P`, the spectral
    density as a measure.

    Source: Golub and Welsch 1969; Ghorbani, Krishnan and Xiao 2019, Algorithm 1 (stochastic Lanczos
    quadrature).
    """
    values, first = Spectrum(len(start), steps, product).quadrature(start)
    rule = np.full((2, steps), np.nan)
    rule[:, : len(values)] = values, first**2 + 0.0 * values  # no weight where there is no node
    return rule

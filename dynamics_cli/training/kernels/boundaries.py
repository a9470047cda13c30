"""Which samples a ReLU neuron hears while `<w, x_k> = 0` for some of them: Filippov's solution of the gradient flow.

A sample k contributes `d_k x_k` to the drift `D` of a neuron, `dw/dt = a D`: `d_k = -f_k` when switched on, and
`-alpha f_k` when off, where `f_k` is its weighted derivative of the loss. On the boundary `<w, x_k> = 0` any fraction
between is possible. Where both sides push back to it, the neuron slides: the fractions are those for which D is
shortest, the optimality conditions of which say that a sample is on where `<w, x_k>` grows, off where it falls and
between where it stays. (Gradient descent chatters around that path instead.)
"""

from __future__ import annotations

import numba
import numpy as np
from numpy.typing import NDArray

from dynamics_cli.compiling import INLINE, PIECE

OFF, ON, SLIDING = 0, 1, 2
"""Modes of a sample for a neuron."""
BOUNDARY = 1e-13
"""`|<w, x_k>|` below this times `||w|| ||x_k||` is on the boundary."""
STEP, LOW, HIGH, VALUE, BASE, SCALE, HEARD, DRIFT, PRODUCTS = 0, 1, 2, 3, 4, 5, 6, 7, 10
"""Rows of `V`; 0 to 2 are also right-hand sides, and `DRIFT` and `PRODUCTS` begin three rows each."""
BOUNDARY_SAMPLES, INDEX, FREE = 0, 1, 2
"""Rows of `whole`."""
_RIDGE = 1e-13
_GRADIENT_TOLERANCE = 1e-11
_SLACK = 1e-12


def workspace(n: int) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64], NDArray[np.int64]]:
    """Return arrays that the kernels overwrite for n samples: `A`, `S` (n, n), `V` (., n) and `whole` (3, n)."""
    return np.empty((n, n)), np.empty((n, n)), np.empty((PRODUCTS + 3, n)), np.empty((3, n), np.int64)


@numba.njit(**PIECE)
def solve_symmetric(A, B, k):  # type: ignore[no-untyped-def]
    """Overwrite the rows of `B` (q, k) with the solutions of `A x = b`; `A` (k, k) is overwritten, its lower half read.

    `A` is positive semidefinite; directions in which it is 0 are given a ridge. Both may have more columns, `A` rows.
    """
    for i in range(k):
        for j in range(i):
            s = A[i, j]
            for p in range(j):
                s -= A[i, p] * A[j, p]
            A[i, j] = s / A[j, j]
        s = A[i, i]
        floor = _RIDGE * s
        for p in range(i):
            s -= A[i, p] * A[i, p]
        A[i, i] = np.sqrt(max(s, floor))
    for q in range(B.shape[0]):
        for i in range(k):
            s = B[q, i]
            for p in range(i):
                s -= A[i, p] * B[q, p]
            B[q, i] = s / A[i, i]
        for i in range(k - 1, -1, -1):
            s = B[q, i]
            for p in range(i + 1, k):
                s -= A[p, i] * B[q, p]
            B[q, i] = s / A[i, i]


@numba.njit(**PIECE)
def slides_along(mode, index):  # type: ignore[no-untyped-def]
    """Write into `index` (n,) the samples along which a neuron of these modes slides; return how many these are."""
    count = 0
    for k in range(len(mode)):
        if mode[k] == SLIDING:
            index[count] = k
            count += 1
    return count


@numba.njit(**PIECE)
def settle(G, lengths, size, z, mode, f, alpha, sign, work):  # type: ignore[no-untyped-def]
    """Set the modes of the samples on the boundary of one neuron.

    Args:
        G: Gram matrix of the inputs (n, n).
        lengths: norms of the inputs (n,).
        size: `||w||`.
        z: `<w, x_k>` (n,).
        mode: (n,) modes, changed in place.
        f: weighted derivatives of the loss (n,).
        alpha: slope of the activation for negative arguments.
        sign: sign of the output weight.
        work: a `workspace`, overwritten.

    """
    A, S, V, whole = work
    boundary, free = whole[BOUNDARY_SAMPLES], whole[FREE]
    nb = on_boundary(lengths, size, z, mode, f, alpha, sign, boundary)
    if nb == 0:
        return
    for i in range(nb):
        k = boundary[i]
        on, off = -f[k], -alpha * f[k]
        V[LOW, i], V[HIGH, i] = min(on, off), max(on, off)
        free[i] = mode[k] == SLIDING
        V[VALUE, i] = 0.5 * (on + off) if free[i] else (on if mode[k] == ON else off)
    for i in range(nb):
        for j in range(nb):
            A[i, j] = G[boundary[i], boundary[j]]
        V[BASE, i], V[SCALE, i] = 0.0, abs(f[boundary[i]]) * A[i, i]
    i = 0
    for k in range(G.shape[0]):
        if i < nb and boundary[i] == k:  # these are the unknowns
            i += 1
            continue
        d = -f[k] if mode[k] == ON else -alpha * f[k]
        if d != 0.0:
            for p in range(nb):
                V[BASE, p] += G[k, boundary[p]] * d
                V[SCALE, p] += abs(G[k, boundary[p]] * d)
    shortest(A, S, V, free, whole[INDEX], nb)
    for i in range(nb):
        k = boundary[i]
        mode[k] = SLIDING if free[i] else (ON if V[VALUE, i] == -f[k] else OFF)


@numba.njit(**PIECE)
def on_boundary(lengths, size, z, mode, f, alpha, sign, boundary):  # type: ignore[no-untyped-def]
    """Write into `boundary` (n,) the samples on whose boundary a neuron may slide; return how many these are.

    Switch off those that no longer attract it.
    """
    nb = 0
    for k in range(len(z)):
        attracts = f[k] * (1.0 - alpha) * sign > 0.0
        if mode[k] == SLIDING and not attracts:
            mode[k] = OFF
        near = abs(z[k]) <= BOUNDARY * size * lengths[k]
        if lengths[k] > 0.0 and attracts and (mode[k] == SLIDING or near):
            boundary[nb] = k
            nb += 1
    return nb


@numba.njit(**INLINE)
def shortest(A, S, V, free, index, k):  # type: ignore[no-untyped-def]
    """Minimise `value^T A value / 2 + base^T value` within `low <= value <= high` by active sets, in place.

    Args:
        A: (k, k) Gram matrix, in an array that may be larger, as all others.
        S: (k, k), overwritten.
        V: (., k), with rows `LOW` and `HIGH`, the bounds; `VALUE`, a start within them, at one of them where not
            `free`; `BASE`, the linear term; `SCALE`, the size of the terms in the gradient.
        free: (k,) which values are between their bounds, changed in place.
        index: (k,), overwritten.
        k: how many values there are.

    """
    for _ in range(4 * k + 10):
        nf = 0
        for i in range(k):
            if free[i]:
                index[nf] = i
                nf += 1
        if nf > 0 and bounded_step(A, S, V, free, index[:nf], k):
            continue
        worst, which = _GRADIENT_TOLERANCE, -1
        for i in range(k):
            if not free[i] and V[HIGH, i] > V[LOW, i]:
                g = V[BASE, i]
                for j in range(k):
                    g += A[i, j] * V[VALUE, j]
                violation = (-g if V[VALUE, i] == V[LOW, i] else g) / V[SCALE, i]
                if violation > worst:
                    worst, which = violation, i
        if which < 0:
            return
        free[which] = True


@numba.njit(**INLINE)
def bounded_step(A, S, V, free, index, k):  # type: ignore[no-untyped-def]
    """Move the free values to their minimum or up to the first bound; return whether one was hit, and is now fixed."""
    nf = len(index)
    for p in range(nf):
        i = index[p]
        s = -V[BASE, i]
        for j in range(k):
            if not free[j]:
                s -= A[i, j] * V[VALUE, j]
        V[STEP, p] = s
        for q in range(p + 1):
            S[p, q] = A[i, index[q]]
    solve_symmetric(S, V[:1], nf)
    share, hit = 1.0, -1
    for p in range(nf):
        i = index[p]
        x, value, low, high = V[STEP, p], V[VALUE, i], V[LOW, i], V[HIGH, i]
        slack = _SLACK * (high - low)
        if x < low - slack or x > high + slack:
            reach = ((low if x < low else high) - value) / (x - value)
            if reach < share:
                share, hit = reach, p
    for p in range(nf):
        i = index[p]
        V[VALUE, i] += share * (V[STEP, p] - V[VALUE, i])
    if hit >= 0:
        i = index[hit]
        V[VALUE, i] = V[LOW, i] if V[STEP, hit] < V[LOW, i] else V[HIGH, i]
        free[i] = False
    return hit >= 0

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

from dynamics_cli.compiling import STRICT

OFF, ON, SLIDING = 0, 1, 2
"""Modes of a sample for a neuron."""
BOUNDARY = 1e-13
"""`|<w, x_k>|` below this times `||w|| ||x_k||` is on the boundary."""
_RIDGE = 1e-13
_GRADIENT_TOLERANCE = 1e-11
_SLACK = 1e-12


@numba.njit(**STRICT)
def solve_symmetric(A, B):  # type: ignore[no-untyped-def]
    """Overwrite the rows of `B` (q, k) with the solutions of `A x = b`; `A` (k, k) is overwritten, its lower half read.

    `A` is positive semidefinite; directions in which it is 0 are given a ridge.
    """
    k = A.shape[0]
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


@numba.njit(**STRICT)
def slides_along(mode):  # type: ignore[no-untyped-def]
    """Return the samples along which a neuron of these modes slides."""
    index = np.empty(len(mode), np.int64)
    count = 0
    for k in range(len(mode)):
        if mode[k] == SLIDING:
            index[count] = k
            count += 1
    return index[:count]


@numba.njit(**STRICT)
def settle(G, lengths, size, z, mode, f, alpha, sign):  # type: ignore[no-untyped-def]
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

    """
    boundary = on_boundary(lengths, size, z, mode, f, alpha, sign)
    n, nb = G.shape[0], len(boundary)
    if nb == 0:
        return
    low, high, value = np.empty(nb), np.empty(nb), np.empty(nb)
    free = np.empty(nb, np.bool_)
    for i in range(nb):
        k = boundary[i]
        on, off = -f[k], -alpha * f[k]
        low[i], high[i] = min(on, off), max(on, off)
        free[i] = mode[k] == SLIDING
        value[i] = 0.5 * (on + off) if free[i] else (on if mode[k] == ON else off)
    A, base, scale = np.empty((nb, nb)), np.zeros(nb), np.empty(nb)
    for i in range(nb):
        for j in range(nb):
            A[i, j] = G[boundary[i], boundary[j]]
        scale[i] = abs(f[boundary[i]]) * A[i, i]
    i = 0
    for k in range(n):
        if i < nb and boundary[i] == k:  # these are what is to be found
            i += 1
            continue
        d = -f[k] if mode[k] == ON else -alpha * f[k]
        if d != 0.0:
            for p in range(nb):
                base[p] += G[k, boundary[p]] * d
                scale[p] += abs(G[k, boundary[p]] * d)
    shortest(A, base, scale, low, high, value, free)
    for i in range(nb):
        k = boundary[i]
        mode[k] = SLIDING if free[i] else (ON if value[i] == -f[k] else OFF)


@numba.njit(**STRICT)
def on_boundary(lengths, size, z, mode, f, alpha, sign):  # type: ignore[no-untyped-def]
    """Return the samples on whose boundary a neuron may slide; switch off those that no longer attract it."""
    boundary = np.empty(len(z), np.int64)
    nb = 0
    for k in range(len(z)):
        attracts = f[k] * (1.0 - alpha) * sign > 0.0
        if mode[k] == SLIDING and not attracts:
            mode[k] = OFF
        near = abs(z[k]) <= BOUNDARY * size * lengths[k]
        if lengths[k] > 0.0 and attracts and (mode[k] == SLIDING or near):
            boundary[nb] = k
            nb += 1
    return boundary[:nb]


@numba.njit(**STRICT)
def shortest(A, base, scale, low, high, value, free):  # type: ignore[no-untyped-def]
    """Minimise `value^T A value / 2 + base^T value` within `low <= value <= high` by active sets, in place.

    Args:
        A: (k, k) Gram matrix.
        base: (k,) linear term.
        scale: (k,) size of the terms in the gradient.
        low: (k,) bounds from below.
        high: (k,) bounds from above.
        value: (k,) a start within the bounds; at one of them where not `free`.
        free: (k,) which values are between their bounds, changed in place.

    """
    k = len(base)
    index = np.empty(k, np.int64)
    for _ in range(4 * k + 10):
        nf = 0
        for i in range(k):
            if free[i]:
                index[nf] = i
                nf += 1
        if nf > 0 and bounded_step(A, base, low, high, value, free, index[:nf]):
            continue
        worst, which = _GRADIENT_TOLERANCE, -1
        for i in range(k):
            if not free[i] and high[i] > low[i]:
                g = base[i]
                for j in range(k):
                    g += A[i, j] * value[j]
                violation = (-g if value[i] == low[i] else g) / scale[i]
                if violation > worst:
                    worst, which = violation, i
        if which < 0:
            return
        free[which] = True


@numba.njit(**STRICT)
def bounded_step(A, base, low, high, value, free, index):  # type: ignore[no-untyped-def]
    """Move the free values to their minimum or up to the first bound; return whether one was hit, and is now fixed."""
    nf = len(index)
    S, x = np.empty((nf, nf)), np.empty((1, nf))
    for p in range(nf):
        i = index[p]
        s = -base[i]
        for j in range(len(base)):
            if not free[j]:
                s -= A[i, j] * value[j]
        x[0, p] = s
        for q in range(p + 1):
            S[p, q] = A[i, index[q]]
    solve_symmetric(S, x)
    share, hit = 1.0, -1
    for p in range(nf):
        i = index[p]
        slack = _SLACK * (high[i] - low[i])
        if x[0, p] < low[i] - slack or x[0, p] > high[i] + slack:
            bound = low[i] if x[0, p] < low[i] else high[i]
            reach = (bound - value[i]) / (x[0, p] - value[i])
            if reach < share:
                share, hit = reach, p
    for p in range(nf):
        i = index[p]
        value[i] += share * (x[0, p] - value[i])
    if hit >= 0:
        i = index[hit]
        value[i] = low[i] if x[0, hit] < low[i] else high[i]
        free[i] = False
    return hit >= 0

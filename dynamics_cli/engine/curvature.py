"""Derivatives of networks of layers at one state, compiled, in float64: products with the Hessian, and its spectrum.

Products are Pearlmutter's R-operator: the derivative of the gradient along a direction, which costs a few products of
matrices. Lanczos iterations are made of the same pieces whether the product is compiled here or a function of Python.

Sources: Pearlmutter 1994, Fast Exact Multiplication by the Hessian; Golub and Van Loan, Matrix Computations, Sections
8.3 (QL iterations with implicit shifts) and 10.1 (Lanczos).
"""

from __future__ import annotations

from itertools import pairwise

import numba
import numpy as np

from dynamics_cli.compiling import STRICT
from dynamics_cli.engine.network import DOTS, PRODUCT, add_bias, back, scale_by, through_layers
from dynamics_cli.engine.products import ONE, PIECE, ZERO, address, call, dots, product, product_from

BENDING, SIGMA = 3, 4
"""Places of the addresses of units, after those of `engine.network`."""
SLACK = 7
"""Rows that the kernels want beyond those of `limit` Lanczos vectors: the next vector, and those that `dots` reads."""
_DOTTED = 6
"""Rows from which on `dots` vectorises."""


# -- one state


def work_size(sizes: list[int], n: int, P: int) -> int:
    """Return how many numbers the kernels work on, for layers of `sizes`, `n` samples and P weights."""
    most = max(a * b for a, b in pairwise(sizes))
    return 4 * P + 7 * n * sum(sizes[1:]) + 1 + most + 2 * n * max(sizes)


@numba.njit(**PIECE)
def add_product(units, A, ar, ak, B, bk, C, cr, n, K, m):  # type: ignore[no-untyped-def]
    """Add A B to C (n, m), all at addresses; see `products.product`."""
    product_from(units[PRODUCT], 0.0, A, ar, ak, B, bk, C, cr, n, K, m, C, cr)


@numba.njit(**PIECE)
def _parts(plan, work):  # type: ignore[no-untyped-def]
    """Return the parts of `work`: vectors (P,), then numbers of all layers, then scratch.

    Vectors: weights, gradient, direction v, product. Numbers: h, dL/dz, slopes, `dL/dh sigma''(z)`, and along v the
    derivatives of z, of h and of dL/dz.
    """
    sizes, P = plan[0][0], plan[3]
    n = plan[4].shape[0] // sizes[0]
    N = 0
    for m in sizes[1:]:
        N += n * m
    a = 4 * P
    return (
        (work[:P], work[P : 2 * P], work[2 * P : 3 * P], work[3 * P : a]),
        (
            work[a : a + N], work[a + N : a + 2 * N], work[a + 2 * N : a + 3 * N], work[a + 3 * N : a + 4 * N],
            work[a + 4 * N : a + 5 * N], work[a + 5 * N : a + 6 * N], work[a + 6 * N : a + 7 * N],
        ),
        work[a + 7 * N :],
    )  # fmt: skip


@numba.njit(**PIECE)
def _evaluate(plan, work):  # type: ignore[no-untyped-def]
    net, units, numbers, _, x, y, base, weight = plan
    (theta, g, _, _), (H, S, K, B, _, _, _), T = _parts(plan, work)
    n = x.shape[0] // net[0][0]
    return through_layers(
        net, units, units[SIGMA], numbers, ZERO, theta, x, ZERO, y, ZERO, base, ZERO, n, weight, H, S, K, B, T, g, True
    )


@numba.njit(**PIECE)
def _multiply(plan, places, work, V, at_v, out, whole):  # type: ignore[no-untyped-def]
    """Set `out` to the Hessian, or unless `whole` its Gauss-Newton part, times V from `at_v` on.

    Both are vectors of the trained weights, whose `places` among all are given.
    """
    net, units, _, _, x, y, _, weight = plan
    sizes, at, _, multipliers, loss_numbers, scale, _ = net
    (theta, _, v, found), (H, S, K, B, R, Rh, D), T = _parts(plan, work)
    n, L, p, before = x.shape[0] // sizes[0], at.shape[0], 0, 0
    for i in range(v.shape[0]):
        v[i] = 0.0
    for i in range(places.shape[0]):
        v[places[i]] = V[at_v + i]
    for layer in range(L):
        rows, m, W, b = sizes[layer], sizes[layer + 1], at[layer, 0], at[layer, 1]
        plain = multipliers[layer] == 1.0
        h, first = (x, 0) if layer == 0 else (H, before)
        if m == 1:
            dots(units[DOTS], 0.0, address(h, first), address(v, W), n, rows, address(R, p))
            if layer > 0:
                dots(units[DOTS], 0.0, address(Rh, before), address(theta, W), n, rows, address(D, p))
                for k in range(p, p + n):
                    R[k] += D[k]
        else:
            if plain and b >= 0:
                product_from(
                    units[PRODUCT],
                    0.0,
                    address(h, first),
                    rows,
                    ONE,
                    address(v, W),
                    m,
                    address(R, p),
                    m,
                    n,
                    rows,
                    m,
                    address(v, b),
                    ZERO,
                )
            else:
                product(
                    units[PRODUCT], 0.0, address(h, first), rows, ONE, address(v, W), m, address(R, p), m, n, rows, m
                )
            if layer > 0:
                product_from(
                    units[PRODUCT],
                    0.0,
                    address(Rh, before),
                    rows,
                    ONE,
                    address(theta, W),
                    m,
                    address(R, p),
                    m,
                    n,
                    rows,
                    m,
                    address(R, p),
                    m,
                )
        if not plain:
            scale_by(R, p, p + n * m, multipliers[layer])
        if b >= 0 and (m == 1 or not plain):
            add_bias(v, b, R, p, n, m)
        if layer + 1 < L:
            turned, slopes, z = Rh[p : p + n * m], K[p : p + n * m], R[p : p + n * m]
            for k in range(n * m):
                turned[k] = slopes[k] * z[k]
        before = p
        p += n * m
    C = sizes[L]
    p -= n * C
    scale_by(R, p, p + n * C, scale)
    call(
        units[BENDING],
        (address(H, p), address(y, 0), address(R, p), address(D, p), n, C, weight, address(loss_numbers, 0)),
    )
    scale_by(D, p, p + n * C, scale)
    T[0] = 1.0
    for layer in range(L - 1, -1, -1):
        rows, m, W, b = sizes[layer], sizes[layer + 1], at[layer, 0], at[layer, 1]
        before = p - n * rows
        h, first = (x, 0) if layer == 0 else (H, before)
        bent = whole and layer > 0
        if b >= 0:
            product(units[PRODUCT], 0.0, address(T, 0), ZERO, ZERO, address(D, p), m, address(found, b), m, ONE, n, m)
        if multipliers[layer] != 1.0:
            scale_by(D, p, p + n * m, multipliers[layer])
        if m == 1:
            product(
                units[PRODUCT],
                0.0,
                address(D, p),
                ZERO,
                ONE,
                address(h, first),
                rows,
                address(found, W),
                rows,
                ONE,
                n,
                rows,
            )
            if bent:
                add_product(
                    units, address(S, p), ZERO, ONE, address(Rh, before), rows, address(found, W), rows, ONE, n, rows
                )
        else:
            product(
                units[PRODUCT], 0.0, address(h, first), ONE, rows, address(D, p), m, address(found, W), m, rows, n, m
            )
            if bent:
                product_from(
                    units[PRODUCT],
                    0.0,
                    address(Rh, before),
                    ONE,
                    rows,
                    address(S, p),
                    m,
                    address(found, W),
                    m,
                    rows,
                    n,
                    m,
                    address(found, W),
                    m,
                )
        if layer > 0 and m == 1:
            W_l, v_l = theta[W : W + rows], v[W : W + rows]
            for k in range(n):
                first, last = before + k * rows, before + k * rows + rows
                below, slopes, bends, z = D[first:last], K[first:last], B[first:last], R[first:last]
                towards, more = D[p + k], S[p + k]
                if whole:
                    for i in range(rows):
                        below[i] = (towards * W_l[i] + more * v_l[i]) * slopes[i] + bends[i] * z[i]
                else:
                    for i in range(rows):
                        below[i] = towards * W_l[i] * slopes[i]
        elif layer > 0:
            one, other = 1 + rows * m, 1 + rows * m + n * rows
            back(units[PRODUCT], units[DOTS], theta, W, rows, m, D, p, n, T, one, T)
            if whole:
                back(units[PRODUCT], units[DOTS], v, W, rows, m, S, p, n, T, other, T)
                towards, more = T[one:other], T[other : other + n * rows]
                below, slopes, bends, z = D[before:p], K[before:p], B[before:p], R[before:p]
                for k in range(n * rows):
                    below[k] = (towards[k] + more[k]) * slopes[k] + bends[k] * z[k]
            else:
                towards, below, slopes = T[one:other], D[before:p], K[before:p]
                for k in range(n * rows):
                    below[k] = towards[k] * slopes[k]
        p = before
    for i in range(places.shape[0]):
        out[i] = found[places[i]]


# -- Lanczos iterations


@numba.njit(**PIECE)
def _eigen(alpha, beta, m, d, Z, r):  # type: ignore[no-untyped-def]
    """Set `d` (m,) to the eigenvalues, ascending, of a tridiagonal matrix, by QL iterations with implicit shifts.

    `Z` (m, r) holds some columns of the identity and becomes these of `V^T`: its rows are the eigenvectors. Where
    the matrix is not finite, all is NaN.
    """
    size, e = 0.0, np.zeros(m)
    for i in range(m):
        size += abs(alpha[i]) + (abs(beta[i]) if i + 1 < m else 0.0)
    size = 1.0 if size == 0.0 else size
    for i in range(m):
        d[i] = alpha[i] / size
        e[i] = beta[i] / size if i + 1 < m else 0.0
    failed = not np.isfinite(size)
    for first in range(0 if failed else m):
        for turn in range(64):
            last = first
            while last + 1 < m and abs(e[last]) > 1.1e-16 * (abs(d[last]) + abs(d[last + 1])):
                last += 1
            if last == first:
                break
            failed = failed or turn == 63
            g = (d[first + 1] - d[first]) / (2.0 * e[first])
            g = d[last] - d[first] + e[first] / (g + np.copysign(np.sqrt(g * g + 1.0), g))
            s, c, p, i = 1.0, 1.0, 0.0, last - 1
            while i >= first:
                f, b = s * e[i], c * e[i]
                q = np.sqrt(f * f + g * g)
                e[i + 1] = q
                if q == 0.0:
                    d[i + 1] -= p
                    e[last] = 0.0
                    break
                s, c, g = f / q, g / q, d[i + 1] - p
                q = (d[i] - g) * s + 2.0 * c * b
                p = s * q
                d[i + 1], g = g + p, c * q - b
                low, high = Z[i * r : i * r + r], Z[i * r + r : i * r + 2 * r]
                for k in range(r):
                    low[k], high[k] = c * low[k] - s * high[k], s * low[k] + c * high[k]
                i -= 1
            if i < first:
                d[first] -= p
                e[first], e[last] = g, 0.0
    for i in range(m):
        least = i
        for k in range(i + 1, m):
            least = k if d[k] < d[least] else least
        d[i], d[least] = d[least], d[i]
        for k in range(r):
            Z[i * r + k], Z[least * r + k] = Z[least * r + k], Z[i * r + k]
        d[i] = np.nan if failed else d[i] * size
    if failed:
        for i in range(m * r):
            Z[i] = np.nan


@numba.njit(**PIECE)
def _orthogonal(units, Q, w, m, along):  # type: ignore[no-untyped-def]
    """Subtract from `w` its parts along the first m rows of `Q`; return that along the last. `along` is scratch."""
    P, found = w.shape[0], 0.0
    for turn in range(2):  # twice is enough (Parlett)
        dots(units[DOTS], 0.0, address(Q, 0), address(w, 0), max(m, _DOTTED), P, address(along, 0))
        found = along[m - 1] if turn == 0 else found
        for i in range(m):
            along[i] = -along[i]
        product_from(
            units[PRODUCT],
            0.0,
            address(along, 0),
            m,
            ONE,
            address(Q, 0),
            P,
            address(w, 0),
            P,
            ONE,
            m,
            P,
            address(w, 0),
            P,
        )
    return found


@numba.njit(**PIECE)
def _step(units, Q, w, j, k, tolerance, limit, alpha, beta):  # type: ignore[no-untyped-def]
    """Set `alpha_j`, `beta_j` and the next direction from `w = H q_j` (P,), which is overwritten.

    `Q` holds `q_0`, `q_1`, ... one after the other. Return whether that is all, and the largest relative residual of
    the k largest eigenvalues; without k, all is when there is no further direction.
    """
    P, m, largest = w.shape[0], j + 1, 0.0
    along = np.empty(m + _DOTTED)
    alpha[j] = _orthogonal(units, Q, w, m, along)
    fresh = Q[m * P : m * P + P]
    for i in range(P):
        fresh[i] = w[i]
    dots(units[DOTS], 0.0, address(Q, m * P), address(w, 0), _DOTTED, P, address(along, 0))
    beta[j] = np.sqrt(along[0])
    for i in range(m):
        largest = max(largest, abs(alpha[i]), beta[i])
    exhausted = not beta[j] > 1e-14 * largest
    if not exhausted:
        for i in range(P):
            fresh[i] = w[i] / beta[j]
    done = exhausted or m == limit
    if k == 0:
        return done, 0.0
    if m >= k and (done or 1 < j < 8 or (j > 8 and j % 2 == 1)):
        d, last, part = np.empty(m), np.zeros(m), 0.0
        last[j] = 1.0
        _eigen(alpha, beta, m, d, last, 1)
        for i in range(m - k, m):
            part = max(part, abs(last[i]))
        residual = beta[j] * part / max(abs(d[0]), abs(d[m - 1]), 1e-300)
        if done or residual <= tolerance:
            return True, residual
    if done:  # the start lies in an invariant space of fewer than k dimensions
        if m == limit:
            raise ValueError("fewer dimensions than eigenvalues")
        seed = np.uint64(m)
        for i in range(P):
            seed = seed * np.uint64(6364136223846793005) + np.uint64(1442695040888963407)
            w[i] = np.float64(seed >> np.uint64(11)) / 2.0**53 - 0.5
        _orthogonal(units, Q, w, m, along)
        for i in range(P):
            fresh[i] = w[i]
        dots(units[DOTS], 0.0, address(Q, m * P), address(w, 0), _DOTTED, P, address(along, 0))
        for i in range(P):
            fresh[i] = w[i] / np.sqrt(along[0])
        beta[j] = 0.0
    return False, 0.0


@numba.njit(**PIECE)
def _largest(units, Q, P, m, k, alpha, beta):  # type: ignore[no-untyped-def]
    """Return the k largest eigenvalues after m steps, descending, and their vectors (k, P)."""
    d, Z, values, vectors = np.empty(m), np.zeros(m * m), np.empty(k), np.empty((k, P))
    for i in range(m):
        Z[i * m + i] = 1.0
    _eigen(alpha, beta, m, d, Z, m)
    for i in range(k):
        values[i] = d[m - 1 - i]
        product(
            units[PRODUCT],
            0.0,
            address(Z, (m - 1 - i) * m),
            m,
            ONE,
            address(Q, 0),
            P,
            address(vectors.reshape(-1), i * P),
            P,
            ONE,
            m,
            P,
        )
    return values, vectors


@numba.njit(**STRICT)
def lanczos_step(units, Q, w, j, k, tolerance, limit, alpha, beta):  # type: ignore[no-untyped-def]
    """Do as `_step`, for products with a matrix that come from Python."""
    return _step(units, Q, w, j, k, tolerance, limit, alpha, beta)


@numba.njit(**STRICT)
def largest_of(units, Q, P, m, k, alpha, beta):  # type: ignore[no-untyped-def]
    """Return what `_largest` does."""
    return _largest(units, Q, P, m, k, alpha, beta)


@numba.njit(**STRICT)
def rule_of(alpha, beta, m):  # type: ignore[no-untyped-def]
    """Return the eigenvalues (m,), ascending, and the first entries of the eigenvectors (m,)."""
    d, first = np.empty(m), np.zeros(m)
    first[0] = 1.0
    _eigen(alpha, beta, m, d, first, 1)
    return d, first


# -- what is asked of a state


@numba.njit(**STRICT)
def evaluate(plan, work):  # type: ignore[no-untyped-def]
    """Fill `work` with all that the derivatives at its weights share, and the gradient; return the summed losses."""
    return _evaluate(plan, work)


@numba.njit(**STRICT)
def multiply(plan, places, work, v, whole):  # type: ignore[no-untyped-def]
    """Return the Hessian, or unless `whole` its Gauss-Newton part, times `v`, at what was evaluated."""
    out = np.empty(v.shape[0])
    _multiply(plan, places, work, v, 0, out, whole)
    return out


@numba.njit(**STRICT)
def largest(plan, places, work, evaluated, whole, start, k, tolerance, limit):  # type: ignore[no-untyped-def]
    """Return the k largest eigenvalues, descending, and their vectors (k, P); see `measures.lanczos`."""
    units, P = plan[1], start.shape[0]
    if not evaluated:
        _evaluate(plan, work)
    limit = min(limit, P)
    Q, w, alpha, beta = np.empty((min(limit, 8) + SLACK) * P), np.empty(P), np.empty(limit), np.empty(limit)
    size = 0.0
    for i in range(P):
        size += start[i] * start[i]
    size = np.sqrt(size)
    for i in range(P):
        Q[i] = start[i] / size
    j, done = 0, False
    while not done:
        _multiply(plan, places, work, Q, j * P, w, whole)
        done, _ = _step(units, Q, w, j, k, tolerance, limit, alpha, beta)
        j += 1
        if (j + SLACK) * P >= Q.shape[0]:  # memory that is new takes longer than many a product
            more = np.empty(2 * Q.shape[0])
            for i in range(Q.shape[0]):
                more[i] = Q[i]
            Q = more
    return _largest(units, Q, P, j, k, alpha, beta)

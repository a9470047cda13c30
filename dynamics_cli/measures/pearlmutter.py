"""Products of a vector with the Hessian of a fully connected network, compiled: small networks would wait for Python.

Source: Pearlmutter 1994, Fast Exact Multiplication by the Hessian.
"""

from __future__ import annotations

import numba
import numpy as np

from dynamics_cli.compiling import STRICT


@numba.njit(**STRICT)
def hessian_product(sizes, biased, multipliers, theta, h, slopes, bent, deltas, curvature, v):  # type: ignore[no-untyped-def]
    """Return `H v` (P,) of `F(f)` for `v` (P,), laid out as `theta`: layer by layer `W_l` by rows, then `b_l`.

    Args:
        sizes: `m_0` to `m_L`.
        biased: (L,), which layers have biases.
        multipliers: (L,), the `c_l`.
        theta: (P,).
        h: `h_0` to `h_{L-1}`, each (n, m_l), in one flat array, as are the next three.
        slopes: `sigma'(z_l)` of the hidden layers.
        bent: `dF/dh_l sigma''(z_l)` of the hidden layers.
        deltas: `dF/dz_l`, of all layers.
        curvature: (n, C, C), the second derivative of F by `z_L`.
        v: (P,).
    """
    n, L = curvature.shape[0], multipliers.shape[0]
    wide, tall, total, most = np.empty(L + 1, np.int64), np.empty(L + 1, np.int64), 0, 0  # where z_l, W_l begin
    at = 0
    for k in range(L):
        wide[k], tall[k] = total, at
        total += n * sizes[k + 1]
        at += sizes[k + 1] * (sizes[k] + biased[k])
        most = max(most, sizes[k + 1], sizes[k])
    Rz, Rh, scratch = np.empty(total), np.empty(total), np.empty(n * most)
    out, first = np.zeros(at), n * sizes[0]
    for k in range(L):
        m, d, W = sizes[k + 1], sizes[k], tall[k]
        before = h[first + wide[k - 1] : first + wide[k]] if k else h[:first]
        z = Rz[wide[k] : wide[k] + n * m]
        np.dot(before.reshape((n, d)), v[W : W + m * d].reshape((m, d)).T, z.reshape((n, m)))
        if k:
            more = scratch[: n * m]
            moved = Rh[wide[k - 1] : wide[k]].reshape((n, d))
            np.dot(moved, theta[W : W + m * d].reshape((m, d)).T, more.reshape((n, m)))
            z += more
        if multipliers[k] != 1.0:
            z *= multipliers[k]
        if biased[k]:
            b = v[W + m * d : W + m * d + m]
            for i in range(n):
                for j in range(m):
                    z[i * m + j] += b[j]
        if k + 1 < L:
            for i in range(n * m):
                Rh[wide[k] + i] = slopes[wide[k] + i] * z[i]
    C = sizes[L]
    f, towards = Rz[wide[L - 1] : wide[L - 1] + n * C], np.empty(n * most)
    for i in range(n):
        for a in range(C):
            towards[i * C + a] = 0.0
            for b in range(C):
                towards[i * C + a] += curvature[i, a, b] * f[i * C + b]
    for k in range(L - 1, -1, -1):
        m, d, W, c = sizes[k + 1], sizes[k], tall[k], multipliers[k]
        before = h[first + wide[k - 1] : first + wide[k]] if k else h[:first]
        R = towards[: n * m].reshape((n, m))
        g = out[W : W + m * d].reshape((m, d))
        np.dot(R.T, before.reshape((n, d)), g)
        if biased[k]:
            for i in range(n):
                for j in range(m):
                    out[W + m * d + j] += R[i, j]
        if k:
            delta = deltas[wide[k] : wide[k] + n * m].reshape((n, m))
            g += np.dot(delta.T, Rh[wide[k - 1] : wide[k]].reshape((n, d)))
            more = scratch[: n * d]
            np.dot(R, theta[W : W + m * d].reshape((m, d)), more.reshape((n, d)))
            other = np.dot(delta, v[W : W + m * d].reshape((m, d))).ravel()
            for i in range(n * d):
                p = wide[k - 1] + i
                towards[i] = c * (more[i] + other[i]) * slopes[p] + bent[p] * Rz[p]
        if c != 1.0:
            g *= c
    return out


@numba.njit(**STRICT)
def next_direction(w, Q, j, alpha, beta):  # type: ignore[no-untyped-def]
    """Take `w = H q_j` for the next of Lanczos' directions, `Q[j + 1]`; fill in `alpha_j`, `beta_j`.

    Return whether there is none: the space of those before is invariant.
    """
    P = len(w)
    alpha[j] = np.dot(Q[j], w)
    for _ in range(2):  # twice is enough (Parlett)
        w -= np.dot(np.dot(Q[: j + 1], w), Q[: j + 1])
    beta[j] = np.sqrt(np.dot(w, w))
    if beta[j] <= 1e-14 * (np.abs(alpha[: j + 1]).max() + beta[: j + 1].max()):
        return True
    for i in range(P):
        Q[j + 1, i] = w[i] / beta[j]
    return False


@numba.njit(**STRICT)
def tridiagonal(alpha, beta, size):  # type: ignore[no-untyped-def]
    """Return eigenvalues (size,), ascending, and eigenvectors of the matrix of the first `size` Lanczos steps."""
    T = np.diag(alpha[:size])
    for j in range(size - 1):
        T[j, j + 1] = T[j + 1, j] = beta[j]
    return np.linalg.eigh(T)

"""Products of a vector with the Hessian of a fully connected network, compiled: small networks would wait for Python.

Source: Pearlmutter 1994, Fast Exact Multiplication by the Hessian.
"""

from __future__ import annotations

import numba
import numpy as np

from dynamics_cli.compiling import STRICT
from dynamics_cli.measures.blas import multiply


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
    wide, tall = np.zeros(L + 1, np.int64), np.zeros(L + 1, np.int64)  # where z_l and W_l begin
    for k in range(L):
        wide[k + 1] = wide[k] + n * sizes[k + 1]
        tall[k + 1] = tall[k] + sizes[k + 1] * (sizes[k] + biased[k])
    first, C = n * sizes[0], sizes[L]
    Rz, Rh, towards = np.empty(wide[L]), np.empty(wide[L]), np.empty(wide[L])
    out = np.zeros(tall[L])
    for k in range(L):
        m, d, W, c = sizes[k + 1], sizes[k], tall[k], multipliers[k]
        z = Rz[wide[k] :]
        multiply(h[first + wide[k - 1] if k else 0 :], False, v[W:], True, n, d, m, z, False)
        if k:
            multiply(Rh[wide[k - 1] :], False, theta[W:], True, n, d, m, z, True)
        for i in range(n):
            row, bias = z[i * m : (i + 1) * m], v[W + m * d : W + m * d + biased[k] * m]
            for j in range(row.size):
                row[j] *= c
            for j in range(bias.size):
                row[j] += bias[j]
        if k + 1 < L:
            turned, slope = Rh[wide[k] : wide[k + 1]], slopes[wide[k] : wide[k + 1]]
            for i in range(turned.size):
                turned[i] = slope[i] * z[i]
    for i in range(n):
        for a in range(C):
            summed = 0.0
            for b in range(C):
                summed += curvature[i, a, b] * Rz[wide[L - 1] + i * C + b]
            towards[wide[L - 1] + i * C + a] = summed
    for k in range(L - 1, -1, -1):
        m, d, W, c = sizes[k + 1], sizes[k], tall[k], multipliers[k]
        R, g = towards[wide[k] :], out[W:]
        multiply(R, True, h[first + wide[k - 1] if k else 0 :], False, m, n, d, g, False)
        if k:
            multiply(deltas[wide[k] :], True, Rh[wide[k - 1] :], False, m, n, d, g, True)
            before = towards[wide[k - 1] :]
            multiply(R, False, theta[W:], False, n, m, d, before, False)
            multiply(deltas[wide[k] :], False, v[W:], False, n, m, d, before, True)
            slope, bend, below = slopes[wide[k - 1] : wide[k]], bent[wide[k - 1] : wide[k]], Rz[wide[k - 1] : wide[k]]
            for i in range(slope.size):
                before[i] = c * before[i] * slope[i] + bend[i] * below[i]
        for i in range(m * d):
            g[i] *= c
        if biased[k]:
            for i in range(n):
                row, bias = R[i * m : (i + 1) * m], g[m * d : m * d + m]
                for j in range(row.size):
                    bias[j] += row[j]
    return out

"""Extremal directions and sectors, and the limit of balanced gradient flow (Phuong and Lampert
2021, Sections 3 and 4).

Points `x (n, d)` with labels `y (n,)` of +1 and -1 are orthogonally separable; `rays (2, d)` are w+
and w- (Eqs. 6, 7).
"""

from __future__ import annotations

import numpy as np

from dynamics_cli.measures.arrays import Bools, Floats, Ints


def gradient(w: Floats, x: Floats, y: Floats) -> Floats:
    """Return the gradient `(m, d)` of `G(w) = sum_i y_i relu(<w, x_i>) / 2` (Eq. 11, logistic
    loss) at `w (m, d)`.
    """
    return np.asarray(((w @ x.T > 0) * y) @ x / 2)


def sectors(w: Floats, x: Floats, tolerance: float = 1e-9) -> Ints:
    """Return the signs `(..., n)` of `<w, x_i>` (Definition 1); 0 up to a share of both lengths."""
    z = w @ x.T
    small = tolerance * np.linalg.norm(w, axis=-1, keepdims=True) * np.linalg.norm(x, axis=1)
    return np.asarray(np.where(np.abs(z) <= small, 0, np.sign(z)), dtype=np.int64)


def extremal_sector(x: Floats, y: Floats, sign: int) -> Ints:
    """Return the positive (`sign` 1) or negative (-1) extremal sector (n,), by Eqs. 13 and 14."""
    own = y == sign
    other = ~own
    touched = (x[other] @ x[own].T < 0).any(axis=1)
    sector = np.ones(len(y), dtype=np.int64)
    sector[other] = np.where(touched, -1, 0)
    return sector


def climb(w: Floats, x: Floats, y: Floats, steps: int = 2000, size: float = 0.2) -> Floats:
    """Return where unit vectors `w (m, d)` end that climb `G` on the sphere, by steps along its
    gradient.

    Vectors that are active for no point do not move.
    """
    scale = size / np.linalg.norm(x, axis=1).sum()
    for _ in range(steps):
        w = w + scale * gradient(w, x, y)
        w = w / np.linalg.norm(w, axis=1, keepdims=True)
    return w


def limit_of(W: Floats, a: Floats, rays: Floats) -> tuple[Floats, Floats]:
    """Return the closest `u` and `z (m,)` of Theorem 1, at least 0, for `W (m, d)` of norm 1 and
    the signs of `a (m,)`.
    """
    shares = np.maximum(W @ rays.T / np.sum(rays**2, axis=1), 0.0)  # (m, 2)
    return np.where(a > 0, shares[:, 0], 0.0), np.where(a > 0, 0.0, shares[:, 1])


def weight_residual(W: Floats, a: Floats, rays: Floats) -> float:
    """Return the norm of `W/||W||_F - (u w+^T + z w-^T)` for the closest u and z (Eq. 8)."""
    unit = W / np.linalg.norm(W)
    u, z = limit_of(unit, a, rays)
    return float(np.linalg.norm(unit - np.outer(u, rays[0]) - np.outer(z, rays[1])))


def output_residual(W: Floats, a: Floats, rays: Floats) -> float:
    """Return the norm of `a/||a|| - (u ||w+|| - z ||w-||)` for the u and z of `weight_residual`
    (Eq. 9).
    """
    u, z = limit_of(W / np.linalg.norm(W), a, rays)
    plus, minus = np.linalg.norm(rays, axis=1)
    return float(np.linalg.norm(a / np.linalg.norm(a) - (u * plus - z * minus)))


def function_residual(W: Floats, a: Floats, rays: Floats, x: Floats) -> float:
    """Return the error of Corollary 1 at points `x (n, d)`, over the norm of the network's outputs
    there.

    The error is that of the closest `u relu(<w+, x>) - z relu(<w-, x>)`.
    """
    h = np.maximum(x @ W.T, 0) @ a
    canonical = np.maximum(x @ rays.T, 0) * np.array([1.0, -1.0])
    fitted = canonical @ np.maximum(np.linalg.lstsq(canonical, h, rcond=None)[0], 0.0)
    return float(np.linalg.norm(h - fitted) / np.linalg.norm(h))


def kkt_residual(
    x: Floats, y: Floats, rays: Floats, multipliers: tuple[Floats, Floats], u: Floats, z: Floats
) -> float:
    """Return the largest violation of the KKT conditions of Lemma C.1 by the network that `u` and
    `z (m,)` define.

    `multipliers` are those of Eqs. 6 and 7; u and z are normalised as the lemma wants it, and one
    of them is 0 for each neuron.
    """
    lengths = np.linalg.norm(rays, axis=1)
    u = u / np.linalg.norm(u) / np.sqrt(lengths[0])
    z = z / np.linalg.norm(z) / np.sqrt(lengths[1])
    W = np.outer(u, rays[0]) + np.outer(z, rays[1])
    a = lengths[0] * u - lengths[1] * z
    dual = np.zeros(len(y))
    for sign, of_class, length in zip((1, -1), multipliers, lengths, strict=True):
        dual[y == sign] = of_class / length
    pre = x @ W.T
    margins = y * (np.maximum(pre, 0) @ a)
    weighted = dual * y
    of_weights = W - a[:, None] * ((pre > 0).T * weighted) @ x
    of_outputs = a - weighted @ np.maximum(pre, 0)
    return float(
        max(
            np.abs(of_weights).max(),
            np.abs(of_outputs).max(),
            np.abs(dual * (margins - 1)).max(),
            (1 - margins).max(),
            -dual.min(),
        )
    )


def left_after(entered: Bools) -> int:
    """Return how often a condition `(K, ...)` that once held fails at a later state."""
    before = np.maximum.accumulate(entered, axis=0)
    return int(np.count_nonzero(before & ~entered))

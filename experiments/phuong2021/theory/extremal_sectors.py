"""Extremal directions and sectors of small data, enumerated exactly (Phuong and Lampert 2021, Section 4.1).

Tiny neurons of a two-layer ReLU network climb (a_j > 0) or descend (a_j < 0) the function `G(w) = sum_i c_i
relu(<w, x_i>)` on the unit sphere, `c_i = -l_i'(0)`, which is `y_i / 2` for the logistic loss (Maennel et al. 2018). A
sector is a sign pattern of `(<w, x_i>)_i`; G is linear in each. With Z the points of sign 0 and A those of sign 1, a
critical direction is along `P_Z sum_{i in A} c_i x_i` (Lemma A.1). When the points of Z are independent, moving off it
changes G to first order by `sum_{i in Z} (beta_i t_i + c_i relu(t_i))`, `t_i` the new `<w, x_i>` and `beta` the
coefficients of `sum_A c_i x_i` on Z. So it is a strict local maximum if and only if `0 <= beta_i <= -c_i` on Z, and G
> 0 there, or else Z has d - 1 points and the inequalities are strict.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import ArrayLike

from dynamics_cli.measures.arrays import Floats, Ints, as_floats, as_points

MOST = 14
"""Points at most: there are up to 3^n sectors to look at."""
ZERO = 1e-9


@dataclass(frozen=True)
class Extremal:
    """A strict local optimum of G on the unit sphere."""

    direction: Floats
    """(d,) unit vector."""
    sector: Ints
    """(n,) its signs on the data: -1, 0, 1."""


def sector_of(x: ArrayLike, W: ArrayLike, *, zero: float = ZERO) -> Ints:
    """Return the sectors `(..., m, n)` of neurons `W (..., m, d)` on inputs `x (n, d)`.

    Cosines up to `zero` in size count as 0.
    """
    points, weights = as_floats(x, "x", axes=2), as_floats(W, "W", axes=2, batched=True)
    sizes = np.linalg.norm(weights, axis=-1, keepdims=True) * np.linalg.norm(points, axis=1)
    products = weights @ points.T
    return np.where(np.abs(products) <= zero * sizes, 0, np.sign(products)).astype(np.int64)


def G(x: ArrayLike, y: ArrayLike, W: ArrayLike) -> Floats:
    """Return `sum_i c_i relu(<w, x_i>)` (Eq. 12) of neurons `W (..., d)`, `c_i = y_i / 2`."""
    points, labels = as_points(x, y)
    result: Floats = np.maximum(np.asarray(W, np.float64) @ points.T, 0.0) @ (labels / 2)
    return result


def extremal_directions(x: ArrayLike, y: ArrayLike, sign: int = 1) -> list[Extremal]:
    """Return all positive (`sign` 1: strict local maxima of G) or negative (-1: minima) extremal directions.

    Args:
        x: inputs (n, d), not 0; those on which a direction vanishes must be independent.
        y: labels (n,), ±1.
        sign: 1 or -1.

    Raises ValueError: there are more than `MOST` points, or an input is 0.
    """
    points, labels = as_points(x, y)
    n, d = points.shape
    if n > MOST:
        raise ValueError(f"sectors are enumerated for up to {MOST} points, not {n}")
    if not np.linalg.norm(points, axis=1).all():
        raise ValueError("an input is 0: it is in no sector")
    c = sign * labels / 2
    found = []
    for size in range(min(d, n + 1)):
        for chosen in combinations(range(n), size):
            Z = np.array(chosen, dtype=np.int64)
            if size and ((c[Z] > 0).any() or np.linalg.matrix_rank(points[Z]) < size):
                continue  # a point of sign 0 with c_i > 0 can always be gained
            found += _on_flat(points, c, Z)
    return sorted(found, key=lambda one: tuple(-one.sector))


def _on_flat(x: Floats, c: Floats, Z: Ints) -> list[Extremal]:
    """Return the strict local maxima whose zero set is Z (k,)."""
    n, d = x.shape
    rest = np.setdiff1d(np.arange(n), Z)
    bits = (np.arange(2 ** len(rest))[:, None] >> np.arange(len(rest))) & 1  # (2^(n-k), n-k): who is active
    sums = (bits * c[rest]) @ x[rest]  # (., d)
    inverse = np.linalg.pinv(x[Z].T) if len(Z) else np.zeros((0, d))  # (k, d)
    beta = sums @ inverse.T  # (., k)
    w = sums - beta @ x[Z]
    lengths = np.linalg.norm(w, axis=1)
    scale = np.abs(c).max() * np.linalg.norm(x, axis=1).sum()
    value = lengths  # G(w / |w|) = |w|
    if len(Z) == d - 1:  # a line: both of its directions are critical, whatever G is there
        line = np.linalg.svd(x[Z])[2][-1] if len(Z) else np.eye(d)[0]
        w = np.concatenate([np.broadcast_to(s * line, w.shape) for s in (1, -1)])
        value = np.concatenate([s * (sums @ line) for s in (1, -1)])
        bits, beta, lengths = np.tile(bits, (2, 1)), np.tile(beta, (2, 1)), np.ones(len(w))
    unit = np.divide(w, lengths[:, None], out=np.zeros_like(w), where=lengths[:, None] > ZERO * scale)
    cosines = unit @ x[rest].T / np.linalg.norm(x[rest], axis=1)
    fits = ((cosines > ZERO) == (bits == 1)).all(axis=1) & (np.abs(cosines) > ZERO).all(axis=1)
    slack = np.minimum(beta, -c[Z] - beta) if len(Z) else np.full((len(bits), 1), np.inf)
    least = slack.min(axis=1)
    strict = (value > ZERO * scale) | ((len(Z) == d - 1) & (least > ZERO * scale))
    sectors = np.zeros((len(bits), n), np.int64)
    sectors[:, rest] = 2 * bits - 1
    kept = np.flatnonzero(fits & strict & (least >= -ZERO * scale) & (np.linalg.norm(unit, axis=1) > 0.5))
    return [Extremal(unit[k], sectors[k]) for k in kept]


def predicted_sector(x: ArrayLike, y: ArrayLike, sign: int = 1) -> Ints:
    """Return the extremal sector (n,) of orthogonally separable data by Lemma 2 (Eqs. 13 and 14).

    1 for the points of class `sign`; -1 for the others, but 0 for those orthogonal to the whole class.
    """
    points, labels = as_points(x, y)
    own = labels == sign
    products = points @ points[own].T  # (n, own)
    sizes = np.linalg.norm(points, axis=1)[:, None] * np.linalg.norm(points[own], axis=1)
    touched = (products < -ZERO * sizes).any(axis=1)
    return np.where(own, 1, np.where(touched, -1, 0)).astype(np.int64)

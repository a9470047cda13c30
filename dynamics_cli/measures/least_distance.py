"""The shortest vector that satisfies linear inequalities: `min ||w||^2 / 2` subject to `A w >= b`.

Max-margin separators are such problems (`A = y_k x_k`, `b = 1`), and so are the max-margin
directions of two-layer networks within one activation pattern. Solved exactly, by the active-set
method of Lawson and Hanson (Solving Least Squares Problems, 1974, Chapter 23: LDP through
non-negative least squares).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from dynamics_cli.measures.arrays import Floats

_FEASIBLE = 1e-10


class InfeasibleError(ValueError):
    """No vector satisfies the inequalities."""


@dataclass(frozen=True)
class LeastDistance:
    """The solution with its certificate."""

    w: Floats
    """The shortest feasible vector (d,)."""
    multipliers: Floats
    """Lagrange multipliers (n,): `w = A^T multipliers`, non-negative, zero where an inequality
    is slack.
    """
    kkt_residual: float
    """Largest violation of stationarity, feasibility, sign and complementary slackness, relative
    to the solution.
    """


def least_distance(A: ArrayLike, b: ArrayLike | float = 1.0) -> LeastDistance:
    """Return the shortest `w` (d,) with `A w >= b`, for `A` (n, d) and `b` (n,) or a number.

    Raises:
        InfeasibleError: no vector satisfies the inequalities (the points are not separable).
        ValueError: shapes do not match.

    """
    from scipy.optimize import nnls  # takes a fifth of a second, and few runs measure margins

    rows = np.asarray(A, np.float64)
    if rows.ndim != 2:
        raise ValueError(f"A has shape {rows.shape}, needed is (n, d)")
    bounds = np.broadcast_to(np.asarray(b, np.float64), (len(rows),)).copy()
    # scaling the inequalities and the unknown keeps the method accurate for inputs of any size
    sizes = np.linalg.norm(rows, axis=1)
    if (sizes[bounds > 0] == 0).any():
        raise InfeasibleError("a row of A is 0 where b is positive")
    sizes[sizes == 0] = 1.0
    scale = max(float(np.abs(bounds / sizes).max()), np.finfo(float).tiny)
    unit = rows / sizes[:, None]
    wanted = bounds / sizes / scale
    E = np.vstack([unit.T, wanted])  # (d + 1, n)
    f = np.zeros(len(E))
    f[-1] = 1.0
    u, distance = nnls(E, f, maxiter=max(300, 30 * len(rows)))
    residual = E @ u - f
    if distance**2 < _FEASIBLE:
        raise InfeasibleError("no vector satisfies all inequalities: the points are not separable")
    multipliers = _polished(unit, wanted, u / -residual[-1])
    w = unit.T @ multipliers * scale
    multipliers = multipliers * scale / sizes
    return LeastDistance(w, multipliers, kkt_residual(rows, bounds, w, multipliers))


def _polished(A: Floats, b: Floats, multipliers: Floats) -> Floats:
    """Solve the equations of the active inequalities once more.

    The solution is kept only while the multipliers stay non-negative.
    """
    active = multipliers > 0
    if not active.any():
        return multipliers
    gram = A[active] @ A[active].T
    better = np.linalg.lstsq(gram, b[active], rcond=None)[0]
    if (better < 0).any():
        return multipliers
    polished = np.zeros_like(multipliers)
    polished[active] = better
    return polished


def kkt_residual(A: Floats, b: Floats, w: Floats, multipliers: Floats) -> float:
    """Return the largest violation of the KKT conditions, each relative to its own scale."""
    size = max(float(np.linalg.norm(w)), np.finfo(float).tiny)
    slack = (A @ w - b) / np.maximum(np.linalg.norm(A, axis=1) * size, np.abs(b))
    stationarity = np.linalg.norm(w - A.T @ multipliers) / size
    largest = max(float(np.abs(multipliers).max(initial=0.0)), np.finfo(float).tiny)
    complementarity = float(np.abs(slack * multipliers / largest).max(initial=0.0))
    infeasible = float(np.maximum(-slack, 0.0).max(initial=0.0))
    negative = float(np.maximum(-multipliers / largest, 0.0).max(initial=0.0))
    return max(float(stationarity), complementarity, infeasible, negative)

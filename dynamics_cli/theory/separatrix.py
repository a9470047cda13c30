"""The curve between the two outcomes of a shared neuron (Tachet des Combes et al. 2018, Theorem 3.4, A.8, Fig. 3 left).

On the hyperboloid `c > 0` Eq. 24 has one stationary point with both classes active, `z = 0` and `p_1 alpha = p_2 beta`.
The curve C_c is its stable manifold: what starts there converges to the point, what starts on one side loses alpha,
on the other side beta. Two branches leave the point against the flow along the eigenvector of the negative eigenvalue.
"""

from __future__ import annotations

import numpy as np
from scipy.integrate import solve_ivp

from dynamics_cli.measures.arrays import Floats
from dynamics_cli.theory.shared_neuron import Pair, hyperboloid

OFFSET = 1e-7
"""How far from the stationary point, relative to it, the branches start."""


def saddle(c: float, pair: Pair | None = None) -> Floats:
    """Return the stationary point `(alpha, beta, 0)` on the hyperboloid `c`; for equal rates `alpha = beta = k`,

    `k = sqrt(c / (1 / ||x_1||^2 + 1 / ||x_2||^2))`. Shape (3,). Raises ValueError when c is not positive: then there is
    none, and D_1 wins from everywhere with `z > 0`.
    """
    pair = pair or Pair()
    if not c > 0:
        raise ValueError(f"only hyperboloids with c > 0 have a stationary point, not c = {c}")
    scale = np.sqrt(c / ((pair.p1 * pair.norm1) ** -2 + (pair.p2 * pair.norm2) ** -2))
    return np.array([scale / pair.p1, scale / pair.p2, 0.0])


def saddle_eigenvalues(c: float, pair: Pair | None = None) -> tuple[float, float]:
    """Return the positive and the negative eigenvalue of Eq. 24 at the stationary point (the third one is 0).

    They solve `L^2 + q L = (p_1^2 ||x_1||^2 + p_2^2 ||x_2||^2) / 4` with `q = (p_1 alpha^2 + p_2 beta^2) / 4`.
    """
    pair = pair or Pair()
    alpha, beta, _ = saddle(c, pair)
    half = (pair.p1 * alpha**2 + pair.p2 * beta**2) / 8.0
    root = float(np.sqrt(half**2 + ((pair.p1 * pair.norm1) ** 2 + (pair.p2 * pair.norm2) ** 2) / 4.0))
    return root - half, -root - half


def separatrix(c: float, pair: Pair | None = None, *, points: int = 200) -> Floats:
    """Return C_c as `(2 points + 1, 3)` points `(alpha, beta, z)`, from where alpha is 0 to where beta is 0.

    Between them is the stationary point, row `points`. The first half has `z > 0`. Integrated backwards from the
    stationary point with relative tolerance 1e-12; the unstable direction contracts against the flow, so that errors of
    the start die out. Raises ValueError when c or `points` is not positive.
    """
    pair = pair or Pair()
    if points < 1:
        raise ValueError(f"points must be positive, not {points}")
    stationary = saddle(c, pair)
    negative = saddle_eigenvalues(c, pair)[1]
    stable = np.array([pair.p1 * pair.norm1**2 / 2.0, -pair.p2 * pair.norm2**2 / 2.0, negative])
    stable *= OFFSET * np.linalg.norm(stationary) / np.linalg.norm(stable)
    upper, lower = (_branch(_onto(stationary + side * stable, c, pair), pair, points) for side in (-1.0, 1.0))
    return np.concatenate([upper[::-1], stationary[None], lower])


def _onto(state: Floats, c: float, pair: Pair) -> Floats:
    """Scale alpha and beta such that the state `(3,)` is on the hyperboloid exactly."""
    now = float(hyperboloid(state[0], state[1], 0.0, pair))
    factor = np.sqrt((c + state[2] ** 2) / now)
    return np.array([state[0] * factor, state[1] * factor, state[2]])


def _branch(start: Floats, pair: Pair, points: int) -> Floats:
    """Integrate Eq. 24 backwards until alpha or beta is 0; return `(points, 3)` states evenly spaced in arc length."""

    def boundary(_: float, state: Floats) -> float:
        return float(min(state[0], state[1]))

    boundary.terminal = True  # type: ignore[attr-defined]
    result = solve_ivp(
        lambda _, state: -pair.field(state),
        (0.0, np.inf),
        start,
        method="DOP853",
        dense_output=True,
        events=boundary,
        rtol=1e-12,
        atol=1e-14 * float(np.abs(start).max()),
    )
    times = np.linspace(0.0, result.t[-1], 50 * points)
    path = result.sol(times).T
    length = np.concatenate([[0.0], np.cumsum(np.linalg.norm(np.diff(path, axis=0), axis=1))])
    chosen = np.interp(np.linspace(0.0, length[-1], points + 1)[1:], length, times)
    chosen[-1] = result.t[-1]
    branch = result.sol(chosen).T
    gone = int(np.argmin(branch[-1, :2]))
    branch[-1, gone] = 0.0
    return np.asarray(branch)

"""Alternating gradient flow of a diagonal linear network (Kunin et al. 2025), and Algorithm 1 of
Pesme and Flammarion.

From `u = v = alpha 1` the network `beta = u^2 - v^2` keeps `u v = alpha^2`, so that `u = alpha
e^s`, `v = alpha e^-s`, and `ds/dt = -2 c dL/dbeta` for the loss `c L`, `L = 1/(2n) ||X beta -
y||^2`. While alpha is small a coordinate is dormant, `beta_i = 0`, until `|s_i|` reaches S, which
nears `ln(1 / (sqrt(2) alpha))`: `2 (u_i^2 + v_i^2)` is 1 there. Forces are constant until then, and
afterwards the active coordinates minimise the loss at once. Here s and time are over S. Both
algorithms are the same recursion but for a coordinate whose sign would change: alternating flow
leaves it out (it is dormant again, at s = ±1), Algorithm 1 minimises under the signs of s.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import nnls

from dynamics_cli.measures.arrays import Bools, Floats, Ints, as_points

STILL = 1e-9
"""Share of the largest first force below which a coordinate does not move."""
MOST = 10_000
"""Jumps after which the recursion is given up."""


@dataclass(frozen=True)
class Saddles:
    """The visited saddles, beginning at 0, and the jumps between them."""

    times: Floats
    """(J + 1,) of the jump to each saddle, 0 for the first."""
    betas: Floats
    """(J + 1, d)"""
    paths: Floats
    """(J + 1, d) s at the jumps, between which it is linear in time."""
    losses: Floats
    """(J + 1,) of `L`."""
    activated: Ints
    """(J,) the coordinate that each jump activates."""

    def at(self, values: Floats, times: Floats) -> Floats:
        """Return values (J + 1, ...) of the saddles at times (T,)."""
        return np.asarray(values[np.searchsorted(self.times, times, side="right") - 1])


def saddles(X: ArrayLike, y: ArrayLike, *, constrained: bool = False) -> Saddles:
    """Return the saddles of alternating flow of `X` (n, d), `y` (n,), in times of `ds/dt =
    -dL/dbeta`, S = 1.

    With `constrained` they follow Algorithm 1 of Pesme and Flammarion (2023).
    Raises ValueError for data on which the recursion does not end.
    """
    points, labels = as_points(X, y)
    n, d = points.shape
    s = np.zeros(d)
    beta = np.zeros(d)
    active = np.zeros(d, bool)
    times = [0.0]
    betas = [beta]
    paths = [s.copy()]
    activated = list[int]()
    least = STILL * float(np.abs(points.T @ labels).max()) / n
    while len(activated) < MOST:
        force = points.T @ (labels - points @ beta) / n
        force[active | (np.abs(force) <= least)] = 0.0
        side = np.sign(force)
        wait = np.divide(1.0 - side * s, np.abs(force), out=np.full(d, np.inf), where=side != 0)
        k = int(np.argmin(wait))
        if not np.isfinite(wait[k]):
            losses = np.mean((np.array(betas) @ points.T - labels) ** 2, axis=1) / 2
            losses[losses < STILL**2 * losses[0]] = 0.0  # fitted but for rounding
            return Saddles(
                np.array(times),
                np.array(betas),
                np.array(paths),
                losses,
                np.array(activated, np.int64),
            )
        s += wait[k] * force
        s[k] = side[k]
        beta, active = _minimised(
            points, labels, np.sign(s), active | (np.arange(d) == k), constrained
        )
        times.append(times[-1] + float(wait[k]))
        betas.append(beta)
        paths.append(s.copy())
        activated.append(k)
    raise ValueError(f"alternating flow does not end within {MOST} jumps")


def _minimised(
    X: Floats, y: Floats, signs: Floats, active: Bools, constrained: bool
) -> tuple[Floats, Bools]:
    """Return the least-squares predictor (d,) of the active coordinates, and which of them stay
    active (d,).
    """
    beta = np.zeros(len(signs))
    if constrained:
        beta[active] = signs[active] * nnls(X[:, active] * signs[active], y)[0]
        return beta, beta != 0
    while True:
        beta[:] = 0.0
        beta[active] = np.linalg.lstsq(X[:, active], y, rcond=None)[0]
        if not (flipped := beta * signs < 0).any():
            return beta, active
        active = active & ~flipped


def accumulated(u: Floats, v: Floats) -> Floats:
    """Return `s = ln(u / v) / 2` of weights (..., d); NaN where signs differ, which gradient
    flow avoids.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(np.log(u / v) / 2)

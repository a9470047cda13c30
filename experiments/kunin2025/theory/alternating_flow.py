"""Alternating gradient flow of a diagonal linear network (Kunin et al. 2025), and Algorithm 1 of Pesme and Flammarion.

From `u = v = alpha 1` the network `beta = u^2 - v^2` keeps `u v = alpha^2`, so that `u = alpha e^s`, `v = alpha e^-s`,
and `ds/dt = -2 c dL/dbeta` for the loss `c L`, `L = 1/(2n) ||X beta - y||^2`. While alpha is small a coordinate is
dormant, `beta_i = 0`, until `|s_i|` reaches S, at which `2 (u_i^2 + v_i^2)` is 1: `2 S = arccosh(1 / (4 alpha^2))`.
Forces are constant until then, and afterwards the active coordinates minimise the loss at once. In time over S both
algorithms are the same recursion with S = 1. They differ in the treatment of a coordinate whose sign would change:
alternating flow leaves it out (it is dormant again, at s = ±S), Algorithm 1 minimises under the signs of s.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import nnls

from dynamics_cli.kinds import Curve, Theory
from dynamics_cli.measures.arrays import Bools, Floats, Ints, as_points
from dynamics_cli.theory.assumptions import flow_violations, loss_factor, plain_violations, times_of

STILL = 1e-9
"""Share of the largest first force below which a coordinate does not move."""
MOST = 10_000
"""Jumps after which the recursion is given up."""
WIDTH = 4.0
"""Jumps are as wide as this over `ln(1 / alpha)`, relative to their time; nothing is predicted inside."""


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
    """(J,) the coordinate that each jump activates,"""
    signs: Ints
    """(J,) the sign that it takes."""
    dropped: tuple[tuple[int, ...], ...]
    """(J,) the coordinates that become dormant at each jump."""

    def at(self, values: Floats, times: Floats, width: float = 0.0) -> Floats:
        """Return values (J + 1, ...) of the saddles at times (T,), NaN where a jump is nearer than its time x width."""
        held = values[np.searchsorted(self.times, times, side="right") - 1].astype(np.float64)
        jumps = self.times[1:]
        held[np.any(np.abs(times[:, None] - jumps) < width * jumps, axis=1)] = np.nan
        return held


def saddles(X: ArrayLike, y: ArrayLike, reach: float = 1.0, *, constrained: bool = False) -> Saddles:
    """Return the saddles of alternating flow of `X` (n, d), `y` (n,), in times of `ds/dt = -dL/dbeta`, S = `reach`.

    With `constrained` they follow Algorithm 1 of Pesme and Flammarion (2023).
    Raises ValueError for data on which the recursion does not end.
    """
    points, labels = as_points(X, y)
    n, d = points.shape
    s, beta, active = np.zeros(d), np.zeros(d), np.zeros(d, bool)
    times, betas, paths = [0.0], [beta], [s.copy()]
    activated, signs, dropped = list[int](), list[int](), list[tuple[int, ...]]()
    least = STILL * float(np.abs(points.T @ labels).max()) / n
    while len(activated) < MOST:
        force = points.T @ (labels - points @ beta) / n
        force[active | (np.abs(force) <= least)] = 0.0
        side = np.sign(force)
        wait = np.divide(reach - side * s, np.abs(force), out=np.full(d, np.inf), where=side != 0)
        k = int(np.argmin(wait))
        if not np.isfinite(wait[k]):
            losses = np.mean((np.array(betas) @ points.T - labels) ** 2, axis=1) / 2
            losses[losses < STILL**2 * losses[0]] = 0.0  # fitted but for rounding
            ends = (np.array(activated, np.int64), np.array(signs, np.int64), tuple(dropped))
            return Saddles(np.array(times), np.array(betas), np.array(paths), losses, *ends)
        s += wait[k] * force
        s[k] = side[k] * reach
        before, active = active, active | (np.arange(d) == k)
        beta, active = _minimised(points, labels, np.sign(s), active, constrained)
        times.append(times[-1] + float(wait[k]))
        betas.append(beta)
        paths.append(s.copy())
        activated.append(k)
        signs.append(int(side[k]))
        dropped.append(tuple(int(i) for i in np.flatnonzero(before & ~active)))
    raise ValueError(f"alternating flow does not end within {MOST} jumps")


def _minimised(X: Floats, y: Floats, signs: Floats, active: Bools, constrained: bool) -> tuple[Floats, Bools]:
    """Return the least-squares predictor (d,) of the active coordinates, and which of them stay active (d,)."""
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


def reach_of(alpha: float) -> float:
    """Return S, from `u = v = alpha 1`; it nears `ln(1 / (sqrt(2) alpha))`. ValueError where alpha is 1/2 or more."""
    if not 0 < alpha < 0.5:
        raise ValueError(f"coordinates are dormant at alpha below 1/2, not at {alpha:g}")
    return float(np.arccosh(0.25 / alpha / alpha) / 2)


def accumulated(u: Floats, v: Floats) -> Floats:
    """Return `s = ln(u / v) / 2` of weights (..., d); NaN where signs differ, which gradient flow avoids."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(np.log(u / v) / 2)


class AlternatingFlow(Theory, kind="alternating_flow"):
    """The saddles of a diagonal linear network of depth 2, and when it jumps between them (Kunin et al. 2025).

    No loss and no predictor are predicted during a jump, for a share of the order `1 / ln(1 / alpha)` of its time.
    """

    example = """\
dataset: {kind: points, x: [[2.0, 0.0], [0.5, 1.5], [0.0, 1.0]], y: [4.0, -2.0, -1.0]}
architecture: {kind: diagonal_linear, depth: 2}
initialization: {kind: constant, scale: 1.0e-60}
loss: {kind: mse}
optimizer: {kind: gd, lr: 2.0e-3, iterations: 20000}
"""

    def applies(self, run: Any) -> list[str] | None:
        """Return which assumptions fail; None unless the network is a diagonal linear one of depth 2."""
        net = run.config.architecture
        if net.kind != "diagonal_linear" or net.depth != 2:
            return None
        violations, start = [*plain_violations(net), *flow_violations(run)], run.state(0)
        first = np.concatenate([start["u"], start["v"]])
        if np.ptp(first) > 0 or first[0] <= 0:
            violations.append("u and v start at alpha 1, alpha > 0: their entries differ, or are not positive")
        elif not np.log(first[0]) <= -2 * WIDTH:
            violations.append(f"the start is small, ln(1/alpha) above {2 * WIDTH:g}: alpha is {first[0]:.2g}")
        return violations

    def predict(self, run: Any) -> Mapping[str, Floats | Curve]:
        """Return the loss, the predictor, and s over S: ±1 while a coordinate is active."""
        samples, c, alpha = run.dataset(), loss_factor(run), float(run.state(0)["u"][0])
        reach, width = reach_of(alpha), WIDTH / np.log(1 / alpha)
        flow, steps = saddles(samples.x, samples.y, reach), np.asarray(run.snapshot_iterations, np.float64)
        now = 2 * c * times_of(run, steps)
        u, v = (np.asarray(run.parameters[name], np.float64) for name in ("u", "v"))
        paths = np.stack([np.interp(now, flow.times, path) for path in flow.paths.T], axis=1)
        return {
            "loss": c * flow.at(flow.losses, 2 * c * times_of(run, run.loss_iterations), width),
            "predictor": Curve(r"predictor $\beta$", steps, u**2 - v**2, flow.at(flow.betas, now, width)),
            "forces": Curve("accumulated force $s_i / S$", steps, accumulated(u, v) / reach, paths / reach),
        }

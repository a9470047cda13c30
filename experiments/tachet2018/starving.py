"""What Figures 6 and 10 share: the frequent and the rare feature, trained, integrated and bounded."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from dynamics_cli.measures.arrays import Floats
from dynamics_cli.plotting.style import PALETTE, SERIES
from dynamics_cli.reproduction.claims import Claim, at_most, claim, near
from dynamics_cli.reproduction.figure import Wanted
from dynamics_cli.runs import Run

from .theory.starvation import TABLE_1_LAMBDAS, starvation_invariant, starvation_path, stopping_points
from .trained import confidence, layers, order, step, times

LAMBDAS = TABLE_1_LAMBDAS
POINTS = {0.5: 2, 0.2: 5, 0.1: 10, 0.01: 100}
"""lambda -> points of the class, of which one has both features."""
DELTAS = np.concatenate([np.linspace(0.47, 0.02, 120), np.geomspace(0.02, 1e-4, 60)[1:]])
DRAWS = 1000
"""Random cases of the bounds."""


def configs(beta_over: str) -> dict[str, Wanted]:
    """Return a run per lambda, and the first one at ten times the step; `beta_over` is `fair` or `strong`."""
    wanted = {f"lambda = {value:g}": _wanted(value, beta_over) for value in LAMBDAS}
    coarse = ("optimizer.lr=0.01", "optimizer.iterations=8000", "record.snapshots.interval=8")
    return {**wanted, "coarse": _wanted(LAMBDAS[0], beta_over, *coarse)}


def _wanted(lambda_: float, beta_over: str, *extra: str) -> Wanted:
    n = POINTS[lambda_]
    beta = 0.1 if beta_over == "fair" else 0.1 * lambda_
    x = [[1, 1], *[[1, 0]] * (n - 1)]
    changes = [f"dataset.x={x}", f"dataset.y={[1] * n}", f"initialization.hidden_weight=[[0.1, {beta!r}]]"]
    if n == 100:
        changes += ["optimizer.lr=4.0e-3", "optimizer.iterations=20000", "record.snapshots.interval=20"]
    return Wanted("tachet2018/starvation.yaml", (*changes, *extra))


@dataclass(frozen=True)
class Starved:
    """One lambda: a trained network, K times, beside Eq. 8; and where training stops, for every delta."""

    lambda_: float
    start: tuple[float, float, float]
    """alpha0, beta0, z0."""
    frequent: Floats
    """(K,) trained confidence on (x1, 0)."""
    rare: Floats
    """(K,) trained confidence on (0, x2)."""
    error: float
    """Largest difference of either confidence from Eq. 8."""
    drift: float
    """Largest departure of the ODE from its invariant."""
    truth: Floats
    """(D,) confidence on (0, x2) at t* for `DELTAS`."""
    z_star: Floats
    """(D,)"""


def starve(runs: Mapping[str, Run]) -> list[Starved]:
    """Compare the runs of all lambdas with Eq. 8, in the order of `LAMBDAS`, then the coarse one."""
    return [_starve(run) for run in runs.values()]


def _starve(run: Run) -> Starved:
    x = run.dataset().x
    lambda_ = float(np.mean(x[:, 1] != 0))
    W, a = layers(run)
    start = (float(W[0, 0, 0]), float(W[0, 0, 1]), float(a[0, 0, 0]))
    path = starvation_path(times(run), *start, lambda_)
    frequent, rare = (confidence(run, np.array(point), 1) for point in ([1.0, 0.0], [0.0, 1.0]))
    invariant = starvation_invariant(path.alpha, path.beta, path.z)
    stop = stopping_points(DELTAS, *start, lambda_)
    error = max(np.abs(frequent - path.frequent).max(), np.abs(rare - path.rare).max())
    drift = float(np.abs(invariant - invariant[0]).max())
    return Starved(lambda_, start, frequent, rare, float(error), drift, stop.rare, stop.z)


def steps(runs: Mapping[str, Run]) -> tuple[float, float]:
    """Return the coarse step and that of the first run."""
    return step(runs["coarse"]), step(next(iter(runs.values())))


@dataclass(frozen=True)
class RandomCases:
    """Random (lambda, delta, alpha0, beta0, z0), and where training stops."""

    lambda_: Floats
    delta: Floats
    alpha0: Floats
    beta0: Floats
    z0: Floats
    rare: Floats
    z_star: Floats


def random_cases(*, strong: bool) -> RandomCases:
    """Draw `DRAWS` cases, beta0 > 0; with `strong`, such that `alpha0 >= beta0 / lambda` (Theorem 6.1)."""
    rng = np.random.default_rng(2018)
    lambda_, delta = rng.uniform(0.005, 0.95, DRAWS), 10 ** rng.uniform(-5, -1.3, DRAWS)
    alpha0, z0 = 10 ** rng.uniform(-3, -0.2, DRAWS), 10 ** rng.uniform(-3, -0.2, DRAWS)
    beta0 = alpha0 * lambda_ * rng.uniform(0, 1, DRAWS) if strong else 10 ** rng.uniform(-3, -0.2, DRAWS)
    stop = stopping_points(delta, alpha0, beta0, z0, lambda_)
    return RandomCases(lambda_, delta, alpha0, beta0, z0, stop.rare, stop.z)


def starving_claims(found: list[Starved], sizes: tuple[float, float]) -> list[Claim]:
    """Compare the trained networks with Eq. 8."""
    *fine, coarse = found
    return [
        claim(
            "overlay",
            "Trained networks follow Eq. 8 (largest difference of both confidences, all lambda)",
            "Section 6, Eq. 8; limit of small steps",
            expected=at_most(1e-3),
            measured=max(one.error for one in fine),
        ),
        claim(
            "first-order",
            "and deviate in proportion to the step (power of the step, lambda = 0.5)",
            "gradient descent is Euler's method of Eq. 8",
            expected=near(1.0, 0.1),
            measured=order(coarse.error, fine[0].error, sizes),
        ),
        claim(
            "invariant",
            "alpha^2 + beta^2 - z^2 is conserved (largest drift)",
            "Eq. 8",
            expected=at_most(1e-8),
            measured=max(one.drift for one in fine),
        ),
    ]


def draw_starved(axes: Axes, found: list[Starved], bounds: Mapping[str, Floats]) -> list[Line2D]:
    """Draw truth (lines), trained networks (dots) and `bounds`, name -> (lambdas, D) (dashed, dotted)."""
    handles = []
    looks: list[dict[str, Any]] = [{"ls": (0, (4, 2)), "lw": 1.2}, {"ls": (0, (1, 1.2)), "lw": 1.4}]
    for k, one in enumerate(found[: len(LAMBDAS)]):
        color = SERIES[k]
        for values, look in zip(bounds.values(), looks, strict=False):
            axes.plot(1 - DELTAS, values[k], color=color, **look)
        axes.plot(1 - DELTAS, one.truth, color=color, lw=1.3)
        dots = np.searchsorted(one.frequent, np.arange(0.56 + 0.015 * k, 0.99, 0.08))
        dots = dots[dots < len(one.frequent)]
        axes.plot(one.frequent[dots], one.rare[dots], "o", ms=2.8, mfc="white", mec=color, mew=0.8)
        handles.append(Line2D([], [], color=color, label=rf"$\lambda={one.lambda_:g}$"))
    axes.plot([0.5, 1.0], [0.5, 1.0], color=PALETTE.muted, lw=0.6)
    axes.set(xlim=(0.5, 1.0), ylim=(0.5, 1.0), xlabel=r"confidence in $x_1$, $1-\delta$")
    axes.set_ylabel(r"confidence in $x_2$ alone")
    black: dict[str, Any] = {"color": PALETTE.theory}
    handles.append(Line2D([], [], lw=1.3, label="Eq. 8", **black))
    handles += [Line2D([], [], label=name, **black, **look) for name, look in zip(bounds, looks, strict=False)]
    dots_look: dict[str, Any] = {
        "ls": "none",
        "marker": "o",
        "ms": 2.8,
        "mfc": "white",
        "mec": PALETTE.theory,
        "mew": 0.8,
    }
    return [*handles, Line2D([], [], label="trained", **dots_look)]

"""What Figures 6 and 10 share: the frequent and the rare feature, trained, integrated and bounded."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from matplotlib.lines import Line2D

from dynamics_cli import kit

from .theory.starvation import TABLE_1_LAMBDAS, StarvationPath, starvation_invariant, starvation_path, stopping_points
from .trained import LEARNT, confidence, draw_trained, layers, order, step, times, trained_handle

LAMBDAS = TABLE_1_LAMBDAS
POINTS = {0.5: 2, 0.2: 5, 0.1: 10, 0.01: 100}
"""lambda -> points of the class, of which one has both features."""
DELTAS = np.concatenate([np.linspace(0.47, 0.02, 120), np.geomspace(0.02, 1e-4, 60)[1:]])
DRAWS = 1000
"""Random cases of the bounds."""


def configs(*, fair: bool) -> dict[str, kit.Wanted]:
    """Return a run per lambda, and the first one at ten times the step.

    All start at alpha0 = z0 = 0.1, fair ones at the same beta0, the others at `beta0 = lambda alpha0`.
    """
    runs = {f"lambda = {value:g}": wanted(value, fair) for value in LAMBDAS}
    coarse = ("optimizer.lr=0.01", "optimizer.iterations=8000", "record.snapshots.interval=8")
    return {**runs, "coarse": wanted(LAMBDAS[0], fair, *coarse)}


def wanted(lambda_: float, fair: bool, *extra: str) -> kit.Wanted:
    """Return the run of one lambda with the changes `extra`."""
    n = POINTS[lambda_]
    beta = 0.1 if fair else 0.1 * lambda_
    x = [[1, 1], *[[1, 0]] * (n - 1)]
    changes = [f"dataset.x={x}", f"dataset.y={[1] * n}", f"initialization.hidden_weight=[[0.1, {beta!r}]]"]
    if n == 100:
        changes += ["optimizer.lr=4.0e-3", "optimizer.iterations=20000", "record.snapshots.interval=20"]
    return kit.Wanted("tachet2018/starvation.yaml", (*changes, *extra))


@dataclass(frozen=True)
class Starved:
    """One lambda: a trained network, K times, beside Eq. 8; and where training stops, for every delta."""

    lambda_: float
    start: tuple[float, float, float]
    """alpha0, beta0, z0."""
    frequent: kit.Floats
    """(K,) trained confidence on (x1, 0)."""
    rare: kit.Floats
    """(K,) trained confidence on (0, x2)."""
    z: kit.Floats
    """(K,) trained output weight."""
    error: float
    """Largest difference of either confidence from Eq. 8."""
    drift: float
    """Largest departure of the ODE from its invariant."""
    truth: kit.Floats
    """(D,) confidence on (0, x2) at t* for `DELTAS`."""
    z_star: kit.Floats
    """(D,)"""


@dataclass(frozen=True)
class Features:
    """What the runs give."""

    fine: list[Starved]
    """In the order of `LAMBDAS`."""
    coarse: Starved
    """The first of them at ten times the step."""
    steps: tuple[float, float]
    """Coarse, fine."""


def features(runs: kit.Runs) -> Features:
    """Compare the runs of all lambdas, and the coarse one, with Eq. 8."""
    first, coarse = next(iter(runs.values())), runs["coarse"]
    fine = [starve(run) for role, run in runs.items() if role.startswith("lambda")]
    return Features(fine, starve(coarse), (step(coarse), step(first)))


def starve(run: kit.Run) -> Starved:
    """Compare a trained network with Eq. 8."""
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
    return Starved(lambda_, start, frequent, rare, a[:, 0, 0], float(error), drift, stop.rare, stop.z)


@dataclass(frozen=True)
class RandomCases:
    """Random (lambda, delta, alpha0, beta0), and where training stops."""

    lambda_: kit.Floats
    delta: kit.Floats
    alpha0: kit.Floats
    beta0: kit.Floats
    stop: StarvationPath


def random_cases(kind: Literal["positive", "strong", "negative"]) -> RandomCases:
    """Draw `DRAWS` cases: beta0 > 0; with `alpha0 >= beta0 / lambda > 0` (Theorem 6.1); with `0 > beta0 > -alpha0`."""
    rng = np.random.default_rng(2018)
    lambda_, delta = rng.uniform(0.005, 0.95, DRAWS), 10 ** rng.uniform(-5, -1.3, DRAWS)
    alpha0, z0 = 10 ** rng.uniform(-3, -0.2, DRAWS), 10 ** rng.uniform(-3, -0.2, DRAWS)
    beta0 = 10 ** rng.uniform(-3, -0.2, DRAWS)
    if kind != "positive":
        beta0 = alpha0 * (lambda_ if kind == "strong" else -1.0) * rng.uniform(0, 1, DRAWS)
    return RandomCases(lambda_, delta, alpha0, beta0, stopping_points(delta, alpha0, beta0, z0, lambda_))


def claims(e: Features) -> list[kit.Claim]:
    """Compare the trained networks with Eq. 8."""
    return [
        kit.claim("overlay", "Trained networks follow Eq. 8 (largest difference of both confidences, all lambda)",
                  "Section 6, Eq. 8; limit of small steps", kit.at_most(1e-3), worst(e, lambda one: one.error)),
        kit.claim("first-order", "and deviate in proportion to the step (power of the step, lambda = 0.5)",
                  "gradient descent is Euler's method of Eq. 8", kit.near(1.0, 0.1),
                  order(e.coarse.error, e.fine[0].error, e.steps)),
        kit.theory("invariant", "alpha^2 + beta^2 - z^2 is conserved (largest drift)",
                   "Eq. 8", kit.at_most(1e-8), max(one.drift for one in e.fine)),
    ]  # fmt: skip


def worst(e: Features, measure: Callable[[Starved], kit.Floats | float]) -> float:
    """Return the largest `measure`, one number or (K,), of trained networks from the confidence `LEARNT` in x1 on.

    NaN unless every network gets there: one that stays where it starts follows every theory and meets every bound.
    """
    late = [np.broadcast_to(measure(one), one.frequent.shape)[one.frequent >= LEARNT] for one in e.fine]
    return float(max(part.max(initial=-np.inf) for part in late)) if all(map(len, late)) else float("nan")


def excess(e: Features, bounds: kit.Floats) -> float:
    """Return the largest excess of the true confidences over `bounds` (lambdas, D)."""
    return float(max((one.truth - bound).max() for one, bound in zip(e.fine, bounds, strict=True)))


def draw(e: Features, bounds: Mapping[str, kit.Floats], *, columns: int) -> kit.Drawing:
    """Draw truth (lines), trained networks (dots) and `bounds`, name -> (lambdas, D) (dashed, dotted)."""
    figure, (axes,) = kit.new_figure(aspect=0.92, extra_height=0.3)
    handles: list[Line2D] = []
    looks: list[dict[str, Any]] = [{"ls": (0, (4, 2)), "lw": 1.2}, {"ls": (0, (1, 1.2)), "lw": 1.4}]
    for one, color, *values in zip(e.fine, kit.SERIES, *bounds.values(), strict=False):
        for bound, look in zip(values, looks, strict=False):
            axes.plot(1 - DELTAS, bound, color=color, **look)
        axes.plot(1 - DELTAS, one.truth, color=color, lw=1.3)
        dots = np.searchsorted(one.frequent, np.arange(0.56 + 0.015 * len(handles), 0.99, 0.08))
        dots = dots[dots < len(one.frequent)]
        draw_trained(axes, one.frequent[dots], one.rare[dots], color)
        handles.append(Line2D([], [], color=color, label=rf"$\lambda={one.lambda_:g}$"))
    axes.plot([0.5, 1.0], [0.5, 1.0], color=kit.PALETTE.muted, lw=0.6)
    axes.set(xlim=(0.5, 1.0), ylim=(0.5, 1.0), xlabel=r"confidence in $x_1$, $1-\delta$")
    axes.set_ylabel(r"confidence in $x_2$ alone")
    named = [("Eq. 8", {"lw": 1.3}), *zip(bounds, looks, strict=False)]
    handles += [Line2D([], [], label=name, color=kit.PALETTE.theory, **look) for name, look in named]
    kit.figure_legend(figure, [*handles, trained_handle()], columns=columns)
    return figure

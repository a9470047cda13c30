"""Figure 2: population error, excess norms and sample complexity of a diagonal linear network against alpha."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from dynamics_cli import kit

from .regression import (
    COUNTS,
    DIM,
    FULL,
    LOGS,
    NOISE,
    ORIGIN,
    SAMPLES,
    THRESHOLD,
    Limit,
    draw_samples,
    errors,
    limit,
    thresholds,
    wanted,
)  # fmt: skip
from .theory.minimum_q import minimum_l1, minimum_l2, minimum_q

SMALLEST = (1e-3, 1e-2)
"""alpha of `--preset full` alone."""
RICH, LAZY = (0.1, 0.3, 1.0), (3.0, 10.0, 30.0)
"""alpha of the trained networks: their limits are shown, the distance travelled of the second ones."""
SMALL, LARGE = (1.0, 2.0), (0.1, 0.5)
"""Accuracies e of the theorems on the limits."""


@dataclass(frozen=True)
class Evidence:
    """Minimisers of Q at the paper's size, and trained networks."""

    logs: kit.Floats
    """(M,) log10 of alpha^2, descending."""
    errors: kit.Floats
    """(M,) population errors."""
    excess_1: kit.Floats
    """(M,) L1 norm less the least one."""
    excess_2: kit.Floats
    sparse: float
    """Population error of the interpolator of least L1 norm."""
    dense: float
    """and of least L2 norm."""
    small: kit.Floats
    """`|beta|_1` over the bound of the theorem on small alpha, for every e."""
    large: kit.Floats
    largest: kit.Floats
    """(N,) log10 of the largest alpha^2 with a small error."""
    sparse_by_count: kit.Floats
    limits: list[Limit]
    lazy: list[Limit]
    path: tuple[kit.Floats, kit.Floats]
    """alpha, and the L1 norm of argmin Q over the least, of the problem that was trained."""


def evidence(runs: kit.Runs) -> Evidence:
    """Solve the convex programs, and read the trained networks."""
    seed = next(iter(runs.values())).config.seed
    X, y = draw_samples(SAMPLES, seed)
    logs = np.concatenate([[6.0, 4.0, 3.0, 2.0, 1.0], LOGS])
    betas = minimum_q(X, y, 10.0**logs)
    b1, b2 = minimum_l1(X, y), minimum_l2(X, y)
    l1, l2 = float(np.abs(b1).sum()), float(np.linalg.norm(b2))
    log_alpha = [min(-(2 + e) / (2 * e) * np.log(2 * (1 + e) * l1), -DIM / (e * l1)) for e in SMALL]
    alpha = [np.sqrt(2 * (1 + e) * (1 + 2 / e) * l2) for e in LARGE]
    small = minimum_q(X, y, 2 * np.array(log_alpha), log_mu=True)
    largest, sparse = thresholds(seed)
    found = [limit(run) for run in runs.values()]
    samples, grid = next(iter(runs.values())).dataset(), np.geomspace(1e-3, 30, 46)
    norms = np.abs(minimum_q(samples.x, samples.y, grid**2)).sum(1)
    return Evidence(
        logs=logs,
        errors=errors(betas),
        excess_1=np.abs(betas).sum(1) - l1,
        excess_2=np.linalg.norm(betas, axis=1) - l2,
        sparse=float(errors(b1)),
        dense=float(errors(b2)),
        small=np.abs(small).sum(1) / ((1 + np.array(SMALL)) * l1),
        large=np.linalg.norm(minimum_q(X, y, np.array(alpha) ** 2), axis=1) ** 2 / ((1 + np.array(LARGE)) * l2**2),
        largest=largest[0],
        sparse_by_count=sparse,
        limits=[one for one in found if one.alpha <= 1],
        lazy=[one for one in found if one.alpha > 1],
        path=(grid, norms / found[0].l1),
    )


def claims(e: Evidence) -> list[kit.Claim]:
    """Compare with Theorem 1, the theorem on its limits, and Figure 2."""
    kernel = (1 - SAMPLES / DIM) + NOISE**2 * SAMPLES / (DIM - SAMPLES - 1)
    scales, moves = ([getattr(one, key) for one in e.lazy] for key in ("alpha", "movement"))
    slope = float(np.polyfit(np.log(scales), np.log(moves), 1)[0])
    inner = e.logs <= 0
    span = float(np.nanmax(e.largest) - np.nanmin(e.largest))
    # fmt: off
    return [
        kit.claim("limit", "Gradient flow ends in argmin Q under X beta = y (relative distance, alpha 0.1 to 1)",
                  "Theorem 1", kit.less_than(1e-3), max(one.difference for one in e.limits)),
        kit.claim("conserved", "u v stays alpha^2 along gradient flow (largest relative change)",
                  "Theorem 1, proof", kit.less_than(1e-6), max(one.drift for one in e.limits)),
        kit.claim("lazy", "In the kernel regime weights hardly move: relative distance falls as alpha^-2 "
                  "(power, alpha 3 to 30)", "linearisation at large alpha", kit.near(-2.0, 0.1), slope),
        *(kit.theory(f"small-{k + 1}", f"A small enough alpha gives |beta|_1 <= (1 + e) least (over that, e = {one:g})",
                     "Theorem on the limits", kit.at_most(1.0), e.small[k]) for k, one in enumerate(SMALL)),
        *(kit.theory(f"large-{k + 1}", f"A large enough one |beta|_2^2 <= (1 + e) least (over that, e = {one:g})",
                     "Theorem on the limits", kit.at_most(1.0), e.large[k]) for k, one in enumerate(LARGE)),
        kit.theory("kernel-error", "Kernel regime: population error (1 - N/d) + sigma^2 N/(d - N - 1)",
                   "least-norm regression on Gaussian inputs", kit.around(kernel), e.errors[0]),
        kit.theory("rich-error", "Rich regime: the population error is below the paper's threshold",
                   "Figure 2(a)", kit.less_than(THRESHOLD), e.sparse),
        kit.theory("error-falls", "The error falls with alpha from one to the other (share of smaller alpha with less)",
                   "Figure 2(a)", kit.exactly(1.0), float(np.mean(np.diff(e.errors[inner]) < 0))),
        kit.theory("excess-1", "The excess L1 norm falls with alpha (share of smaller alpha with less)",
                   "Figure 2(b)", kit.exactly(1.0), float(np.mean(np.diff(e.excess_1) < 1e-9))),
        kit.theory("excess-2", "The excess L2 norm vanishes for large alpha (at alpha = 1000, over the least L2 norm)",
                   "Figure 2(b)", kit.less_than(1e-6), abs(e.excess_2[0])),
        kit.theory("fewer", "Fewer samples need a smaller alpha: where any does, it spans two decades of alpha^2 at "
                   f"least (decades, N = {COUNTS[0]} to {COUNTS[-1]})", "Figure 2(c)", kit.at_least(2.0), span),
        kit.theory("more-samples", "The largest alpha^2 grows with N (decades, first N that has one to the last)",
                   "Figure 2(c)", kit.more_than(0.0), _growth(e.largest)),
        kit.finding("sparse", "Population error of the interpolator of least L1 norm", "Figure 2(a)", e.sparse),
        kit.finding("power", "Power of alpha^2 with which the excess L1 norm of this draw vanishes, 1e-8 to 1e-14: not "
                    "1 / ln(1 / alpha)", "Section 5", _power(e.logs, e.excess_1)),
    ]
    # fmt: on


def _growth(largest: kit.Floats) -> float:
    there = largest[np.isfinite(largest)]
    return float(there[-1] - there[0]) if len(there) > 1 else float("nan")


def _power(logs: kit.Floats, excess: kit.Floats) -> float:
    at = (logs <= -8) & (excess > 0)
    return float(np.polyfit(logs[at], np.log10(excess[at]), 1)[0])


def draw(e: Evidence) -> kit.Drawing:
    """Draw the population error, the excess norms, the sample complexity, and trained networks beside argmin Q."""
    figure, axes = kit.new_figure(2, 2, aspect=0.72, extra_height=0.3)
    alpha = 10.0 ** (e.logs / 2)
    look: dict[str, Any] = {"ls": (0, (4, 2)), "lw": 1.0}
    handles = axes[0].plot(alpha, e.errors, color=kit.SERIES[0], label=r"$\arg\min Q_\alpha$")
    for value, color, name in (
        (e.sparse, kit.SERIES[2], r"least $\ell_1$"),
        (e.dense, kit.SERIES[1], r"least $\ell_2$"),
    ):
        handles.append(axes[0].axhline(value, color=color, label=name, **look))
    axes[0].set(xscale="log", yscale="log", ylabel=r"population error $\Vert\beta-\beta^*\Vert^2$")
    for values, color, name in ((e.excess_1, kit.SERIES[2], r"$\ell_1$"), (e.excess_2, kit.SERIES[1], r"$\ell_2$")):
        axes[1].plot(alpha, np.where(values > 1e-9, values, np.nan), color=color, label=f"excess {name} norm")
    axes[1].set(xscale="log", yscale="log", ylabel="excess norm")
    kit.place_legend(axes[1], list(axes[1].lines), "inside")
    axes[2].plot(COUNTS, 10.0 ** (e.largest / 2), kit.MARKER + "-", ms=4, color=kit.SERIES[0])
    enough = [n for n, value in zip(COUNTS, e.sparse_by_count, strict=True) if value <= THRESHOLD]
    if enough:
        label = rf"least $\ell_1$ reaches {THRESHOLD} at $N={enough[0]}$"
        kit.place_legend(axes[2], [axes[2].axvline(enough[0], color="black", label=label, **look)], "inside")
    axes[2].set(yscale="log", xlabel="samples $N$", ylabel=rf"largest $\alpha$ with error $\leq$ {THRESHOLD}")
    trained = sorted([*e.limits, *e.lazy], key=lambda one: one.alpha)
    at = [one.alpha for one in trained]
    trained_l1 = [float(np.abs(one.beta).sum()) / one.l1 for one in trained]
    axes[3].plot(*e.path, color=kit.SERIES[0], label=r"$\arg\min Q_\alpha$")
    axes[3].plot(
        at, trained_l1, kit.MARKER, ms=4, color=kit.PALETTE.highlight, mec="black", mew=0.6, label="trained network"
    )
    axes[3].set(xscale="log", ylabel=r"$\Vert\beta\Vert_1$ over the least")
    kit.place_legend(axes[3], list(axes[3].lines), "inside")
    for one in (axes[0], axes[1], axes[3]):
        one.set_xlabel(r"scale of the start $\alpha$")
    names = ("Population error", "Excess norms", "Sample complexity", f"Trained, {len(trained[0].beta)} dimensions")
    for k, name in enumerate(names):
        kit.panel_label(axes[k], k, name)
    kit.figure_legend(figure, handles)
    return figure


FIGURE = kit.Figure(
    id="woodworth2020-fig2",
    caption=(
        "Sparse regression in 1000 dimensions, 5 relevant: limits of gradient flow of a diagonal linear network "
        "(D = 2) against the scale of its start, from least L2 to least L1 norm, by the convex program; N = 100 in (a) "
        "and (b). In (d) networks that were trained, on fewer samples in fewer dimensions."
    ),
    configs={**wanted(RICH), **wanted(LAZY)},
    presets={"full": wanted((*SMALLEST, *RICH, *LAZY), more=FULL)},
    origin=ORIGIN,
)

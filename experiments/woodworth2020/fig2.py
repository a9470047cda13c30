"""Figure 2: population error, excess norms and sample complexity of a diagonal linear network
against alpha.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from dynamics_cli import kit

from .regression import (
    COUNTS,
    DIM,
    ENDS,
    FITTED,
    FULL,
    LOGS,
    NOISE,
    SAMPLES,
    SPARSE_COUNTS,
    THRESHOLD,
    Limit,
    draw_samples,
    errors,
    limit,
    thresholds,
    wanted,
)
from .theory.minimum_q import minimum_l1, minimum_l2, minimum_q

RICH = (1e-3, 1e-2, 0.1, 0.3, 1.0)
LAZY = (3.0, 10.0, 30.0)
"""alpha of the trained networks: their limits are shown, the distance travelled of the second
ones.
"""
SMALL = (0.5, 1.0)
LARGE = (0.1, 0.5)
"""Accuracies e of the theorems on the limits; from e = 1.94 on every alpha is small enough here."""


@dataclass(frozen=True)
class Evidence:
    """The convex programs at the paper's size, and the trained networks."""

    logs: kit.Floats
    norms_1: kit.Floats
    norms_2: kit.Floats
    errors: kit.Floats
    l1: float
    l2: float
    sparse: float
    dense: float
    largest: kit.Floats
    sparse_by_count: kit.Floats
    limits: list[Limit]
    lazy: list[Limit]
    path: tuple[kit.Floats, kit.Floats]


def evidence(runs: kit.Runs) -> Evidence:
    """Solve the convex programs at the paper's size, for descending `logs` (M,) of mu, and read
    the networks.
    """
    seed = next(iter(runs.values())).config.seed
    X, y = draw_samples(SAMPLES, seed)
    logs = np.concatenate([[6.0, 4.0, 3.0, 2.0, 1.0], LOGS])
    betas = minimum_q(X, y, 10.0**logs)
    b1 = minimum_l1(X, y)
    b2 = minimum_l2(X, y)
    largest, sparse = thresholds(seed)
    limits = [limit(run) for run in runs.values()]
    samples = next(iter(runs.values())).dataset()
    grid = np.geomspace(min(*RICH, *LAZY), max(*RICH, *LAZY), 46)
    return Evidence(
        logs=logs,
        norms_1=np.abs(betas).sum(1),
        norms_2=np.linalg.norm(betas, axis=1),
        errors=errors(betas),
        l1=float(np.abs(b1).sum()),
        l2=float(np.linalg.norm(b2)),
        sparse=float(errors(b1)),
        dense=float(errors(b2)),
        largest=largest[0],
        sparse_by_count=sparse,
        limits=[end for end in limits if end.alpha <= 1],
        lazy=[end for end in limits if end.alpha > 1],
        path=(
            grid,
            np.abs(minimum_q(samples.x, samples.y, grid**2)).sum(1)
            / np.abs(minimum_l1(samples.x, samples.y)).sum(),
        ),
    )


def claims(e: Evidence) -> list[kit.Claim]:
    kernel = (1 - SAMPLES / DIM) + NOISE**2 * SAMPLES / (DIM - SAMPLES - 1)
    scales, moves = ([getattr(end, key) for end in e.lazy] for key in ("alpha", "movement"))
    slope = kit.power(scales, moves)
    inner = e.logs <= 0
    flow_ends = max(end.left for end in e.limits)
    excess_2 = e.norms_2 - e.l2
    trained = np.array([end.norm for end in e.limits])
    first, second = (list(e.logs).index(log) for log in (0.0, -1.0))
    later = [
        now - before
        for k, now in enumerate(e.largest)
        for before in e.largest[:k]
        if max(now, before) > -np.inf
    ]
    largest = e.largest[np.isfinite(e.largest)]
    return [
        kit.presupposing(
            kit.claim(
                "limit",
                r"Gradient flow ends in $\arg\min Q$ under $X\beta = y$ (relative distance,"
                rf" $\alpha$ {RICH[0]:g} to 1)",
                "Theorem 1",
                kit.less_than(1e-3),
                np.max([end.difference for end in e.limits]),
            ),
            ENDS,
            kit.at_most(FITTED),
            flow_ends,
        ),
        kit.claim(
            "conserved",
            r"u v stays $\alpha^2$ along gradient flow until the samples are fitted (largest "
            "relative change)",
            "Theorem 1, proof",
            kit.less_than(1e-6),
            np.max([end.drift for end in e.limits]),
        ),
        kit.claim(
            "trained",
            r"Trained from a smaller $\alpha$, networks have a smaller L1 norm (share of smaller "
            rf"$\alpha$ with less, 1 to {RICH[0]:g})",
            "Figure 2(b)",
            kit.exactly(1.0),
            kit.given(np.isfinite(trained).all(), np.mean(np.diff(trained) > 0)),
        ),
        kit.claim(
            "lazy",
            "In the kernel regime weights hardly move until the samples are fitted: relative"
            r" distance falls as $\alpha^{-2}$ (power, $\alpha$ 3 to 30)",
            "linearisation at large alpha",
            kit.near(-2.0, 0.1),
            slope,
        ),
        *(
            kit.theory(
                f"small-{k + 1}",
                rf"A small enough $\alpha$ gives $|\beta|_1 \le (1 + e)$ least, e = {eps:g} "
                r"(log10 of the largest $\alpha$ that does; theorem: at least)",
                "Theorem on the limits",
                kit.at_least(
                    min(-(2 + eps) / (2 * eps) * np.log(2 * (1 + eps) * e.l1), -DIM / (eps * e.l1))
                    / np.log(10)
                ),
                _inside(e.logs, e.norms_1 <= (1 + eps) * e.l1, np.max) / 2,
            )
            for k, eps in enumerate(SMALL)
        ),
        *(
            kit.theory(
                f"large-{k + 1}",
                rf"A large enough $\alpha$ gives $|\beta|_2^2 \le (1 + e)$ least, e = {eps:g} "
                r"(log10 of the least $\alpha$ that does; theorem: at most)",
                "Theorem on the limits",
                kit.at_most(np.log10(2 * (1 + eps) * (1 + 2 / eps) * e.l2) / 2),
                _inside(e.logs, e.norms_2**2 <= (1 + eps) * e.l2**2, np.min) / 2,
            )
            for k, eps in enumerate(LARGE)
        ),
        kit.theory(
            "kernel-error",
            r"Kernel regime: population error $(1 - N/d) + \sigma^2 N/(d - N - 1)$",
            "least-norm regression on Gaussian inputs",
            kit.around(kernel),
            e.errors[0],
        ),
        kit.theory(
            "rich-error",
            r"Rich regime: the population error is below the paper's threshold ($\arg\min Q$, "
            r"$\alpha$ = 1e-7)",
            "Figure 2(a)",
            kit.less_than(THRESHOLD),
            e.errors[-1],
        ),
        kit.theory(
            "error-falls",
            r"The error falls with $\alpha$ from one to the other (share of smaller $\alpha$ "
            "with less)",
            "Figure 2(a)",
            kit.exactly(1.0),
            np.mean(np.diff(e.errors[inner]) < 0),
        ),
        kit.theory(
            "excess-1",
            r"The excess L1 norm falls with $\alpha$ (share of smaller $\alpha$ with less)",
            "Figure 2(b)",
            kit.exactly(1.0),
            np.mean(np.diff(e.norms_1) < 1e-9),
        ),
        kit.theory(
            "excess-2",
            r"The excess L2 norm vanishes for large $\alpha$, as $\alpha^{-8}$ (power, $\alpha^2$ "
            "0.1 to 1)",
            "Figure 2(b); beta = 2 alpha^2 sinh(X^T nu)",
            kit.near(-8.0, 0.2),
            2 * np.log10(excess_2[first] / excess_2[second]),
        ),
        kit.theory(
            "fewer",
            r"Fewer samples need a smaller $\alpha$: $\alpha^2$ falls by two decades at least from"
            rf" N = {COUNTS[-1]} to the least N at which any $\alpha$ does (decades)",
            "Figure 2(c)",
            kit.at_least(2.0),
            largest[-1] - largest[0],
        ),
        kit.theory(
            "more-samples",
            r"The largest $\alpha^2$ grows with N (share of pairs of N, ties half)",
            "Figure 2(c); most: more than half",
            kit.most(),
            np.mean(np.sign(later)) / 2 + 0.5,
        ),
    ]


def _inside(logs: kit.Floats, enough: kit.Bools, end: Callable[[kit.Floats], np.floating]) -> float:
    """Return the least or the largest of `logs` (M,) that is enough; NaN where all are, so that it
    is the end of the grid.
    """
    return kit.given(not enough.all(), end(logs[enough]))


def draw(e: Evidence) -> kit.Drawing:
    alpha = 10.0 ** (e.logs / 2)
    errors = kit.chart(
        "Population error",
        r"population error $\Vert\beta-\beta^*\Vert^2$",
        kit.line(alpha, e.errors, r"$\arg\min Q_\alpha$"),
        kit.level(e.sparse, r"least $\ell_1$", "C2 dashed 1"),
        kit.level(e.dense, r"least $\ell_2$", "C1 dashed 1"),
        log="xy",
    )
    above = {1: e.norms_1 - e.l1, 2: e.norms_2 - e.l2}
    norms = kit.chart(
        "Excess norms",
        "excess norm",
        *(
            kit.line(
                alpha, np.where(over > 1e-9, over, np.nan), rf"excess $\ell_{p}$ norm", f"C{3 - p}"
            )
            for p, over in above.items()
        ),
        log="xy",
    )
    by_count = zip(SPARSE_COUNTS, e.sparse_by_count, strict=True)
    enough = [n for n, value in by_count if value <= THRESHOLD]
    largest = np.where(np.isfinite(e.largest), e.largest, np.nan)
    counts = kit.chart(
        "Sample complexity",
        rf"largest $\alpha$ with error $\leq$ {THRESHOLD}",
        kit.line(COUNTS, 10.0 ** (largest / 2), look="joined"),
        *(
            kit.upright(n, rf"least $\ell_1$ does from $N={n}$ on", "theory dashed 1")
            for n in enough[:1]
        ),
        xlabel="samples $N$",
        log="y",
    )
    ends = [*e.limits, *e.lazy]
    norm = [end.norm for end in ends]
    trained = kit.chart(
        f"Trained, {e.limits[0].dim} dimensions",
        r"$\Vert\beta\Vert_1$ over the least",
        kit.line(e.path[0], e.path[1], r"$\arg\min Q_\alpha$"),
        kit.line([end.alpha for end in ends], norm, "trained network", "highlight points"),
        log="x",
    )
    return kit.charts(errors, norms, counts, trained, xlabel=r"scale of the start $\alpha$")


FIGURE = kit.Figure(
    passes={
        "early": {
            "lazy": "In the kernel regime samples are fitted within a hundredth of the time."
        },
        "random_features": {
            "lazy": (
                "In the kernel regime half of the weights fits the samples, and moves as little."
            )
        },
    },
    id="woodworth2020-fig2",
    caption=(
        "Sparse regression in 1000 dimensions, 5 relevant: limits of gradient flow of a diagonal"
        " linear network (D = 2) against the scale of its start, from least L2 to least L1 norm, by"
        " the convex program; N = 100 in (a) and (b), in (c) the median of three data sets. In (d)"
        " networks that were trained, on fewer samples in fewer dimensions."
    ),
    configs={**wanted(RICH), **wanted(LAZY)},
    presets={"full": wanted((*RICH, *LAZY), more=FULL)},
)

"""Figure 10: gradient starvation, the bound without the initial values (Eq. 7)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dynamics_cli import kit

from . import starving
from .starving import DELTAS, DRAWS, LAMBDAS, Starved
from .theory.starvation import simple_bound, stopping_points


@dataclass(frozen=True)
class Evidence:
    """Neurons whose start favours the strong feature, Eq. 7, and random cases."""

    features: starving.Features
    bound: kit.Floats
    """(lambdas, D)"""
    late: Starved
    """lambda = 0.1, trained beyond the confidence 0.9999."""
    cases: starving.RandomCases
    """With alpha0 >= beta0 / lambda."""


def evidence(runs: kit.Runs) -> Evidence:
    """Train, integrate and bound."""
    bound = np.array([simple_bound(DELTAS, value) for value in LAMBDAS])
    return Evidence(starving.features(runs), bound, starving.starve(runs["late"]), starving.random_cases("strong"))


def claims(e: Evidence) -> list[kit.Claim]:
    """Compare with Theorem 6.1."""
    violations = (e.cases.stop.rare > simple_bound(e.cases.delta, e.cases.lambda_) + 1e-12).sum()
    frequent, rare = e.late.frequent, e.late.rare
    example = float(np.interp(0.9999, frequent, rare)) if frequent.max() >= 0.9999 else float("nan")
    fair = float(stopping_points(0.01, 0.1, 0.1, 0.1, 0.1).rare)
    return [
        *starving.claims(e.features),
        kit.claim("bound", "Eq. 7 holds for trained networks that start at beta0 = lambda alpha0 (largest confidence "
                  "minus bound, from 90 % on)", "Theorem 6.1", kit.at_most(1e-12),
                  starving.worst(e.features, lambda one: one.rare - simple_bound(1 - one.frequent, one.lambda_))),
        kit.claim("example", "With lambda = 0.1 and delta = 1e-4, P((0, x2)) is at most 72 % (trained)",
                  "Section 6", kit.at_most(0.72), example),
        kit.theory("bound-curves", "Eq. 7 holds for the curves of the figure (largest confidence minus bound)",
                   "Theorem 6.1", kit.at_most(1e-12), starving.excess(e.features, e.bound)),
        kit.theory("random", f"and for random starts with alpha0 >= beta0 / lambda > 0 (violations in {DRAWS} cases)",
                   "Theorem 6.1", kit.exactly(0), violations),
        kit.finding("outside", "Outside its hypothesis Eq. 7 fails: excess from alpha0 = beta0 = z0 = 0.1, lambda = "
                    "0.1, delta = 0.01", "Theorem 6.1", fair - float(simple_bound(0.01, 0.1))),
    ]  # fmt: skip


def draw(e: Evidence) -> kit.Drawing:
    """Draw truth, trained networks and the bound."""
    return starving.draw(e.features, {"bound, Eq. 7": e.bound}, columns=4)


FIGURE = kit.Figure(
    id="tachet2018-fig10",
    caption=(
        "As Figure 6 with the bound of Eq. 7, which drops alpha0 and beta0; neurons start at alpha0 = 0.1, beta0 = 0.1 "
        "lambda, the least favour to the strong feature that Theorem 6.1 allows."
    ),
    configs={
        **starving.configs(fair=False),
        "late": starving.wanted(
            0.1, False, "optimizer.lr=0.02", "optimizer.iterations=50000", "record.snapshots.interval=50"
        ),
    },
    origin={"bound": "stated", "lambdas": "inferred", "starts": "assumed"},
    evidence=evidence, claims=claims, draw=draw,
)  # fmt: skip

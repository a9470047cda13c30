"""Figure 10: gradient starvation, the bound without the initial values (Eq. 7).

`dyn reproduce tachet2018-fig10`. About 3 s.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from matplotlib.figure import Figure as Drawing

from dynamics_cli.measures.arrays import Floats
from dynamics_cli.plotting.layout import figure_legend
from dynamics_cli.plotting.style import new_figure
from dynamics_cli.reproduction.claims import Claim, at_most, claim, exactly, finding
from dynamics_cli.reproduction.figure import Figure, Runs

from .starving import (
    DELTAS,
    DRAWS,
    LAMBDAS,
    Starved,
    configs,
    draw_starved,
    random_cases,
    starve,
    starving_claims,
    steps,
)
from .theory.starvation import simple_bound, stopping_points


@dataclass(frozen=True)
class Evidence:
    """Neurons whose start favours the strong feature, and Eq. 7."""

    starved: list[Starved]
    sizes: tuple[float, float]
    bound: Floats
    """(lambdas, D)"""
    violations: int
    """Random cases with alpha0 >= beta0 / lambda that violate Eq. 7."""
    outside: float
    """By how much a fair start exceeds Eq. 7: outside the hypothesis of Theorem 6.1."""


def evidence(runs: Runs) -> Evidence:
    """Train, integrate and bound."""
    cases = random_cases(strong=True)
    fair = float(stopping_points(0.01, 0.1, 0.1, 0.1, 0.1).rare)
    return Evidence(
        starved=starve(runs),
        sizes=steps(runs),
        bound=np.array([simple_bound(DELTAS, value) for value in LAMBDAS]),
        violations=int((cases.rare > simple_bound(cases.delta, cases.lambda_) + 1e-12).sum()),
        outside=fair - float(simple_bound(0.01, 0.1)),
    )


def claims(found: Evidence) -> list[Claim]:
    """Compare with Theorem 6.1."""
    return [
        *starving_claims(found.starved, found.sizes),
        claim(
            "bound",
            "Eq. 7 holds for the curves of the figure, beta0 = lambda alpha0 (largest confidence minus bound)",
            "Theorem 6.1",
            expected=at_most(1e-12),
            measured=max(
                float((one.truth - bound).max()) for one, bound in zip(found.starved, found.bound, strict=False)
            ),
        ),
        claim(
            "random",
            f"and for random starts with alpha0 >= beta0 / lambda > 0 (violations in {DRAWS} cases)",
            "Theorem 6.1",
            expected=exactly(0),
            measured=found.violations,
        ),
        claim(
            "example",
            "With lambda = 0.1 and delta = 1e-4, P((0, x2)) is at most 72 % (of the integrated neuron)",
            "Section 6",
            expected=at_most(0.72),
            measured=float(found.starved[LAMBDAS.index(0.1)].truth[-1]),
        ),
        finding(
            "outside",
            "Outside its hypothesis Eq. 7 fails: excess from alpha0 = beta0 = z0 = 0.1, lambda = 0.1, delta = 0.01",
            "Theorem 6.1",
            measured=found.outside,
        ),
    ]


def draw(found: Evidence) -> Drawing:
    """Draw truth, trained networks and the bound."""
    figure, (axes,) = new_figure(aspect=0.92, extra_height=0.3)
    figure_legend(figure, draw_starved(axes, found.starved, {"bound, Eq. 7": found.bound}), columns=4)
    return figure


FIGURE = Figure(
    id="tachet2018-fig10",
    caption=(
        "As Figure 6 with the bound of Eq. 7, which drops alpha0 and beta0; neurons start at alpha0 = 0.1, beta0 = 0.1 "
        "lambda, the least favour to the strong feature that Theorem 6.1 allows."
    ),
    configs=dict(configs("strong")),
    origin={"bound": "stated", "lambdas": "inferred", "starts": "assumed"},
    evidence=evidence,
    claims=claims,
    draw=draw,
)

"""Figure 6: gradient starvation from a fair start, the bound as printed, as it was likely meant, and the truth."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dynamics_cli import kit

from . import starving
from .starving import DELTAS, DRAWS, LAMBDAS, Starved
from .theory.starvation import (
    StarvationPath,
    assumed_z_star,
    corrected_bound,
    printed_bound,
    simple_bound,
    stopping_points,
)

COUNTER = {"delta": 0.01, "lambda_": 0.1, "alpha0": 0.1, "beta0": 0.1}
"""The counterexample to Theorem D.2; z0 = 0.1 too."""


@dataclass(frozen=True)
class Evidence:
    """Trained and integrated neurons, both bounds, and random cases."""

    features: starving.Features
    printed: kit.Floats
    """(lambdas, D) Theorem D.2 as printed with z* = alpha*: Eq. 7, since `beta0 - alpha0` is 0."""
    meant: kit.Floats
    """(lambdas, D) with `beta0 - lambda alpha0` in its place: `lambda L + sqrt(L) (beta0 - lambda alpha0)`."""
    counter: StarvationPath
    """The counterexample when training stops."""
    cases: starving.RandomCases
    negative: starving.RandomCases
    """With beta0 < 0."""


def evidence(runs: kit.Runs) -> Evidence:
    """Train, integrate and bound."""
    assumed = (0.1, 0.1, assumed_z_star(DELTAS))
    return Evidence(
        features=starving.features(runs),
        printed=np.array([printed_bound(DELTAS, value, *assumed) for value in LAMBDAS]),
        meant=np.array([corrected_bound(DELTAS, value, *assumed) for value in LAMBDAS]),
        counter=stopping_points(z0=0.1, **COUNTER),
        cases=starving.random_cases("positive"),
        negative=starving.random_cases("negative"),
    )


def _above_corrected(one: Starved) -> kit.Floats:
    """Return the trained confidence in x2 minus the corrected bound at every recorded time, (K,)."""
    return one.rare - corrected_bound(1 - one.frequent, one.lambda_, *one.start[:2], one.z)


def claims(e: Evidence) -> list[kit.Claim]:
    """Compare with Section 6 and Appendix D."""
    cases, negative = e.cases, e.negative
    truth, z_star = float(e.counter.rare), float(e.counter.z)
    printed, corrected = (float(bound(z_star=z_star, **COUNTER)) for bound in (printed_bound, corrected_bound))
    about = (cases.delta, cases.lambda_, cases.alpha0, cases.beta0)
    bounds = (
        printed_bound(*about, cases.stop.z),
        corrected_bound(*about, cases.stop.z),
        corrected_bound(*about, assumed_z_star(cases.delta)),
    )
    violated = [int((cases.stop.rare > bound + 1e-12).sum()) for bound in bounds]
    below_0 = (negative.stop.rare > simple_bound(negative.delta, negative.lambda_) + 1e-12).sum()
    level = np.log((1 - DELTAS) / DELTAS)
    return [
        *starving.claims(e.features),
        kit.claim("starvation", "The rare feature lags behind (largest of P((0, x2)) - P((x1, 0)), all lambda, trained "
                  "from 90 % on)", "Section 6, Figure 6", kit.less_than(0),
                  starving.worst(e.features, lambda one: one.rare - one.frequent)),
        kit.claim("bound", "The corrected Theorem D.2 holds for trained networks (largest confidence minus bound, from "
                  "90 % on)", "proof of Theorem D.2", kit.at_most(1e-12), starving.worst(e.features, _above_corrected)),
        kit.theory("theorem-d2", f"Theorem D.2 as printed, with beta0 - alpha0, holds (violations in {DRAWS} random "
                   "cases of lambda, delta, alpha0, beta0 > 0, z0)", "Theorem D.2", kit.exactly(0), violated[0]),
        kit.theory("corrected", f"With beta0 - lambda alpha0, as its proof has it, it holds (violations in {DRAWS})",
                   "proof of Theorem D.2", kit.exactly(0), violated[1]),
        kit.theory("negative", f"For beta0 < 0 Eq. 7 holds (violations in {DRAWS} random cases)",
                   "Theorem D.2, beta0 < 0", kit.exactly(0), below_0),
        kit.finding("excess-printed", "Largest excess of the curves over the printed bound, z* = alpha*", "Figure 6",
                    starving.excess(e.features, e.printed)),
        kit.finding("excess-meant", "and over the one likely meant, lambda L + sqrt(L) (beta0 - lambda alpha0)",
                    "Figure 6, proof of Theorem D.2", starving.excess(e.features, e.meant)),
        kit.finding("meant-violations", f"Random cases of {DRAWS} that exceed it, since z* is not quite alpha*",
                    "Appendix D", violated[2]),
        *(kit.finding(f"last-{name}", f"At lambda = 0.01, delta = 1e-4: {what}", "Figure 6", value)
          for name, what, value in (("truth", "P((0, x2)) by Eq. 8", e.features.fine[-1].truth[-1]),
                                    ("printed", "the printed bound", e.printed[-1, -1]),
                                    ("meant", "the bound likely meant", e.meant[-1, -1]))),
        kit.finding("counter-truth", "P((0, x2)) at lambda = 0.1, delta = 0.01, alpha0 = beta0 = z0 = 0.1", "Eq. 8",
                    truth),
        kit.finding("counter-printed", "Printed bound there", "Theorem D.2", printed),
        kit.finding("counter-corrected", "Corrected bound there", "proof of Theorem D.2", corrected),
        kit.finding("z-alpha", "The figure assumes z* = alpha*: largest |z* / alpha* - 1| of the true ones",
                    "Appendix D", max(float(np.abs(one.z_star**2 / level - 1).max()) for one in e.features.fine)),
    ]  # fmt: skip


def draw(e: Evidence) -> kit.Drawing:
    """Draw truth, trained networks and both bounds."""
    return starving.draw(e.features, {"D.2 printed (= Eq. 7)": e.printed, "D.2 likely meant": e.meant}, columns=3)


FIGURE = kit.Figure(
    id="tachet2018-fig6",
    caption=(
        "Confidence in a sample that has only the rare feature x2, at the moment when that in x1 is 1 - delta, from "
        "alpha0 = beta0 = 0.1: Eq. 8 integrated, trained networks (dots), and two bounds with z* = alpha*. Theorem D.2 "
        "as printed has the term z* (beta0 - alpha0), which is 0 here, so it is Eq. 7, and is exceeded; its proof "
        "gives lambda L + sqrt(L) (beta0 - lambda alpha0), L = log((1 - delta) / delta), which is likely what the "
        "paper draws."
    ),
    configs=starving.configs(fair=True),
    origin={
        "alpha0, beta0": "stated",
        "z* = alpha*": "stated",
        "bound that is drawn": "inferred",
        "lambdas": "inferred",
        "z0": "assumed",
    },
    evidence=evidence, claims=claims, draw=draw,
)  # fmt: skip

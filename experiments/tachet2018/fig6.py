"""Figure 6: gradient starvation from a fair start, the printed bound, the corrected one, and the truth."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dynamics_cli import kit

from . import starving
from .starving import DELTAS, DRAWS
from .theory.starvation import StarvationPath, assumed_z_star, corrected_bound, printed_bound, stopping_points

COUNTER = {"delta": 0.01, "lambda_": 0.1, "alpha0": 0.1, "beta0": 0.1}
"""The counterexample to Theorem D.2; z0 = 0.1 too."""


@dataclass(frozen=True)
class Evidence:
    """Trained and integrated neurons, both bounds, and random cases."""

    features: starving.Features
    printed: kit.Floats
    """(lambdas, D) Theorem D.2 as printed with z* = alpha*, what the paper's figure shows."""
    corrected: kit.Floats
    """(lambdas, D) the corrected bound with the true z*."""
    counter: StarvationPath
    """The counterexample when training stops."""
    cases: starving.RandomCases


def evidence(runs: kit.Runs) -> Evidence:
    """Train, integrate and bound."""
    found = starving.features(runs)
    return Evidence(
        features=found,
        printed=np.array([printed_bound(DELTAS, one.lambda_, 0.1, 0.1, assumed_z_star(DELTAS)) for one in found.fine]),
        corrected=np.array([corrected_bound(DELTAS, one.lambda_, 0.1, 0.1, one.z_star) for one in found.fine]),
        counter=stopping_points(z0=0.1, **COUNTER),
        cases=starving.random_cases(strong=False),
    )


def claims(e: Evidence) -> list[kit.Claim]:
    """Compare with Section 6 and Appendix D."""
    fair, cases = e.features.fine, e.cases
    truth, z_star = float(e.counter.rare), float(e.counter.z)
    printed, corrected = (float(bound(z_star=z_star, **COUNTER)) for bound in (printed_bound, corrected_bound))
    about = (cases.delta, cases.lambda_, cases.alpha0, cases.beta0, cases.stop.z)
    violations = [int((cases.stop.rare > bound(*about) + 1e-12).sum()) for bound in (printed_bound, corrected_bound)]
    level = np.log((1 - DELTAS) / DELTAS)
    # fmt: off
    return [
        *starving.claims(e.features),
        kit.claim("starvation", "The rare feature lags behind (largest of P((0, x2)) - (1 - delta), all lambda, "
                  "confidence above 90 %)", "Section 6, Figure 6", kit.less_than(0),
                  max(float((one.truth - (1 - DELTAS))[DELTAS < 0.1].max()) for one in fair)),
        kit.claim("erratum", "Erratum: Theorem D.2 as printed is violated at lambda = 0.1, delta = 0.01, alpha0 = "
                  "beta0 = z0 = 0.1 (confidence minus bound)",
                  "Theorem D.2: beta0 - alpha0 in print, beta0 - lambda alpha0 by its proof", kit.more_than(0),
                  truth - printed),
        kit.claim("corrected",
                  f"The corrected bound holds (violations in {DRAWS} random cases of lambda, delta, alpha0, beta0, z0)",
                  "proof of Theorem D.2", kit.exactly(0), violations[1]),
        kit.claim("corrected-curves", "and for all curves of the figure (largest confidence minus bound)",
                  "proof of Theorem D.2", kit.at_most(0), starving.excess(e.features, e.corrected)),
        kit.finding("printed-violations", "Random cases that violate the printed bound", "D.2", violations[0]),
        kit.finding("counter-truth", "P((0, x2)) at the counterexample", "Eq. 8", truth),
        kit.finding("counter-printed", "Printed bound there", "Theorem D.2", printed),
        kit.finding("counter-corrected", "Corrected bound there", "proof of Theorem D.2", corrected),
        kit.finding("z-alpha", "The figure assumes z* = alpha*: largest |z* / alpha* - 1| of the true ones",
                    "Appendix D", max(float(np.abs(one.z_star**2 / level - 1).max()) for one in fair)),
    ]
    # fmt: on


def draw(e: Evidence) -> kit.Drawing:
    """Draw truth, trained networks and both bounds."""
    return starving.draw(e.features, {"Theorem D.2, printed": e.printed, "corrected": e.corrected}, columns=3)


FIGURE = kit.Figure(
    id="tachet2018-fig6",
    caption=(
        "Confidence in a sample that has only the rare feature x2, at the moment when that in x1 is 1 - delta: Eq. 8 "
        "integrated, trained networks (dots), the paper's upper bound and the corrected one; alpha0 = beta0 = 0.1."
    ),
    configs=starving.configs(fair=True),
    origin={"alpha0, beta0": "stated", "z* of the bound": "stated", "z0": "assumed", "lambdas": "inferred"},
    evidence=evidence,
    claims=claims,
    draw=draw,
)

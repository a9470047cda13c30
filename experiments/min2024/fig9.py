"""Figure 9: two points of correlation 0.

`dyn reproduce min2024-fig9`. About 2 s.
"""

from __future__ import annotations

import numpy as np

from dynamics_cli.reproduction.claims import Claim, at_least, claim, exactly, less_than, near
from dynamics_cli.reproduction.figure import Figure

from .shared import TRAINED
from .two_points import Evidence, at_angle, common_claims, draw, evidence, outside_findings

ANGLE = 0.0
SOURCE = "Appendix A.3, Figure 9"


def claims(found: Evidence) -> list[Claim]:
    """Compare with the caption and text."""
    return [
        *common_claims(found, SOURCE, float(np.sin(ANGLE))),
        claim(
            "stay-outside",
            "Live positive neurons stay outside S+ (at iteration 21000)",
            SOURCE,
            expected=at_least(1),
            measured=found.outside[2],
        ),
        claim(
            "for-ever",
            "None of them enters between iterations 7000 and 21000 (change of their number)",
            SOURCE,
            expected=exactly(0),
            measured=found.outside[2] - found.outside[1],
        ),
        claim(
            "half-way",
            "They are aligned with x1 or x2 alone: cosine 1/sqrt(2) with x+",
            SOURCE,
            expected=near(float(np.sqrt(0.5)), 0.01),
            measured=found.stray,
        ),
        claim(
            "with-one",
            "(least cosine with the nearer of x1 and x2)",
            SOURCE,
            expected=at_least(0.99),
            measured=found.strays_apart,
        ),
        claim(
            "no-growth",
            "Only neurons in S+ grow (largest norm outside over largest inside)",
            SOURCE,
            expected=less_than(0.1),
            measured=found.growth,
        ),
        *outside_findings(found, SOURCE),
    ]


FIGURE = Figure(
    id="min2024-fig9",
    caption=(
        "Triangles are the data, dots with rays the neurons, each panel to its own scale of norms. Orthogonal"
        " data: neurons end along x1, x2 or x+, and only the last grow."
    ),
    configs={"descent": at_angle(ANGLE)},
    origin={**TRAINED, "data": "stated", "iterations": "stated"},
    evidence=evidence,
    claims=claims,
    draw=draw,
)

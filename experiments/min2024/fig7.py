"""Figure 7: two points of correlation sin 0.1.

`dyn reproduce min2024-fig7`. About 2 s.
"""

from __future__ import annotations

import numpy as np

from dynamics_cli.reproduction.claims import Claim, claim, exactly
from dynamics_cli.reproduction.figure import Figure

from .shared import TRAINED
from .two_points import Evidence, at_angle, common_claims, draw, evidence, outside_findings

ANGLE = 0.1
SOURCE = "Appendix A.2, Figure 7"


def claims(found: Evidence) -> list[Claim]:
    """Compare with the caption and text."""
    return [
        *common_claims(found, SOURCE, float(np.sin(ANGLE))),
        claim(
            "all-inside",
            "At iteration 7000 all live positive neurons have reached S+ (those outside)",
            SOURCE,
            expected=exactly(0),
            measured=found.outside[1],
        ),
        *outside_findings(found, SOURCE),
    ]


FIGURE = Figure(
    id="min2024-fig7",
    caption=(
        "Triangles are the data, dots with rays the neurons, each panel to its own scale of norms. Positive "
        "neurons that are not dead enter S+ and align with x+."
    ),
    configs={"descent": at_angle(ANGLE)},
    origin={**TRAINED, "data": "stated", "iterations": "stated"},
    evidence=evidence,
    claims=claims,
    draw=draw,
)

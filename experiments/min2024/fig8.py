"""Figure 8: two points of correlation sin 0.001.

`dyn reproduce min2024-fig8`. About 2 s.
"""

from __future__ import annotations

import numpy as np

from dynamics_cli.reproduction.claims import Claim, at_least, claim, exactly
from dynamics_cli.reproduction.figure import Figure

from .shared import TRAINED
from .two_points import Evidence, at_angle, common_claims, draw, evidence, outside_findings

ANGLE = 0.001
SOURCE = "Appendix A.2, Figure 8"


def claims(found: Evidence) -> list[Claim]:
    """Compare with the caption and text."""
    return [
        *common_claims(found, SOURCE, float(np.sin(ANGLE)), aligned=21000),
        claim(
            "some-outside",
            "At iteration 7000 there are still live positive neurons outside S+",
            SOURCE,
            expected=at_least(1),
            measured=found.outside[1],
        ),
        claim(
            "one-outside",
            "In this instance one neuron remains outside S+ at iteration 21000",
            SOURCE,
            expected=exactly(1),
            measured=found.outside[2],
        ),
        *outside_findings(found, SOURCE),
    ]


FIGURE = Figure(
    id="min2024-fig8",
    caption=(
        "Triangles are the data, dots with rays the neurons, each panel to its own scale of norms. Alignment "
        "is slower: some neurons are still aligned with x1 or x2 alone."
    ),
    configs={"descent": at_angle(ANGLE, "seed=6")},
    origin={**TRAINED, "data": "stated", "iterations": "stated"},
    evidence=evidence,
    claims=claims,
    draw=draw,
)

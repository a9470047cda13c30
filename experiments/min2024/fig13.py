"""Figure 13: no two phases when only the first layer is trained.

`dyn reproduce min2024-fig13`. About 2 s; `--preset full` takes all 12 665 images in batches of 2 000.
"""

from __future__ import annotations

import numpy as np

from dynamics_cli.reproduction.claims import Claim, at_least, claim, exactly, finding
from dynamics_cli.reproduction.figure import Figure, Wanted

from .fig12 import FULL
from .motion import Evidence, draw_motion, evidence
from .shared import TRAINED


def claims(found: Evidence) -> list[Claim]:
    """Compare with the caption."""
    together = float(np.corrcoef(found.norms[1:], found.directions[1:])[0, 1])
    return [
        claim(
            "norms-first",
            "There is no phase in which only directions change: norms change most in the first epoch shown",
            "Figure 13",
            expected=exactly(1),
            measured=found.peak(found.norms),
        ),
        claim(
            "directions-first",
            "and so do directions",
            "Figure 13",
            expected=exactly(1),
            measured=found.peak(found.directions),
        ),
        claim(
            "together",
            "Both decay together (correlation of the two curves)",
            "Figure 13; 0.9 is our reading of together",
            expected=at_least(0.9),
            measured=together,
        ),
        finding("loss-1", "Loss after one epoch", "Figure 13", measured=found.at(found.loss, 1)),
        finding("loss-end", "Loss at the end", "Figure 13", measured=found.loss[-1]),
        finding("norms-1", "Change in norms after one epoch", "Figure 13", measured=found.at(found.norms, 1)),
    ]


FIGURE = Figure(
    id="min2024-fig13",
    caption=(
        "The quantities of Figure 12 with output weights fixed at 1 or -1: both decay together from the first"
        " epoch on. Epoch 0 is left out, where directions of weights of size 1e-6 change at a rate of "
        "millions."
    ),
    configs={"sgd": "min2024/sgd_first.yaml"},
    presets={"full": {"sgd": Wanted("min2024/sgd_first.yaml", FULL)}},
    origin={**TRAINED, "data": "stated", "output weights": "stated", "batch": "assumed", "epochs": "assumed"},
    evidence=evidence,
    claims=claims,
    draw=draw_motion,
)

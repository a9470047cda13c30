"""Figure 12: SGD on both layers has two phases.

`dyn reproduce min2024-fig12`. About 6 s; `--preset full` takes all 12 665 images in batches of 2 000 (about 2 min).
"""

from __future__ import annotations

from dynamics_cli.reproduction.claims import Claim, claim, finding, less_than, more_than
from dynamics_cli.reproduction.figure import Figure, Wanted

from .motion import Evidence, draw_motion, evidence
from .shared import TRAINED

FULL = ("dataset.source=full", "optimizer.batch_size=2000")


def claims(found: Evidence) -> list[Claim]:
    """Compare the order of events with the caption and Appendix A.5."""
    turned, grew = found.peak(found.directions), found.peak(found.norms)
    falls = found.below(0.99)
    return [
        claim(
            "order",
            "Directions change first, norms later (epoch of the largest change in norms over that in directions)",
            "Figure 12, Appendix A.5",
            expected=more_than(1.0),
            measured=grew / turned,
        ),
        claim(
            "norms-rest",
            "In the early phase norms do not grow (their change when directions change most, over its largest)",
            "Figure 12 (caption); less than 1 % is our reading of do not grow",
            expected=less_than(0.01),
            measured=abs(found.at(found.norms, turned)) / float(found.norms[1:].max()),
        ),
        claim(
            "directions-rest",
            "In the second stage norms grow (change in directions when norms change most, over its largest)",
            "Figure 12; less than a tenth is our reading of the figure",
            expected=less_than(0.1),
            measured=found.at(found.directions, grew) / float(found.directions[1:].max()),
        ),
        claim(
            "loss-late",
            "In the second stage the loss starts to decrease (epoch of a loss of 0.99 over that of fastest turns)",
            "Figure 12 (caption)",
            expected=more_than(1.0),
            measured=falls / turned,
        ),
        *[
            finding(
                f"below-{level}", f"First epoch with a loss below {level}", "Figure 12", measured=found.below(level)
            )
            for level in (0.99, 0.5, 0.1)
        ],
        finding("turn-epoch", "Epoch of the largest change in directions", "Figure 12", measured=turned),
        finding("turn-peak", "Largest change in directions", "Figure 12", measured=found.directions[1:].max()),
        finding("grow-epoch", "Epoch of the largest change in norms", "Figure 12", measured=grew),
        finding("loss-end", "Loss at the end", "Figure 12", measured=found.loss[-1]),
        finding("updates", "Updates an epoch; the paper has 7", "Appendix A.5", measured=found.updates),
    ]


FIGURE = Figure(
    id="min2024-fig12",
    caption=(
        "Loss, changes in neuron norms and changes in neuron directions of the full gradient at the end of "
        "every second epoch: first only directions change, then norms grow and the loss decreases."
    ),
    configs={"sgd": "min2024/sgd_both.yaml"},
    presets={"full": {"sgd": Wanted("min2024/sgd_both.yaml", FULL)}},
    origin={**TRAINED, "data": "stated", "batch": "assumed", "epochs": "assumed"},
    evidence=evidence,
    claims=claims,
    draw=draw_motion,
)

"""Figure 10: MNIST digits 3 and 8.

`dyn reproduce min2024-fig10`. About 30 s, nearly all training; `--preset full` takes all images (six times as long).
"""

from __future__ import annotations

from dynamics_cli.reproduction.claims import Claim
from dynamics_cli.reproduction.figure import Figure, Wanted

from .digits import Evidence, evidence
from .digits_claims import Expected, claims
from .digits_panels import draw
from .shared import TRAINED

EXPECTED = Expected("Figure 10", aligned_by=4000, loss_falls=None)


def _claims(found: Evidence) -> list[Claim]:
    return claims(found, EXPECTED)


FIGURE = Figure(
    id="min2024-fig10",
    caption=(
        "(a) Inner products of the centred images, digit 3 first. (b) Cosine of the mean neuron of V+ with x+"
        " and of V- with x-, with the range over single neurons. (c) Loss, stable rank and squared spectral "
        "norm of W. (d) Data centres and mean neurons at the end, also with the mean image added."
    ),
    configs={"digits": "min2024/mnist_38.yaml"},
    presets={"full": {"digits": Wanted("min2024/mnist_38.yaml", ("dataset.source=full",))}},
    origin={**TRAINED, "data": "stated", "iterations": "stated"},
    evidence=evidence,
    claims=_claims,
    draw=draw,
)

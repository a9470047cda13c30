"""Figure 5: MNIST digits 1 and 0.

`dyn reproduce min2024-fig5`. About 30 s, nearly all training; `--preset full` takes all images (six times as long).
"""

from __future__ import annotations

from dynamics_cli.reproduction.claims import Claim
from dynamics_cli.reproduction.figure import Figure, Wanted

from .digits import Evidence, evidence
from .digits_claims import Expected, claims, end_claims
from .digits_panels import draw
from .shared import TRAINED

EXPECTED = Expected("Figure 5", aligned_by=2000, loss_falls=3000)


def _claims(found: Evidence) -> list[Claim]:
    return [*claims(found, EXPECTED), *end_claims(found)]


FIGURE = Figure(
    id="min2024-fig5",
    caption=(
        "(a) Inner products of the centred images, digit 1 first. (b) Cosine of the mean neuron of V+ with x+"
        " and of V- with x-, with the range over single neurons. (c) Loss, stable rank and squared spectral "
        "norm of W. (d) Data centres and mean neurons at the end, also with the mean image added."
    ),
    configs={"digits": "min2024/mnist_01.yaml"},
    presets={"full": {"digits": Wanted("min2024/mnist_01.yaml", ("dataset.source=full",))}},
    origin={**TRAINED, "data": "stated", "iterations": "stated"},
    evidence=evidence,
    claims=_claims,
    draw=draw,
)

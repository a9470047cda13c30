"""Figure 19: a boundary that is crossed once.

`dyn reproduce min2024-fig19`. About 1 s.
"""

from __future__ import annotations

from dynamics_cli.reproduction.claims import Claim, claim, exactly

from .boundary import CROSSED, boundary_figure


def _crossing(crossings: int, source: str) -> Claim:
    return claim(
        "once",
        "The path leaves the boundary at once and crosses it once",
        source,
        expected=exactly(1),
        measured=crossings,
    )


FIGURE = boundary_figure(
    19,
    CROSSED,
    caption=(
        "As Figure 18 with points of negative correlation: the flow points the same way on both sides of the "
        "boundary of x1, so the neuron crosses it once. Blue: small steps."
    ),
    caught=False,
    crossing=_crossing,
)

"""Figure 18: a boundary that catches the flow.

`dyn reproduce min2024-fig18`. About 1 s.
"""

from __future__ import annotations

from dynamics_cli.reproduction.claims import Claim, claim, more_than

from .boundary import CAUGHT, boundary_figure


def _crossing(crossings: int, source: str) -> Claim:
    return claim(
        "zeno",
        "The path is caught: small steps cross the boundary again and again (crossings)",
        source,
        expected=more_than(10),
        measured=crossings,
    )


FIGURE = boundary_figure(
    18,
    CAUGHT,
    caption=(
        "A negative and a positive point of positive correlation. The flow of a positive neuron points to the"
        " boundary of x1 from both sides: no Caratheodory solution goes on. Blue: small steps, which chatter "
        "along it."
    ),
    caught=True,
    crossing=_crossing,
)

"""Figure 18: a boundary that catches the flow.

`dyn reproduce min2024-fig18`. About 1 s.
"""

from __future__ import annotations

from matplotlib.figure import Figure as Drawing

from dynamics_cli.reproduction.claims import Claim, claim, finding, more_than
from dynamics_cli.reproduction.figure import Figure, Runs

from .boundary import CAUGHT, Evidence, draw_boundary, measure, rate_claims
from .sketches import ASSUMED


def evidence(_: Runs) -> Evidence:
    """Follow a neuron to a boundary that catches it."""
    return measure(CAUGHT)


def claims(found: Evidence) -> list[Claim]:
    """Compare with the caption."""
    source = "Appendix E.2, Figure 18"
    return [
        *rate_claims(found, source, caught=True),
        claim(
            "zeno",
            "The path is caught: small steps cross the boundary again and again (crossings)",
            source,
            expected=more_than(10),
            measured=found.crossings,
        ),
        finding("off", "Rate on the inactive side", source, measured=found.off),
        finding("on", "Rate on the active side", source, measured=found.on),
    ]


def draw(found: Evidence) -> Drawing:
    """Draw the flow around the boundary."""
    return draw_boundary(found)


FIGURE = Figure(
    id="min2024-fig18",
    title="Flow around a discontinuity where Assumption 1 is violated",
    caption=(
        "A negative and a positive point of positive correlation. The flow of a positive neuron points to the"
        " boundary of x1 from both sides: no Caratheodory solution goes on. Blue: small steps, which chatter "
        "along it."
    ),
    origin=ASSUMED,
    evidence=evidence,
    claims=claims,
    draw=draw,
)

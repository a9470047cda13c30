"""Figure 19: a boundary that is crossed once.

`dyn reproduce min2024-fig19`. About 1 s.
"""

from __future__ import annotations

from matplotlib.figure import Figure as Drawing

from dynamics_cli.reproduction.claims import Claim, claim, exactly, finding
from dynamics_cli.reproduction.figure import Figure, Runs

from .boundary import CROSSED, Evidence, draw_boundary, measure, rate_claims
from .sketches import ASSUMED


def evidence(_: Runs) -> Evidence:
    """Follow a neuron through a boundary."""
    return measure(CROSSED)


def claims(found: Evidence) -> list[Claim]:
    """Compare with the caption."""
    source = "Appendix E.2, Figure 19"
    return [
        *rate_claims(found, source, caught=False),
        claim(
            "once",
            "The path leaves the boundary at once and crosses it once",
            source,
            expected=exactly(1),
            measured=found.crossings,
        ),
        finding("off", "Rate on the inactive side", source, measured=found.off),
        finding("on", "Rate on the active side", source, measured=found.on),
    ]


def draw(found: Evidence) -> Drawing:
    """Draw the flow around the boundary."""
    return draw_boundary(found)


FIGURE = Figure(
    id="min2024-fig19",
    title="Flow around a discontinuity under Assumption 1",
    caption=(
        "As Figure 18 with points of negative correlation: the flow points the same way on both sides of the "
        "boundary of x1, so the neuron crosses it once."
    ),
    origin=ASSUMED,
    evidence=evidence,
    claims=claims,
    draw=draw,
)

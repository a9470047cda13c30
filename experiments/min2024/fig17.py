"""Figure 17: Edges of a measured path and of the maximal path that bound them, part 2.

`dyn reproduce min2024-fig17`. About 2 s.
"""

from __future__ import annotations

from matplotlib.figure import Figure as Drawing

from dynamics_cli.reproduction.claims import Claim
from dynamics_cli.reproduction.figure import Figure

from .edges import correspondence_claims, draw_correspondence
from .paths import ORIGIN, Evidence, evidence


def claims(found: Evidence) -> list[Claim]:
    """Compare every edge with its partner."""
    return correspondence_claims(found, "Appendix C.2, Figure 17", loses=False)


def draw(found: Evidence) -> Drawing:
    """Draw the partners of the edges that gains a positive point."""
    return draw_correspondence(found, loses=False)


FIGURE = Figure(
    id="min2024-fig17",
    caption=(
        "Arrows join every edge that gains a positive point to the edge of the maximal path that takes at "
        "least as long; no edge of the maximal path is used twice."
    ),
    origin=ORIGIN,
    evidence=evidence,
    claims=claims,
    draw=draw,
)

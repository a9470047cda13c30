"""Figure 16: Edges of a measured path and of the maximal path that bound them, part 1.

`dyn reproduce min2024-fig16`. About 2 s.
"""

from __future__ import annotations

from matplotlib.figure import Figure as Drawing

from dynamics_cli.reproduction.claims import Claim
from dynamics_cli.reproduction.figure import Figure

from .edges import correspondence_claims, draw_correspondence
from .paths import ORIGIN, Evidence, evidence


def claims(found: Evidence) -> list[Claim]:
    """Compare every edge with its partner."""
    return correspondence_claims(found, "Appendix C.2, Figure 16", loses=True)


def draw(found: Evidence) -> Drawing:
    """Draw the partners of the edges that loses a negative point."""
    return draw_correspondence(found, loses=True)


FIGURE = Figure(
    id="min2024-fig16",
    caption=(
        "Arrows join every edge that loses a negative point to the edge of the maximal path that takes at "
        "least as long; no edge of the maximal path is used twice."
    ),
    origin=ORIGIN,
    evidence=evidence,
    claims=claims,
    draw=draw,
)

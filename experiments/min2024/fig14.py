"""Figure 14: Paths of activation counts of real neurons.

`dyn reproduce min2024-fig14`. About 2 s.
"""

from __future__ import annotations

import numpy as np
from matplotlib.figure import Figure as Drawing

from dynamics_cli.plotting.layout import figure_legend, format_number
from dynamics_cli.plotting.style import SERIES, new_figure, styled
from dynamics_cli.reproduction.claims import Claim, at_least, at_most, claim, exactly, finding
from dynamics_cli.reproduction.figure import Figure

from .paths import ORIGIN, Evidence, draw_grid, draw_path, evidence


def claims(found: Evidence) -> list[Claim]:
    """Compare measured paths with the definition and the travel time of Appendix C.2."""
    source = "Appendix C.2, Figure 14"
    return [
        claim(
            "paths",
            "Every live positive neuron follows a path or dies (neurons that do neither)",
            source,
            expected=exactly(0),
            measured=found.lost,
        ),
        claim(
            "some",
            "There are real neurons on such paths",
            source,
            expected=at_least(1),
            measured=len(found.paths),
        ),
        claim(
            "bounded",
            "No neuron takes longer than T(P) of its own path (largest share)",
            "Appendix C.2",
            expected=at_most(1.0),
            measured=max(path.time / path.bound for path in found.paths),
        ),
        claim(
            "active-live",
            "A neuron that starts active on a positive point does not die (those that did)",
            "Theorem 1",
            expected=exactly(0),
            measured=found.died_active,
        ),
        finding("longest", "Edges of the longest measured path", source, measured=len(found.paths[0].times)),
        finding("mu", "mu of the data", source, measured=found.constants.mu),
        finding(
            "ratio",
            "Median of T(P) over the measured time",
            source,
            measured=float(np.median([path.bound / path.time for path in found.paths])),
        ),
        finding("died", "Neurons that died", source, measured=found.died),
    ]


@styled
def draw(found: Evidence) -> Drawing:
    """Draw three measured paths with their times."""
    figure, (axes,) = new_figure(1, width=3.6, aspect=0.95, extra_height=0.35)
    draw_grid(axes)
    for k, path in enumerate(found.paths[:: max(1, len(found.paths) // 3)][:3]):
        label = f"reaches $S_+$ at {path.time:.2f}, $T(P)$ = {format_number(round(path.bound))}"
        draw_path(axes, path.counts, SERIES[k], label, style=("-", "--", "-.")[k], shift=0.09 * (k - 1))
    figure_legend(figure, axes.get_legend_handles_labels()[0], columns=1)
    return figure


FIGURE = Figure(
    id="min2024-fig14",
    caption=(
        "The counts (k+, k-) of positive and negative points on which a neuron is active, along the "
        "directional flow: k+ never falls, k- never rises, the end is (n+, 0)."
    ),
    origin=ORIGIN,
    evidence=evidence,
    claims=claims,
    draw=draw,
)

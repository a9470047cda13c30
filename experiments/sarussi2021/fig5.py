"""Figure 5: two-neuron networks, leaky ReLU (linear boundary) against ReLU (not; its output is 0 in a sector).

`dyn reproduce sarussi2021-fig5`. About 1 s, no training.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from matplotlib.figure import Figure as Drawing
from matplotlib.patches import Patch

from dynamics_cli.measures.arrays import Floats
from dynamics_cli.measures.linear_pieces import LevelSets, bend, boundary_directions, level_sets, two_layer_pieces
from dynamics_cli.measures.two_layer import outputs
from dynamics_cli.plotting.layout import figure_legend, panel_label
from dynamics_cli.plotting.panels.inputs import draw_regions, tint
from dynamics_cli.plotting.style import PALETTE, new_figure
from dynamics_cli.reproduction.claims import Claim, claim, finding, more_than, near
from dynamics_cli.reproduction.figure import Figure, Origin, Runs

H = np.array([[1.0, 0.5], [-0.3, 1.0]])
"""Neurons w and u."""
A = np.array([1.0, -1.0])
ALPHA = 0.2
WINDOW = (-2.0, 2.0, -2.0, 2.0)
FINE = 1e-12
"""Levels between which an output counts as 0: below rounding of any output drawn."""
DIRECTIONS = 360_000


@dataclass(frozen=True)
class Evidence:
    """Regions and zeros of both networks."""

    leaky: LevelSets
    relu: LevelSets
    """Of ReLU: negative, zero and positive outputs."""
    leaky_bend: float
    """Degrees by which the boundary misses a straight line."""
    zero_angle: float
    """Opening angle of the sector in which the ReLU network is 0, in degrees, measured."""
    zero_angle_predicted: float
    """180 degrees minus the angle between w and u."""
    best_linear: float
    """Least share of directions that a line decides otherwise than the ReLU network, for the better label of zeros."""


def evidence(runs: Runs) -> Evidence:
    """Cut the plane at the kinks of both networks."""
    pieces = two_layer_pieces(H, A)
    between = np.degrees(np.arccos(H[0] @ H[1] / np.linalg.norm(H[0]) / np.linalg.norm(H[1])))
    angles = (np.arange(DIRECTIONS) + 0.5) * 2 * np.pi / DIRECTIONS
    signs = np.sign(outputs(np.stack([np.cos(angles), np.sin(angles)], axis=1), H, A, 0.0))
    return Evidence(
        leaky=level_sets(pieces, ALPHA, WINDOW),
        relu=level_sets(pieces, 0.0, WINDOW, (-FINE, FINE)),
        leaky_bend=bend(boundary_directions(H, A, ALPHA)),
        zero_angle=float(360 * np.mean(signs == 0)),
        zero_angle_predicted=float(180 - between),
        best_linear=min(best_linear(np.where(signs == 0, label, signs)) for label in (1.0, -1.0)),
    )


def best_linear(signs: Floats) -> float:
    """Return the least share of directions that a half-plane decides otherwise than `signs` (n,) on a circle."""
    n = len(signs)
    turns = np.concatenate([[0.0], np.cumsum(np.concatenate([signs, signs]))])
    inside = turns[n // 2 : n // 2 + n] - turns[:n]  # sum of the signs over a half circle from every direction
    total = float(signs.sum())
    agree = (inside - (total - inside)).max()  # right minus wrong
    return float((np.count_nonzero(signs) - agree) / 2 / n)


def claims(found: Evidence) -> list[Claim]:
    """Compare both boundaries with Appendix D.1."""
    return [
        claim(
            "leaky-linear",
            "Leaky ReLU: the decision boundary is linear (bend in degrees)",
            "Appendix D.1, Figure 5(a); Theorem 5.1",
            expected=near(0, 1e-9),
            measured=found.leaky_bend,
        ),
        claim(
            "relu-zero",
            "ReLU: the output is 0 in a sector (opening angle in degrees; 180 minus the angle of w and u)",
            "Appendix D.1, Figure 5(b)",
            expected=near(found.zero_angle_predicted, 0.01),
            measured=found.zero_angle,
        ),
        claim(
            "relu-not-linear",
            "ReLU: the boundary is not linear, whichever label 0 gets (directions that the best line gets wrong)",
            "Appendix D.1, Figure 5(b)",
            expected=more_than(0),
            measured=found.best_linear,
        ),
        finding("slope", "Slope of the leaky ReLU network", "not printed", measured=ALPHA),
    ]


def draw(found: Evidence) -> Drawing:
    """Draw the regions of both networks with their neurons."""
    figure, axes = new_figure(2, 1, aspect=0.9, extra_height=0.3)
    leaky, relu = found.leaky, found.relu
    left = draw_regions(axes[0], leaky.polygons, leaky.bands, leaky.segments[0], WINDOW)
    shades = [tint(PALETTE.negative), "#FFFFFF", tint(PALETTE.positive)]
    edges = [segment for level in relu.segments for segment in level]
    draw_regions(axes[1], relu.polygons, relu.bands, edges, WINDOW, colors=shades)
    for k, name in enumerate(("leaky ReLU", "ReLU")):
        panel_label(axes[k], k, name)
        for vector, sign, label in ((H[0], 1, "$w$"), (H[1], -1, "$u$")):
            arrow = {"arrowstyle": "-|>", "color": PALETTE.sign(sign), "lw": 1.2, "shrinkA": 0, "shrinkB": 0}
            axes[k].annotate("", vector, (0, 0), arrowprops=arrow, zorder=4)
            axes[k].annotate(label, vector, xytext=(3, 3), textcoords="offset points", color=PALETTE.sign(sign))
    zero = Patch(facecolor="white", edgecolor=PALETTE.muted, linewidth=0.6, label="$N(x)=0$")
    figure_legend(figure, [*left.handles, zero], columns=4)
    return figure


ORIGIN: dict[str, Origin] = {"two neurons": "stated", "directions": "assumed", "slope": "assumed"}

FIGURE = Figure(
    id="sarussi2021-fig5",
    caption=(
        "Decision regions of a network of two neurons with leaky ReLU (a) and with ReLU (b); in the white sector the "
        "output of the ReLU network is 0, and whatever label that gets, its boundary is not linear."
    ),
    origin=ORIGIN,
    evidence=evidence,
    claims=claims,
    draw=draw,
)

"""Figure 5: two-neuron networks, leaky ReLU (linear boundary) against ReLU (not; its output is 0 in a sector)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from matplotlib.patches import Patch

from dynamics_cli import kit
from dynamics_cli.measures.linear_pieces import LevelSets, bend, boundary_directions, level_sets, two_layer_pieces
from dynamics_cli.measures.two_layer import outputs
from dynamics_cli.plotting.panels.inputs import draw_regions, tint

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
    signs: kit.Floats
    """(DIRECTIONS,) signs of the ReLU network's outputs around the circle."""


def evidence(runs: kit.Runs) -> Evidence:
    """Cut the plane at the kinks of both networks."""
    pieces = two_layer_pieces(H, A)
    angles = (np.arange(DIRECTIONS) + 0.5) * 2 * np.pi / DIRECTIONS
    return Evidence(
        leaky=level_sets(pieces, ALPHA, WINDOW),
        relu=level_sets(pieces, 0.0, WINDOW, (-FINE, FINE)),
        signs=np.sign(outputs(np.stack([np.cos(angles), np.sin(angles)], axis=1), H, A, 0.0)),
    )


def best_linear(signs: kit.Floats) -> float:
    """Return the least share of directions that a half-plane decides otherwise than `signs` (n,) on a circle."""
    n = len(signs)
    turns = np.concatenate([[0.0], np.cumsum(np.concatenate([signs, signs]))])
    inside = turns[n // 2 : n // 2 + n] - turns[:n]  # sum of the signs over a half circle from every direction
    total = float(signs.sum())
    agree = (inside - (total - inside)).max()  # right minus wrong
    return float((np.count_nonzero(signs) - agree) / 2 / n)


def claims(e: Evidence) -> list[kit.Claim]:
    """Compare both boundaries with Appendix D.1."""
    between = float(np.degrees(np.arccos(H[0] @ H[1] / np.linalg.norm(H[0]) / np.linalg.norm(H[1]))))
    zero = e.signs == 0
    least = min(best_linear(np.where(zero, label, e.signs)) for label in (1.0, -1.0))
    return [
        kit.theory("leaky-linear", "Leaky ReLU: the decision boundary is linear (bend in degrees)",
                  "Appendix D.1, Figure 5(a); Theorem 5.1",
                  kit.near(0, 1e-9), bend(boundary_directions(H, A, ALPHA))),
        kit.theory("relu-zero",
                  "ReLU: the output is 0 in a sector (opening angle in degrees; 180 minus the angle of w and u)",
                  "Appendix D.1, Figure 5(b)", kit.near(180 - between, 0.01), float(360 * np.mean(zero))),
        kit.theory("relu-not-linear",
                  "ReLU: the boundary is not linear, whichever label 0 gets (directions that the best line gets wrong)",
                  "Appendix D.1, Figure 5(b)", kit.more_than(0), least),
        kit.finding("slope", "Slope of the leaky ReLU network", "not printed", ALPHA),
    ]  # fmt: skip


def draw(e: Evidence) -> kit.Drawing:
    """Draw the regions of both networks with their neurons."""
    figure, axes = kit.new_figure(2, 1, aspect=0.9, extra_height=0.3)
    left = draw_regions(axes[0], e.leaky.polygons, e.leaky.bands, e.leaky.segments[0], WINDOW)
    shades = [tint(kit.PALETTE.negative), "#FFFFFF", tint(kit.PALETTE.positive)]
    edges = [segment for level in e.relu.segments for segment in level]
    draw_regions(axes[1], e.relu.polygons, e.relu.bands, edges, WINDOW, colors=shades)
    for k, name in enumerate(("leaky ReLU", "ReLU")):
        kit.panel_label(axes[k], k, name)
        for vector, sign, label in ((H[0], 1, "$w$"), (H[1], -1, "$u$")):
            color = kit.PALETTE.sign(sign)
            arrow = {"arrowstyle": "-|>", "color": color, "lw": 1.2, "shrinkA": 0, "shrinkB": 0}
            axes[k].annotate("", vector, (0, 0), arrowprops=arrow, zorder=4)
            axes[k].annotate(label, vector, xytext=(3, 3), textcoords="offset points", color=color)
    zero = Patch(facecolor="white", edgecolor=kit.PALETTE.muted, linewidth=0.6, label="$N(x)=0$")
    kit.figure_legend(figure, [*left.handles, zero], columns=4)
    return figure


FIGURE = kit.Figure(
    id="sarussi2021-fig5",
    caption=(
        "Decision regions of a network of two neurons with leaky ReLU (a) and with ReLU (b); in the white sector the "
        "output of the ReLU network is 0, and whatever label that gets, its boundary is not linear."
    ),
    origin={"two neurons": "stated", "directions": "assumed", "slope": "assumed"},
    evidence=evidence, claims=claims, draw=draw,
)  # fmt: skip

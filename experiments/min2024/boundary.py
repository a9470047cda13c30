"""Figures 18 and 19: the flow around the boundary of one data point, which catches it or is crossed once."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dynamics_cli import kit

from .sketches import ASSUMED, arrow, half_plane, plain
from .theory.caratheodory import boundary_rates
from .theory.cones import correlation, x_a

Y: kit.Floats = np.array([-1.0, 1.0])
CAUGHT: kit.Floats = np.array([[1.0, 0.0], [0.5, 0.8]])
"""A negative and a positive point of positive correlation: Assumption 1 is violated."""
CROSSED: kit.Floats = np.array([[1.0, 0.0], [-0.5, 0.8]])
"""With negative correlation it holds."""
STEP, STEPS = 0.01, 400
START: kit.Floats = np.array([0.35, 0.45])
"""A positive neuron that is active on both points."""
OVER = {"boxstyle": "square,pad=0.1", "fc": "white", "ec": "none", "alpha": 0.85}
"""Box of a text on the arrows of the flow."""


@dataclass(frozen=True)
class Evidence:
    """The two sides of the boundary `<x_1, w> = 0`, and a path of small steps."""

    x: kit.Floats
    off: float
    """Rate of `<x_1, w>` on the inactive side."""
    on: float
    """On the active side."""
    path: kit.Floats
    """(T, 2)"""


def evidence(x: kit.Floats) -> Evidence:
    """Follow a positive neuron by small steps of w' = x_a(w) (the flow of W at fixed small norm of v)."""
    off, on = boundary_rates(x, Y, np.array([0.0, 1.0]), 0)
    path = [START]
    for _ in range(STEPS):
        path.append(path[-1] + STEP * x_a(x, Y, path[-1]))
    return Evidence(x, off, on, np.array(path))


def claims(e: Evidence, source: str, *, caught: bool) -> list[kit.Claim]:
    """Compare with Appendix E.2; `caught` where the paper's boundary catches the flow."""
    sides = e.path @ e.x[0] > 0
    crossings = np.count_nonzero(sides[1:] != sides[:-1])
    sign = kit.exactly(-1.0 if caught else 1.0)
    return [
        kit.theory("sides",
                   "The flow on both sides points " + ("towards the boundary" if caught else "through it, one way"),
                  source, sign, np.sign(e.off * e.on)),
        kit.theory("assumption", "Assumption 1 " + ("is violated" if caught else "holds") + " (sign of mu)",
                   source, sign, np.sign(correlation(e.x, Y).mu)),
        kit.theory("zeno", "The path is caught: small steps cross the boundary again and again (crossings)",
                   source, kit.more_than(10), crossings)
        if caught else
        kit.theory("once", "The path leaves the boundary at once and crosses it once",
                   source, kit.exactly(1), crossings),
        kit.finding("off", "Rate on the inactive side", source, e.off),
        kit.finding("on", "Rate on the active side", source, e.on),
    ]  # fmt: skip


@kit.styled
def draw(e: Evidence) -> kit.Drawing:
    """Draw the data, the boundary, the flow on its two sides and the path."""
    figure, (axes,) = kit.new_figure(1, width=3.6, aspect=0.82)
    plain(axes, 1.4, (-0.55, 1.75))
    half_plane(axes, e.x[0], 1.8)
    for point, label, name in zip(kit.directions(e.x), Y, ("$x_1$ ($y=-1$)", "$x_2$ ($y=+1$)"), strict=True):
        arrow(axes, 0.9 * point, kit.PALETTE.sign(label))
        place = 0.9 * point + [0.0, -0.17 if point[1] < 0.1 else 0.04]
        where = "center" if point[1] < 0.1 else "left" if point[0] >= 0 else "right"
        axes.text(float(place[0]), float(place[1]), name, ha=where, va="bottom", fontsize=7.5, bbox=OVER, zorder=6)
    for w in np.stack(np.meshgrid(np.linspace(-1.3, 1.3, 10), np.linspace(-0.45, 1.65, 8)), axis=-1).reshape(-1, 2):
        force = x_a(e.x, Y, w)
        if force.any():
            arrow(axes, w + 0.11 * force, kit.PALETTE.muted, start=w - 0.11 * force, lw=0.6, head=5)
        else:
            axes.plot(*w, ".", ms=2, color=kit.PALETTE.muted)
    kept = (np.abs(e.path) < 1.7).all(axis=1)
    axes.plot(*e.path[kept].T, color=kit.PALETTE.measured, lw=1.2, zorder=3)
    axes.plot(*e.path[0], "o", color=kit.PALETTE.measured, mec="white", zorder=5)
    axes.text(0.03, -0.53, r"$\langle x_1, w\rangle = 0$", fontsize=7.5, color=kit.PALETTE.unsigned, bbox=OVER)
    return figure


def _figure(number: int, x: kit.Floats, *, caught: bool, caption: str) -> kit.Figure:
    """Return a figure of the flow around the boundary of `x[0]` for the points `x (2, 2)` of labels `Y`."""
    return kit.Figure(
        id=f"min2024-fig{number}", caption=caption, origin=ASSUMED, evidence=lambda _: evidence(x),
        claims=lambda e: claims(e, f"Appendix E.2, Figure {number}", caught=caught),
        draw=draw,
    )  # fmt: skip


FIGURES = {
    figure.id: figure
    for figure in (
        _figure(
            18,
            CAUGHT,
            caught=True,
            caption=(
                "A negative and a positive point of positive correlation. The flow of a positive neuron points to the"
                " boundary of x1 from both sides: no Caratheodory solution goes on. Blue: small steps, which chatter "
                "along it."
            ),
        ),
        _figure(
            19,
            CROSSED,
            caught=False,
            caption=(
                "As Figure 18 with points of negative correlation: the flow points the same way on both sides of the "
                "boundary of x1, so the neuron crosses it once. Blue: small steps."
            ),
        ),
    )
}

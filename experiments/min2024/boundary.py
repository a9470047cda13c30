"""Figures 18 and 19: the flow around the boundary of one data point."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from matplotlib.figure import Figure as Drawing

from dynamics_cli.measures.arrays import Floats
from dynamics_cli.measures.correlation import correlation
from dynamics_cli.measures.neurons import directions
from dynamics_cli.plotting.style import PALETTE, new_figure, styled
from dynamics_cli.reproduction.claims import Claim, claim, exactly, finding
from dynamics_cli.reproduction.figure import Figure
from dynamics_cli.theory.caratheodory import boundary_rates

from .sketches import ASSUMED, arrow, half_plane, plain

Y: Floats = np.array([-1.0, 1.0])
CAUGHT: Floats = np.array([[1.0, 0.0], [0.5, 0.8]])
"""A negative and a positive point of positive correlation: Assumption 1 is violated."""
CROSSED: Floats = np.array([[1.0, 0.0], [-0.5, 0.8]])
"""With negative correlation it holds."""
STEP, STEPS = 0.01, 400
START: Floats = np.array([0.35, 0.45])
"""A positive neuron that is active on both points."""


@dataclass(frozen=True)
class Evidence:
    """The two sides of the boundary `<x_1, w> = 0`, and a path of small steps."""

    x: Floats
    mu: float
    off: float
    """Rate of `<x_1, w>` on the inactive side."""
    on: float
    """On the active side."""
    path: Floats
    """(T, 2)"""
    crossings: int
    """How often the path crosses the boundary."""


def measure(x: Floats) -> Evidence:
    """Follow a positive neuron by small steps of w' = x_a(w) (the flow of W at fixed small norm of v)."""
    off, on = boundary_rates(x, Y, np.array([0.0, 1.0]), 0)
    path = [START]
    for _ in range(STEPS):
        active = x @ path[-1] > 0
        path.append(path[-1] + STEP * (Y[active] @ x[active]))
    track = np.array(path)
    sides = track @ x[0] > 0
    return Evidence(x, correlation(x, Y).mu, off, on, track, int(np.count_nonzero(sides[1:] != sides[:-1])))


def boundary_figure(
    number: int, x: Floats, *, caption: str, caught: bool, crossing: Callable[[int, str], Claim]
) -> Figure:
    """Return a figure of the flow around the boundary of `x[0]`.

    Args:
        number: of the figure in the paper.
        x: (2, 2) the points, of labels `Y`.
        caption: the paper's, in our words.
        caught: whether the boundary catches the flow.
        crossing: makes the claim about the number of crossings of the path, given that number and the source.

    """
    source = f"Appendix E.2, Figure {number}"
    return Figure(
        id=f"min2024-fig{number}",
        caption=caption,
        origin=ASSUMED,
        evidence=lambda _: measure(x),
        claims=lambda found: [
            *_rate_claims(found, source, caught=caught),
            crossing(found.crossings, source),
            finding("off", "Rate on the inactive side", source, measured=found.off),
            finding("on", "Rate on the active side", source, measured=found.on),
        ],
        draw=draw_boundary,
    )


def _rate_claims(found: Evidence, source: str, *, caught: bool) -> list[Claim]:
    """Check the signs on either side of the boundary."""
    return [
        claim(
            "sides",
            "The flow on both sides points " + ("towards the boundary" if caught else "through it, one way"),
            source,
            expected=exactly(-1.0 if caught else 1.0),
            measured=float(np.sign(found.off * found.on)),
        ),
        claim(
            "assumption",
            "Assumption 1 " + ("is violated" if caught else "holds") + " (sign of mu)",
            source,
            expected=exactly(-1.0 if caught else 1.0),
            measured=float(np.sign(found.mu)),
        ),
    ]


@styled
def draw_boundary(found: Evidence) -> Drawing:
    """Draw the data, the boundary, the flow on its two sides and the path."""
    figure, (axes,) = new_figure(1, width=3.2, aspect=1.0)
    plain(axes, 1.8)
    half_plane(axes, found.x[0], 1.8)
    for point, label, name in zip(directions(found.x), Y, ("$x_1$ ($y=-1$)", "$x_2$ ($y=+1$)"), strict=True):
        arrow(axes, 0.9 * point, PALETTE.positive if label > 0 else PALETTE.negative)
        place = 0.9 * point + [0.0, -0.15 if point[1] < 0.1 else 0.06]
        where = "center" if point[1] < 0.1 else "left" if point[0] >= 0 else "right"
        axes.text(float(place[0]), float(place[1]), name, ha=where, fontsize=7.5)
    for side in (-0.7, -0.35, 0.35, 0.7):
        for height in (-0.9, 1.0, 1.45):
            w = np.array([side, height])
            active = found.x @ w > 0
            force = Y[active] @ found.x[active]
            if force.any():
                arrow(axes, w + 0.2 * force, PALETTE.muted, start=w, lw=0.9)
    kept = (np.abs(found.path) < 1.75).all(axis=1)
    axes.plot(*found.path[kept].T, color=PALETTE.measured, lw=1.2, zorder=3)
    axes.plot(*found.path[0], "o", color=PALETTE.measured, mec="white", zorder=5)
    axes.text(0.05, -1.65, r"$\langle x_1, w\rangle = 0$", fontsize=7.5, color=PALETTE.unsigned)
    return figure

"""Figures 20 and 21: the single neuron of Appendices E.3 and E.4."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes

from dynamics_cli.measures.arrays import Floats
from dynamics_cli.measures.neurons import directions
from dynamics_cli.plotting.style import PALETTE
from dynamics_cli.reproduction.figure import Origin
from dynamics_cli.theory.caratheodory import SingleNeuron

from .sketches import arrow

STATED: dict[str, Origin] = {"data": "stated", "initialisation": "stated", "times": "assumed"}
X: Floats = np.array([1.0, 0.0])
W: Floats = np.array([0.0, 1.0])
V = 1.0
"""One point x = (1, 0), one neuron w(0) = (0, 1), v(0) = 1 (stated)."""

SHADE = "#ECECEC"
"""Of S_dead."""
OVER = {"boxstyle": "square,pad=0.05", "fc": SHADE, "ec": "none"}
"""Box behind a text in S_dead that hides the dots there."""


def neuron(y: float, at_zero: float = 0.0) -> SingleNeuron:
    """Return the neuron for a label and a subgradient sigma'(0)."""
    return SingleNeuron(X, y, at_zero)


def draw_scene(axes: Axes, one: SingleNeuron) -> None:
    """Draw S_dead, the data point, the initial neuron, and the direction of w' on a grid for v = 1."""
    axes.axvspan(-1.2, 0.0, color=SHADE, lw=0, zorder=0)
    axes.text(-0.5, -0.19, r"$S_\mathrm{dead}$", ha="center", va="center", color=PALETTE.unsigned, bbox=OVER)
    axes.axvline(0.0, color=PALETTE.muted, lw=0.8, ls="--", zorder=1)
    grid = np.stack(np.meshgrid(np.linspace(-1.0, 1.2, 12), np.linspace(-0.3, 1.5, 9)), axis=-1).reshape(-1, 2)
    turn, _ = one.field(grid, np.ones(len(grid)))
    moving = (turn != 0).any(axis=1)
    units = directions(turn[moving])
    axes.quiver(*grid[moving].T, *units.T, color=PALETTE.muted, angles="xy", scale=22, width=0.004, zorder=2)
    axes.plot(*grid[~moving].T, ls="none", marker=".", ms=2, color=PALETTE.muted, zorder=2)
    arrow(axes, X, PALETTE.positive if one.y > 0 else PALETTE.negative, "$x$")
    arrow(axes, W, PALETTE.theory)
    axes.text(-0.06, 1.08, "$w(0)$", ha="right", color=PALETTE.theory, bbox=OVER, zorder=3)
    axes.set(xlim=(-1.2, 1.35), ylim=(-0.4, 1.6), xlabel="$w_1$", ylabel="$w_2$")
    axes.set_aspect("equal")

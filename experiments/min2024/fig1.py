"""Figure 1: the direction into which a neuron turns.

`dyn reproduce min2024-fig1`. About 1 s.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from matplotlib.figure import Figure as Drawing

from dynamics_cli.measures.arrays import Floats
from dynamics_cli.plotting.style import PALETTE, new_figure, styled
from dynamics_cli.reproduction.claims import Claim, at_most, claim, exactly, more_than
from dynamics_cli.reproduction.figure import Figure, Runs
from dynamics_cli.theory.sphere_flow import sphere_flow

from .sketches import ASSUMED, arrow, half_plane, plain

X: Floats = np.array([[1.0, 0.55], [-0.35, 0.75], [-0.85, -0.75]])
Y: Floats = np.array([1.0, -1.0, -1.0])
W: Floats = np.array([0.28, 0.96])
STEP = 1e-6


@dataclass(frozen=True)
class Evidence:
    """The vectors of the figure."""

    active: list[int]
    x_a: Floats
    """`x_a(w)` (Eq. 5)."""
    predicted: Floats
    """`P_w x_a(w)` (Eq. 4)."""
    measured: Floats
    """The derivative of the direction along the integrated flow."""
    turn: float
    """Change of the cosine with x_a, per unit of time."""


def evidence(_: Runs) -> Evidence:
    """Integrate the directional flow for a moment."""
    w = W / np.linalg.norm(W)
    active = X @ w > 0
    x_a = Y[active] @ X[active]
    path = sphere_flow(X, Y, w[None], [1.0], [0.0, STEP], loss_factor=len(X)).directions[:, 0]
    turn = (path[1] - path[0]) @ x_a / (STEP * np.linalg.norm(x_a))
    predicted = x_a - (x_a @ w) * w
    return Evidence(np.flatnonzero(active).tolist(), x_a, predicted, (path[1] - path[0]) / STEP, float(turn))


def claims(found: Evidence) -> list[Claim]:
    """Compare with the caption and Eq. 4."""
    error = float(np.linalg.norm(found.measured - found.predicted) / np.linalg.norm(found.predicted))
    return [
        claim(
            "active",
            "x1 and x2 lie inside the half-space of w (active points)",
            "Figure 1",
            expected=exactly(2),
            measured=len(found.active),
        ),
        claim(
            "sum",
            "so x_a(w) = x1 - x2 (largest deviation)",
            "Figure 1, Eq. 5",
            expected=at_most(1e-12),
            measured=float(np.abs(found.x_a - (X[0] - X[1])).max()),
        ),
        claim(
            "towards",
            "The flow pushes w towards x_a (change of their cosine)",
            "Figure 1",
            expected=more_than(0.0),
            measured=found.turn,
        ),
        claim(
            "rate",
            "The direction moves by P_w x_a(w) (relative deviation of the integrated flow)",
            "Eq. 4",
            expected=at_most(1e-4),
            measured=error,
        ),
    ]


@styled
def draw(found: Evidence) -> Drawing:
    """Draw the data, the neuron, x_a and the motion."""
    figure, (axes,) = new_figure(1, width=3.0, aspect=1.0)
    plain(axes, 1.75)
    half_plane(axes, W, 1.75)
    for k, point in enumerate(X):
        arrow(axes, point, PALETTE.positive if Y[k] > 0 else PALETTE.negative, f"$x_{k + 1}$")
    arrow(axes, found.x_a, PALETTE.rank, "$x_a(w_j)$")
    w = W / np.linalg.norm(W)
    arrow(axes, w, PALETTE.theory, "$w_j$")
    axes.plot([w[0], found.x_a[0]], [w[1], found.x_a[1]], alpha=0)
    arrow(axes, w + 0.45 * found.predicted, PALETTE.measured, "", start=w, lw=1.8)
    name = w + 0.45 * found.predicted + 0.12
    axes.text(float(name[0]), float(name[1]), r"$\mathcal{P}_{w_j}x_a(w_j)$", color=PALETTE.measured)
    return figure


FIGURE = Figure(
    id="min2024-fig1",
    caption=(
        "Point x1 has label +1, x2 and x3 have -1. x1 and x2 lie in the half-space of w (shaded), so x_a = x1"
        " - x2, and the neuron, whose output weight is positive, turns towards it."
    ),
    origin=ASSUMED,
    evidence=evidence,
    claims=claims,
    draw=draw,
)

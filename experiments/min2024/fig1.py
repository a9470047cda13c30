"""Figure 1: the direction into which a neuron turns."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dynamics_cli import kit
from dynamics_cli.theory.sphere_flow import sphere_flow

from .sketches import ASSUMED, arrow, half_plane, plain
from .theory.cones import x_a

X: kit.Floats = np.array([[1.0, 0.55], [-0.35, 0.75], [-0.85, -0.75]])
Y: kit.Floats = np.array([1.0, -1.0, -1.0])
W: kit.Floats = np.array([0.28, 0.96])
"""Drawn with length 1."""
STEP = 1e-6


@dataclass(frozen=True)
class Evidence:
    """The vectors of the figure."""

    w: kit.Floats
    """The neuron, of length 1."""
    x_a: kit.Floats
    """`x_a(w)` (Eq. 5)."""
    predicted: kit.Floats
    """`P_w x_a(w)` (Eq. 4)."""
    measured: kit.Floats
    """The change of the direction along the integrated flow during `STEP`."""


def evidence(_: kit.Runs) -> Evidence:
    """Integrate the directional flow for a moment."""
    w = W / np.linalg.norm(W)
    force = x_a(X, Y, w)
    path = sphere_flow(X, Y, w[None], [1.0], [0.0, STEP], loss_factor=len(X)).directions[:, 0]
    return Evidence(w, force, force - (force @ w) * w, path[1] - path[0])


def claims(e: Evidence) -> list[kit.Claim]:
    """Compare with the caption and Eq. 4."""
    turn = e.measured @ e.x_a / (STEP * np.linalg.norm(e.x_a))
    error = np.linalg.norm(e.measured / STEP - e.predicted) / np.linalg.norm(e.predicted)
    return [
        kit.theory("active", "x1 and x2 lie inside the half-space of w (active points)",
                   "Figure 1", kit.exactly(2), np.count_nonzero(X @ e.w > 0)),
        kit.theory("sum", "so x_a(w) = x1 - x2 (largest deviation)",
                   "Figure 1, Eq. 5", kit.at_most(1e-12), np.abs(e.x_a - (X[0] - X[1])).max()),
        kit.theory("towards", "The flow pushes w towards x_a (change of their cosine)",
                   "Figure 1", kit.more_than(0.0), turn),
        kit.theory("rate", "The direction moves by P_w x_a(w) (relative deviation of the integrated flow)",
                   "Eq. 4", kit.at_most(1e-4), error),
    ]  # fmt: skip


@kit.styled
def draw(e: Evidence) -> kit.Drawing:
    """Draw the data, the neuron, x_a and the motion."""
    figure, (axes,) = kit.new_figure(1, width=3.2, aspect=0.72)
    plain(axes, 1.75, (-1.0, 1.45))
    half_plane(axes, W, 1.75)
    for k, point in enumerate(X):
        arrow(axes, point, kit.PALETTE.sign(Y[k]), f"$x_{k + 1}$")
    arrow(axes, e.x_a, kit.PALETTE.rank, "$x_a(w_j)$")
    arrow(axes, e.w, kit.PALETTE.theory, "$w_j$")
    tip = e.w + 0.45 * e.predicted
    arrow(axes, tip, kit.PALETTE.measured, start=e.w, lw=1.8)
    axes.text(tip[0] + 0.1, tip[1] + 0.1, r"$\mathcal{P}_{w_j}x_a(w_j)$", color=kit.PALETTE.measured)
    axes.text(-1.65, 1.25, r"$\langle w_j, x\rangle > 0$", fontsize=8, color=kit.PALETTE.unsigned)
    return figure


FIGURE = kit.Figure(
    id="min2024-fig1",
    caption=(
        "Point x1 has label +1, x2 and x3 have -1. x1 and x2 lie in the half-space of w (shaded), so x_a = x1"
        " - x2, and the neuron, whose output weight is positive, turns towards it."
    ),
    origin=ASSUMED, evidence=evidence, claims=claims, draw=draw,
)  # fmt: skip

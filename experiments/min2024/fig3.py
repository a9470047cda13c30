"""Figure 3: at the boundary of a point the flow points inward."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dynamics_cli import kit

from .sketches import ASSUMED, TOY_X, TOY_Y, arrow, half_plane, plain
from .theory.cones import correlation, x_a

SAMPLE = 2


@dataclass(frozen=True)
class Evidence:
    """Rates at the boundaries of all points."""

    rates: kit.Floats
    """(b,) `d/dt <w/||w||, x_i y_i/||x_i||>` at `<x_i, w> = 0`, for all i and sides on which w is not dead."""
    w: kit.Floats
    x_a: kit.Floats
    """Of the neuron drawn, at the boundary of `SAMPLE`."""


def evidence(_: kit.Runs) -> Evidence:
    """Evaluate Eq. 4 at every boundary."""
    rates, drawn = [], np.zeros((2, 2))
    for i, point in enumerate(TOY_X):
        unit = point / np.linalg.norm(point)
        others = np.arange(len(TOY_X)) != i
        for side in (1, -1):
            w = side * np.array([-unit[1], unit[0]])
            if not (TOY_X[others] @ w > 0).any():
                continue
            force = x_a(TOY_X[others], TOY_Y[others], w)
            rates.append(float(TOY_Y[i] * unit @ (force - (force @ w) * w)))
            if i == SAMPLE and side == 1:
                drawn = np.stack([w, force])
    return Evidence(np.array(rates), drawn[0], drawn[1])


def claims(e: Evidence) -> list[kit.Claim]:
    """Compare with Eq. 7."""
    floor = correlation(TOY_X, TOY_Y).mu ** 1.5 * float(np.linalg.norm(TOY_X, axis=1).min())
    return [
        kit.theory("inward",
                   "At every boundary the flow of a live positive neuron points inward (boundaries where not)",
                   "Eq. 7, Figure 3", kit.exactly(0), np.count_nonzero(e.rates <= 0)),
        kit.theory("floor", "by at least mu^(3/2) X_min (least rate)",
                   "Lemmas 5 and 11", kit.at_least(floor), e.rates.min()),
        kit.finding("boundaries", "Live sides of boundaries", "Figure 3", len(e.rates)),
    ]  # fmt: skip


@kit.styled
def draw(e: Evidence) -> kit.Drawing:
    """Draw one neuron at a boundary."""
    figure, (axes,) = kit.new_figure(1, width=3.2, aspect=0.72)
    plain(axes, 1.6, (-0.85, 1.45))
    point = TOY_X[SAMPLE] / np.linalg.norm(TOY_X[SAMPLE])
    half_plane(axes, point, 1.7)
    force = e.x_a / np.linalg.norm(e.x_a)
    arrow(axes, 1.25 * point, kit.PALETTE.positive, "$x_i y_i$")
    arrow(axes, e.w, kit.PALETTE.theory)
    beside, tip = e.w - 0.16 * point, e.w + 0.6 * (force - (force @ e.w) * e.w)
    axes.text(beside[0], beside[1], "$w_j$", color=kit.PALETTE.theory, ha="center", va="center", fontsize=8.5)
    arrow(axes, 1.1 * force, kit.PALETTE.rank, "$x_a(w_j)$")
    arrow(axes, tip, kit.PALETTE.measured, start=e.w, lw=1.8)
    corner, name = tip + 0.08, r"$\mathcal{P}_{w_j}x_a$"
    axes.text(corner[0], corner[1], name, color=kit.PALETTE.measured, va="center", fontsize=8.5)
    return figure


FIGURE = kit.Figure(
    id="min2024-fig3",
    caption=(
        "A positive neuron orthogonal to x_i (dashed line): under Assumption 1 its x_a has a positive product"
        " with x_i y_i, so it moves into the shaded half-space. Data of Figure 6; the lengths of x_i and x_a "
        "are not to scale."
    ),
    origin=ASSUMED, evidence=evidence, claims=claims, draw=draw,
)  # fmt: skip

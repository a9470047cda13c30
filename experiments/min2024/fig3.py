"""Figure 3: at the boundary of a point the flow points inward.

`dyn reproduce min2024-fig3`. About 1 s.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from matplotlib.figure import Figure as Drawing

from dynamics_cli.measures.arrays import Floats
from dynamics_cli.measures.correlation import correlation
from dynamics_cli.plotting.style import PALETTE, new_figure, styled
from dynamics_cli.reproduction.claims import Claim, at_least, claim, exactly, finding
from dynamics_cli.reproduction.figure import Figure, Runs

from .sketches import ASSUMED, TOY_X, TOY_Y, arrow, half_plane, plain

SAMPLE = 2


@dataclass(frozen=True)
class Evidence:
    """Rates at the boundaries of all points."""

    rates: Floats
    """(b,) `d/dt <w/||w||, x_i y_i/||x_i||>` at `<x_i, w> = 0`, for all i and sides on which w is not dead."""
    floor: float
    """`mu^(3/2) X_min`, the least that the proof gives (Lemmas 5 and 11)."""
    w: Floats
    x_a: Floats
    """Of the neuron drawn, at the boundary of `SAMPLE`."""


def evidence(_: Runs) -> Evidence:
    """Evaluate Eq. 4 at every boundary."""
    rates, drawn = [], np.zeros((2, 2))
    for i, point in enumerate(TOY_X):
        unit = point / np.linalg.norm(point)
        for side in (1, -1):
            w = side * np.array([-unit[1], unit[0]])
            active = np.delete(np.arange(6), i)
            active = active[TOY_X[active] @ w > 0]
            if not len(active):
                continue
            x_a = TOY_Y[active] @ TOY_X[active]
            rates.append(float(TOY_Y[i] * unit @ (x_a - (x_a @ w) * w)))
            if i == SAMPLE and side == 1:
                drawn = np.stack([w, x_a])
    floor = correlation(TOY_X, TOY_Y).mu ** 1.5 * float(np.linalg.norm(TOY_X, axis=1).min())
    return Evidence(np.array(rates), floor, drawn[0], drawn[1])


def claims(found: Evidence) -> list[Claim]:
    """Compare with Eq. 7."""
    return [
        claim(
            "inward",
            "At every boundary the flow of a live positive neuron points inward (boundaries where not)",
            "Eq. 7, Figure 3",
            expected=exactly(0),
            measured=int(np.count_nonzero(found.rates <= 0)),
        ),
        claim(
            "floor",
            "by at least mu^(3/2) X_min (least rate)",
            "Lemmas 5 and 11",
            expected=at_least(found.floor),
            measured=found.rates.min(),
        ),
        finding("boundaries", "Live sides of boundaries", "Figure 3", measured=len(found.rates)),
    ]


@styled
def draw(found: Evidence) -> Drawing:
    """Draw one neuron at a boundary."""
    figure, (axes,) = new_figure(1, width=3.0, aspect=1.0)
    plain(axes, 1.7)
    point = TOY_X[SAMPLE] / np.linalg.norm(TOY_X[SAMPLE])
    half_plane(axes, point, 1.7)
    x_a = found.x_a / np.linalg.norm(found.x_a)
    arrow(axes, 1.25 * point, PALETTE.positive, "$x_i y_i$")
    arrow(axes, found.w, PALETTE.theory)
    beside, tip = found.w - 0.16 * point, found.w + 0.6 * (x_a - (x_a @ found.w) * found.w)
    axes.text(beside[0], beside[1], "$w_j$", color=PALETTE.theory, ha="center", va="center", fontsize=8.5)
    arrow(axes, 1.1 * x_a, PALETTE.rank, "$x_a(w_j)$")
    arrow(axes, tip, PALETTE.measured, start=found.w, lw=1.8)
    axes.text(
        tip[0] + 0.08, tip[1] + 0.08, r"$\mathcal{P}_{w_j}x_a$", color=PALETTE.measured, va="center", fontsize=8.5
    )
    return figure


FIGURE = Figure(
    id="min2024-fig3",
    caption=(
        "A positive neuron orthogonal to x_i (dashed line): under Assumption 1 its x_a has a positive product"
        " with x_i y_i, so it moves into the shaded half-space. Data of Figure 6; the lengths of x_i and x_a "
        "are not to scale."
    ),
    origin=ASSUMED,
    evidence=evidence,
    claims=claims,
    draw=draw,
)

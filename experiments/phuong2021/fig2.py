"""Figure 2: a four-layer residual network on the data of Figure 1.

`dyn reproduce phuong2021-fig2`. About 6 s.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from matplotlib.figure import Figure as Drawing
from matplotlib.lines import Line2D

from dynamics_cli.errors import InputError
from dynamics_cli.measures.arrays import Floats
from dynamics_cli.measures.neurons import cosines
from dynamics_cli.plotting.layout import figure_legend, panel_label
from dynamics_cli.plotting.style import new_figure
from dynamics_cli.reproduction.claims import Claim, claim, finding, less_than, most
from dynamics_cli.reproduction.figure import Figure, Runs

from .max_margin import (
    BLUE,
    HIGH,
    ORANGE,
    ORIGIN,
    Directions,
    Layer,
    data_claims,
    draw_correlations,
    draw_plane,
    draw_values,
    layer_claims,
    max_margin,
    measure_layer,
    two_sides,
)


@dataclass(frozen=True)
class Evidence:
    """The trained network beside the max-margin directions of its data."""

    directions: Directions
    layers: list[Layer]
    """W_1, W_2 and W_3."""
    sides: list[Floats]
    """Per layer, (p,) +1 for rows along the first main direction, -1 for the others."""
    correlations: Floats
    """(p,) cosine of each first-layer row with the closer one of w+ and w-."""
    closest: Floats
    """(p,) +1 where that is w+, -1 where it is w-."""
    loss: float


def evidence(runs: Runs) -> Evidence:
    """Measure the final network."""
    run = runs["residual"]
    if run.config.architecture.kind != "residual":
        raise InputError(f"{run.path}: this figure needs architecture.kind residual")
    directions = max_margin(run)
    start, last = ({name: value.astype(np.float64) for name, value in run.state(i).items()} for i in (0, -1))
    names = [f"weight_{k}" for k in range(1, len(last))]
    W = last["weight_1"]
    plus, minus = cosines(W, directions.plus.w), cosines(W, directions.minus.w)
    sides = [plus > minus, *(two_sides(last[name]) for name in names[1:])]
    return Evidence(
        directions=directions,
        layers=[measure_layer(last[name], start[name], side) for name, side in zip(names, sides, strict=True)],
        sides=[np.where(side, 1.0, -1.0) for side in sides],
        correlations=np.maximum(plus, minus),
        closest=np.where(plus > minus, 1.0, -1.0),
        loss=run.final_loss,
    )


def claims(found: Evidence) -> list[Claim]:
    """Compare with Section 5.2."""
    stated = [
        one
        for k, layer in enumerate(found.layers, 1)
        for one in layer_claims(layer, f"-{k}", f"W{k}", f"Section 5.2, Figure 2{'abc'[k - 1 : k]}, {'def'[k - 1 : k]}")
    ]
    return [
        *data_claims(found.directions),
        *stated,
        claim(
            "correlation",
            "First-layer rows align with the closest max-margin direction (share with correlation above 0.9)",
            "Section 5.2, Figure 2g",
            expected=most(),
            measured=float(np.mean(found.correlations > HIGH)),
        ),
        finding("median", "Median of these correlations", "Figure 2g", measured=float(np.median(found.correlations))),
        claim(
            "learnt",
            "The network learns the data (final loss)",
            "Section 5.2",
            expected=less_than(np.log(2) / 100),
            measured=found.loss,
        ),
    ]


def draw(found: Evidence) -> Drawing:
    """Draw panels a to g: spectra above, planes below, the histogram on the right."""
    columns = len(found.layers) + 1
    figure, axes = new_figure(columns, 2, width=7.2, aspect=0.86, extra_height=0.25)
    for k, layer in enumerate(found.layers):
        draw_values(axes[k], layer.values)
        panel_label(axes[k], k, f"values of $W_{k + 1}$")
        below = axes[columns + k]
        colors = [ORANGE if s > 0 else BLUE for s in found.sides[k]] if k == 0 else [BLUE] * len(layer.points)
        draw_plane(below, layer.points, colors, layer.means)
        panel_label(below, len(found.layers) + k, f"rows of $W_{k + 1}$")
    last = axes[columns - 1]
    draw_correlations(last, found.correlations, [("", ORANGE, found.closest > 0), ("", BLUE, found.closest < 0)])
    panel_label(last, 2 * len(found.layers), "correlations")
    figure.delaxes(axes[-1])
    dot = {"marker": "o", "ls": "none", "ms": 4.5}
    handles = [
        Line2D([], [], color=ORANGE, label="first layer, closest to $w_+$", **dot),  # type: ignore[arg-type]
        Line2D([], [], color=BLUE, label="first layer, closest to $w_-$; other layers", **dot),  # type: ignore[arg-type]
    ]
    figure_legend(figure, handles)
    return figure


FIGURE = Figure(
    id="phuong2021-fig2",
    title="Four-layer residual network on orthogonally separable data",
    caption=(
        "(a-c) The ten largest singular values of the weights of the first three layers after training. (d-f) Rows "
        "on the two leading right-singular directions; lines are the mean directions. (g) Correlation of each "
        "first-layer row with the closest max-margin direction; the dashed line is at 0.9."
    ),
    configs={"residual": "phuong2021/residual.yaml"},
    origin=ORIGIN,
    evidence=evidence,
    claims=claims,
    draw=draw,
)

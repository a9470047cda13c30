"""Figure 2: a four-layer residual network on the data of Figure 1.

`dyn reproduce phuong2021-fig2`. About 6 s.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from matplotlib.figure import Figure as Drawing

from dynamics_cli.errors import InputError
from dynamics_cli.measures.arrays import Floats
from dynamics_cli.plotting.layout import panel_label
from dynamics_cli.plotting.style import new_figure
from dynamics_cli.reproduction.claims import Claim
from dynamics_cli.reproduction.figure import Figure, Runs

from .max_margin import (
    ORIGIN,
    Directions,
    Layer,
    data_claims,
    end_claims,
    layer_claims,
    measure_layer,
    read_trained,
    two_sides,
)
from .panels import BLUE, draw_correlations, draw_plane, draw_values, legend_of_colors, two_colors


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
    found = read_trained(run, "weight_1")
    names = [f"weight_{k}" for k in range(1, len(found.last))]
    closer = found.plus > found.minus
    sides = [closer, *(two_sides(found.last[name]) for name in names[1:])]
    return Evidence(
        directions=found.directions,
        layers=[
            measure_layer(found.last[name], found.start[name], side) for name, side in zip(names, sides, strict=True)
        ],
        sides=[np.where(side, 1.0, -1.0) for side in sides],
        correlations=np.maximum(found.plus, found.minus),
        closest=np.where(closer, 1.0, -1.0),
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
        *end_claims(
            found.correlations,
            "First-layer rows align with the closest max-margin direction",
            "Section 5.2",
            "Figure 2g",
            found.loss,
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
        colors = two_colors(found.sides[k]) if k == 0 else [BLUE] * len(layer.points)
        draw_plane(below, layer.points, colors, layer.means)
        panel_label(below, len(found.layers) + k, f"rows of $W_{k + 1}$")
    last = axes[columns - 1]
    draw_correlations(last, found.correlations, found.closest)
    panel_label(last, 2 * len(found.layers), "correlations")
    figure.delaxes(axes[-1])
    legend_of_colors(figure, "first layer, closest to $w_+$", "first layer, closest to $w_-$; other layers")
    return figure


FIGURE = Figure(
    id="phuong2021-fig2",
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

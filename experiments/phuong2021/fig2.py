"""Figure 2: a four-layer residual network on the data of Figure 1."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from matplotlib.lines import Line2D

from dynamics_cli import kit

from . import max_margin
from .panels import GRAY, draw_correlations, draw_plane, draw_values, legend_of_colors, ray_handles, two_colors


@dataclass(frozen=True)
class Evidence:
    """The trained network beside the max-margin directions of its data."""

    directions: max_margin.Directions
    layers: list[max_margin.Layer]
    """W_1, W_2 and W_3."""
    correlations: kit.Floats
    """(p,) cosine of each first-layer row with the closer one of w+ and w-."""
    closest: kit.Floats
    """(p,) +1 where that is w+, -1 where it is w-."""
    loss: float


def evidence(runs: kit.Runs) -> Evidence:
    """Measure the final network."""
    run = runs["residual"]
    if run.config.architecture.kind != "residual":
        raise kit.InputError(f"{run.path}: this figure needs architecture.kind residual")
    trained = max_margin.read_trained(run, "weight_1")
    start, last = ([state[f"weight_{k}"] for k in range(1, len(state))] for state in (trained.start, trained.last))
    closer = trained.plus > trained.minus
    sides = [closer, *(max_margin.two_sides(W) for W in last[1:])]
    return Evidence(
        directions=trained.directions,
        layers=[max_margin.measure_layer(*one) for one in zip(last, start, sides, strict=True)],
        correlations=np.maximum(trained.plus, trained.minus),
        closest=np.where(closer, 1.0, -1.0),
        loss=run.final_loss,
    )


def claims(e: Evidence) -> list[kit.Claim]:
    """Compare with Section 5.2."""
    stated = [
        one
        for k, layer in enumerate(e.layers, 1)
        for one in max_margin.layer_claims(
            layer, f"-{k}", f"W{k}", f"Section 5.2, Figure 2{'abc'[k - 1 : k]}, {'def'[k - 1 : k]}"
        )
    ]
    return [
        *max_margin.data_claims(e.directions),
        *stated,
        *max_margin.end_claims(
            e.correlations,
            "First-layer rows align with the closest max-margin direction",
            "Section 5.2",
            "Figure 2g",
            e.loss,
        ),
    ]


def draw(e: Evidence) -> kit.Drawing:
    """Draw panels a to g: spectra above, planes below, the histogram on the right."""
    columns = len(e.layers) + 1
    figure, axes = kit.new_figure(columns, 2, width=7.2, aspect=0.86, extra_height=0.25)
    for k, layer in enumerate(e.layers):
        draw_values(axes[k], layer.values)
        kit.panel_label(axes[k], k, f"values of $W_{k + 1}$")
        below = axes[columns + k]
        colors = two_colors(e.closest) if k == 0 else [GRAY] * len(layer.points)
        rays = e.directions.on(layer.basis) if k == 0 else None  # w+ and w- live in the space of the input
        draw_plane(below, layer.points, colors, layer.means, rays)
        kit.panel_label(below, len(e.layers) + k, f"rows of $W_{k + 1}$")
    last = axes[columns - 1]
    draw_correlations(last, e.correlations, e.closest)
    kit.panel_label(last, 2 * len(e.layers), "correlations")
    figure.delaxes(axes[-1])
    others = Line2D([], [], color=GRAY, marker="o", ls="none", ms=4.5, label="rows of other layers")
    legend_of_colors(figure, "rows of $W_1$ closer to $w_+$", "closer to $w_-$", others, *ray_handles())
    return figure


FIGURE = kit.Figure(
    id="phuong2021-fig2",
    caption=(
        "(a-c) The ten largest singular values of the weights of the first three layers after training. (d-f) Rows "
        "on the two leading right-singular directions, both axes to the same scale; lines are the mean directions, "
        "dashed ones w+ and w-. (g) Correlation of each first-layer row with the closest max-margin direction; the "
        "dashed line is at 0.9."
    ),
    configs={"residual": "phuong2021/residual.yaml"}, origin=max_margin.ORIGIN, evidence=evidence, claims=claims,
    draw=draw,
)  # fmt: skip

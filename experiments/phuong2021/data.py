"""Figures 1 and 2: a two-layer and a residual network on orthogonally separable data."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from matplotlib.lines import Line2D

from dynamics_cli import kit

from . import max_margin
from .panels import GRAY, draw_correlations, draw_plane, draw_values, legend_of_colors, ray_handles, two_colors


@dataclass(frozen=True)
class TwoLayer:
    """The trained network beside the max-margin directions of its data."""

    directions: max_margin.Directions
    layer: max_margin.Layer
    signs: kit.Floats
    """(m,) signs of the output weights."""
    correlations: kit.Floats
    """(m,) cosine of each neuron with w+ (a_j > 0) or w- (a_j < 0)."""
    lengths: kit.Floats
    """(m,) norms of the neurons."""
    changed: int
    """Output weights whose sign is not that of the start."""
    loss: float


def two_layer(runs: kit.Runs) -> TwoLayer:
    """Measure the final network."""
    run = runs["two_layer"]
    trained = max_margin.read_trained(run, "hidden_weight")
    W, a = trained.last["hidden_weight"], trained.last["output_weight"]
    return TwoLayer(
        directions=trained.directions,
        layer=max_margin.measure_layer(W, trained.start["hidden_weight"], a > 0),
        signs=np.sign(a),
        correlations=np.where(a > 0, trained.plus, trained.minus),
        lengths=kit.norms(W),
        changed=int(np.sum(np.sign(a) != np.sign(trained.start["output_weight"]))),
        loss=run.final_loss,
    )


def claims_of_1(e: TwoLayer) -> list[kit.Claim]:
    """Compare with Section 5.1."""
    weight = e.lengths**2 / np.sum(e.lengths**2)
    return [
        *max_margin.data_claims(e.directions),
        *max_margin.layer_claims(e.layer, "", "W", "Section 5.1, Figure 1a, b; Theorem 1"),
        *max_margin.end_claims(
            e.correlations,
            "The correlation with the respective max-margin direction is high for most neurons",
            "Section 5.1",
            "Figure 1c",
            e.loss,
        ),
        kit.finding("correlation-weighted", "Share of the squared norms that such neurons hold", "Section 5.1",
                    weight[e.correlations > max_margin.HIGH].sum()),
        kit.finding("sign-changes",
                    "Output weights that changed their sign: gradient flow from a balanced start forbids it, "
                    "this start is not",
                    "Lemma A.4", e.changed),
    ]  # fmt: skip


def draw_1(e: TwoLayer) -> kit.Drawing:
    """Draw panels a to c."""
    figure, axes = kit.new_figure(3, 1, aspect=0.95, extra_height=0.25)
    draw_values(axes[0], e.layer.values)
    draw_plane(axes[1], e.layer.points, two_colors(e.signs), e.layer.means, e.directions.on(e.layer.basis))
    draw_correlations(axes[2], e.correlations, e.signs)
    for k, title in enumerate(("Singular values", "Neurons", "Correlations")):
        kit.panel_label(axes[k], k, title)
    legend_of_colors(figure, "$a_j > 0$", "$a_j < 0$", *ray_handles())
    return figure


FIGURE_1 = kit.Figure(
    id="phuong2021-fig1",
    caption=(
        "(a) The ten largest singular values of the first-layer weights after training. (b) The 100 neurons on the two "
        "leading right-singular directions, orange for a_j > 0, blue for a_j < 0; lines are the mean directions, "
        "dashed ones w+ and w- projected on the plane; both axes have the same scale. "
        "(c) Correlation of each neuron with its max-margin direction; the dashed line is at 0.9."
    ),
    configs={"two_layer": "phuong2021/two_layer.yaml"}, origin=max_margin.ORIGIN, evidence=two_layer,
    claims=claims_of_1, draw=draw_1,
)  # fmt: skip


@dataclass(frozen=True)
class Residual:
    """The trained network beside the max-margin directions of its data."""

    directions: max_margin.Directions
    layers: list[max_margin.Layer]
    """W_1, W_2 and W_3."""
    correlations: kit.Floats
    """(p,) cosine of each first-layer row with the closer one of w+ and w-."""
    closest: kit.Floats
    """(p,) +1 where that is w+, -1 where it is w-."""
    loss: float


def residual(runs: kit.Runs) -> Residual:
    """Measure the final network."""
    run = runs["residual"]
    if run.config.architecture.kind != "residual":
        raise kit.InputError(f"{run.path}: this figure needs architecture.kind residual")
    trained = max_margin.read_trained(run, "weight_1")
    start, last = ([state[f"weight_{k}"] for k in range(1, len(state))] for state in (trained.start, trained.last))
    closer = trained.plus > trained.minus
    sides = [closer, *(max_margin.two_sides(W) for W in last[1:])]
    return Residual(
        directions=trained.directions,
        layers=[max_margin.measure_layer(*one) for one in zip(last, start, sides, strict=True)],
        correlations=np.maximum(trained.plus, trained.minus),
        closest=np.where(closer, 1.0, -1.0),
        loss=run.final_loss,
    )


def claims_of_2(e: Residual) -> list[kit.Claim]:
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


def draw_2(e: Residual) -> kit.Drawing:
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


FIGURE_2 = kit.Figure(
    id="phuong2021-fig2",
    caption=(
        "(a-c) The ten largest singular values of the weights of the first three layers after training. (d-f) Rows "
        "on the two leading right-singular directions, both axes to the same scale; lines are the mean directions, "
        "dashed ones w+ and w-. (g) Correlation of each first-layer row with the closest max-margin direction; the "
        "dashed line is at 0.9."
    ),
    configs={"residual": "phuong2021/residual.yaml"}, origin=max_margin.ORIGIN, evidence=residual, claims=claims_of_2,
    draw=draw_2,
)  # fmt: skip


FIGURES = kit.by_id(FIGURE_1, FIGURE_2)

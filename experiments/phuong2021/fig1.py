"""Figure 1: a two-layer network on orthogonally separable data: rank, directions, correlation with w+ and w-."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dynamics_cli import kit

from . import max_margin
from .panels import draw_correlations, draw_plane, draw_values, legend_of_colors, ray_handles, two_colors


@dataclass(frozen=True)
class Evidence:
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


def evidence(runs: kit.Runs) -> Evidence:
    """Measure the final network."""
    run = runs["two_layer"]
    trained = max_margin.read_trained(run, "hidden_weight")
    W, a = trained.last["hidden_weight"], trained.last["output_weight"]
    return Evidence(
        directions=trained.directions,
        layer=max_margin.measure_layer(W, trained.start["hidden_weight"], a > 0),
        signs=np.sign(a),
        correlations=np.where(a > 0, trained.plus, trained.minus),
        lengths=kit.norms(W),
        changed=int(np.sum(np.sign(a) != np.sign(trained.start["output_weight"]))),
        loss=run.final_loss,
    )


def claims(e: Evidence) -> list[kit.Claim]:
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


def draw(e: Evidence) -> kit.Drawing:
    """Draw panels a to c."""
    figure, axes = kit.new_figure(3, 1, aspect=0.95, extra_height=0.25)
    draw_values(axes[0], e.layer.values)
    draw_plane(axes[1], e.layer.points, two_colors(e.signs), e.layer.means, e.directions.on(e.layer.basis))
    draw_correlations(axes[2], e.correlations, e.signs)
    for k, title in enumerate(("Singular values", "Neurons", "Correlations")):
        kit.panel_label(axes[k], k, title)
    legend_of_colors(figure, "$a_j > 0$", "$a_j < 0$", *ray_handles())
    return figure


FIGURE = kit.Figure(
    id="phuong2021-fig1",
    caption=(
        "(a) The ten largest singular values of the first-layer weights after training. (b) The 100 neurons on the two "
        "leading right-singular directions, orange for a_j > 0, blue for a_j < 0; lines are the mean directions, "
        "dashed ones w+ and w- projected on the plane; both axes have the same scale. "
        "(c) Correlation of each neuron with its max-margin direction; the dashed line is at 0.9."
    ),
    configs={"two_layer": "phuong2021/two_layer.yaml"}, origin=max_margin.ORIGIN, evidence=evidence, claims=claims,
    draw=draw,
)  # fmt: skip

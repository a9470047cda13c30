"""Figure 1: a two-layer network on orthogonally separable data: rank, directions, correlation with w+ and w-.

`dyn reproduce phuong2021-fig1`. About 3 s.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from matplotlib.figure import Figure as Drawing

from dynamics_cli.measures.arrays import Floats
from dynamics_cli.measures.neurons import norms
from dynamics_cli.plotting.layout import panel_label
from dynamics_cli.plotting.style import new_figure
from dynamics_cli.reproduction.claims import Claim, finding
from dynamics_cli.reproduction.figure import Figure, Runs

from .max_margin import (
    HIGH,
    ORIGIN,
    Directions,
    Layer,
    data_claims,
    end_claims,
    layer_claims,
    measure_layer,
    read_trained,
)
from .panels import draw_correlations, draw_plane, draw_values, legend_of_colors, two_colors


@dataclass(frozen=True)
class Evidence:
    """The trained network beside the max-margin directions of its data."""

    directions: Directions
    layer: Layer
    signs: Floats
    """(m,) signs of the output weights."""
    correlations: Floats
    """(m,) cosine of each neuron with w+ (a_j > 0) or w- (a_j < 0)."""
    lengths: Floats
    """(m,) norms of the neurons."""
    changed: int
    """Output weights whose sign is not that of the start."""
    loss: float


def evidence(runs: Runs) -> Evidence:
    """Measure the final network."""
    run = runs["two_layer"]
    found = read_trained(run, "hidden_weight")
    W, a = found.last["hidden_weight"], found.last["output_weight"]
    return Evidence(
        directions=found.directions,
        layer=measure_layer(W, found.start["hidden_weight"], a > 0),
        signs=np.sign(a),
        correlations=np.where(a > 0, found.plus, found.minus),
        lengths=norms(W),
        changed=int(np.sum(np.sign(a) != np.sign(found.start["output_weight"]))),
        loss=run.final_loss,
    )


def claims(found: Evidence) -> list[Claim]:
    """Compare with Section 5.1."""
    weight = found.lengths**2 / np.sum(found.lengths**2)
    return [
        *data_claims(found.directions),
        *layer_claims(found.layer, "", "W", "Section 5.1, Figure 1a, b; Theorem 1"),
        *end_claims(
            found.correlations,
            "The correlation with the respective max-margin direction is high for most neurons",
            "Section 5.1",
            "Figure 1c",
            found.loss,
        ),
        finding(
            "correlation-weighted",
            "Share of the squared norms that such neurons hold",
            "Section 5.1",
            measured=float(weight[found.correlations > HIGH].sum()),
        ),
        finding(
            "sign-changes",
            "Output weights that changed their sign: gradient flow from a balanced start forbids it, this start is not",
            "Lemma A.4",
            measured=found.changed,
        ),
    ]


def draw(found: Evidence) -> Drawing:
    """Draw panels a to c."""
    figure, axes = new_figure(3, 1, aspect=0.95, extra_height=0.25)
    draw_values(axes[0], found.layer.values)
    draw_plane(axes[1], found.layer.points, two_colors(found.signs), found.layer.means)
    draw_correlations(axes[2], found.correlations, found.signs)
    for k, title in enumerate(("Singular values", "Neurons", "Correlations")):
        panel_label(axes[k], k, title)
    legend_of_colors(figure, "$a_j > 0$", "$a_j < 0$")
    return figure


FIGURE = Figure(
    id="phuong2021-fig1",
    caption=(
        "(a) The ten largest singular values of the first-layer weights after training. (b) The 100 neurons on the two "
        "leading right-singular directions, orange for a_j > 0, blue for a_j < 0; lines are the mean directions. "
        "(c) Correlation of each neuron with its max-margin direction; the dashed line is at 0.9."
    ),
    configs={"two_layer": "phuong2021/two_layer.yaml"},
    origin=ORIGIN,
    evidence=evidence,
    claims=claims,
    draw=draw,
)

"""Figure 1: a two-layer network on orthogonally separable data: rank, directions, correlation with w+ and w-.

`dyn reproduce phuong2021-fig1`. About 3 s.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from matplotlib.figure import Figure as Drawing
from matplotlib.lines import Line2D

from dynamics_cli.measures.arrays import Floats
from dynamics_cli.measures.neurons import cosines, norms
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
)


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

    @property
    def high(self) -> float:
        """Share of neurons with a correlation above `HIGH`."""
        return float(np.mean(self.correlations > HIGH))


def evidence(runs: Runs) -> Evidence:
    """Measure the final network."""
    run = runs["two_layer"]
    directions = max_margin(run)
    start, last = ({name: value.astype(np.float64) for name, value in run.state(i).items()} for i in (0, -1))
    W, a = last["hidden_weight"], last["output_weight"]
    plus, minus = cosines(W, directions.plus.w), cosines(W, directions.minus.w)
    return Evidence(
        directions=directions,
        layer=measure_layer(W, start["hidden_weight"], a > 0),
        signs=np.sign(a),
        correlations=np.where(a > 0, plus, minus),
        lengths=norms(W),
        changed=int(np.sum(np.sign(a) != np.sign(start["output_weight"]))),
        loss=run.final_loss,
    )


def claims(found: Evidence) -> list[Claim]:
    """Compare with Section 5.1."""
    weight = found.lengths**2 / np.sum(found.lengths**2)
    return [
        *data_claims(found.directions),
        *layer_claims(found.layer, "", "W", "Section 5.1, Figure 1a, b; Theorem 1"),
        claim(
            "correlation",
            "The correlation with the respective max-margin direction is above 0.9 for most neurons (share)",
            "Section 5.1, Figure 1c",
            expected=most(),
            measured=found.high,
        ),
        finding(
            "correlation-weighted",
            "Share of the squared norms that such neurons hold",
            "Section 5.1",
            measured=float(weight[found.correlations > HIGH].sum()),
        ),
        finding("median", "Median correlation", "Figure 1c", measured=float(np.median(found.correlations))),
        finding(
            "sign-changes",
            "Output weights that changed their sign: gradient flow from a balanced start forbids it, this start is not",
            "Lemma A.4",
            measured=found.changed,
        ),
        claim(
            "learnt",
            "The network learns the data (final loss)",
            "Section 5.1",
            expected=less_than(np.log(2) / 100),
            measured=found.loss,
        ),
    ]


def draw(found: Evidence) -> Drawing:
    """Draw panels a to c."""
    figure, axes = new_figure(3, 1, aspect=0.95, extra_height=0.25)
    colors = [ORANGE if s > 0 else BLUE for s in found.signs]
    draw_values(axes[0], found.layer.values)
    draw_plane(axes[1], found.layer.points, colors, found.layer.means)
    draw_correlations(axes[2], found.correlations, [("", ORANGE, found.signs > 0), ("", BLUE, found.signs <= 0)])
    for k, title in enumerate(("Singular values", "Neurons", "Correlations")):
        panel_label(axes[k], k, title)
    dot = {"marker": "o", "ls": "none", "ms": 4.5}
    handles = [
        Line2D([], [], color=ORANGE, label="$a_j > 0$", **dot),  # type: ignore[arg-type]
        Line2D([], [], color=BLUE, label="$a_j < 0$", **dot),  # type: ignore[arg-type]
    ]
    figure_legend(figure, handles)
    return figure


FIGURE = Figure(
    id="phuong2021-fig1",
    title="Two-layer network on orthogonally separable data",
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

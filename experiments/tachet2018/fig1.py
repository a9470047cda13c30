"""Figure 1: the network, drawn from an architecture."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from matplotlib.collections import LineCollection

from dynamics_cli import kit
from dynamics_cli.architectures.two_layer import TwoLayer

INPUTS = 3
NEURONS = 5
"""Of the drawing; the paper's d and h are any."""
SIZE = 170.0
"""Area of a unit, in square points."""


@dataclass(frozen=True)
class Evidence:
    """The network that is drawn."""

    widths: tuple[int, int, int]
    weights: int
    difference: float


def evidence(_: kit.Runs) -> Evidence:
    """Build the network and evaluate it beside the formula."""
    architecture = TwoLayer(kind="two_layer", width=NEURONS)
    shapes = architecture.shapes(INPUTS)
    rng = np.random.default_rng(0)
    weights = {name: rng.standard_normal(shape) for name, shape in shapes.items()}
    x = rng.standard_normal((50, INPUTS))
    W = weights["hidden_weight"]
    Z = weights["output_weight"]
    formula = np.array([Z @ np.maximum(W @ point, 0.0) for point in x])
    return Evidence(
        widths=(INPUTS, shapes["hidden_weight"][0], 1),
        weights=sum(int(np.prod(shape)) for shape in shapes.values()),
        difference=float(np.abs(architecture.function(weights)(x) - formula).max()),
    )


def claims(e: Evidence) -> list[kit.Claim]:
    d, h, _ = e.widths
    return [
        kit.theory(
            "formula",
            r"The network computes $Z^\top (W x)_+$ (largest difference on 50 random points)",
            "Section 3, Figure 1",
            kit.at_most(1e-12),
            e.difference,
        ),
        kit.theory(
            "weights",
            "Every line of the drawing is a weight: d h + h of them, no biases",
            "Section 3, Figure 1",
            kit.exactly(d * h + h),
            e.weights,
        ),
    ]


def draw(e: Evidence) -> kit.Drawing:
    figure, (axes,) = kit.new_figure(width=kit.COLUMN_WIDTH, aspect=0.62)
    places = [
        np.column_stack([np.full(n, float(k)), np.arange(n) - (n - 1) / 2])
        for k, n in enumerate(e.widths)
    ]
    for left, right in pairwise(places):
        pairs = [[a, b] for a in left for b in right]
        axes.add_collection(
            LineCollection(pairs, colors=kit.PALETTE.muted, linewidths=0.6, zorder=1)
        )
    half = (max(e.widths) - 1) / 2
    colors = (kit.PALETTE.faint, kit.PALETTE.neurons, kit.PALETTE.function)
    names = ("$x$", "$(W_t x)_+$", r"$P_t(x)=\sigma(Z_t^T(W_t x)_+)$")
    for k, (place, color, name) in enumerate(zip(places, colors, names, strict=True)):
        axes.scatter(
            place[:, 0],
            place[:, 1],
            s=SIZE,
            color=color,
            edgecolors=kit.PALETTE.theory,
            linewidths=0.7,
            zorder=2,
        )
        axes.text(k, -half - 0.75, name, ha="center", va="top")
    relu = np.array([[-0.05, -0.05], [0.0, -0.05], [0.045, 0.15]])
    for place in places[1]:
        axes.plot(*(place + relu).T, color="white", lw=1.2, zorder=3)
    axes.text(len(places) - 1, 0.0, r"$\sigma$", ha="center", va="center", color="white", zorder=4)
    for k, name in enumerate(("$W_t$", "$Z_t$")):
        axes.text(k + 0.5, half + 0.35, name, ha="center", va="bottom")
    axes.set(xlim=(-0.4, len(places) - 0.6), ylim=(-half - 1.4, half + 0.9))
    axes.axis("off")
    return figure


FIGURE = kit.Figure(
    id="tachet2018-fig1",
    caption=(
        "One hidden layer of ReLU neurons, one output, a sigmoid; drawn from the architecture that"
        " is trained."
    ),
)

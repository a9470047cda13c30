"""Figure 1: the network, drawn from an architecture."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dynamics_cli import kit
from dynamics_cli.architectures.two_layer import TwoLayer
from dynamics_cli.plotting.panels.network import draw_network

INPUTS, NEURONS = 3, 5
"""Of the drawing; the paper's d and h are any."""


@dataclass(frozen=True)
class Evidence:
    """The network that is drawn, and its numbers."""

    widths: tuple[int, ...]
    """Units of every layer, input and output included."""
    activation: str
    weights: int
    """Trained numbers of the network."""
    difference: float
    """Largest difference between its output and the formula of Section 3."""


def evidence(_: kit.Runs) -> Evidence:
    """Build the network and evaluate it beside the formula."""
    architecture = TwoLayer(kind="two_layer", width=NEURONS)
    shapes = architecture.shapes(INPUTS)
    rng = np.random.default_rng(0)
    weights = {name: rng.standard_normal(shape) for name, shape in shapes.items()}
    x = rng.standard_normal((50, INPUTS))
    W, Z = weights["hidden_weight"], weights["output_weight"]
    formula = np.array([Z @ np.maximum(W @ point, 0.0) for point in x])
    return Evidence(
        widths=(INPUTS, shapes["hidden_weight"][0], 1),
        activation=architecture.activation.kind,
        weights=sum(int(np.prod(shape)) for shape in shapes.values()),
        difference=float(np.abs(architecture.function(weights)(x) - formula).max()),
    )


def claims(e: Evidence) -> list[kit.Claim]:
    """Compare with Section 3."""
    d, h, _ = e.widths
    # fmt: off
    return [
        kit.claim("formula", "The network computes Z^T (W x)_+ (largest difference on 50 random points)",
                  "Section 3, Figure 1", kit.at_most(1e-12), e.difference),
        kit.claim("weights", "Every line of the drawing is a weight: d h + h of them, no biases",
                  "Section 3, Figure 1", kit.exactly(d * h + h), e.weights),
    ]
    # fmt: on


def draw(e: Evidence) -> kit.Drawing:
    """Draw the network."""
    figure, (axes,) = kit.new_figure(width=kit.COLUMN_WIDTH, aspect=0.62)
    draw_network(
        axes,
        e.widths,
        activation=e.activation,
        weights=("$W_t$", "$Z_t$"),
        layers=("$x$", "$(W_t x)_+$", r"$P_t(x)=\sigma(Z_t^T(W_t x)_+)$"),
        output=r"$\sigma$",
    )
    return figure


FIGURE = kit.Figure(
    id="tachet2018-fig1",
    caption="One hidden layer of ReLU neurons, one output, a sigmoid; drawn from the architecture that is trained.",
    origin={"architecture": "stated", "number of units": "assumed"},
    evidence=evidence,
    claims=claims,
    draw=draw,
)

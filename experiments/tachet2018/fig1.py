"""Figure 1: the network, drawn from an architecture."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection, PathCollection
from matplotlib.text import Text
from numpy.typing import NDArray

from dynamics_cli import kit
from dynamics_cli.architectures.two_layer import TwoLayer
from dynamics_cli.plotting.style import PALETTE, styled

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
    return [
        kit.theory("formula", "The network computes Z^T (W x)_+ (largest difference on 50 random points)",
                   "Section 3, Figure 1", kit.at_most(1e-12), e.difference),
        kit.theory("weights", "Every line of the drawing is a weight: d h + h of them, no biases",
                   "Section 3, Figure 1", kit.exactly(d * h + h), e.weights),
    ]  # fmt: skip


def draw(e: Evidence) -> kit.Drawing:
    """Draw the network."""
    figure, (axes,) = kit.new_figure(width=kit.COLUMN_WIDTH, aspect=0.62)
    draw_network(
        axes, e.widths, activation=e.activation, weights=("$W_t$", "$Z_t$"),
        layers=("$x$", "$(W_t x)_+$", r"$P_t(x)=\sigma(Z_t^T(W_t x)_+)$"), output=r"$\sigma$",
    )  # fmt: skip
    return figure


FIGURE = kit.Figure(
    id="tachet2018-fig1",
    caption="One hidden layer of ReLU neurons, one output, a sigmoid; drawn from the architecture that is trained.",
    origin={"architecture": "stated", "number of units": "assumed"}, evidence=evidence, claims=claims, draw=draw,
)  # fmt: skip


SIZE = 170.0
"""Area of a unit, in square points."""


@dataclass(frozen=True)
class NetworkPanel:
    """The artists of a network: weights between neighbouring layers, units by layer, texts."""

    edges: list[LineCollection]
    units: list[PathCollection]
    texts: list[Text]


@styled
def draw_network(
    axes: Axes, widths: Sequence[int], *, activation: str = "relu", weights: Sequence[str] = (),
    layers: Sequence[str] = (), output: str = "",
) -> NetworkPanel:  # fmt: skip
    """Draw a fully connected network of layers of `widths`, the input first.

    `weights` names the matrices (above them), `layers` the layers (below them); hidden units show their activation, the
    output units the text `output`. Raises ValueError for fewer than two layers, an empty one, or names that do not fit.
    """
    if len(widths) < 2 or min(widths) < 1:
        raise ValueError(f"a network needs at least two layers of at least one unit, not {tuple(widths)}")
    if (weights and len(weights) != len(widths) - 1) or (layers and len(layers) != len(widths)):
        raise ValueError("name every matrix and every layer, or none")
    places = [_places(k, width) for k, width in enumerate(widths)]
    edges = []
    for left, right in pairwise(places):
        pairs = [[a, b] for a in left for b in right]
        collection = LineCollection(pairs, colors=PALETTE.muted, linewidths=0.6, zorder=1)
        axes.add_collection(collection)
        edges.append(collection)
    units, texts = [], []
    half = (max(widths) - 1) / 2
    for k, place in enumerate(places):
        inner = 0 < k < len(widths) - 1
        color = PALETTE.neurons if inner else PALETTE.function if k else PALETTE.faint
        units.append(
            axes.scatter(
                place[:, 0], place[:, 1], s=SIZE, color=color, edgecolors=PALETTE.theory, linewidths=0.7, zorder=2
            )
        )
        if inner:
            _mark(axes, place, activation)
        elif k and output:
            texts += [
                axes.text(at[0], at[1], output, ha="center", va="center", color="white", zorder=4) for at in place
            ]
        if layers:
            texts.append(axes.text(k, -half - 0.75, layers[k], ha="center", va="top"))
    for k, name in enumerate(weights):
        texts.append(axes.text(k + 0.5, half + 0.35, name, ha="center", va="bottom"))
    axes.set(xlim=(-0.4, len(widths) - 0.6), ylim=(-half - 1.4, half + 0.9))
    axes.axis("off")
    return NetworkPanel(edges, units, texts)


def _places(layer: int, width: int) -> NDArray[np.float64]:
    return np.column_stack([np.full(width, float(layer)), np.arange(width) - (width - 1) / 2])


def _mark(axes: Axes, places: NDArray[np.float64], activation: str) -> None:
    """Write the graph of the activation into every hidden unit."""
    low = {"relu": 0.0, "leaky_relu": -0.3, "linear": -1.0}.get(activation, 0.0)
    for x, y in places:
        curve = np.array([[-0.05, 0.2 * low - 0.05], [0.0, -0.05], [0.045, 0.15]])
        axes.plot(x + curve[:, 0], y + curve[:, 1], color="white", lw=1.2, zorder=3)

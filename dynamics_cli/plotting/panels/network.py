"""A feed-forward network as units and weights."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection, PathCollection
from matplotlib.text import Text
from numpy.typing import NDArray

from dynamics_cli.plotting.style import PALETTE, styled

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
    axes: Axes,
    widths: Sequence[int],
    *,
    activation: str = "relu",
    weights: Sequence[str] = (),
    layers: Sequence[str] = (),
    output: str = "",
) -> NetworkPanel:
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

"""`function` for a classifier of one input: the probability of every class."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from dynamics_cli.analysis.states import shown_states, state_row
from dynamics_cli.analysis.view import View
from dynamics_cli.measures.arrays import Floats
from dynamics_cli.plotting.layout import figure_legend
from dynamics_cli.plotting.panels.function_1d import default_window
from dynamics_cli.plotting.style import SERIES

GRID = 512
LINES = ("-", (0, (4, 1.5)), (0, (1, 1.2)))
"""Line styles of more classes than there are colours."""


def classes_figure(view: View, iteration: int | None) -> Figure:
    """Draw the class probabilities at the state nearest to `iteration`, or at four states."""
    states = shown_states(view, iteration)
    figure, axes = state_row(len(states), 1.0)
    handles: list[Artist] = []
    for k, (panel, state) in enumerate(zip(axes, states, strict=True)):
        handles = draw_classes(panel, view, state.index)
        panel.set_title(state.title)
        if k > 0:
            panel.set_ylabel("")
            panel.tick_params(labelleft=False)
    figure_legend(figure, handles, columns=6)
    return figure


def draw_classes(axes: Axes, view: View, i: int) -> list[Artist]:
    """Draw the probability that state `i` gives to every class, over the input; return the handles of a legend.

    Training data are dots at the top (probability 1), in the colour of their class; held-out data are rings.
    """
    data = view.dataset
    x, low, high = data.x[:, 0], *default_window(data.x[:, 0])
    grid = np.linspace(low, high, GRID)
    shares = softmax(view.line_function(i)(grid))  # (k, C)
    handles: list[Artist] = []
    for c in range(shares.shape[1]):
        color, line = SERIES[c % len(SERIES)], LINES[c // len(SERIES) % len(LINES)]
        handles += axes.plot(grid, shares[:, c], color=color, ls=line, lw=1.6, label=f"class {c}", zorder=2)
        dot: dict[str, Any] = {"marker": "o", "ls": "none", "ms": 5.0, "mew": 0.5, "zorder": 3, "clip_on": False}
        shown: list[tuple[Floats, float, dict[str, Any]]] = [(x[data.y == c], 1.08, {"mfc": color, "mec": "white"})]
        if data.x_test is not None:
            ring: dict[str, Any] = {"mfc": "white", "mec": color, "ms": 4.0, "mew": 0.9}
            shown.append((data.x_test[data.y_test == c, 0], 1.16, ring))
        for places, height, look in shown:
            if len(places):  # the extent of an empty line that is not clipped breaks the layout
                axes.plot(places, np.full(len(places), height), **{**dot, **look})
    axes.set(xlim=(low, high), ylim=(0, 1.22 if data.x_test is not None else 1.14), yticks=[0, 0.5, 1])
    axes.set(xlabel="input $x$", ylabel="probability of the class")
    return handles


def softmax(h: Floats) -> Floats:
    """Return the probabilities (k, C) that outputs (k, C) stand for; NaN where an output is not finite."""
    h = np.where(np.isfinite(h), h, np.nan)
    e = np.exp(h - h.max(axis=-1, keepdims=True))
    shares: Floats = e / e.sum(axis=-1, keepdims=True)
    return shares

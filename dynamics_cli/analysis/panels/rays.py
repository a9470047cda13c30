"""`rays`: the neurons of a two-layer network with inputs of two columns, as rays from the origin."""

from __future__ import annotations

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator

from dynamics_cli.analysis.states import shown_states, state_row
from dynamics_cli.analysis.view import View
from dynamics_cli.measures.arrays import Floats
from dynamics_cli.plotting.layout import figure_legend
from dynamics_cli.plotting.panels.rays import RaysPanel, draw_rays
from dynamics_cli.plotting.panels.shared import sign_handle

MANY_STARS = 300
"""More neurons than this are drawn smaller in the panels of a state."""


def rays_missing(view: View) -> str | None:
    """Return why neurons cannot be drawn as rays, or None."""
    if "hidden_weight" not in view.run.parameters:
        return "the hidden weights of a two-layer network are not recorded"
    d = view.hidden_shape[1]
    return None if d == 2 else f"neurons have {d} weights and not 2, the bias included; see polar"


def rays_figure(view: View, iteration: int | None) -> Figure:
    """Draw the neurons at the state nearest to `iteration`, or at four states, each on a scale of its own."""
    states = shown_states(view, iteration)
    figure, axes = state_row(len(states), 1.05, single=1.0)
    x, y = plane_data(view)
    xlabel, ylabel = plane_labels(view)
    handles: list[Artist] = []
    for k, (panel, state) in enumerate(zip(axes, states, strict=True)):
        W, signs = view.weights(state.index), view.signs(state.index)
        drawn = draw_rays(panel, W, signs, data=x, labels=y, legend="none", xlabel=xlabel, ylabel=ylabel)
        if len(W) > MANY_STARS:
            _fade(drawn)
        if len(states) > 1:
            _few_ticks(panel, drawn.limit, first=k == 0)
        panel.set_title(state.title)
        handles += [*(sign_handle(value, marker="o", size=4.5) for value in drawn.rays), *drawn.directions]
    figure_legend(figure, handles, columns=5)
    return figure


def plane_data(view: View) -> tuple[Floats | None, Floats | None]:
    """Return the inputs (n, 2) and labels (n,), or nothing when the data are not there."""
    return (None, None) if view.no_dataset else (np.asarray(view.dataset.x), np.asarray(view.dataset.y))


def plane_labels(view: View) -> tuple[str, str]:
    """Return the labels of the two axes: input weight and bias, or the two weights."""
    if view.no_dataset is None and view.dataset.bias:
        return "weight $w_{j,1}$", "bias $w_{j,2}$"
    return "$w_{j,1}$", "$w_{j,2}$"


def _few_ticks(axes: Axes, limit: float, *, first: bool) -> None:
    """Tick the narrow panel of a row at 0 and its ends; y, on the same scale, is labelled in the `first` only."""
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_locator(FixedLocator([-limit, 0, limit]))
    if not first:
        axes.set_ylabel("")
        axes.tick_params(labelleft=False)


def _fade(panel: RaysPanel) -> None:
    """Make the rays of very many neurons thin and pale, so that their number shows."""
    for value, rays in panel.rays.items():
        rays.set(alpha=0.06, rasterized=True)
        panel.tips[value].set(markersize=1.6, markeredgewidth=0, alpha=0.4, rasterized=True)

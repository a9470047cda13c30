"""`explained_variance`: how much of the hidden weights lies along each principal component."""

from __future__ import annotations

import numpy as np
from matplotlib.figure import Figure

from dynamics_cli.analysis.states import shown_states, state_row
from dynamics_cli.analysis.view import View
from dynamics_cli.measures.arrays import Floats
from dynamics_cli.measures.spectra import explained_variance
from dynamics_cli.plotting.panels.explained_variance import draw_explained_variance

BARS = 10


def explained_variance_missing(view: View) -> str | None:
    """Return why explained variance cannot be drawn, or None."""
    if "hidden_weight" not in view.run.parameters:
        return "the hidden weights of a two-layer network are not recorded"
    m, d = view.hidden_shape
    if min(m, d) < 3:
        return f"hidden weights of shape {m} x {d} have no more than two principal components"
    return None if view.states else "no finite weights are recorded yet"


def explained_variance_figure(view: View, iteration: int | None) -> Figure:
    """Draw the ratios at the state nearest to `iteration`, or at four states on a common scale."""
    states = shown_states(view, iteration)
    ratios = [_ratios(view, state.index) for state in states]
    top = 1.18 * float(np.nanmax(ratios, initial=0.1))
    figure, axes = state_row(len(states), 1.1, extra_height=0.0)
    for k, (panel, state, row) in enumerate(zip(axes, states, ratios, strict=True)):
        draw_explained_variance(panel, row, shown=BARS)
        panel.set_title(state.title)
        panel.set_ylim(0, top)
        if k > 0:
            panel.set_ylabel("")
            panel.tick_params(labelleft=False)
    return figure


def _ratios(view: View, i: int) -> Floats:
    """Return the explained variance ratios (r,) of state `i`; NaN where its weights are 0 or not finite."""
    W = view.weights(i)
    return explained_variance(W) if np.isfinite(W).all() else np.full(min(W.shape), np.nan)

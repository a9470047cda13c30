"""The spectrum of weights: `spectrum` over training, and `explained_variance` of states."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from dynamics_cli.analysis.curves import draw_over_training, time_scale, value_scale
from dynamics_cli.analysis.panels.neurons import layer_title, no_hidden_weights, no_layers
from dynamics_cli.analysis.registry import panel
from dynamics_cli.analysis.states import draw_states, shown_states
from dynamics_cli.analysis.view import View, no_states
from dynamics_cli.measures.arrays import Floats, Ints
from dynamics_cli.measures.spectra import explained_variance, singular_values
from dynamics_cli.plotting.layout import figure_legend
from dynamics_cli.plotting.panels.spectrum import SpectrumPanel, draw_explained_variance, draw_spectrum
from dynamics_cli.plotting.time_axis import TimeScale

SVD_SPEED = 5
"""Multiplications of a decomposition that take as long as reading one weight."""


class Spectrum(NamedTuple):
    """Singular values (k, r) and stable rank (k,) of a weight matrix at k iterations."""

    iterations: Ints
    values: Floats
    rank: Floats


@panel("spectrum", "singular values and stable rank of weights over training", no_layers, no_states, log="xy")
def spectrum_figure(view: View, iteration: int | None) -> Figure:
    """Draw the spectrum of the hidden weights, or of every layer of a deep network; `iteration` is marked."""
    spectra = [read_spectrum(view, name) for name in view.layers]
    titles = [layer_title(name) for name in view.layers]
    scale: TimeScale = (
        "log" if "log" in {time_scale(s.iterations, s.values, s.rank, asked=view.log) for s in spectra} else "linear"
    )
    drawn: list[SpectrumPanel] = []

    def drawer(spectrum: Spectrum, title: str) -> Callable[[Axes], None]:
        of = f"({title.strip('$')})" if "$" in title else ""
        label = rf"singular values $\sigma_i{of}$"
        log = value_scale(spectrum.values[:, 0], view.log) == "log"
        return lambda axes: drawn.append(draw_spectrum(axes, *spectrum, ylabel=label, log=log, time_scale=scale))

    draw = [drawer(spectrum, title) for spectrum, title in zip(spectra, titles, strict=True)]
    aspect = 0.72 if len(spectra) == 1 else 0.8
    figure = draw_over_training(view, iteration, draw, titles=titles, aspect=aspect, extra_height=0.3)
    figure_legend(figure, max(drawn, key=lambda panel: len(panel.singular_values)).handles, columns=5)
    return figure


def read_spectrum(view: View, name: str) -> Spectrum:
    """Decompose a weight matrix at the recorded states, or at some of them when that takes long."""
    m, d = view.weight_shape(name)
    states = view.curve_states(m * d * min(m, d) // SVD_SPEED)
    values = np.stack([singular_values(view.weights(i, name)) for i in states])  # (k, r)
    top = values[:, :1]
    shares = np.divide(values, top, out=np.full_like(values, np.nan), where=top > 0)
    return Spectrum(view.iterations[states], values, np.sum(shares**2, axis=1))


def _few_components(view: View) -> str | None:
    m, d = view.hidden_shape
    return f"hidden weights of shape {m} x {d} have no more than two principal components" if min(m, d) < 3 else None


@panel("explained_variance", "explained variance of the hidden weights", no_hidden_weights, _few_components, no_states)
def explained_variance_figure(view: View, iteration: int | None) -> Figure:
    """Draw the ratios at the state nearest to `iteration`, or at four states on a common scale."""
    states = shown_states(view, iteration)
    ratios = {state.index: _ratios(view, state.index) for state in states}
    top = 1.18 * float(np.nanmax(list(ratios.values()), initial=0.1))

    def draw(axes: Axes, i: int) -> Sequence[Artist]:
        draw_explained_variance(axes, ratios[i])
        axes.set_ylim(0, top)
        return ()

    return draw_states(states, draw, aspect=1.1, single=0.72, extra_height=0.0)


def _ratios(view: View, i: int) -> Floats:
    """Return the explained variance ratios (r,) of state `i`; NaN where its weights are 0 or not finite."""
    W = view.weights(i)
    return explained_variance(W) if np.isfinite(W).all() else np.full(min(W.shape), np.nan)

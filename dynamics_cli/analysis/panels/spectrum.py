"""`spectrum`: singular values and stable rank of the weight matrices over training."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from dynamics_cli.analysis.panels.common import mark_iteration
from dynamics_cli.analysis.panels.norms import layer_title
from dynamics_cli.analysis.scales import time_scale, value_scale
from dynamics_cli.analysis.states import ROW_WIDTH
from dynamics_cli.analysis.view import View
from dynamics_cli.measures.arrays import Floats, Ints
from dynamics_cli.measures.spectra import singular_values
from dynamics_cli.plotting.layout import figure_legend, panel_label
from dynamics_cli.plotting.panels.spectrum import SpectrumPanel, draw_spectrum
from dynamics_cli.plotting.style import TEXT_WIDTH, new_figure
from dynamics_cli.plotting.time_axis import TimeScale

SVD_SPEED = 5
"""Multiplications of a decomposition that take as long as reading one weight."""


@dataclass(frozen=True)
class Spectrum:
    """Singular values (k, r) and stable rank (k,) of a weight matrix at k iterations."""

    iterations: Ints
    values: Floats
    rank: Floats


def spectrum_figure(view: View, iteration: int | None) -> Figure:
    """Draw the spectrum of the hidden weights, or of every layer of a deep network; `iteration` is marked."""
    spectra = {name: read_spectrum(view, name) for name in view.layers}
    scales = {time_scale(s.iterations, s.values, s.rank) for s in spectra.values()}
    columns = min(len(spectra), 3)
    rows = -(-len(spectra) // columns)
    width = {1: None, 2: TEXT_WIDTH, 3: ROW_WIDTH}[columns]
    figure, axes = new_figure(columns, rows, width=width, aspect=0.72 if columns == 1 else 0.8, extra_height=0.3)
    panels = []
    for k, (panel, (name, spectrum)) in enumerate(zip(axes, spectra.items(), strict=False)):
        panels.append(_draw(panel, spectrum, layer_title(name), "log" if "log" in scales else "linear"))
        if len(spectra) > 1:
            panel_label(panel, k, layer_title(name))
        mark_iteration(panel, view, iteration)
    for unused in axes[len(spectra) :]:
        unused.remove()
    widest = max(panels, key=lambda panel: len(panel.singular_values))
    named = [line for line in widest.singular_values if not str(line.get_label()).startswith("_")]
    figure_legend(figure, [*named, *([widest.stable_rank] if widest.stable_rank else [])], columns=5)
    return figure


def read_spectrum(view: View, name: str) -> Spectrum:
    """Decompose a weight matrix at the recorded states, or at some of them when that takes long."""
    m, d = view.weight_shape(name)
    states = view.curve_states(m * d * min(m, d) // SVD_SPEED)
    values = np.stack([singular_values(view.weights(i, name)) for i in states])  # (k, r)
    top = values[:, :1]
    shares = np.divide(values, top, out=np.full_like(values, np.nan), where=top > 0)
    return Spectrum(view.iterations[states], values, np.sum(shares**2, axis=1))


def _draw(axes: Axes, spectrum: Spectrum, title: str, scale: TimeScale) -> SpectrumPanel:
    return draw_spectrum(
        axes,
        spectrum.iterations,
        spectrum.values,
        spectrum.rank,
        log=value_scale(spectrum.values[:, 0]) == "log",
        time_scale=scale,
        legend="none",
        ylabel=rf"singular values $\sigma_i({title.strip('$')})$",
        rank_label="stable rank",
    )

"""`samples`: what the generator of a GAN makes of the same noise at every state (Tachet des Combes et al. 2018)."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from matplotlib.figure import Figure

from dynamics_cli.analysis.states import Shown, shown_states, state_row
from dynamics_cli.analysis.view import View, spread
from dynamics_cli.config.architecture import GanArchitecture
from dynamics_cli.measures.arrays import Floats
from dynamics_cli.plotting.layout import figure_legend
from dynamics_cli.plotting.panels.decision_regions import data_window
from dynamics_cli.plotting.panels.samples import draw_samples

COUNT = 1500
"""Samples that are drawn, and points of the data at most."""
STATES = 4


def samples_missing(view: View) -> str | None:
    """Return why samples cannot be drawn, or None; a GAN's data set is always a mixture in the plane."""
    architecture = view.run.config.architecture
    if not isinstance(architecture, GanArchitecture):
        return "the network has no generator"
    layers = range(1, len(architecture.generator_widths) + 2)
    if not {f"generator_{kind}_{layer}" for kind in ("weight", "bias") for layer in layers} <= set(view.run.parameters):
        return "not all parameters of the generator are recorded (see record.parameters in its config)"
    return None if view.states else "no finite parameters are recorded yet"


def samples_figure(view: View, iteration: int | None) -> Figure:
    """Draw data and samples at the state nearest to `iteration`, or at four states spread over the training.

    The loss of either player tells little about the other, so that it does not choose the states.
    """
    states = shown_states(view, iteration) if iteration is not None else _spread(view)
    figure, axes = state_row(len(states), 1.05, single=1.0)
    data, samples = some_data(view), sampler(view)
    window = data_window(data)
    for k, (panel, state) in enumerate(zip(axes, states, strict=True)):
        drawn = draw_samples(panel, data, samples(state.index), window)
        panel.set_title(state.title)
        if k > 0:
            panel.set_ylabel("")
            panel.tick_params(labelleft=False)
    figure_legend(figure, drawn.handles, columns=2)
    return figure


def _spread(view: View) -> list[Shown]:
    return [Shown(int(i), int(view.iterations[i])) for i in spread(view.states, STATES)]


def some_data(view: View) -> Floats:
    """Return the points (n, 2) of the training set, the first `COUNT` of them."""
    return np.asarray(view.dataset.x[:COUNT], dtype=np.float64)


def sampler(view: View) -> Callable[[int], Floats]:
    """Return the function that gives the samples (COUNT, 2) of a state, by its index, of the same noise for all."""
    from dynamics_cli.architectures.gan import generate

    architecture = view.run.config.architecture
    assert isinstance(architecture, GanArchitecture)
    noise = np.random.default_rng(view.run.config.seed).standard_normal((COUNT, architecture.noise_dim))
    return lambda i: generate(architecture, view.run.state(i), noise)

"""`norms`: norms over training, of every neuron of a two-layer network or of every layer of a deep one."""

from __future__ import annotations

import numpy as np
from matplotlib.figure import Figure

from dynamics_cli.analysis.panels.common import mark_iteration, some_neurons
from dynamics_cli.analysis.scales import time_scale, value_scale
from dynamics_cli.analysis.view import View
from dynamics_cli.measures.neurons import norms
from dynamics_cli.plotting.layout import note, place_legend
from dynamics_cli.plotting.panels.norms import draw_norms
from dynamics_cli.plotting.style import SERIES, new_figure
from dynamics_cli.plotting.time_axis import draw_curve, set_time_axis, set_value_axis, visible


def weights_missing(view: View) -> str | None:
    """Return why there are no weights over training to draw, or None."""
    if not view.layers:
        return "no weight matrices are recorded (see record.parameters in its config)"
    return None if view.states else "no finite weights are recorded yet"


def norms_figure(view: View, iteration: int | None) -> Figure:
    """Draw norms over training; `iteration` is marked."""
    return _neurons(view, iteration) if view.two_layer else _layers(view, iteration)


def _neurons(view: View, iteration: int | None) -> Figure:
    m, d = view.hidden_shape
    states, drawn = view.curve_states(m * d), some_neurons(m)
    lengths = np.stack([norms(view.weights(i)[drawn]) for i in states])  # (k, m)
    steps = view.iterations[states]
    figure, (axes,) = new_figure(extra_height=0.25)
    log = value_scale(lengths) == "log"
    scale = time_scale(steps, lengths)
    draw_norms(axes, steps, lengths, view.signs(view.states - 1)[drawn], log=log, time_scale=scale)
    if len(drawn) < m:
        note(axes, f"{len(drawn)} of {m} neurons")
    mark_iteration(axes, view, iteration)
    return figure


def _layers(view: View, iteration: int | None) -> Figure:
    """Draw the Frobenius norm of every weight matrix."""
    states = view.curve_states(sum(int(np.prod(view.run.parameters[name].shape[1:])) for name in view.layers))
    lengths = np.stack([[norms(view.weights(i, name).ravel()) for name in view.layers] for i in states])  # (k, L)
    steps = view.iterations[states]
    figure, (axes,) = new_figure(extra_height=0.25)
    log = set_value_axis(axes, lengths, r"norm $\Vert W_\ell^t\Vert_F$", log=value_scale(lengths) == "log")
    scale = time_scale(steps, lengths)
    lines = []
    for k, (name, values) in enumerate(zip(view.layers, visible(lengths, log=log).T, strict=True)):
        look = {"color": SERIES[k % len(SERIES)], "label": layer_title(name), "ls": "-" if k < len(SERIES) else "--"}
        lines.append(draw_curve(axes, steps, values, log_time=scale == "log", **look))
    set_time_axis(axes, steps, scale)
    place_legend(axes, lines, "below", columns=4)
    mark_iteration(axes, view, iteration)
    return figure


def layer_title(name: str) -> str:
    """Return `W_2` in mathtext for the parameter `weight_2`, and `W` for the hidden weights of two layers."""
    number = name.rpartition("_")[2]
    return f"$W_{{{number}}}$" if number.isdigit() else "$W$"

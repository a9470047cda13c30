"""`function`: the learned function of one input, with the data and the neurons (Boursier et al. 2022, Figure 2)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from dynamics_cli.analysis.panels.classes import classes_figure
from dynamics_cli.analysis.panels.rays import MANY_STARS
from dynamics_cli.analysis.states import shown_states, state_row
from dynamics_cli.analysis.view import View
from dynamics_cli.measures.arrays import Floats
from dynamics_cli.measures.neurons import kinks, norms
from dynamics_cli.plotting.layout import figure_legend
from dynamics_cli.plotting.panels.function_1d import (
    FunctionPanel,
    Limits,
    common_zero,
    default_window,
    draw_function_1d,
)
from dynamics_cli.plotting.style import PALETTE

BEYOND = 10.0
"""Where a run diverged, the window is at most so many times as high as the largest label."""
GRID = 256


@dataclass(frozen=True)
class Frame:
    """The axes that all states of a run share: inputs, outputs, and neurons (on the right)."""

    window: Limits
    limits: Limits
    neuron_limits: Limits


def function_missing(view: View) -> str | None:
    """Return why the learned function cannot be drawn, or None."""
    if view.no_dataset:
        return view.no_dataset
    d = view.dataset.input_dim
    if d != 1:
        return f"it shows functions of one input, and here inputs have {d} dimensions"
    if not view.complete:
        return "not all parameters of the network are recorded (see record.parameters in its config)"
    return None if view.states else "no finite parameters are recorded yet"


def function_figure(view: View, iteration: int | None) -> Figure:
    """Draw the learned function at the state nearest to `iteration`, or at four states on common axes."""
    if view.outputs > 1:
        return classes_figure(view, iteration)
    states = shown_states(view, iteration)
    frame = common_frame(view, [state.index for state in states])
    figure, axes = state_row(len(states), 1.0)
    handles: list[Artist] = []
    for k, (panel, state) in enumerate(zip(axes, states, strict=True)):
        handles = draw_state(panel, view, state.index, frame, first=k == 0, last=k == len(states) - 1)
        panel.set_title(state.title)
    figure_legend(figure, handles, columns=4)
    return figure


def neurons(view: View, i: int) -> tuple[Floats, Floats]:
    """Return where the neurons of state `i` stand: kinks (m,) and `s_j ||w_j||` (m,); none for deep networks.

    Without bias every kink is at 0.
    """
    if not view.two_layer:
        return np.empty(0), np.empty(0)
    W = view.weights(i)
    places = kinks(W) if W.shape[1] == 2 else np.where(W[:, 0] != 0, 0.0, np.nan)
    return places, view.signs(i) * norms(W)


def common_frame(view: View, states: Sequence[int]) -> Frame:
    """Return axes that contain the data, and the function and the neurons in all `states`."""
    data = view.dataset
    x, y = (data.x[:, 0], data.y) if data.x_test is None else (_both(data.x[:, 0], data.x_test[:, 0]), _labels(view))
    window = default_window(x)
    grid = np.linspace(*window, GRID)
    largest = BEYOND * max(float(np.abs(y).max()), 1e-12)
    cap = largest if view.run.status == "diverged" else np.inf
    curves = [np.clip(view.line_function(i)(grid), -cap, cap) for i in states]
    stars = []
    for i in states:
        places, outputs = neurons(view, i)
        stars.append(outputs[(places >= window[0]) & (places <= window[1])])
    limits, neuron_limits = common_zero(np.concatenate([y, *curves]), np.concatenate(stars))
    return Frame(window, limits, neuron_limits)


def draw_state(axes: Axes, view: View, i: int, frame: Frame, *, first: bool = True, last: bool = True) -> list[Artist]:
    """Draw the function of state `i` with data and neurons; return the handles of a legend.

    Of panels in a row only the `first` has the left and the `last` the right labels.
    """
    data = view.dataset
    places, outputs = neurons(view, i)
    panel = draw_function_1d(
        axes,
        view.line_function(i),
        data.x[:, 0],
        data.y,
        kinks=places,
        outputs=outputs,
        window=frame.window,
        limits=frame.limits,
        neuron_limits=frame.neuron_limits,
        legend="none",
    )
    handles: list[Artist] = [panel.points, panel.function]
    twin = panel.neuron_axes
    if data.x_test is not None and data.y_test is not None:
        handles.insert(1, _draw_held_out(axes, twin, data.x_test[:, 0], data.y_test))
    if view.two_layer:
        handles.append(_star_handle(panel.stars))
    else:
        twin.yaxis.set_visible(False)
        twin.spines["right"].set_visible(False)
    if len(places) > MANY_STARS:
        _fade(axes, panel)
    if panel.outside and not (first and last):
        axes.set_xlabel(f"input $x$\n({panel.outside} \N{BLACK STAR} outside)")
    if not first:
        axes.set_ylabel("")
        axes.tick_params(labelleft=False)
    if not last:
        twin.set_ylabel("")
        twin.tick_params(labelright=False)
    return handles


def _star_handle(stars: Line2D) -> Line2D:
    """Return a legend handle that stays as it is when the stars are made smaller."""
    star: dict[str, Any] = {"ls": "none", "marker": "*", "mew": 0.3, "label": "neurons"}
    return Line2D([], [], ms=stars.get_markersize(), mfc=stars.get_markerfacecolor(), mec="white", **star)


def _fade(axes: Axes, panel: FunctionPanel) -> None:
    """Make very many stars small and pale and put the function on top of them."""
    panel.stars.set(markersize=3.0, markeredgewidth=0, alpha=0.3, rasterized=True)
    axes.set_zorder(panel.neuron_axes.get_zorder() + 1)
    axes.patch.set_visible(False)


def _draw_held_out(axes: Axes, twin: Axes, x: Floats, y: Floats) -> Line2D:
    """Draw held-out data as rings, under the training data and on top of the line."""
    ring: dict[str, Any] = {"marker": "o", "ms": 4.5, "mfc": "white", "mec": PALETTE.data, "mew": 0.9, "ls": "none"}
    return twin.plot(x, y, label="held-out data", zorder=3.5, transform=axes.transData, **ring)[0]


def _both(a: Floats, b: Floats) -> Floats:
    return np.concatenate([a, b])


def _labels(view: View) -> Floats:
    data = view.dataset
    return data.y if data.y_test is None else _both(data.y, data.y_test)

"""Figures 2, 4 and 5: panels of the learned function with neurons as stars, on common axes, one legend below."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Drawing

from dynamics_cli.measures.arrays import Floats
from dynamics_cli.plotting.layout import figure_legend, panel_label
from dynamics_cli.plotting.panels.inputs import common_zero, default_window, draw_function_1d
from dynamics_cli.plotting.style import PALETTE, new_figure

from .states import LineState

Function = Callable[[Floats], Floats]


def draw_states(
    states: Sequence[LineState],
    titles: Sequence[str],
    x: Floats,
    y: Floats,
    *,
    overlay: Function | None = None,
    overlay_label: str = "",
    extra: Callable[[Axes], None] | None = None,
    window: tuple[float, float] | None = None,
) -> Drawing:
    """Draw one panel a state, two in a row, and one more by `extra` where it is given; data (n,) and (n,).

    `overlay` is drawn dashed in the last state. All panels share both scales, so that growth can be seen.
    """
    count = len(states) + (extra is not None)
    rows = (count + 1) // 2
    figure, axes = new_figure(2, rows, aspect=0.68, extra_height=0.3)
    window = window or default_window(x)
    limits, neuron_limits = _limits(states, y, window, overlay)
    handles = []
    for k, (state, title) in enumerate(zip(states, titles, strict=True)):
        panel = draw_function_1d(
            axes[k],
            state.function,
            x,
            y,
            kinks=state.kinks,
            outputs=state.outputs,
            window=window,
            limits=limits,
            neuron_limits=neuron_limits,
        )
        panel_label(axes[k], k, f"{title} ({state.when})")
        handles = [panel.points, panel.function, panel.stars]
        if overlay is not None and k == len(states) - 1:
            grid = np.linspace(*window, 800)
            look: dict[str, Any] = {"color": PALETTE.theory, "lw": 1.0, "ls": (0, (4, 2)), "zorder": 3.5}
            handles += axes[k].plot(grid, overlay(grid), label=overlay_label, **look)
    if extra is not None:
        extra(axes[len(states)])
    for unused in axes[count:]:
        unused.remove()
    figure_legend(figure, handles, columns=4)
    return figure


def _limits(
    states: Sequence[LineState], y: Floats, window: tuple[float, float], overlay: Function | None
) -> tuple[tuple[float, float], tuple[float, float]]:
    grid = np.linspace(*window, 512)
    curves = [state.function(grid) for state in states] + ([overlay(grid)] if overlay is not None else [])
    stars = [state.outputs[(state.kinks >= window[0]) & (state.kinks <= window[1])] for state in states]
    return common_zero(np.concatenate([y, *curves]), np.concatenate(stars))

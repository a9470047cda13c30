"""What several figures draw: the learned function with neurons as stars, and the loss with its saddle."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from dynamics_cli import kit
from dynamics_cli.plotting.panels.inputs import common_zero, default_window, draw_function_1d
from dynamics_cli.plotting.panels.loss import Plateau

from .states import LineState, LossCurve

Function = Callable[[kit.Floats], kit.Floats]


def draw_states(
    states: Sequence[LineState], titles: Sequence[str], x: kit.Floats, y: kit.Floats, *,
    overlay: Function | None = None, overlay_label: str = "", extra: Callable[[kit.Axes], None] | None = None,
) -> kit.Drawing:  # fmt: skip
    """Draw one panel a state, two in a row, and one more by `extra` where it is given; data (n,) and (n,).

    `overlay` is drawn dashed in the last state. All panels share both scales, so that growth can be seen.
    """
    count = len(states) + (extra is not None)
    rows = (count + 1) // 2
    figure, axes = kit.new_figure(2, rows, aspect=0.68, extra_height=0.3)
    window = default_window(x)
    limits, neuron_limits = _limits(states, y, window, overlay)
    handles = []
    for k, (state, title) in enumerate(zip(states, titles, strict=True)):
        panel = draw_function_1d(
            axes[k], state.function, x, y, kinks=state.kinks, outputs=state.outputs, window=window, limits=limits,
            neuron_limits=neuron_limits,
        )  # fmt: skip
        kit.panel_label(axes[k], k, f"{title} ({state.when})")
        handles = [panel.points, panel.function, panel.stars]
    if overlay is not None:
        grid = np.linspace(*window, 800)
        look: dict[str, Any] = {"color": kit.PALETTE.theory, "lw": 1.0, "ls": (0, (4, 2)), "zorder": 3.5}
        handles += axes[len(states) - 1].plot(grid, overlay(grid), label=overlay_label, **look)
    if extra is not None:
        extra(axes[len(states)])
    for unused in axes[count:]:
        unused.remove()
    kit.figure_legend(figure, handles, columns=4)
    return figure


def _limits(
    states: Sequence[LineState], y: kit.Floats, window: tuple[float, float], overlay: Function | None
) -> tuple[tuple[float, float], tuple[float, float]]:
    grid = np.linspace(*window, 512)
    curves = [state.function(grid) for state in states] + ([overlay(grid)] if overlay is not None else [])
    stars = [state.outputs[(state.kinks >= window[0]) & (state.kinks <= window[1])] for state in states]
    return common_zero(np.concatenate([y, *curves]), np.concatenate(stars))


def draw_profile(axes: kit.Axes, panel: int, curve: LossCurve, saddle: kit.Plateau | None) -> None:
    """Draw the loss as panel number `panel`, its saddle underlined."""
    plateaus = [Plateau(saddle.value, saddle.first, saddle.last)] if saddle else []
    kit.draw_loss(axes, curve.iterations, curve.losses, scale="linear", plateaus=plateaus, xlabel=curve.xlabel)
    kit.panel_label(axes, panel, "Loss profile")

"""`measures`: what was measured at the recorded states, such as accuracies and the loss on held-out data."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from dynamics_cli.analysis.panels.common import mark_iteration
from dynamics_cli.analysis.scales import time_scale, value_scale
from dynamics_cli.analysis.states import ROW_WIDTH
from dynamics_cli.analysis.view import View
from dynamics_cli.measures.arrays import Floats
from dynamics_cli.plotting.layout import panel_label, place_legend
from dynamics_cli.plotting.style import SERIES, TEXT_WIDTH, new_figure
from dynamics_cli.plotting.time_axis import TimeScale, draw_curve, set_time_axis, set_value_axis, visible

MANY_CURVES = 20
"""Curves that a measure of several numbers shows at most."""
NAMES = {
    "train_accuracy": "training",
    "test_accuracy": "held-out",
    "test_loss": "held-out",
    "weight_norm": "norm of all weights",
}
"""What measures are called in pictures."""
COLORS = {"train": SERIES[0], "test": SERIES[1]}
"""Colours of what is measured on training and on held-out data."""


def measures_missing(view: View) -> str | None:
    """Return why there are no measures to draw, or None."""
    if not view.run.measures:
        return "no measures are recorded (see record.measures in its config)"
    return None if len(view.iterations) else "no measures are recorded yet"


def measures_figure(view: View, iteration: int | None) -> Figure:
    """Draw accuracies in one panel, losses in one, and every other measure in one of its own."""
    names = list(view.run.measures)
    accuracies = [name for name in ("train_accuracy", "test_accuracy") if name in names]
    scale = time_scale(view.iterations, *(_values(view, name) for name in names))
    draw: list[Callable[..., None]] = []
    if accuracies:
        draw.append(partial(_draw_accuracies, view=view, names=accuracies))
    if "test_loss" in names:
        draw.append(partial(_draw_losses, view=view))
    others = [name for name in names if name not in (*accuracies, "test_loss")]
    draw += [partial(_draw_other, view=view, name=name) for name in others]
    columns = min(len(draw), 3)
    rows = -(-len(draw) // columns)
    width = {1: None, 2: TEXT_WIDTH, 3: ROW_WIDTH}[columns]
    figure, axes = new_figure(columns, rows, width=width, aspect=0.8)
    for k, (panel, draw_one) in enumerate(zip(axes, draw, strict=False)):
        draw_one(panel, scale=scale)
        if len(draw) > 1:
            panel_label(panel, k)
        mark_iteration(panel, view, iteration)
    for unused in axes[len(draw) :]:
        unused.remove()
    return figure


def _values(view: View, name: str) -> Floats:
    """Return a measure as (K, c): one or several numbers a state."""
    return np.array(view.run.measures[name], dtype=np.float64).reshape(len(view.iterations), -1)


def _draw_accuracies(axes: Axes, *, view: View, names: Sequence[str], scale: TimeScale) -> None:
    """Draw shares of right answers between 0 and 1, training and held-out."""
    lines = []
    for name in names:
        part = name.partition("_")[0]
        look = {"color": COLORS[part], "label": NAMES[name], "drawstyle": "steps-post"}
        lines.append(draw_curve(axes, view.iterations, _values(view, name)[:, 0], log_time=scale == "log", **look))
    least = min(float(np.nanmin(_values(view, name), initial=1.0)) for name in names)
    set_value_axis(axes, [min(0.5, least), 1.0], "accuracy", log=False)
    set_time_axis(axes, view.iterations, scale)
    place_legend(axes, lines, "below")


def _draw_losses(axes: Axes, *, view: View, scale: TimeScale) -> None:
    """Draw the loss on held-out data beside the training loss."""
    held_out, steps = _values(view, "test_loss")[:, 0], view.iterations
    losses, at = np.asarray(view.run.losses, dtype=np.float64), np.asarray(view.run.loss_iterations)
    together = np.concatenate([held_out, losses])
    log = set_value_axis(axes, together, r"loss $L(\theta^t)$", log=value_scale(together) == "log")
    lines = []
    for x, y, part in ((at, losses, "train"), (steps, held_out, "test")):
        label = "training" if part == "train" else "held-out"
        if len(x):
            curve = visible(y, log=log)
            lines.append(draw_curve(axes, x, curve, log_time=scale == "log", color=COLORS[part], label=label))
    set_time_axis(axes, steps, scale)
    place_legend(axes, lines, "below")


def _draw_other(axes: Axes, *, view: View, name: str, scale: TimeScale) -> None:
    """Draw a measure of one or several numbers a state."""
    values = _values(view, name)
    log = set_value_axis(axes, values, NAMES.get(name, name.replace("_", " ")), log=value_scale(values) == "log")
    for column in visible(values, log=log).T[:MANY_CURVES]:
        draw_curve(axes, view.iterations, column, log_time=scale == "log", color=SERIES[0])
    set_time_axis(axes, view.iterations, scale)

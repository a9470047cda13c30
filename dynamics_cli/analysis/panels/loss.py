"""`loss`: the training loss, over iterations and, where time is not iterations x step, over time."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from dynamics_cli.analysis.panels.common import mark_iteration, mark_time
from dynamics_cli.analysis.scales import time_scale, value_scale
from dynamics_cli.analysis.states import plateaus_of
from dynamics_cli.analysis.view import View
from dynamics_cli.measures.arrays import Floats
from dynamics_cli.plotting.layout import format_number, panel_label
from dynamics_cli.plotting.panels.loss import LossPanel, Plateau, draw_loss
from dynamics_cli.plotting.style import new_figure

LABELLED = 0.08
"""Share of the iterations that a plateau covers at least to be underlined: room for its value."""


def loss_missing(view: View) -> str | None:
    """Return why there is no loss to draw, or None."""
    return None if len(view.run.losses) else "no loss is recorded yet"


def loss_figure(view: View, iteration: int | None) -> Figure:
    """Draw the training loss with its plateaus; `iteration` is marked."""
    times = flow_times(view)
    figure, axes = new_figure(1 if times is None else 2)
    draw_run_loss(axes[0], view)
    if times is not None:
        panel_label(axes[0], 0)
        panel_label(axes[1], 1)
        _draw_over_time(axes[1], view, times, iteration)
    mark_iteration(axes[0], view, iteration)
    return figure


def draw_run_loss(axes: Axes, view: View, *, plateaus: bool = True) -> LossPanel:
    """Draw the training loss of a run over iterations, on scales that suit it."""
    iterations, losses = view.run.loss_iterations, view.run.losses
    return draw_loss(
        axes,
        iterations,
        losses,
        scale=value_scale(losses),
        time_scale=time_scale(iterations, losses),
        plateaus=_plateaus(view) if plateaus else (),
    )


def flow_times(view: View) -> Floats | None:
    """Return the times (L,) of the recorded losses, or None where they only repeat the iterations or are not known."""
    times = view.run.times
    if times is None or np.isfinite(times).sum() < 2:
        return None
    return np.asarray(times, dtype=np.float64)


def _draw_over_time(axes: Axes, view: View, times: Floats, iteration: int | None) -> None:
    """Draw the loss over time; where the axis is logarithmic, from the first step on."""
    finite = np.isfinite(times)
    times, losses = times[finite], view.run.losses[finite]
    scale = time_scale(times, losses)
    if scale == "log":
        losses, times = losses[times > 0], times[times > 0]
    draw_loss(axes, times, losses, scale=value_scale(losses), time_scale=scale, xlabel="time", ylabel="")
    if iteration is not None:
        i = int(np.argmin(np.abs(view.run.loss_iterations[finite] - iteration)))
        mark_time(axes, float(times[i]), f"it. {format_number(int(view.run.loss_iterations[finite][i]))}")


def _plateaus(view: View) -> list[Plateau]:
    span = LABELLED * float(view.run.loss_iterations[-1])
    return [Plateau(p.value, p.first, p.last) for p in plateaus_of(view) if p.length >= span]

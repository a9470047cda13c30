"""Curves against epochs, as Figures 2 and 6 to 9 show them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from dynamics_cli.measures.arrays import Floats
from dynamics_cli.plotting.style import SERIES, styled
from dynamics_cli.plotting.time_axis import draw_curve, set_time_axis, set_value_axis, visible

DASHED = (0, (3, 1.5))
"""Line style of held-out data, and of neurons u."""


class Curve(NamedTuple):
    """One curve of a panel."""

    epochs: Floats
    values: Floats
    label: str
    color: str = SERIES[0]
    style: Any = "-"


@styled
def draw_over_epochs(
    axes: Axes, curves: Sequence[Curve], ylabel: str, *, log: bool = False, log_time: bool = True, share: bool = False
) -> list[Line2D]:
    """Draw curves over epochs and return them; a `share` has an axis from 0 to 1."""
    log = set_value_axis(axes, np.concatenate([curve.values for curve in curves]), ylabel, log=log)
    lines = [
        draw_curve(
            axes, c.epochs, visible(c.values, log=log), log_time=log_time, color=c.color, ls=c.style, label=c.label
        )
        for c in curves
    ]
    set_time_axis(axes, curves[0].epochs, "log" if log_time else "linear", "epoch")
    if log_time:
        _round_ticks(axes, curves[0].epochs)
    if share:
        axes.set(ylim=(-0.04, 1.04), yticks=[0, 0.5, 1])
    return lines


def _round_ticks(axes: Axes, epochs: Floats) -> None:
    """Tick 0 and the powers of ten from the first recorded epoch on: below it the axis is linear."""
    positive = epochs[epochs > 0]
    if len(positive) > 1:
        powers = np.arange(np.ceil(np.log10(positive[0]) + 0.2), np.floor(np.log10(positive[-1])) + 1)
        axes.set_xticks([0.0, *(10.0**powers)])

"""Several runs in one picture: their losses, or one measure of all of them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.figure import Figure

from dynamics_cli.analysis.curves import time_scale, value_scale
from dynamics_cli.analysis.panels.training import NAMES
from dynamics_cli.errors import UsageError, did_you_mean
from dynamics_cli.measures.arrays import Floats, Ints
from dynamics_cli.plotting.layout import figure_legend
from dynamics_cli.plotting.style import SERIES, new_figure, styled
from dynamics_cli.plotting.time_axis import draw_curve, set_time_axis, set_value_axis, visible
from dynamics_cli.runs import Run
from dynamics_cli.runs.compare import settings_that_differ

MANY_SETTINGS = 3
"""Differing settings that a legend names; of runs that differ in more it gives the names."""


@styled
def draw_overlay(runs: Sequence[Run], name: str = "loss") -> Figure:
    """Draw the training loss (`loss`) or a measure of several runs over iterations; the legend says how they differ.

    Of a measure of several numbers the first is drawn.

    Raises:
        UsageError: a run has no such measure.
    """
    curves = [curve_of(run, name) for run in runs]
    scale = time_scale(*curves[0])
    figure, (axes,) = new_figure(1)
    values = np.concatenate([values for _, values in curves])
    label = r"loss $L(\theta^t)$" if name == "loss" else NAMES.get(name, name.replace("_", " "))
    log = set_value_axis(axes, values, label, log=value_scale(values) == "log")
    lines = []
    for k, ((steps, curve), text) in enumerate(zip(curves, labels_of(runs), strict=True)):
        look = {"color": SERIES[k % len(SERIES)], "ls": ("-", "--", ":")[k // len(SERIES) % 3], "label": text}
        lines.append(draw_curve(axes, steps, visible(curve, log=log), log_time=scale == "log", **look))
    longest = max((steps for steps, _ in curves), key=lambda steps: int(steps[-1]))
    set_time_axis(axes, longest, scale)
    figure_legend(figure, lines)
    return figure


def curve_of(run: Run, name: str) -> tuple[Ints, Floats]:
    """Return iterations and values (k,) of a curve, without states at which nothing was measured."""
    if name == "loss":
        return np.asarray(run.loss_iterations), np.asarray(run.losses, np.float64)
    if name not in run.measures:
        there = ["loss", *run.measures]
        raise UsageError(f"{run.path} has no measure {name!r}{did_you_mean(name, there)}; it has {', '.join(there)}")
    steps = np.asarray(run.snapshot_iterations)
    values = np.asarray(run.measures[name], np.float64).reshape(len(steps), -1)[:, 0]
    return steps[~np.isnan(values)], values[~np.isnan(values)]


def labels_of(runs: Sequence[Run]) -> list[str]:
    """Return what tells runs apart: the settings that differ when they are few, otherwise their names."""
    differing = [settings_that_differ(runs[0].config, run.config) for run in runs]
    first = {key: value for one in differing for key, (value, _) in one.items() if key != "name"}
    if not 0 < len(first) <= MANY_SETTINGS:
        return [run.path.name for run in runs]
    own = [first | {key: value for key, (_, value) in one.items()} for one in differing]
    return [", ".join(f"{key.rpartition('.')[2]} {one[key]}" for key in first) for one in own]

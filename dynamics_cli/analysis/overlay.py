"""Several runs in one picture: their losses, or one measure of all of them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from dynamics_cli.analysis.curves import time_scale, value_scale
from dynamics_cli.analysis.panels.training import (
    MANY_CURVES,
    bound_of,
    called,
    draw_columns,
    drawn_measures,
    note_cut,
)
from dynamics_cli.errors import UsageError, did_you_mean
from dynamics_cli.measures.arrays import Floats, Ints
from dynamics_cli.plotting.layout import figure_legend, note
from dynamics_cli.plotting.style import SERIES, new_figure, styled
from dynamics_cli.plotting.time_axis import LogAxes, set_time_axis, set_value_axis
from dynamics_cli.runs import Run
from dynamics_cli.runs.compare import settings_that_differ
from dynamics_cli.runs.run import columns_of, measured

WIDE = 52
"""Characters of a line of a legend."""
MANY_SETTINGS = 3
"""Differing settings that a legend names; of runs that differ in more it gives the names."""

FEW_NAMES = 3
"""Names of the numbers of a measure that the label of an axis has room for."""


@styled
def draw_overlay(runs: Sequence[Run], name: str = "loss", log: LogAxes | None = None) -> Figure:
    """Draw the training loss (`loss`) or a measure of several runs over iterations; the legend says how they differ.

    Of a measure of several numbers the first are the darkest. `log` says which axes are logarithmic, by default those
    that this suits. A measure's bound is dashed, in the colour of its run where runs differ in it.

    Raises UsageError: a run has no such measure, or nothing recorded of it.
    """
    curves = [_columns(run, name) for run in runs]
    times = [np.asarray(steps, np.float64) for steps, _ in curves]
    bounds = [None if name == "loss" else bound_of(run, name) for run in runs]
    values = np.concatenate([values.ravel() for _, values in curves])
    scale, value = time_scale(*curves[0], asked=log), value_scale(values, log)
    figure, (axes,) = new_figure(1)
    label = r"loss $L(\theta^t)$" if name == "loss" else called(name)
    reach = np.append(values, [line[1] for line in bounds if line is not None])
    is_log = set_value_axis(axes, reach, label, log=value == "log")
    handles = []
    for k, (steps, (_, numbers), line) in enumerate(zip(times, curves, bounds, strict=True)):
        color, ls = SERIES[k % len(SERIES)], ("-", "--", ":")[k // len(SERIES) % 3]
        handles.append(draw_columns(axes, steps, numbers, (color,), log=is_log, scale=scale, ls=ls)[0])
        if line is not None and line not in bounds[:k]:
            axes.axhline(line[1], color=color if len(set(bounds)) > 1 else "black", ls="--", lw=0.8)
    set_time_axis(axes, max(times, key=lambda steps: float(steps[-1])), scale)
    if name != "loss" and len(columns := columns_of(runs[0], name)) > 1:
        shown = columns[:MANY_CURVES]
        names = ", ".join(shown) if len(shown) <= FEW_NAMES else f"{shown[0]} to {shown[-1]}"
        note(axes, f"dark to pale: {names}")
    note_cut(axes, max(numbers.shape[1] for _, numbers in curves))
    for handle, text in zip(handles, labels_of(runs), strict=True):
        handle.set_label(text)
    words = dict.fromkeys(line[0] for line in bounds if line is not None)
    handles += [Line2D([], [], color="black", ls="--", lw=0.8, label=word) for word in words]
    longest = max(len(str(one.get_label())) for one in handles)
    figure_legend(figure, handles, columns=min(4, max(1, WIDE // (longest + 5))))  # a line takes about five characters
    return figure


def overlaid(runs: Sequence[Run]) -> list[str]:
    """Return the drawable curves of all `runs`: the loss, and the measures that each of them has."""
    return ["loss", *(name for name in drawn_measures(runs[0]) if all(name in run.measures for run in runs))]


def curve_of(run: Run, name: str) -> tuple[Ints, Floats]:
    """Return iterations and values (k,) of the loss or a measure; of several numbers the first one."""
    steps, values = _columns(run, name)
    return steps, values[:, 0]


def _columns(run: Run, name: str) -> tuple[Ints, Floats]:
    """Return iterations (k,) and values (k, c) of a curve of a run."""
    if name == "loss":
        steps, values = np.asarray(run.loss_iterations), np.asarray(run.losses, np.float64)[:, None]
    elif name in drawn_measures(run):
        steps, values = measured(run, name)
    else:
        there = ["loss", *drawn_measures(run)]
        raise UsageError(f"{run.path} has no measure {name!r}{did_you_mean(name, there)}; it has {', '.join(there)}")
    if not len(steps):
        raise UsageError(f"{run.path} has nothing recorded of {name!r} yet")
    return steps, values


def labels_of(runs: Sequence[Run]) -> list[str]:
    """Return the labels that tell runs apart: the settings that differ when they are few, otherwise their names."""
    differing = [settings_that_differ(runs[0].config, run.config) for run in runs]
    first = {key: value for one in differing for key, (value, _) in one.items() if key != "name"}
    if not 0 < len(first) <= MANY_SETTINGS:
        return [run.path.name for run in runs]
    own = [first | {key: value for key, (_, value) in one.items()} for one in differing]
    return [", ".join(f"{key.rpartition('.')[2]} {one[key]}" for key in first) for one in own]

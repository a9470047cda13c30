"""Several runs in one chart: their losses, or one measure of all of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

import numpy as np

from dynamics_cli.analysis.curves import called, drawn_measures, is_linear
from dynamics_cli.errors import UsageError, did_you_mean
from dynamics_cli.plotting.chart import Chart, Line, look, references
from dynamics_cli.plotting.labels import format_number
from dynamics_cli.plotting.time_axis import LogAxes
from dynamics_cli.runs.compare import settings_that_differ
from dynamics_cli.runs.marks import marks_of, marks_of_all
from dynamics_cli.runs.run import Run, columns_of, measured
from dynamics_cli.runs.titles import title_of

MANY_SETTINGS = 3
"""Differing settings that a legend names; of runs that differ in more it gives the names."""


def overlay_chart(
    runs: Sequence[Run],
    name: str = "loss",
    log: LogAxes | None = None,
    labels: Mapping[str, str] = MappingProxyType({}),
) -> Chart:
    """Chart the loss (`loss`) or a measure of several runs; the legend says how they differ.

    `labels` has texts for the curve, for `iteration`, and for settings in the legend.

    Raises UsageError: a run has no such measure, or nothing recorded of it.
    """
    lines = []
    for k, (run, label) in enumerate(zip(runs, labels_of(runs, labels), strict=True)):
        known = overlaid([run])
        if name not in known:
            raise UsageError(
                f"{run.path} has no measure {name!r}{did_you_mean(name, known)}; it has"
                f" {', '.join(known)}"
            )
        if name == "loss":
            x = run.loss_iterations
            y = np.asarray(run.losses)[:, None]
        else:
            x, y = measured(run, name)
        if not len(x):
            raise UsageError(f"{run.path} has nothing recorded of {name!r} yet")
        lines.append(Line(x=x, y=y, name=label, **look(k)))
    levels = []
    note = ""
    if name != "loss":
        each = [columns_of(run, name) for run in runs]
        colors = [line.color for line in lines]
        levels = references([(c[0].bound, color) for c, color in zip(each, colors, strict=True)])
        legend = [column.label for column in max(each, key=len)]
        if len(legend) > 1:
            note = f"{legend[0]} to {legend[-1]}"
    axes: dict[str, Any] = {"log": log, "linear": any(is_linear(run, name) for run in runs)}
    axes["xlabel"] = labels.get("iteration", "iteration")
    axes["ylabel"] = labels.get(name) or called(name)
    marks = marks_of_all(runs)
    return Chart(lines=lines, levels=levels, marks=marks, note=note, **axes)


def overlaid(runs: Sequence[Run]) -> list[str]:
    """Return the drawable curves of all `runs`: the loss, and the measures that each has."""
    measures = drawn_measures(runs[0])
    return ["loss", *(name for name in measures if all(name in run.measures for run in runs))]


def _said(title: str, value: Any) -> str:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return f"{title} {value}"
    exact = float(f"{value:.3g}") == value  # rounded, two runs could have the same name
    if not exact:
        return f"{title} = {value}"
    return f"{title} = {format_number(value)}"


def labels_of(runs: Sequence[Run], titles: Mapping[str, str] = MappingProxyType({})) -> list[str]:
    """Return different labels for runs: the settings that differ where these are few, or names.

    `titles` has texts for settings.
    """
    differing = [settings_that_differ(runs[0].config, run.config) for run in runs]
    first: dict[str, Any] = {}
    for changes in differing:
        first |= {key: value for key, (value, _) in changes.items() if key != "name"}
    labels = [run.path.name for run in runs]
    if 0 < len(first) <= MANY_SETTINGS:
        for k, (run, changes) in enumerate(zip(runs, differing, strict=True)):
            settings = first | {key: value for key, (_, value) in changes.items()}
            config = run.config.model_dump()
            known = {key: titles.get(key) or title_of(key, config) for key in first}
            if "changes" in first:  # in words, as at the lines that mark them
                known.pop("changes")
                words = [f"{mark.words} from {mark.at}" for mark in marks_of(run)]
                labels[k] = "; ".join(words) or "no change"
            if known:
                said = ", ".join(_said(known[key], settings[key]) for key in known)
                labels[k] = f"{said}; {labels[k]}" if "changes" in first else said
    counts = Counter(labels)
    return [f"{k + 1}: " * (counts[name] > 1) + name for k, name in enumerate(labels)]

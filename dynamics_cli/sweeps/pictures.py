"""Pictures of a sweep: a heat map over two settings, and medians over a setting or over iterations.

The note of a picture names the settings that it does not show: nothing is averaged over in silence.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray

from dynamics_cli.errors import UsageError, did_you_mean
from dynamics_cli.plotting.chart import Chart, Line, draw_charts, look
from dynamics_cli.plotting.layout import ticks_at
from dynamics_cli.plotting.panels.phase import draw_phase_diagram
from dynamics_cli.plotting.style import PALETTE, SMALL, new_figure, styled
from dynamics_cli.plotting.time_axis import scale_of
from dynamics_cli.sweeps.columns import WITHOUT_CURVES, SweepTable

Floats = NDArray[np.float64]
MOST_LINES, MOST_CHARTS = 21, 9
"""Families of curves in a chart, and charts of a picture, that are drawn at most."""
PICTURES = {
    "phase": "heat map of medians over two settings",
    "curve": "medians over a setting, by the others",
    "losses": "losses, or a measure, over iterations by setting",
}


def pictures_of(table: SweepTable) -> dict[str, str]:
    """Return the pictures that a sweep offers, with their descriptions."""
    two, some = sum(table.numeric(key) for key in table.free) > 1, bool(table.settings)
    return {name: text for name, text in PICTURES.items() if {"phase": two, "curve": some}.get(name, True)}


def draw_named(
    table: SweepTable, panels: Sequence[str], columns: Mapping[str, str], measure: str | None
) -> Iterator[tuple[str, Figure]]:
    """Draw `columns`, or `panels`, by default all, one after the other, each with the name of its file.

    Raises UsageError: there is no such panel, column or measure, or both panels and columns are named.
    """
    said = "".join(f"-{key}={_in_file(value)[:40]}" for key, value in table.where.items())
    if columns and panels:
        raise UsageError(f"the panel {panels[0]} has its own axes: --x, --y and --color go without --panel")
    if columns:
        x, y = columns.get("x", table.main), columns.get("y", measure)
        figure = draw_sweep(table, "curve", y, x=x, by=[columns["color"]] if "color" in columns else [])
        yield _in_file("-".join(columns.values())) + said, figure
        return
    offered = [name for name in pictures_of(table) if name != "losses" or measure not in WITHOUT_CURVES]
    for name in panels or offered:
        chosen = measure or ("final_loss" if name == "losses" else table.measures[0])
        yield name + ("" if chosen == "final_loss" else f"-{_in_file(chosen)}") + said, draw_sweep(table, name, chosen)


def _in_file(text: object) -> str:
    return re.sub("[^A-Za-z0-9_.+-]+", "_", str(text))


@styled
def draw_sweep(
    table: SweepTable, panel: str, measure: str | None = None, *, x: str = "", by: Sequence[str] | None = None
) -> Figure:
    """Draw a picture of a sweep: of a final number, over the setting `x`, with a line for each family of settings `by`.

    Raises:
        UsageError: the sweep has no such picture, measure or setting; the message names those that it has.
    """
    measure, x = measure or table.measures[0], x or table.main
    for name, known, what in ((panel, [*pictures_of(table)], "panel"), (measure, table.measures, "measure"),
                              *((key, [*table.settings, "seed"], "setting") for key in (x, *(by or ())))):  # fmt: skip
        if name not in known:
            raise UsageError(f"no {what} {name!r} here; there are {', '.join(known)}{did_you_mean(name, known)}")
    if panel == "phase":
        x, y = [key for key in table.free if table.numeric(key)][:2]
        figure, note = _phase(table, x, y, measure), table.note([x, y])
    else:
        keys = [key for key in table.free if panel == "losses" or key != x] if by is None else list(by)
        charts = sweep_charts(table, "" if panel == "losses" else x, measure, keys)
        figure, note = draw_charts(charts), table.note([*keys, *([x] if panel == "curve" else [])])
        if (drawn := sum(len(chart.lines) for chart in charts)) < (count := len(table.families(keys))):
            chosen = f"{drawn} of {count} families are drawn, --where KEY=VALUE chooses others"
            note = "; ".join(filter(None, [note, chosen]))
    figure.suptitle(textwrap.fill(note, round(14.5 * figure.get_figwidth())), fontsize=SMALL, color=PALETTE.unsigned)
    return figure


def _phase(table: SweepTable, x: str, y: str, measure: str) -> Figure:
    """Draw the median over two settings."""
    (xs, across), (ys, up) = (np.unique(table.column(key), return_inverse=True) for key in (x, y))
    numbers, medians = table.column(measure), np.full((len(ys), len(xs)), np.nan)
    for i, j in {*zip(up, across, strict=True)}:
        cell = numbers[(up == i) & (across == j)]
        medians[i, j] = np.median(cell[np.isfinite(cell)]) if np.isfinite(cell).any() else np.nan
    figure, (axes,) = new_figure(width=4.2)
    scales = (scale_of("x", table.log, table.logarithmic(x)), scale_of("y", table.log, table.logarithmic(y)))
    for key, values, scale in ((x, xs, scales[0]), (y, ys, scales[1])):
        if scale == "log" and values[0] <= 0:
            raise UsageError(f"{key} has the value {values[0]:g}, which a logarithmic axis cannot show")
    draw_phase_diagram(axes, xs, ys, medians, labels=(x, y, measure.replace("_", " ")), scales=scales)
    return figure


def sweep_charts(table: SweepTable, x: str, measure: str, by: Sequence[str]) -> list[Chart]:
    """Chart the median of a final number over a setting, or of its curve over iterations, by the settings `by`.

    The setting with most values makes lines, the others make charts; of very many some are left out.
    """
    lines = max(by, key=lambda key: len(table.values(key)), default=None)
    outer = table.families([key for key in by if key != lines])
    at, words = table.places(x) if x else (np.zeros(0), None)
    values = np.unique(at[np.isfinite(at)])
    ticks = dict(zip(values.tolist(), words, strict=False)) if words else ticks_at(values)
    axes: dict[str, Any] = {"log": table.log, "ticks": ticks}
    axes |= {"xlabel": x, "scale_x": "log" if table.logarithmic(x) else "linear"} if x else {}
    name = "loss" if measure == "final_loss" and not x else measure.replace("_", " ")
    charts = []
    for title in _spaced([*outer], MOST_CHARTS):
        rows = table.families([lines] if lines else [], outer[title])
        curves = [(one, *_curve(table, rows[one], x, measure)) for one in _spaced([*rows], MOST_LINES)]
        own = [Line(x=xs, y=ys, name=one, bands=True, points=words is not None or len(xs) < 3, **look(k))
               for k, (one, xs, ys) in enumerate(curves)]  # fmt: skip
        charts.append(Chart(lines=own, ylabel=name, title=title, **axes))
    return charts


def _curve(table: SweepTable, rows: Sequence[int], x: str, measure: str) -> tuple[Floats, Floats]:
    """Return x (k,) and a number (k, N) of some jobs, filled with NaN."""
    if x:
        at, numbers = table.places(x)[0][rows], table.column(measure)[rows]
        xs = np.unique(at[np.isfinite(at)])
        found = [(np.flatnonzero(at == value), numbers[at == value]) for value in xs]
        grid = np.full((len(xs), max((len(one) for _, one in found), default=0)), np.nan)
        for k, (_, one) in enumerate(found):
            grid[k, : len(one)] = one
        return xs, grid
    curves = [one for row in rows if len((one := table.curve(row, measure))[0])]
    xs = max((steps for steps, _ in curves), key=len, default=np.zeros(0))
    grid = np.full((len(xs), len(curves)), np.nan)
    for column, (_, values) in enumerate(curves):
        grid[: len(values), column] = values
    return xs, grid


def _spaced(names: Sequence[str], most: int) -> list[str]:
    """Return at most `most` of the names, evenly spread, the ends among them."""
    return [names[round(k)] for k in np.linspace(0, len(names) - 1, min(len(names), most))]

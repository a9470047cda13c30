"""Pictures of a sweep: phase diagrams over two settings, curves with quantile bands, bands of losses."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray

from dynamics_cli.errors import UsageError, did_you_mean
from dynamics_cli.plotting.layout import note, place_legend
from dynamics_cli.plotting.panels.many_runs import LOG_FROM, draw_bands, draw_phase_diagram
from dynamics_cli.plotting.style import PALETTE, SERIES, new_figure
from dynamics_cli.runs.replica import replicas_of
from dynamics_cli.runs.run import Run
from dynamics_cli.runs.store.layout import is_array_name
from dynamics_cli.sweeps.directory import FIXED, read_rows, read_sweep

Floats = NDArray[np.float64]
WIDTH = 4.2
"""Width of a picture in inches."""
MOST_FAMILIES = 7
"""Families of curves that are drawn at most."""


class SweepTable:
    """The results of a sweep by column."""

    def __init__(self, directory: Path) -> None:
        """Read what a sweep wrote.

        Raises:
            RunError: the directory is not a sweep, or it has no table yet.

        """
        self.directory = directory
        self.axes: list[dict[str, Any]] = read_sweep(directory)["axes"]
        self.rows = read_rows(directory)
        numeric = [a for a in self.axes if all(isinstance(v, int | float) for v in a["values"])]
        # a grid of one value by n is a line
        self.numeric = [a for a in numeric if len(a["values"]) > 1] or numeric[:1]
        self._runs: dict[str, Sequence[Run]] = {}

    @property
    def measures(self) -> list[str]:
        """Names of the final numbers that the table has, the final loss first."""
        swept = {axis["key"] for axis in self.axes}
        # files are named after measures, so a column of another name is none
        names = [name for name in self.rows[0] if name not in (*FIXED, *swept) and is_array_name(str(name))]
        return sorted(names, key=lambda name: (name != "final_loss", name))

    def column(self, name: str) -> Floats:
        """Return a column as numbers, NaN where a job has none."""
        return np.array([_number(row.get(name, "")) for row in self.rows])

    def families(self, axes: Sequence[dict[str, Any]]) -> dict[str, list[int]]:
        """Return the rows by their settings on some axes, named as a legend says them."""
        families: dict[str, list[int]] = {}
        for k, row in enumerate(self.rows):
            name = ", ".join(f"{axis['key'].rsplit('.', 1)[-1]} {_short(row[axis['key']])}" for axis in axes)
            families.setdefault(name, []).append(k)
        return families

    def losses(self, k: int) -> tuple[Floats, Floats]:
        """Return the iterations and losses that the job of row k recorded."""
        row = self.rows[k]
        if row["path"] not in self._runs:
            run = Run(self.directory / row["path"])
            self._runs[row["path"]] = replicas_of(run) if row["replica"] else [run]
        run = self._runs[row["path"]][int(row["replica"] or 0)]
        return np.asarray(run.loss_iterations, float), np.asarray(run.losses)


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return float("nan")


def _short(text: str) -> str:
    number = _number(text)
    return text if np.isnan(number) else f"{number:.3g}"


class Picture(NamedTuple):
    """A picture of a sweep."""

    description: str
    draw: Callable[[SweepTable, str], Figure]
    """Draws a final number, by its name."""


def pictures_of(table: SweepTable) -> dict[str, Picture]:
    """Return the pictures that a sweep offers, by name."""
    pictures = {}
    keys = [axis["key"] for axis in table.numeric]
    if len(keys) >= 2:
        pictures["phase"] = Picture(f"heat map over {keys[0]} and {keys[1]}", _draw_phase)
    if keys:
        pictures["curve"] = Picture(f"median and quantiles against {keys[0]}", _draw_curve)
    pictures["losses"] = Picture("median and quantiles of the losses, by setting", _draw_losses)
    pictures["spread"] = Picture("final numbers of all jobs, sorted", _draw_spread)
    return pictures


def panels_of_sweep(table: SweepTable) -> dict[str, str]:
    """Return name -> description of the pictures that a sweep offers."""
    return {name: picture.description for name, picture in pictures_of(table).items()}


def draw_sweep(table: SweepTable, panel: str, measure: str = "final_loss") -> Figure:
    """Draw one picture of a sweep.

    Raises:
        UsageError: the sweep has no such picture or measure; the message names those that it has.

    """
    offered = pictures_of(table)
    if panel not in offered:
        raise UsageError(f"no panel {panel!r} here; this sweep has {', '.join(offered)}{did_you_mean(panel, offered)}")
    if measure not in table.measures:
        known = ", ".join(table.measures)
        raise UsageError(f"no measure {measure!r} here; there are {known}{did_you_mean(measure, table.measures)}")
    return offered[panel].draw(table, measure)


def _draw_phase(table: SweepTable, measure: str) -> Figure:
    first, second = table.numeric[:2]
    xs, ys = np.sort(first["values"]).astype(float), np.sort(second["values"]).astype(float)
    numbers = table.column(measure)
    x_of, y_of = table.column(first["key"]), table.column(second["key"])
    total, count = np.zeros((len(ys), len(xs))), np.zeros((len(ys), len(xs)))
    for x, y, number in zip(x_of, y_of, numbers, strict=True):
        if np.isfinite(number):
            place = int(np.argmin(np.abs(ys - y))), int(np.argmin(np.abs(xs - x)))
            total[place] += number
            count[place] += 1
    mean = np.where(count > 0, total / np.maximum(count, 1), np.nan)
    figure, (axes,) = new_figure(width=WIDTH)
    averaged = len(table.rows) > mean.size
    draw_phase_diagram(
        axes, xs, ys, mean, xlabel=first["key"], ylabel=second["key"], log_x=first["log"], log_y=second["log"],
        label=f"{_words(measure)}, mean of {len(table.rows) // mean.size}" if averaged else _words(measure),
    )  # fmt: skip
    return figure


def _draw_curve(table: SweepTable, measure: str) -> Figure:
    axis = table.numeric[0]
    families = table.families([a for a in table.axes if a is not axis])
    xs = np.sort(axis["values"]).astype(float)
    x_of, numbers = table.column(axis["key"]), table.column(measure)
    figure, (axes,) = new_figure(width=WIDTH)
    shown = _spaced(list(families))
    curves = {name: (xs, _by_value(xs, x_of[families[name]], numbers[families[name]])) for name in shown}
    axes.set_yscale(_scale(numbers))
    axes.set_xscale("log" if axis["log"] else "linear")
    axes.set(xlabel=axis["key"], ylabel=_words(measure))
    _draw_families(axes, curves, max(len(families[name]) for name in shown) // len(xs), marker="o")
    return figure


def _draw_losses(table: SweepTable, measure: str) -> Figure:
    families = table.families(table.axes)
    figure, (axes,) = new_figure(width=WIDTH)
    curves = {}
    for name in _spaced(list(families)):
        losses = [table.losses(row) for row in families[name] if table.rows[row]["status"] != "failed"]
        if losses:
            xs = max((x for x, _ in losses), key=len)
            grid = np.full((len(xs), len(losses)), np.nan)
            for column, (_, values) in enumerate(losses):
                grid[: len(values), column] = np.where(values > 0, values, np.nan)
            curves[name] = xs, grid
    axes.set_yscale("log")
    axes.set(xlabel="iteration", ylabel="training loss")
    _draw_families(axes, curves, max(map(len, families.values())))
    return figure


def _draw_spread(table: SweepTable, measure: str) -> Figure:
    numbers = np.sort(table.column(measure))
    numbers = numbers[np.isfinite(numbers)]
    figure, (axes,) = new_figure(width=WIDTH)
    shares = (np.arange(len(numbers)) + 0.5) / max(1, len(numbers))
    axes.plot(numbers, shares, ".", color=PALETTE.function, markersize=3)
    axes.set_xscale(_scale(numbers))
    axes.set(xlabel=_words(measure), ylabel=f"share of the {len(numbers)} jobs below", ylim=(0, 1))
    return figure


def _draw_families(axes: Axes, curves: dict[str, tuple[Floats, Floats]], jobs: int, marker: str = "") -> None:
    """Draw a median with bands for each family, name -> x (k,) and values (k, N); `jobs` is N at most."""
    handles = [
        draw_bands(axes, x, values, label=name or None, color=SERIES[k % len(SERIES)], marker=marker).median
        for k, (name, (x, values)) in enumerate(curves.items())
    ]
    if any(curves):
        place_legend(axes, handles)
    if jobs > 1:
        note(axes, f"lines: median of {jobs} jobs, bands: 25-75 % and 5-95 %")


def _spaced(names: Sequence[str]) -> list[str]:
    """Return at most `MOST_FAMILIES` of the names, evenly spread, the ends among them."""
    if len(names) <= MOST_FAMILIES:
        return list(names)
    return [names[round(k * (len(names) - 1) / (MOST_FAMILIES - 1))] for k in range(MOST_FAMILIES)]


def _by_value(xs: Floats, x_of: Floats, numbers: Floats) -> Floats:
    """Return numbers (k, N): those of each value of the axis in a row, filled with NaN."""
    rows = [numbers[np.isclose(x_of, x, rtol=1e-12, atol=0)] for x in xs]
    longest = max(len(row) for row in rows)
    return np.array([np.pad(row, (0, longest - len(row)), constant_values=np.nan) for row in rows])


def _scale(numbers: Floats) -> Literal["log", "linear"]:
    """Return `log` for numbers that are all positive and span more than a factor `LOG_FROM`."""
    finite = numbers[np.isfinite(numbers)]
    return "log" if len(finite) and finite.min() > 0 and finite.max() / finite.min() > LOG_FROM else "linear"


def _words(name: str) -> str:
    return name.replace("_", " ")

"""Pictures of a sweep: phase diagrams over two settings, curves with quantile bands, bands of losses."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from dynamics_cli.errors import UsageError, did_you_mean
from dynamics_cli.runs.errors import CorruptRunError
from dynamics_cli.runs.replica import ReplicaSet
from dynamics_cli.runs.run import Run
from dynamics_cli.runs.store.layout import is_array_name
from dynamics_cli.sweeps.directory import RESULTS, read_sweep, read_table

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Floats = NDArray[np.float64]
_MOST_FAMILIES = 7
_FIXED = ("job", "seed", "status", "path", "replica", "message")


class SweepTable:
    """The results of a sweep by column."""

    def __init__(self, directory: Path) -> None:
        """Read what a sweep wrote.

        Raises:
            RunError: the directory is not a sweep, or it has no table yet.

        """
        self.described = read_sweep(directory)
        self.directory = directory
        self.rows = list(csv.DictReader(io.StringIO(read_table(directory), newline="")))
        self.axes: list[dict[str, Any]] = self.described["axes"]
        needed = {*_FIXED, *(axis["key"] for axis in self.axes)}
        if not self.rows or not needed <= set(self.rows[0]):
            raise CorruptRunError(directory / RESULTS, "it has no rows, or not the columns of this sweep")
        self.numeric = [a for a in self.axes if all(isinstance(v, int | float) for v in a["values"])]
        self._runs: dict[str, ReplicaSet | Run] = {}

    @property
    def measures(self) -> list[str]:
        """Names of the final numbers that the table has, the final loss first."""
        swept = {axis["key"] for axis in self.axes}
        # files are named after measures, so a column of another name is none
        names = [name for name in self.rows[0] if name not in (*_FIXED, *swept) and is_array_name(str(name))]
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
            path = self.directory / row["path"]
            self._runs[row["path"]] = ReplicaSet(path) if row["replica"] else Run(path)
        run = self._runs[row["path"]]
        run = run[int(row["replica"])] if isinstance(run, ReplicaSet) else run
        return np.asarray(run.loss_iterations, float), np.asarray(run.losses)


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return float("nan")


def _short(text: str) -> str:
    number = _number(text)
    return text if np.isnan(number) else f"{number:.3g}"


def panels_of_sweep(table: SweepTable) -> dict[str, str]:
    """Return name -> description of the pictures that a sweep offers."""
    panels = {}
    if len(table.numeric) >= 2:
        panels["phase"] = f"heat map over {table.numeric[0]['key']} and {table.numeric[1]['key']}"
    if table.numeric:
        panels["curve"] = f"median and quantiles against {table.numeric[0]['key']}"
    panels["losses"] = "median and quantiles of the losses, by setting"
    panels["spread"] = "final numbers of all jobs, sorted"
    return panels


def draw_sweep(table: SweepTable, panel: str, measure: str = "final_loss") -> Figure:
    """Draw one picture of a sweep.

    Raises:
        UsageError: the sweep has no such picture or measure; the message names those that it has.

    """
    drawers: dict[str, Callable[[SweepTable, str], Figure]] = {
        "phase": _phase,
        "curve": _curve,
        "losses": _losses,
        "spread": _spread,
    }
    offered = panels_of_sweep(table)
    if panel not in offered:
        raise UsageError(f"no panel {panel!r} here; this sweep has {', '.join(offered)}{did_you_mean(panel, offered)}")
    if measure not in table.measures:
        known = ", ".join(table.measures)
        raise UsageError(f"no measure {measure!r} here; there are {known}{did_you_mean(measure, table.measures)}")
    return drawers[panel](table, measure)


def _words(name: str) -> str:
    return name.replace("_", " ")


def _phase(table: SweepTable, measure: str) -> Figure:
    from dynamics_cli.plotting.panels.phase_diagram import draw_phase_diagram
    from dynamics_cli.plotting.style import new_figure

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
    with np.errstate(invalid="ignore"):
        mean = np.where(count > 0, total / np.maximum(count, 1), np.nan)
    figure, (axes,) = new_figure(1, 1, width=4.2)
    averaged = len(table.rows) > mean.size
    draw_phase_diagram(
        axes, xs, ys, mean, xlabel=first["key"], ylabel=second["key"], log_x=first["log"], log_y=second["log"],
        label=f"{_words(measure)}, mean of {len(table.rows) // mean.size}" if averaged else _words(measure),
    )  # fmt: skip
    return figure


def _curve(table: SweepTable, measure: str) -> Figure:
    from dynamics_cli.plotting.layout import place_legend
    from dynamics_cli.plotting.panels.bands import draw_bands
    from dynamics_cli.plotting.style import SERIES, new_figure

    axis = table.numeric[0]
    families = table.families([a for a in table.axes if a is not axis])
    shown = _spaced(list(families), _MOST_FAMILIES)
    figure, (axes,) = new_figure(1, 1, width=4.2)
    x_of, numbers_of = table.column(axis["key"]), table.column(measure)
    xs = np.sort(axis["values"]).astype(float)
    handles = []
    for k, name in enumerate(shown):
        values = _by_value(xs, x_of[families[name]], numbers_of[families[name]])
        panel = draw_bands(axes, xs, values, label=name or None, color=SERIES[k % len(SERIES)], marker="o")
        handles.append(panel.median)
    finite = numbers_of[np.isfinite(numbers_of)]
    if len(finite) and finite.min() > 0 and finite.max() / finite.min() > 50:
        axes.set_yscale("log")
    axes.set_xscale("log" if axis["log"] else "linear")
    axes.set_xlabel(axis["key"])
    axes.set_ylabel(_words(measure))
    if any(shown):
        place_legend(axes, handles)
    _explain_bands(axes, max(len(families[name]) for name in shown) // len(xs))
    return figure


def _explain_bands(axes: Axes, jobs: int) -> None:
    from dynamics_cli.plotting.layout import note

    if jobs > 1:
        note(axes, f"lines: median of {jobs} jobs, bands: 25-75 % and 5-95 %")


def _losses(table: SweepTable, measure: str) -> Figure:
    from dynamics_cli.plotting.layout import place_legend
    from dynamics_cli.plotting.panels.bands import draw_bands
    from dynamics_cli.plotting.style import SERIES, new_figure

    families = table.families(table.axes)
    figure, (axes,) = new_figure(1, 1, width=4.2)
    handles = []
    for k, name in enumerate(_spaced(list(families), _MOST_FAMILIES)):
        curves = [table.losses(row) for row in families[name] if table.rows[row]["status"] != "failed"]
        if not curves:
            continue
        xs = max((x for x, _ in curves), key=len)
        grid = np.full((len(xs), len(curves)), np.nan)
        for column, (_, losses) in enumerate(curves):
            grid[: len(losses), column] = np.where(losses > 0, losses, np.nan)
        panel = draw_bands(axes, xs, grid, label=name or None, color=SERIES[k % len(SERIES)])
        handles.append(panel.median)
    axes.set_yscale("log")
    axes.set_xlabel("iteration")
    axes.set_ylabel("training loss")
    if table.axes:
        place_legend(axes, handles)
    _explain_bands(axes, max(map(len, families.values())))
    return figure


def _spaced(names: Sequence[str], most: int) -> list[str]:
    """Return at most `most` of the names, evenly spread, the ends among them."""
    if len(names) <= most:
        return list(names)
    return [names[round(k * (len(names) - 1) / (most - 1))] for k in range(most)]


def _by_value(xs: Floats, x_of: Floats, numbers: Floats) -> Floats:
    """Return numbers (k, N): those of each value of the axis in a row, filled with NaN."""
    rows = [numbers[np.isclose(x_of, x, rtol=1e-12, atol=0)] for x in xs]
    longest = max(len(row) for row in rows)
    return np.array([np.pad(row, (0, longest - len(row)), constant_values=np.nan) for row in rows])


def _spread(table: SweepTable, measure: str) -> Figure:
    from dynamics_cli.plotting.style import PALETTE, new_figure

    numbers = np.sort(table.column(measure))
    numbers = numbers[np.isfinite(numbers)]
    figure, (axes,) = new_figure(1, 1, width=4.2)
    shares = (np.arange(len(numbers)) + 0.5) / max(1, len(numbers))
    axes.plot(numbers, shares, ".", color=PALETTE.function, markersize=3)
    if len(numbers) and numbers[0] > 0 and numbers[-1] / numbers[0] > 50:
        axes.set_xscale("log")
    axes.set_xlabel(_words(measure))
    axes.set_ylabel(f"share of the {len(numbers)} jobs below")
    axes.set_ylim(0, 1)
    return figure

"""Pictures of a sweep: a heat map over two settings, and medians over a setting or over iterations.

The note of a picture names the settings that it does not show: nothing is averaged over in silence.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from itertools import zip_longest
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray

from dynamics_cli.errors import RunError, UsageError, did_you_mean
from dynamics_cli.plotting.chart import LOG_RANGE, Chart, Line, draw_charts, look
from dynamics_cli.plotting.layout import format_number, ticks_at
from dynamics_cli.plotting.panels.phase import draw_phase_diagram
from dynamics_cli.plotting.style import PALETTE, SMALL, new_figure, styled
from dynamics_cli.plotting.time_axis import LogAxes, scale_of
from dynamics_cli.runs.run import columns_of, measured
from dynamics_cli.sweeps.directory import FIXED, Sweep, text_of
from dynamics_cli.text import shorten

Floats = NDArray[np.float64]
MOST_LINES, MOST_CHARTS = 21, 9
"""Families of curves in a chart, and charts of a picture, that are drawn at most."""
PICTURES = {
    "phase": "heat map of medians over two settings",
    "curve": "medians over a setting, by the others",
    "losses": "losses, or a measure, over iterations by setting",
}


class SweepTable:
    """The results of a sweep by column; of an unfinished sweep, of the jobs that have ended."""

    def __init__(
        self, sweep: Sweep, log: LogAxes | None = None, *, where: Mapping[str, Any] | None = None
    ) -> None:
        """Read the table of a sweep, of the rows that have the values of `where`; `log` as in `dyn plot`.

        Raises:
            RunError: no job has ended yet.
            UsageError: there is no such column, or no row has the values.
        """
        self.sweep, self.log, self.described = sweep, log, sweep.described
        self.where = dict(where or {})
        self.rows = sweep.chosen(where)
        if not self.rows:
            raise RunError(f"no job of {sweep.path} has ended yet")
        axes = self.described["axes"]
        self.settings = [*(axis["key"] for axis in axes), *self.described["computed"]]
        self.free = [axis["key"] for axis in axes if len(self.values(axis["key"])) > 1]
        """Settings that have several values; others are computed."""

    @property
    def measures(self) -> list[str]:
        """Names of the final numbers that the table has: measures that the config asks for, the final loss, others."""
        asked = bool((self.described["config"].get("record") or {}).get("measures"))
        hidden = (*FIXED, *self.settings, "iterations")
        names = [name for name in self.rows.columns if name not in hidden]
        return sorted(names, key=lambda name: (name == "final_loss") == asked)

    @property
    def columns(self) -> list[str]:
        """Names of all columns that can be drawn."""
        return list(dict.fromkeys([*self.settings, "seed", *self.measures]))

    @property
    def main(self) -> str:
        """The setting that curves are drawn over: the first with several values, numbers before words."""
        free = self.free or self.settings or ["seed"]
        return str(next((key for key in free if self.numeric(key)), free[0]))

    def values(self, key: str) -> list[Any]:
        """Return the different values of a column in their order."""
        return list({text_of(row[key]): row[key] for row in self.rows}.values())

    def column(self, name: str) -> Floats:
        """Return a column as numbers, NaN where a job has none."""
        return np.array(
            [row[name] if _is_number(row[name]) else np.nan for row in self.rows], np.float64
        )

    def numeric(self, key: str) -> bool:
        """Whether a column holds numbers only; a failed job may have none."""
        values = [value for value in self.values(key) if value is not None]
        return bool(values) and all(map(_is_number, values))

    def places(self, key: str) -> tuple[Floats, list[str] | None]:
        """Return where rows stand on an axis of a column: its numbers, or the numbers of its words, and these."""
        if self.numeric(key):
            return self.column(key), None
        words = [text_of(value) for value in self.values(key)]
        return np.array([float(words.index(text_of(row[key]))) for row in self.rows]), words

    def logarithmic(self, key: str) -> bool:
        """Whether a column is spaced by ratios, or spans so much that only a logarithmic axis shows it."""
        values = self.column(key)[np.isfinite(self.column(key))]
        if not self.numeric(key) or not len(values) or values.min() <= 0:
            return False
        spaced = any(axis["key"] == key and axis["log"] for axis in self.described["axes"])
        return bool(spaced or values.max() > LOG_RANGE * values.min())

    def families(
        self, keys: Sequence[str], among: Sequence[int] | None = None
    ) -> dict[str, list[int]]:
        """Return the rows by their values of some columns, named as a legend says them; by default of all rows."""
        families: dict[str, list[int]] = {}
        values = {key: self.values(key) for key in keys}
        digits = {
            key: 3 if len({_short(value) for value in many}) == len(many) else 17
            for key, many in values.items()
        }
        for k in range(len(self.rows)) if among is None else among:
            name = ", ".join(
                f"{_last(key)} {_short(self.rows[k][key], digits[key])}" for key in keys
            )
            families.setdefault(name, []).append(k)
        return families

    def curve(self, k: int, measure: str) -> tuple[Floats, Floats]:
        """Return the iterations and the losses that the job of row k recorded, or another measure; nothing if none."""
        if self.rows[k]["status"] == "failed":
            return np.zeros(0), np.zeros(0)
        run = self.sweep.run(self.rows[k]["job"])
        if measure == "final_loss":
            return np.asarray(run.loss_iterations, float), np.asarray(run.losses)
        for name in (name for name in run.measures if measure.startswith(name)):
            columns = (
                [name]
                if run.measures[name].ndim == 1
                else [f"{name}.{part}" for part in columns_of(run, name)]
            )
            if measure in columns:
                steps, values = measured(run, name)
                return np.asarray(steps, float), values[:, columns.index(measure)]
        return np.zeros(0), np.zeros(0)

    def note(self, drawn: Sequence[str]) -> str:
        """Return the hidden parts of a picture of some columns: other settings, seeds, jobs that have not ended."""
        left = [f"{key} ({len(self.values(key))})" for key in self.free if key not in drawn]
        if (seeds := len(self.values("seed"))) > 1 and "seed" not in (*drawn, *self.free):
            left.append(f"{seeds} seeds")
        lost = sum(row["status"] in ("diverged", "failed") for row in self.rows)
        parts = [f"median over {', '.join(left)}"] if left else []
        parts += [f"where {key} = {_short(text)}" for key, text in self.where.items()]
        parts += [f"{len(self.rows)} of {self.described['jobs']} jobs"] * (
            len(self.rows) < self.described["jobs"]
        )
        parts += [f"{lost} jobs diverged or failed"] if lost else []
        return "; ".join(
            parts
            + [f"{k} = {text}" for k, text in self.described["computed"].items() if k not in drawn]
        )


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _short(value: Any, digits: int = 3) -> str:
    return format_number(value, digits) if _is_number(value) else shorten(text_of(value), 24)


def _last(key: str) -> str:
    """Return the last word of a key, which legends show; of a kind with its section."""
    above, _, last = key.rpartition(".")
    return above.rpartition(".")[2] if last == "kind" and above else last


def pictures_of(table: SweepTable) -> dict[str, str]:
    """Return the pictures that a sweep offers, with their descriptions."""
    two, some = sum(table.numeric(key) for key in table.free) > 1, bool(table.settings)
    return {
        name: text
        for name, text in PICTURES.items()
        if {"phase": two, "curve": some}.get(name, True)
    }


def draw_named(
    table: SweepTable, panels: Sequence[str], measure: str | None
) -> Iterator[tuple[str, Figure]]:
    """Draw panels, by default all, one after the other, each with the name of its file.

    Raises UsageError: there is no such panel or measure.
    """
    said = "".join(f"-{key}={_in_file(value)[:40]}" for key, value in table.where.items())
    for name in panels or pictures_of(table):
        chosen = measure or ("final_loss" if name == "losses" else table.measures[0])
        yield (
            name + ("" if chosen == "final_loss" else f"-{_in_file(chosen)}") + said,
            draw_sweep(table, name, chosen),
        )


def _in_file(text: object) -> str:
    return re.sub("[^A-Za-z0-9_.+-]+", "_", str(text))


@styled
def draw_sweep(table: SweepTable, panel: str, measure: str | None = None) -> Figure:
    """Draw a picture of a sweep: of a final number, or of its curves.

    Raises:
        UsageError: the sweep has no such picture or measure; the message names those that it has.
    """
    measure = measure or table.measures[0]
    for name, known, what in (
        (panel, [*pictures_of(table)], "panel"),
        (measure, table.measures, "measure"),
    ):
        if name not in known:
            raise UsageError(
                f"no {what} {name!r} here; there are {', '.join(known)}{did_you_mean(name, known)}"
            )
    if panel == "phase":
        x, y = [key for key in table.free if table.numeric(key)][:2]
        figure, note = _phase(table, x, y, measure), table.note([x, y])
    else:
        x = table.main if panel == "curve" else ""
        keys = [key for key in table.free if key != x]
        charts = sweep_charts(table, x, measure, keys)
        figure, note = draw_charts(charts), table.note([*keys, x])
        if (drawn := sum(len(chart.lines) for chart in charts)) < (
            count := len(table.families(keys))
        ):
            chosen = f"{drawn} of {count} families are drawn, --where KEY=VALUE chooses others"
            note = "; ".join(filter(None, [note, chosen]))
    figure.suptitle(
        textwrap.fill(note, round(14.5 * figure.get_figwidth())),
        fontsize=SMALL,
        color=PALETTE.unsigned,
    )
    return figure


def _phase(table: SweepTable, x: str, y: str, measure: str) -> Figure:
    """Draw the median over two settings."""
    (xs, across), (ys, up) = (np.unique(table.column(key), return_inverse=True) for key in (x, y))
    numbers, medians = table.column(measure), np.full((len(ys), len(xs)), np.nan)
    for i, j in {*zip(up, across, strict=True)}:
        cell = numbers[(up == i) & (across == j)]
        medians[i, j] = np.median(cell[np.isfinite(cell)]) if np.isfinite(cell).any() else np.nan
    figure, (axes,) = new_figure(width=4.2)
    scales = (
        scale_of("x", table.log, table.logarithmic(x)),
        scale_of("y", table.log, table.logarithmic(y)),
    )
    for key, values, scale in ((x, xs, scales[0]), (y, ys, scales[1])):
        if scale == "log" and values[0] <= 0:
            raise UsageError(
                f"{key} has the value {values[0]:g}, which a logarithmic axis cannot show"
            )
    draw_phase_diagram(
        axes, xs, ys, medians, labels=(x, y, measure.replace("_", " ")), scales=scales
    )
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
        curves = [
            (family, *_curve(table, rows[family], x, measure))
            for family in _spaced([*rows], MOST_LINES)
        ]
        drawn = [
            Line(
                x=xs,
                y=ys,
                name=family,
                bands=True,
                points=words is not None or len(xs) < 3,
                **look(k),
            )
            for k, (family, xs, ys) in enumerate(curves)
        ]
        charts.append(Chart(lines=drawn, ylabel=name, title=title, **axes))
    return charts


def _curve(table: SweepTable, rows: Sequence[int], x: str, measure: str) -> tuple[Floats, Floats]:
    """Return x (k,) and a number (k, N) of some jobs, filled with NaN."""
    if x:
        at, numbers = table.places(x)[0][rows], table.column(measure)[rows]
        xs = np.unique(at[np.isfinite(at)])
        return xs, _filled([numbers[at == value] for value in xs])
    curves = [curve for row in rows if len((curve := table.curve(row, measure))[0])]
    xs = max((steps for steps, _ in curves), key=len, default=np.zeros(0))
    return xs, _filled([values for _, values in curves]).T


def _filled(rows: Sequence[Floats]) -> Floats:
    """Return rows of unequal lengths as an array, filled with NaN."""
    return np.array([*zip_longest(*rows, fillvalue=np.nan)], np.float64).reshape(-1, len(rows)).T


def _spaced(names: Sequence[str], most: int) -> list[str]:
    """Return at most `most` of the names, evenly spread, the ends among them."""
    return [names[round(k)] for k in np.linspace(0, len(names) - 1, min(len(names), most))]

"""Pictures of a sweep: a heat map over two settings, and medians over a setting or over iterations.

The note of a picture names the settings that it does not show: nothing is averaged over in silence.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import zip_longest
from types import MappingProxyType
from typing import Any, NamedTuple, TypeVar

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray

from dynamics_cli.config import ConfigError, RunConfig
from dynamics_cli.config.reader import read_value
from dynamics_cli.errors import RunError, UsageError, did_you_mean
from dynamics_cli.kinds import Measure
from dynamics_cli.plotting.chart import (
    LOG_RANGE,
    Chart,
    Line,
    draw_charts,
    look,
    references,
    statistics,
)
from dynamics_cli.plotting.layout import figure_note, format_number, ticks_at
from dynamics_cli.plotting.panels.phase import draw_phase_diagram
from dynamics_cli.plotting.style import new_figure, styled
from dynamics_cli.plotting.time_axis import LogAxes, scale_of
from dynamics_cli.runs.run import columns_of, measured, recorded
from dynamics_cli.runs.titles import check_labels, title_of
from dynamics_cli.sweeps.directory import FIXED, Sweep, text_of
from dynamics_cli.text import shorten

Floats = NDArray[np.float64]
Counts = NDArray[np.int64]
T = TypeVar("T")
MOST_LINES = 21
MOST_CHARTS = 9
"""Families of curves in a chart, and charts of a picture, that are drawn at most."""
SHORT = 24
LONG = 60
"""Characters of a word in a legend; and where that does not tell words apart."""
IN_FILE = 40
"""Characters of a value in the name of a file."""
PICTURES = {
    "phase": "heat map of medians over two settings",
    "curve": "medians over a setting, by the others",
    "losses": "losses, or a measure, over iterations by setting",
}


class Family(NamedTuple):
    """Jobs with the same values of some settings."""

    name: str
    """These values, as a legend shows them."""
    rows: list[int]
    """Their numbers in the table."""


class SweepTable:
    """The results of a sweep by column; of an unfinished sweep, of the jobs that have ended."""

    def __init__(
        self,
        sweep: Sweep,
        log: LogAxes | None = None,
        *,
        where: Mapping[str, Any] | None = None,
        labels: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        """Read the table of a sweep, of the rows that have the values of `where`; `log`, `labels`
        as in `dyn plot`.

        Raises:
            RunError: no job has ended yet.
            UsageError: there is no such column, no row has the values, or a label has no such key.
        """
        self.sweep, self.log, self.described = sweep, log, sweep.described
        self.where = {key: _from_text(value) for key, value in (where or {}).items()}
        self.rows = sweep.chosen(self.where)
        self._values: dict[str, list[Any]] = {}
        if not self.rows:
            raise RunError(f"no job of {sweep.path} has ended yet")
        axes = self.described["axes"]
        self.settings = [*(axis["key"] for axis in axes), *self.described["computed"]]
        self.free = [axis["key"] for axis in axes if len(self.values(axis["key"])) > 1]
        """Settings that have several values; others are computed."""
        self.derived: dict[str, str] = self.described.get("columns", {})
        """Columns that are one number of each job, without a curve, and their expressions."""
        self.labels: dict[str, str] = {**self.described.get("labels", {}), **labels}
        words = [word for key in self.free if not self.numeric(key) for word in self._words(key)]
        check_labels(labels, [*self.columns, "loss", "iteration", *words])

    def title(self, name: str) -> str:
        """Return what pictures call a column, or `loss` and `iteration`."""
        if name in self.labels:
            return self.labels[name]
        if name in self.settings:
            return title_of(name, self.described["config"])
        return name.replace("_", " ")

    @property
    def measures(self) -> list[str]:
        """Names of the final numbers that the table has: measures that the config asks for, the
        final loss, others.
        """
        record = self.described["config"].get("record") or {}
        asked = bool(self.derived or record.get("measures"))
        hidden = (*FIXED, *self.settings, "iterations")
        names = [name for name in self.rows.columns if name not in hidden]
        return sorted(names, key=lambda name: (name == "final_loss") == asked)

    @property
    def columns(self) -> list[str]:
        """Names of all columns that can be drawn."""
        return list(dict.fromkeys([*self.settings, "seed", *self.measures]))

    @property
    def main(self) -> str:
        """The setting that curves are drawn over: the first with several values, numbers before
        words.
        """
        free = self.free or self.settings or ["seed"]
        return str(next((key for key in free if self.numeric(key)), free[0]))

    def values(self, key: str) -> list[Any]:
        """Return the different values of a column in their order."""
        if key not in self._values:
            different = {_identity(row[key]): row[key] for row in self.rows}
            self._values[key] = list(different.values())
        return self._values[key]

    def words(self, key: str) -> dict[str, str]:
        """Return what pictures call each value of a column, by its identity; no two have the
        same name.
        """
        words = self._words(key)
        named = [self.labels.get(word, word) for word in words]
        names = named if len(set(named)) == len(named) else words
        return dict(zip(map(_identity, self.values(key)), names, strict=True))

    def _words(self, key: str) -> list[str]:
        return _distinct(self.values(key))

    def column(self, name: str) -> Floats:
        """Return a column as numbers, NaN where a job has none."""
        return np.array(
            [row[name] if _is_number(row[name]) else np.nan for row in self.rows], np.float64
        )

    def numeric(self, key: str) -> bool:
        """Whether a column holds numbers only; of a result, which a failed job may not have,
        those that there are.
        """
        values = [value for value in self.values(key) if value is not None or key in self.settings]
        return bool(values) and all(map(_is_number, values))

    def places(self, key: str) -> tuple[Floats, list[str] | None]:
        """Return where rows stand on an axis of a column: its numbers, or the numbers of its
        words, and these.
        """
        if self.numeric(key):
            return self.column(key), None
        words = self.words(key)
        place = {value: float(k) for k, value in enumerate(words)}
        return np.array([place[_identity(row[key])] for row in self.rows]), [*words.values()]

    def logarithmic(self, key: str) -> bool:
        """Whether a column is spaced by ratios, or spans so much that only a logarithmic axis
        shows it.
        """
        values = self.column(key)[np.isfinite(self.column(key))]
        if not self.numeric(key) or not len(values) or values.min() <= 0:
            return False
        if key in self.measures and self.linear(key):
            return False
        spaced = any(axis["key"] == key and axis["log"] for axis in self.described["axes"])
        return bool(spaced or values.max() > LOG_RANGE * values.min())

    def families(self, keys: Sequence[str], among: Sequence[int] | None = None) -> list[Family]:
        """Return the rows by their values of some columns; by default of all rows."""
        words = {key: self.words(key) for key in keys}
        families: dict[tuple[str, ...], list[int]] = {}
        for k in range(len(self.rows)) if among is None else among:
            point = tuple(_identity(self.rows[k][key]) for key in keys)
            families.setdefault(point, []).append(k)
        return [
            Family(
                ", ".join(self._said(*pair, words) for pair in zip(keys, point, strict=True)), rows
            )
            for point, rows in families.items()
        ]

    def _said(self, key: str, value: str, words: Mapping[str, Mapping[str, str]]) -> str:
        word = words[key][value]
        if self.numeric(key):
            return f"{self.title(key)} = {word}"
        return word if word in self.labels.values() else f"{self.title(key)} {word}"

    def config(self, rows: Iterable[int]) -> RunConfig | None:
        """Return the config of the first of some rows whose job has a run."""
        ran = (row for row in rows if self.rows[row]["status"] != "failed")
        first = next(ran, None)
        return None if first is None else self.sweep.run(self.rows[first]["job"]).config

    def asked(self, rows: Iterable[int], column: str, ask: Callable[[Measure], T]) -> T | None:
        """Return the answer of the measure of a column, as in the config of some rows; None
        where there is none.
        """
        config = self.config(rows)
        if config is None:
            return None
        answers = (recorded(config, name, ask) for name in (column, column.partition(".")[0]))
        return next((answer for answer in answers if answer is not None), None)

    def linear(self, column: str) -> bool:
        """Whether an axis of a column is never logarithmic, as of an accuracy, or of a column
        computed from one.
        """
        expression = self.described.get("columns", {}).get(column, column)
        if "first(" in expression:  # an iteration
            return False
        names = [column, *re.findall(r"[A-Za-z_]\w*", expression)]
        rows = range(len(self.rows))
        return any(self.asked(rows, name, lambda measure: measure.linear) for name in names)

    def bound(self, rows: Iterable[int], column: str) -> tuple[str, float] | None:
        """Return name and value of the line that a measure has beside its curve in some rows of
        the same settings.
        """
        rows = [*rows]
        if (config := self.config(rows)) is None:
            return None
        return self.asked(rows, column, lambda measure: measure.bound(dict(config)))

    def curve(self, k: int, measure: str) -> tuple[Floats, Floats]:
        """Return the iterations and the losses that the job of row k recorded, or another
        measure; nothing if none.
        """
        if self.rows[k]["status"] == "failed":
            return np.zeros(0), np.zeros(0)
        run = self.sweep.run(self.rows[k]["job"])
        if measure == "final_loss":
            return np.asarray(run.loss_iterations, float), np.asarray(run.losses)
        for name in (name for name in run.measures if measure.startswith(name)):
            columns = [column.name for column in columns_of(run, name)]
            if measure in columns:
                steps, values = measured(run, name)
                return np.asarray(steps, float), values[:, columns.index(measure)]
        return np.zeros(0), np.zeros(0)

    def has_curve(self, measure: str) -> bool:
        """Whether a job has recorded a number over iterations."""
        return any(len(self.curve(k, measure)[0]) for k in range(len(self.rows)))

    def note(self, drawn: Sequence[str]) -> str:
        """Return the hidden parts of a picture of some columns: other settings, seeds, jobs that
        have not ended.
        """
        left = [
            f"{self.title(key)} ({len(self.values(key))})" for key in self.free if key not in drawn
        ]
        if (seeds := len(self.values("seed"))) > 1 and "seed" not in (*drawn, *self.free):
            left.append(f"{seeds} seeds")
        lost = sum(row["status"] in ("diverged", "failed") for row in self.rows)
        parts = [f"median over {', '.join(left)}"] if left else []
        parts += [f"where {self.title(key)} = {_short(text)}" for key, text in self.where.items()]
        parts += [f"{len(self.rows)} of {self.described['jobs']} jobs"] * (
            len(self.rows) < self.described["jobs"]
        )
        parts += [f"{lost} jobs diverged or failed"] if lost else []
        return "; ".join(
            parts
            + [
                f"{self.title(k)} = {text}"
                for k, text in self.described["computed"].items()
                if k not in drawn
            ]
        )


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _identity(value: Any) -> str:
    """Return a text that two values share exactly where they are the same."""
    return json.dumps(value, sort_keys=True)


def _short(value: Any, digits: int = 3, most: int = SHORT) -> str:
    return format_number(value, digits) if _is_number(value) else shorten(_readable(value), most)


def _readable(value: Any) -> str:
    """Return a value as a legend shows it: a kind with its settings as `leaky_relu, slope 0.1`."""
    if not isinstance(value, dict):
        return "none" if value is None else text_of(value)
    settings = {key: _readable(setting) for key, setting in value.items()}
    kind = settings.pop("kind", "")
    return ", ".join([*filter(None, [kind]), *(f"{key} {text}" for key, text in settings.items())])


def _distinct(values: Sequence[Any]) -> list[str]:
    """Return different names for different values: short ones where these differ, otherwise
    longer ones.
    """
    for digits, most in ((3, SHORT), (17, LONG)):
        names = [_short(value, digits, most) for value in values]
        if len(set(names)) == len(names):
            return names
    return [f"{k + 1}: {name}" for k, name in enumerate(names)]


def pictures_of(table: SweepTable) -> dict[str, str]:
    """Return the pictures that a sweep offers, with their descriptions."""
    two = sum(table.numeric(key) for key in table.free) > 1
    some = bool(table.settings)
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
    said = "".join(f"-{key}={_in_file(value)}" for key, value in table.where.items())
    final = measure or table.measures[0]
    names = panels or [name for name in pictures_of(table) if name != "losses"]
    drawn = [(name, (measure or "final_loss") if name == "losses" else final) for name in names]
    if not panels and (measure is None or table.has_curve(measure)):
        drawn.append(("losses", measure or "final_loss"))
    for name, chosen in drawn:  # before the first picture, so that there is none of a wrong name
        _check(table, name, chosen)
    for name, chosen in drawn:
        of_measure = "" if chosen == "final_loss" else f"-{_in_file(chosen)}"
        yield name + of_measure + said, draw_sweep(table, name, chosen)


def _check(table: SweepTable, panel: str, measure: str) -> None:
    """Raise UsageError or RunError where a sweep has no such picture or measure, or no number to
    draw.
    """
    for name, known, what in (
        (panel, [*pictures_of(table)], "panel"),
        (measure, table.measures, "measure"),
    ):
        if name not in known:
            raise UsageError(
                f"no {what} {name!r} here; there are {', '.join(known)}{did_you_mean(name, known)}"
            )
    if panel == "losses" and measure in table.derived:
        raise UsageError(
            f"{measure} is one number of each job, without a curve; take another panel"
        )
    if panel != "losses" and not np.isfinite(table.column(measure)).any():
        ends = Counter(row["status"] for row in table.rows)
        ended = ", ".join(f"{count} {status}" for status, count in ends.items())
        curves = "; --panel losses draws their curves" if table.has_curve("final_loss") else ""
        raise RunError(f"no job of {table.sweep.path} has a number {measure} ({ended}){curves}")
    if panel == "losses" and not table.has_curve(measure):
        raise RunError(f"no job of {table.sweep.path} has recorded a curve of {measure}")


def _from_text(value: Any) -> Any:
    """Return the value that a text after `--where KEY=` stands for, read as in a config."""
    try:
        return read_value(value, "--where", "") if isinstance(value, str) else value
    except ConfigError:  # a word of the table that is no YAML
        return value


def _in_file(value: Any) -> str:
    """Return a value as a part of a file name; of a long one the start, and digits that tell it
    from others.
    """
    text = re.sub("[^A-Za-z0-9_.+-]+", "_", text_of(value))
    if len(text) <= IN_FILE:
        return text
    return f"{text[:IN_FILE]}-{hashlib.sha256(_identity(value).encode()).hexdigest()[:8]}"


@styled
def draw_sweep(table: SweepTable, panel: str, measure: str | None = None) -> Figure:
    """Draw a picture of a sweep: of a final number, or of its curves.

    Raises:
        UsageError: the sweep has no such picture or measure; the message names those that it has.
        RunError: no job has a number.
    """
    measure = measure or table.measures[0]
    _check(table, panel, measure)
    if panel == "phase":
        x, y = [key for key in table.free if table.numeric(key)][:2]
        figure, notes = _phase(table, x, y, measure)
        figure_note(figure, [table.note([x, y]), *notes])
    else:
        x = table.main if panel == "curve" else ""
        keys = [key for key in table.free if key != x]
        charts = sweep_charts(table, x, measure, keys)
        notes = [table.note([*keys, x])]
        drawn = sum(line.bands for chart in charts for line in chart.lines)
        if drawn < (count := len(table.families(keys))):
            notes.append(f"{drawn} of {count} families are drawn, --where KEY=VALUE chooses others")
        figure = draw_charts(charts, notes=notes)
    return figure


def _phase(table: SweepTable, x: str, y: str, measure: str) -> tuple[Figure, list[str]]:
    """Draw the median over two settings; return the figure, and what its reader must know."""
    (xs, across), (ys, up) = (np.unique(table.column(key), return_inverse=True) for key in (x, y))
    cell = up * len(xs) + across
    cells = len(ys) * len(xs)
    order = np.argsort(cell, kind="stable")
    of_cells = np.split(
        table.column(measure)[order], np.searchsorted(cell[order], np.arange(1, cells))
    )
    found = statistics(_filled(of_cells), [len(numbers) for numbers in of_cells])
    medians, counts, jobs = (
        values.reshape(len(ys), len(xs)) for values in (found.median, found.counts, found.of)
    )
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
    notes = draw_phase_diagram(
        axes,
        xs,
        ys,
        medians,
        labels=(table.title(x), table.title(y), table.title(measure)),
        scales=scales,
        log="none" if table.linear(measure) else table.log,
        jobs=(counts, jobs),
    )
    return figure, notes


def sweep_charts(table: SweepTable, x: str, measure: str, by: Sequence[str]) -> list[Chart]:
    """Chart the median of a final number over a setting, or of its curve over iterations, by the
    settings `by`.

    The setting with most values makes lines, the others make charts; of very many some are left
    out.
    """
    lines = max(by, key=lambda key: len(table.values(key)), default=None)
    outer = table.families([key for key in by if key != lines])
    at, words = table.places(x) if x else (np.zeros(0), None)
    values = np.unique(at[np.isfinite(at)])
    ticks = (
        dict(zip(values.tolist(), words, strict=False))
        if words
        else ticks_at(values, log=bool(x) and table.logarithmic(x))
    )
    axes: dict[str, Any] = {"log": table.log, "ticks": ticks, "words": words is not None}
    axes["linear"] = table.linear(measure)
    axes["xlabel"] = table.title(x or "iteration")
    if x:
        axes["scale_x"] = "log" if table.logarithmic(x) else "linear"
    name = table.title("loss" if measure == "final_loss" and not x else measure)
    numbers = table.column(measure)
    bounded = table.asked(range(len(table.rows)), measure, lambda _: True) is not None
    charts = []
    for title, among in _spaced(outer, MOST_CHARTS):
        families = table.families([lines] if lines else [], among)
        shown = _spaced(families, MOST_LINES)
        drawn = []
        for k, family in enumerate(shown):
            rows = family.rows
            if x:
                xs, ys, of = _over_setting(at[rows], numbers[rows])
            else:
                xs, ys, of = _over_iterations([table.curve(row, measure) for row in rows])
            points = words is not None or len(xs) < 3
            form: dict[str, Any] = {"name": family.name, "bands": True, "points": points, **look(k)}
            drawn.append(Line(x=xs, y=ys, of=of, **form))
        if bounded and x:
            drawn += _bounds(table, shown, at, measure)
        elif bounded:
            bounds = [table.bound(family.rows, measure) for family in shown]
            colors = [line.color for line in drawn]
            axes["levels"] = references([*zip(bounds, colors, strict=True)])
        charts.append(Chart(lines=drawn, ylabel=name, title=title, **axes))
    return charts


def _bounds(
    table: SweepTable, families: Sequence[Family], at: Floats, measure: str
) -> Iterator[Line]:
    """Yield the bound of a measure over a setting: of each family in its colour, once where all are
    the same.

    `at` has the place of each row along the axis.
    """
    curves: list[tuple[str, Floats, Floats]] = []
    for family in families:
        here = at[family.rows]
        xs = np.unique(here[np.isfinite(here)])
        of_xs = [[row for row in family.rows if at[row] == value] for value in xs]
        bounds = [table.bound(rows, measure) for rows in of_xs]
        name = next((bound[0] for bound in bounds if bound), "")
        curves.append((name, xs, np.array([bound[1] if bound else np.nan for bound in bounds])))
    _, first_x, first_y = curves[0]
    same = all(
        np.array_equal(xs, first_x) and np.array_equal(ys, first_y, equal_nan=True)
        for _, xs, ys in curves
    )
    named = False
    for k, (name, xs, ys) in enumerate(curves[:1] if same else curves):
        if name:
            color = "theory" if same else str(look(k)["color"])
            form: dict[str, Any] = {"dash": "dashed", "width": 0.8, "color": color}
            yield Line(x=xs, y=ys, name="" if named else name, **form)
            named = True


def _over_setting(at: Floats, numbers: Floats) -> tuple[Floats, Floats, Counts]:
    """Return the places x (k,) of some jobs, their numbers (k, N), filled with NaN, and how many
    jobs are at each x.
    """
    xs = np.unique(at[np.isfinite(at)])
    of_xs = [numbers[at == value] for value in xs]
    return xs, _filled(of_xs), np.array([len(of_x) for of_x in of_xs])


def _over_iterations(curves: Sequence[tuple[Floats, Floats]]) -> tuple[Floats, Floats, Counts]:
    """Return the iterations x (k,) of the longest curve, the values of all N there (k, N), or
    NaN, and N for each x.
    """
    xs = max((steps for steps, _ in curves), key=len)
    if not len(
        xs
    ):  # no job has a curve: the legend names them, and the chart says that there is a gap
        xs = np.zeros(1)
    numbers = np.full((len(xs), len(curves)), np.nan)
    for k, (steps, values) in enumerate(curves):
        _, here, there = np.intersect1d(xs, steps, return_indices=True)
        numbers[here, k] = values[there]
    return xs, numbers, np.full(len(xs), len(curves))


def _filled(rows: Sequence[Floats]) -> Floats:
    """Return rows of unequal lengths as an array, filled with NaN."""
    return np.array([*zip_longest(*rows, fillvalue=np.nan)], np.float64).reshape(-1, len(rows)).T


def _spaced(families: Sequence[Family], most: int) -> list[Family]:
    """Return at most `most` of the families, evenly spread, the ends among them."""
    count = len(families)
    return [families[round(k)] for k in np.linspace(0, count - 1, min(count, most))]

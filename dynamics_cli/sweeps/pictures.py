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
from dynamics_cli.plotting.labels import figure_note, format_number, ticks_at
from dynamics_cli.plotting.panels.phase import draw_phase_diagram
from dynamics_cli.plotting.style import new_figure, styled
from dynamics_cli.plotting.time_axis import LogAxes, scale_of
from dynamics_cli.runs.marks import Mark, marks_of_all
from dynamics_cli.runs.run import columns_of, last_settings, measured, recorded
from dynamics_cli.runs.titles import check_labels, title_of
from dynamics_cli.sweeps.directory import FIXED, Sweep, text_of
from dynamics_cli.sweeps.grid import is_number
from dynamics_cli.text import counted, shorten

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
        self.sweep = sweep
        self.log = log
        self.described = sweep.described
        self.where = {key: _from_text(value) for key, value in (where or {}).items()}
        self.rows = sweep.chosen(self.where)
        self._values: dict[str, list[Any]] = {}
        if not self.rows:
            raise RunError(f"no job of {sweep.path} has ended yet")
        self.settings = self.described.settings
        keys = [axis.key for axis in self.described.axes]
        self.free = [key for key in keys if len(self.values(key)) > 1]
        """Settings that have several values; others are computed."""
        self.derived = self.described.columns
        """Columns that are one number of each job, without a curve, and their expressions."""
        self.labels = {**self.described.labels, **labels}
        known = [*self.columns, "loss", "iteration"]
        for key in self.free:
            if not self.numeric(key):
                known += self._words(key)
        check_labels(labels, known)

    def title(self, name: str) -> str:
        """Return what pictures call a column, or `loss` and `iteration`."""
        if name in self.labels:
            return self.labels[name]
        if name in self.settings:
            return title_of(name, self.described.config)
        return name.replace("_", " ")

    @property
    def measures(self) -> list[str]:
        """Names of final numbers in the table: measures of the config, the final loss, others."""
        record = self.described.config.get("record") or {}
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
        """The setting that curves are drawn over: the first with several values, and numbers."""
        free = self.free or self.settings or ["seed"]
        return str(next((key for key in free if self.numeric(key)), free[0]))

    def values(self, key: str) -> list[Any]:
        """Return the different values of a column in their order."""
        if key not in self._values:
            different = {_identity(row[key]): row[key] for row in self.rows}
            self._values[key] = list(different.values())
        return self._values[key]

    def words(self, key: str) -> dict[str, str]:
        """Return different names in pictures for the values of a column, by their identity."""
        words = self._words(key)
        names = [self.labels.get(word, word) for word in words]
        if len(set(names)) < len(names):
            names = words
        return dict(zip(map(_identity, self.values(key)), names, strict=True))

    def _words(self, key: str) -> list[str]:
        return _distinct(self.values(key))

    def column(self, name: str) -> Floats:
        """Return a column as numbers, NaN where a job has none."""
        numbers = np.full(len(self.rows), np.nan)
        for k, row in enumerate(self.rows):
            if is_number(row[name]):
                numbers[k] = row[name]
        return numbers

    def numeric(self, key: str) -> bool:
        """Whether a column holds numbers only, but None for results of jobs that failed."""
        values = [value for value in self.values(key) if value is not None or key in self.settings]
        return bool(values) and all(map(is_number, values))

    def places(self, key: str) -> tuple[Floats, list[str] | None]:
        """Return where rows stand on an axis: at numbers, or at the numbers of words, and these."""
        if self.numeric(key):
            return self.column(key), None
        words = self.words(key)
        place = {value: float(k) for k, value in enumerate(words)}
        return np.array([place[_identity(row[key])] for row in self.rows]), [*words.values()]

    def logarithmic(self, key: str) -> bool:
        """Whether a column is spaced by ratios, or needs a logarithmic axis to be seen."""
        values = self.column(key)[np.isfinite(self.column(key))]
        if not self.numeric(key) or not len(values) or values.min() <= 0:
            return False
        if key in self.measures and self.linear(key):
            return False
        spaced = any(axis.key == key and axis.log for axis in self.described.axes)
        return bool(spaced or values.max() > LOG_RANGE * values.min())

    def families(self, keys: Sequence[str], among: Sequence[int] | None = None) -> list[Family]:
        """Return the rows by their values of some columns; by default of all rows."""
        names = {key: self._names(key) for key in keys}
        families: dict[tuple[str, ...], list[int]] = {}
        for k in range(len(self.rows)) if among is None else among:
            point = tuple(names[key][_identity(self.rows[k][key])] for key in keys)
            families.setdefault(point, []).append(k)
        return [Family(", ".join(point), rows) for point, rows in families.items()]

    def _names(self, key: str) -> dict[str, str]:
        """Return what a legend calls each value of a setting, by its identity."""
        between = " = " if self.numeric(key) else " "
        title = self.title(key)
        names = {}
        for value, word in self.words(key).items():
            alone = between == " " and word in self.labels.values()
            names[value] = word if alone else f"{title}{between}{word}"
        return names

    def config(self, rows: Iterable[int]) -> RunConfig | None:
        """Return the config of the first of some rows whose job has a run."""
        for row in rows:
            if self.rows[row]["status"] != "failed":
                return self.sweep.run(self.rows[row]["job"]).config
        return None

    def asked(self, rows: Iterable[int], column: str, ask: Callable[[Measure], T]) -> T | None:
        """Return the answer of the measure of a column in some rows; None where there is none."""
        config = self.config(rows)
        if config is None:
            return None
        answers = (recorded(config, name, ask) for name in (column, column.partition(".")[0]))
        return next((answer for answer in answers if answer is not None), None)

    def linear(self, column: str) -> bool:
        """Whether an axis is never logarithmic, as of an accuracy or a column computed from it."""
        expression = self.derived.get(column, column)
        if "first(" in expression:  # an iteration
            return False
        names = [column, *re.findall(r"[A-Za-z_]\w*", expression)]
        rows = range(len(self.rows))
        return any(self.asked(rows, name, lambda measure: measure.linear) for name in names)

    def bound(self, rows: Iterable[int], column: str) -> tuple[str, float] | None:
        """Return name and value of the line beside a measure, in rows of the same settings."""
        rows = [*rows]
        if (config := self.config(rows)) is None:
            return None
        return self.asked(rows, column, lambda measure: measure.bound(last_settings(config)))

    def curve(self, k: int, measure: str) -> tuple[Floats, Floats]:
        """Return iterations and values of a measure of row k; both are empty where it has none."""
        nothing = np.zeros(0)
        if self.rows[k]["status"] == "failed":
            return nothing, nothing
        run = self.sweep.run(self.rows[k]["job"])
        if measure == "final_loss":
            return np.asarray(run.loss_iterations, float), np.asarray(run.losses)
        for name in run.measures:
            if not measure.startswith(name):
                continue
            columns = [column.name for column in columns_of(run, name)]
            if measure in columns:
                steps, numbers = measured(run, name)
                return np.asarray(steps, float), numbers[:, columns.index(measure)]
        return nothing, nothing

    def marks(self) -> list[Mark]:
        """Return the changes on the way that the jobs have, in words where all have the same."""
        if not self.described.config.get("changes"):
            return []
        begun = [row["job"] for row in self.rows if row["status"] != "failed"]
        return marks_of_all([self.sweep.run(job) for job in begun])

    def has_curve(self, measure: str) -> bool:
        """Whether a job has recorded a number over iterations."""
        return any(len(self.curve(k, measure)[0]) for k in range(len(self.rows)))

    def note(self, drawn: Sequence[str]) -> str:
        """Return what a picture of some columns hides: other settings, seeds, and lost jobs."""
        hidden = [
            f"{self.title(key)} ({len(self.values(key))})" for key in self.free if key not in drawn
        ]
        if (seeds := len(self.values("seed"))) > 1 and "seed" not in (*drawn, *self.free):
            hidden.append(f"{seeds} seeds")
        parts = []
        if hidden:
            parts.append(f"median over {', '.join(hidden)}")
        for key, value in self.where.items():
            parts.append(f"where {self.title(key)} = {_short(value)}")
        if len(self.rows) < self.described.jobs:
            parts.append(f"{len(self.rows)} of {self.described.jobs} jobs")
        if lost := sum(row["status"] in ("diverged", "failed") for row in self.rows):
            parts.append(f"{lost} jobs diverged or failed")
        for key, text in self.described.computed.items():
            if key not in drawn:
                parts.append(f"{self.title(key)} = {text}")
        return "; ".join(parts)


def _identity(value: Any) -> str:
    """Return a text that two values share exactly where they are the same."""
    return json.dumps(value, sort_keys=True)


def _short(value: Any, digits: int = 3, most: int = SHORT) -> str:
    if is_number(value):
        return format_number(value, digits)
    return shorten(_readable(value), most)


def _readable(value: Any) -> str:
    """Return a value as a legend shows it: a kind with its settings as `leaky_relu, slope 0.1`."""
    if value is None:
        return "none"
    if not isinstance(value, dict):
        return text_of(value)
    parts = [f"{key} {_readable(setting)}" for key, setting in value.items() if key != "kind"]
    if "kind" in value:
        parts.insert(0, _readable(value["kind"]))
    return ", ".join(parts)


def _distinct(values: Sequence[Any]) -> list[str]:
    """Return different names for different values, which are short where these differ."""
    for digits, most in ((3, SHORT), (17, LONG)):
        names = [_short(value, digits, most) for value in values]
        if len(set(names)) == len(names):
            return names
    return [f"{k + 1}: {name}" for k, name in enumerate(names)]


def pictures_of(table: SweepTable) -> dict[str, str]:
    """Return the pictures that a sweep offers, with their descriptions."""
    pictures = dict(PICTURES)
    if sum(table.numeric(key) for key in table.free) < 2:
        del pictures["phase"]
    if not table.settings:
        del pictures["curve"]
    return pictures


def draw_named(
    table: SweepTable, panels: Sequence[str], measure: str | None
) -> Iterator[tuple[str, Figure]]:
    """Draw panels, by default all, one after the other, each with the name of its file.

    Raises UsageError: there is no such panel or measure.
    """
    said = "".join(f"-{key}={_in_file(value)}" for key, value in table.where.items())
    names = list(panels or pictures_of(table))
    if not panels and measure is not None and not table.has_curve(measure):
        names.remove("losses")
    drawn = []
    for name in names:
        default = "final_loss" if name == "losses" else table.measures[0]
        drawn.append((name, measure or default))
    for name, chosen in drawn:  # before the first picture, so that there is none of a wrong name
        _check(table, name, chosen)
    for name, chosen in drawn:
        of_measure = "" if chosen == "final_loss" else f"-{_in_file(chosen)}"
        yield name + of_measure + said, draw_sweep(table, name, chosen)


def _check(table: SweepTable, panel: str, measure: str) -> None:
    """Raise UsageError or RunError where a sweep has no such picture or measure, or no number."""
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
        curves = "; --panel losses draws their curves" if table.has_curve("final_loss") else ""
        raise RunError(
            f"no job of {table.sweep.path} has a number {measure} ({counted(ends)}){curves}"
        )
    if panel == "losses" and not table.has_curve(measure):
        raise RunError(f"no job of {table.sweep.path} has recorded a curve of {measure}")


def _from_text(value: Any) -> Any:
    """Return the value that a text after `--where KEY=` stands for, read as in a config."""
    if not isinstance(value, str):
        return value
    try:
        return read_value(value, "--where", "")
    except ConfigError:  # a word of the table that is no YAML
        return value


def _in_file(value: Any) -> str:
    """Return a value as a part of a file name: of a long one the start, and digits of its own."""
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
    """Chart the median of a final number over a setting, or of its curve over iterations.

    Of the settings `by` the one with most values makes lines, the others make charts; of very many
    some are left out.
    """
    lines = sorted(by, key=lambda key: -len(table.values(key)))[:1]
    outer = table.families([key for key in by if key not in lines])
    at = np.zeros(0)
    axes: dict[str, Any] = {"log": table.log, "linear": table.linear(measure)}
    axes["xlabel"] = table.title(x or "iteration")
    name = table.title(measure)
    if x:
        at, words = table.places(x)
        values = np.unique(at[np.isfinite(at)])
        log = table.logarithmic(x)
        axes["scale_x"] = "log" if log else "linear"
        axes["ticks"] = ticks_at(values, log=log)
        if words is not None:
            axes["ticks"] = dict(zip(values.tolist(), words, strict=False))
            axes["words"] = True
    else:
        axes["marks"] = table.marks()
        if measure == "final_loss":
            name = table.title("loss")
    numbers = table.column(measure)
    bounded = table.asked(range(len(table.rows)), measure, lambda _: True) is not None
    charts = []
    for title, among in _spaced(outer, MOST_CHARTS):
        families = table.families(lines, among)
        shown = _spaced(families, MOST_LINES)
        drawn = []
        for k, family in enumerate(shown):
            rows = family.rows
            if x:
                xs, ys, of = _over_setting(at[rows], numbers[rows])
            else:
                xs, ys, of = _over_iterations([table.curve(row, measure) for row in rows])
            points = "words" in axes or len(xs) < 3
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
    """Yield the bound of a measure over a setting: of each family, or once where all are the same.

    `at` has the place of each row along the axis.
    """
    curves: list[tuple[str, Floats, Floats]] = []
    for family in families:
        here = at[family.rows]
        xs = np.unique(here[np.isfinite(here)])
        ys = np.full(len(xs), np.nan)
        name = ""
        for place, value in enumerate(xs):
            rows = [row for row in family.rows if at[row] == value]
            if bound := table.bound(rows, measure):
                name = name or bound[0]
                ys[place] = bound[1]
        curves.append((name, xs, ys))
    _, first_x, first_y = curves[0]
    same = all(
        np.array_equal(xs, first_x) and np.array_equal(ys, first_y, equal_nan=True)
        for _, xs, ys in curves
    )
    colors = [look(k)["color"] for k in range(len(curves))]
    if same:
        curves = curves[:1]
        colors = ["theory"]
    named = False
    for (name, xs, ys), color in zip(curves, colors, strict=True):
        if name:
            form: dict[str, Any] = {"dash": "dashed", "width": 0.8, "color": color}
            yield Line(x=xs, y=ys, name="" if named else name, **form)
            named = True


def _over_setting(at: Floats, numbers: Floats) -> tuple[Floats, Floats, Counts]:
    """Return places x (k,) of jobs, their numbers or NaN (k, N), and the jobs at each x."""
    xs = np.unique(at[np.isfinite(at)])
    of_xs = [numbers[at == value] for value in xs]
    return xs, _filled(of_xs), np.array([len(of_x) for of_x in of_xs])


def _over_iterations(curves: Sequence[tuple[Floats, Floats]]) -> tuple[Floats, Floats, Counts]:
    """Return iterations x (k,) of the longest curve, values there or NaN (k, N), and N for each."""
    xs = max((steps for steps, _ in curves), key=len)
    if not len(xs):
        # no job has a curve: the legend names them, and the chart says that there is a gap
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

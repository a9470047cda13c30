"""Pictures of a sweep: phase diagrams, medians with quantile bands, losses, and any column against any other.

The note of a picture names the settings that it does not show: nothing is averaged over in silence.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Literal, NamedTuple

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.cm import ScalarMappable
from matplotlib.colors import ListedColormap, LogNorm, Normalize, to_hex
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FixedLocator, FuncFormatter, MaxNLocator, NullLocator
from numpy.typing import NDArray

from dynamics_cli.errors import RunError, UsageError, did_you_mean
from dynamics_cli.plotting.layout import figure_legend, format_number, place_legend
from dynamics_cli.plotting.panels.many_runs import (
    BANDS_FROM,
    LOG_FROM,
    draw_bands,
    draw_phase_diagram,
)
from dynamics_cli.plotting.style import MARKER, PALETTE, SERIES, SMALL, new_figure, styled
from dynamics_cli.plotting.time_axis import LogAxes, scale_of, set_time_axis
from dynamics_cli.runs.run import columns_of, measured
from dynamics_cli.runs.store.layout import is_array_name
from dynamics_cli.sweeps.directory import Sweep, number_of, text_of
from dynamics_cli.sweeps.table import FIXED
from dynamics_cli.text import shorten

Floats = NDArray[np.float64]
WIDTH = 4.2
"""Width of a picture in inches."""
MOST_FAMILIES = 7
"""Families of curves in one panel, each of a colour of its own; of more there are several panels, or shades."""
MOST_CURVES, MOST_SMALL = 100, 24
"""Families of curves in a panel, and panels of families, that are drawn at most."""
COLUMNS = 3
"""Panels in a row."""
MOST_PANELS = 6
"""Values of a third setting that are drawn beside each other at most."""
FEW = 8
"""Values of a setting that get a tick each, if there is room."""
WIDE = 28
"""Characters of a label beside which a legend has no room for a second label."""
_CHARACTER = 0.026
"""Width of a character of a tick, as a share of the axis."""
_PER_INCH, _LINE = 14.5, 0.13
"""Small characters in an inch of a line, and height of a line in inches."""


class SweepTable:
    """The results of a sweep by column; of an unfinished sweep, of the jobs that have ended."""

    def __init__(
        self, sweep: Sweep, log: LogAxes | None = None, *, where: Mapping[str, Any] | None = None
    ) -> None:  # fmt: skip
        """Read the table of a sweep.

        Args:
            sweep: finished or not.
            log: which axes are logarithmic, by default axes whose values suit it.
            where: columns with the values that rows must have; other rows are left out.

        Raises:
            RunError: no job has ended yet.
            UsageError: there is no such column, or no row has the values.
        """
        described = sweep.described
        self.sweep, self.log = sweep, log
        self.axes: list[dict[str, Any]] = described["axes"]
        self.computed: dict[str, str] = described["computed"]
        self.rows = [{name: text_of(one) for name, one in row.items()} for row in sweep.chosen(where)]
        if not self.rows:
            raise RunError(f"no job of {sweep.path} has ended yet")
        self.where = {key: text_of(value) for key, value in (where or {}).items()}
        record = described["config"].get("record") or {}
        self.asked = [one if isinstance(one, str) else str(one["kind"]) for one in record.get("measures") or ()]
        """Kinds of the measures that the config asks for."""
        self.jobs = described["jobs"]
        self.settings = [*(axis["key"] for axis in self.axes), *self.computed]
        own = [axis["key"] for axis in self.axes if "with" not in axis]
        self.free = [key for key in own if len(self.values(key)) > 1]
        """Settings of their own that have several values; others go with them, or are computed."""

    @property
    def measures(self) -> list[str]:
        """Names of the final numbers that the table has: measures that the config asks for, the final loss, others."""
        # a measure has a file of its name, which the names of its numbers follow: other columns are no measures
        columns = dict.fromkeys(str(name) for row in self.rows for name in row)
        known = (*FIXED, *self.settings)
        names = [name for name in columns if name not in known and is_array_name(name.partition(".")[0])]
        asked = {name: [k for k, kind in enumerate(self.asked) if kind in name][:1] or [len(names)] for name in names}
        return sorted(names, key=lambda name: (asked[name], name != "final_loss", name))

    @property
    def columns(self) -> list[str]:
        """Names of all columns that can be drawn."""
        return list(dict.fromkeys([*self.settings, "seed", *self.measures]))

    def values(self, key: str) -> list[str]:
        """Return the different values of a column as they are written, in their order."""
        return list(dict.fromkeys(row.get(key, "") for row in self.rows))

    def column(self, name: str) -> Floats:
        """Return a column as numbers, NaN where a job has none."""
        return np.array([number_of(row.get(name, "")) for row in self.rows])

    def numeric(self, key: str) -> bool:
        """Whether a column holds numbers only; NaN is one, and a failed job may have no number."""
        texts = [text for text in self.values(key) if text != ""]
        return bool(texts) and all(text == "nan" or not np.isnan(number_of(text)) for text in texts)

    def families(self, keys: Sequence[str], among: Sequence[int] | None = None) -> dict[str, list[int]]:
        """Return the rows by their values of some columns, named as a legend says them; by default of all rows."""
        families: dict[str, list[int]] = {}
        texts = {key: self._texts(key) for key in keys}
        for k in range(len(self.rows)) if among is None else among:
            name = ", ".join(f"{_last(key)} {texts[key][self.rows[k][key]]}" for key in keys)
            families.setdefault(name, []).append(k)
        return families

    def _texts(self, key: str) -> dict[str, str]:
        """Return the values of a column as legends say them: short where that tells them apart."""
        texts = {value: _short(value) for value in self.values(key)}
        return texts if len(set(texts.values())) == len(texts) else {value: value for value in texts}

    def curve(self, k: int, measure: str) -> tuple[Floats, Floats]:
        """Return the iterations and the losses that the job of row k recorded, or another measure; nothing if none."""
        if self.rows[k]["status"] == "failed":
            return np.zeros(0), np.zeros(0)
        run = self.sweep.run(int(self.rows[k]["job"]))
        if measure == "final_loss":
            return np.asarray(run.loss_iterations, float), np.asarray(run.losses)
        for name in (name for name in run.measures if measure.startswith(name)):
            columns = [name] if run.measures[name].ndim == 1 else [f"{name}.{one}" for one in columns_of(run, name)]
            if measure in columns:
                steps, values = measured(run, name)
                return np.asarray(steps, float), values[:, columns.index(measure)]
        return np.zeros(0), np.zeros(0)

    def note(self, *drawn: str, said: str = "over") -> str:
        """Return the hidden parts of a picture of some columns: other settings, seeds, jobs that have not ended."""
        leaders = {axis["key"]: axis.get("with", axis["key"]) for axis in self.axes}
        groups = {leaders.get(key, key) for key in drawn}
        left = [f"{key} ({len(self.values(key))})" for key in self.free if key not in groups]
        if (seeds := len(self.values("seed"))) > 1 and "seed" not in (*drawn, *self.free):
            left.append(f"{seeds} seeds")
        lost = sum(row["status"] in ("diverged", "failed") for row in self.rows)
        along = [f"{lost} jobs diverged or failed"] if lost else []
        along += [f"{key} with {leader}" for key, leader in leaders.items() if key != leader and key not in drawn]
        along += [f"{key} = {text}" for key, text in self.computed.items() if key not in drawn]
        parts = [f"{said} {', '.join(left)}"] if left else []
        parts += [f"where {key} = {_short(text)}" for key, text in self.where.items()]
        parts += [f"{len(self.rows)} of {self.jobs} jobs"] if len(self.rows) < self.jobs else []
        return "; ".join([*parts, *along])


def _short(text: str) -> str:
    number = number_of(text)
    return shorten(text, 24) if np.isnan(number) else _tick(number)


def _tick(number: float) -> str:
    text = format_number(number)
    return text.replace("e\N{MINUS SIGN}0", "e\N{MINUS SIGN}").replace("e+0", "e")


def _last(key: str) -> str:
    """Return the last word of a key, which legends show; of a kind with its section."""
    above, _, last = key.rpartition(".")
    return above.rpartition(".")[2] if last == "kind" and above else last


class Coordinate:
    """Where the values of a column stand on an axis: numbers, evenly or by their logarithms, or words in a row."""

    def __init__(self, table: SweepTable, key: str, axis: Literal["x", "y"] | None = None) -> None:
        """Place the values of a column.

        Raises:
            UsageError: the axis is to be logarithmic, and values are not positive.
        """
        self.key, self.words = key, None if table.numeric(key) else table.values(key)
        if self.words is not None:
            self.at = np.array([float(self.words.index(row.get(key, ""))) for row in table.rows])
        else:
            self.at = table.column(key)
        self.values = np.unique(self.at[np.isfinite(self.at)])
        asked = any(one["key"] == key and one["log"] for one in table.axes)
        self.setting = key in (*table.settings, "seed")
        self.log = self.words is None and (asked or _geometric(self.values, self.setting))
        if axis is not None and self.words is None:
            self.log = scale_of(axis, table.log, self.log) == "log"
        if self.log and len(self.values) and self.values[0] <= 0:
            raise UsageError(f"{key} has the value {self.values[0]:g}, which a logarithmic axis cannot show")

    def apply(self, axis: Axis, label: str | None = None, *, across: bool = True) -> None:
        """Give an axis the scale, the ticks and the label; whole numbers stay whole."""
        (axis.axes.set_xscale if across else axis.axes.set_yscale)("log" if self.log else "linear")
        axis.set_label_text(label or _words(self.key))
        whole = bool(np.all(self.values == np.round(self.values)))
        if self.words is None and (len(self.values) > FEW or not self.setting):
            if self.setting and whole and not self.log:
                axis.set_major_locator(MaxNLocator(nbins=6, integer=True))
            return
        texts = [_tick(v) for v in self.values] if self.words is None else [shorten(w, 18) for w in self.words]
        places = np.log(self.values) if self.log else self.values
        share = (places - places[0]) / max(float(np.ptp(places)), 1e-300) if len(places) else places
        kept: list[int] = []
        for k, text in enumerate(texts):
            need = _CHARACTER * (len(text) + len(texts[kept[-1]]) + 2) / 2 if kept else 0.0
            if not kept or share[k] - share[kept[-1]] >= (need if across else 0.06):
                kept.append(k)
        named = {float(self.values[k]): texts[k] for k in kept}
        axis.set_major_locator(FixedLocator(list(named)))
        axis.set_major_formatter(FuncFormatter(lambda value, _: named.get(value, "")))
        axis.set_minor_locator(NullLocator())


def _geometric(values: Floats, setting: bool) -> bool:
    """Whether positive values are spread more evenly by their logarithms; of measures, whether they span much."""
    if len(values) < 2 or values[0] <= 0:
        return False
    if not setting:
        return bool(values[-1] / values[0] > LOG_FROM)
    steps, ratios = np.diff(values), np.diff(np.log(values))
    return len(values) > 2 and bool(ratios.min() / ratios.max() > 1.05 * steps.min() / steps.max())


class Picture(NamedTuple):
    """A picture of a sweep."""

    description: str
    draw: Callable[[SweepTable, str], Figure]
    """Draws a final number, by its name."""


def pictures_of(table: SweepTable) -> dict[str, Picture]:
    """Return the pictures that a sweep offers, by name."""
    pictures = {}
    keys = [key for key in table.free if table.numeric(key)]
    if len(keys) >= 2:
        pictures["phase"] = Picture(f"heat map over {keys[0]} and {keys[1]}", _draw_phase)
    if table.settings:
        pictures["curve"] = Picture(f"medians against {_main(table)}", _draw_curve)
    pictures["losses"] = Picture("losses, or a measure, over iterations by setting", _draw_losses)
    pictures["spread"] = Picture("final numbers of all jobs, sorted", _draw_spread)
    return pictures


@styled
def draw_sweep(table: SweepTable, panel: str, measure: str | None = None) -> Figure:
    """Draw a picture of a sweep; by default of the measure that `usual_measure` says.

    Raises:
        UsageError: the sweep has no such picture or measure; the message names those that it has.

    """
    offered = pictures_of(table)
    if panel not in offered:
        raise UsageError(f"no panel {panel!r} here; this sweep has {', '.join(offered)}{did_you_mean(panel, offered)}")
    measure = measure or usual_measure(table, panel)
    _refuse_unless(measure, table.measures, "measure")
    return offered[panel].draw(table, measure)


def draw_named(
    table: SweepTable, panels: Sequence[str], columns: Mapping[str, str], measure: str | None
) -> Iterator[tuple[str, Figure]]:
    """Draw `columns`, or `panels`, by default all, one after the other, each with the name of its file.

    Raises UsageError: there is no such panel, column or measure, or both panels and columns are named.
    """

    def written(text: object) -> str:
        return re.sub("[^A-Za-z0-9_.+-]+", "_", str(text))

    said = "".join(f"-{key}={written(value)[:40]}" for key, value in table.where.items())
    if columns and panels:
        raise UsageError(
            f"the panel {panels[0]} has its own axes; --where KEY=VALUE narrows it, and --x, --y and --color"
            " draw any columns of final numbers where no panel is named"
        )
    if columns:
        yield written("-".join(columns.values())) + said, draw_columns(table, **columns, measure=measure)
        return
    for name in panels or pictures_of(table):
        chosen = measure or usual_measure(table, name)
        stem = name if chosen == "final_loss" else f"{name}-{written(chosen)}"
        yield stem + said, draw_sweep(table, name, chosen)


def usual_measure(table: SweepTable, panel: str = "") -> str:
    """Return the measure that is drawn by default: the first that the config asks for, or the final loss."""
    return "final_loss" if panel == "losses" else table.measures[0]


@styled
def draw_columns(
    table: SweepTable, x: str | None = None, y: str | None = None, color: str | None = None, measure: str | None = None
) -> Figure:
    """Draw a final number over a setting: medians, with bands, for each value of another setting.

    Args:
        table: the results.
        x: a setting; by default the first with several values.
        y: a final number; by default `measure`.
        color: a setting; by default there is a single line.
        measure: a final number; by default that of `usual_measure`.

    Raises:
        UsageError: there is no such setting, or no such final number.
    """
    x, y = x or _main(table), y or measure or usual_measure(table)
    for name in (x, color or x):
        _refuse_unless(name, [*table.settings, "seed"], "setting")
    _refuse_unless(y, table.measures, "measure")
    return _curves(table, x, y, [color] if color else [])


def _refuse_unless(name: str, known: Sequence[str], what: str) -> None:
    if name not in known:
        raise UsageError(f"no {what} {name!r} here; there are {', '.join(known)}{did_you_mean(name, known)}")


def _main(table: SweepTable) -> str:
    """Return the setting that curves are drawn over: the first with several values, numbers before words."""
    free = table.free or table.settings or ["seed"]
    numbers = [key for key in free if table.numeric(key)]
    return str((numbers or free)[0])


def _draw_phase(table: SweepTable, measure: str) -> Figure:
    first, second, *_ = (key for key in table.free if table.numeric(key))
    rest = [key for key in table.free if key not in (first, second)]
    third = next((key for key in rest if len(table.values(key)) <= MOST_PANELS), None)
    return _heat_maps(table, first, second, measure, third)


def _heat_maps(table: SweepTable, x: str, y: str, measure: str, third: str | None) -> Figure:
    """Draw means over two settings, a panel for each value of a third."""
    xs, ys, numbers = Coordinate(table, x, "x"), Coordinate(table, y, "y"), table.column(measure)
    names = table.families([third]) if third else {"": list(range(len(table.rows)))}
    columns = min(COLUMNS, len(names))
    width = WIDTH if columns == 1 else 2.2 * columns + 0.6
    figure, panels = new_figure(columns, -(-len(names) // columns), width=width, aspect=0.72 if columns == 1 else 0.9)
    means = [_means(xs, ys, numbers, rows) for rows in names.values()]
    finite = np.concatenate([mean[np.isfinite(mean)] for mean in means])
    limits = (float(finite.min()), float(finite.max())) if third and len(finite) else None
    for k, (axes, name) in enumerate(zip(panels, [*names, *[None] * len(panels)], strict=False)):
        if name is None:
            axes.set_visible(False)
            continue
        if min(means[k].shape) < 2:
            raise UsageError(
                f"a heat map over {x} and {y} needs two values of each; --color draws lines by one of them"
            )
        draw_phase_diagram(
            axes, xs.values, ys.values, means[k], xlabel="", ylabel="", log_x=xs.log, log_y=ys.log, limits=limits,
            label=_words(measure) if columns == 1 or k % columns == columns - 1 or k == len(names) - 1 else "",
        )  # fmt: skip
        xs.apply(axes.xaxis)
        ys.apply(axes.yaxis, across=False)
        if name:
            axes.set_title(name, fontsize=SMALL)
    _say(figure, panels[0], table.note(x, y, *([third] if third else []), said="mean over"), width, top=bool(third))
    return figure


def _means(xs: Coordinate, ys: Coordinate, numbers: Floats, rows: Sequence[int]) -> Floats:
    """Return the means (len(ys), len(xs)) of some rows, NaN where there is none."""
    total = np.zeros((2, len(ys.values), len(xs.values)))
    for k in rows:
        if np.isfinite([numbers[k], xs.at[k], ys.at[k]]).all():
            place = np.searchsorted(ys.values, ys.at[k]), np.searchsorted(xs.values, xs.at[k])
            total[(slice(None), *place)] += (numbers[k], 1.0)
    return np.where(total[1] > 0, total[0] / np.maximum(total[1], 1), np.nan)


def _draw_curve(table: SweepTable, measure: str) -> Figure:
    main = _main(table)
    return _curves(table, main, measure, [key for key in table.free if key != main])


def _curves(table: SweepTable, x: str, y: str, by: Sequence[str]) -> Figure:
    """Draw medians over one column, a family for each combination of the values of others."""
    xs, numbers = Coordinate(table, x, "x"), table.column(y)

    def curve(rows: Sequence[int]) -> Curve:
        return xs.values, _by_value(xs.values, xs.at[rows], numbers[rows])

    families = _Families(table, by, curve)
    figure, panels = families.draw(marker=MARKER, joined=xs.words is None)
    for axes in panels:
        axes.set_yscale(scale_of("y", table.log, _scale(numbers) == "log"))
        xs.apply(axes.xaxis)
        axes.set_ylabel(_words(y))
    families.label(figure, panels, table.note(x, y, *by), "point", bands=xs.words is None)
    return figure


def _draw_losses(table: SweepTable, measure: str) -> Figure:
    def curve(rows: Sequence[int]) -> Curve:
        found = [one for row in rows if len((one := table.curve(row, measure))[0])]
        xs = max((x for x, _ in found), key=len, default=np.zeros(0))
        grid = np.full((len(xs), len(found)), np.nan)
        for column, (_, values) in enumerate(found):
            grid[: len(values), column] = values
        return xs, grid

    families = _Families(table, table.free, curve)
    every = np.concatenate([grid.ravel() for _, grid in families.all] or [np.zeros(0)])
    log = scale_of("y", table.log, measure == "final_loss" or _scale(every) == "log") == "log"
    if log:
        for _, grid in families.all:
            grid[~(grid > 0)] = np.nan
    longest = max((xs for xs, _ in families.all), key=len, default=np.zeros(0))
    few = 0 < len(longest) < 3
    figure, panels = families.draw(marker=MARKER, joined=False) if few else families.draw()
    for axes in panels:
        axes.set_yscale("log" if log else "linear")
        axes.set(xlabel="iteration", ylabel="training loss" if measure == "final_loss" else _words(measure))
        if len(longest) and table.log is not None:
            set_time_axis(axes, longest, scale_of("x", table.log, False))
    why = "first and last state only: see --record" if few else ""
    families.label(figure, panels, "; ".join(filter(None, [table.note(*table.free), why])), "point" if few else "line")
    return figure


def _draw_spread(table: SweepTable, measure: str) -> Figure:
    numbers = np.sort(table.column(measure))
    numbers = numbers[np.isfinite(numbers)]
    figure, (axes,) = new_figure(width=WIDTH)
    shares = (np.arange(len(numbers)) + 0.5) / max(1, len(numbers))
    axes.plot(numbers, shares, ".", color=PALETTE.function, markersize=3, clip_on=False)
    axes.set_xscale(scale_of("x", table.log, _scale(numbers) == "log"))
    if table.log is not None and len(numbers) and numbers[-1] < 10 * numbers[0]:  # powers of ten would name nothing
        axes.xaxis.set_major_locator(MaxNLocator(5))
        axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:.3g}"))
        axes.xaxis.set_minor_locator(NullLocator())
    axes.set(xlabel=_words(measure), ylabel=f"share of the {len(numbers)} jobs below", ylim=(0, 1))
    _say(figure, axes, table.note(said="all values of"), WIDTH)
    return figure


Curve = tuple[Floats, Floats]
"""Places (k,) and values (k, N)."""
_SHADES = ListedColormap(mpl.colormaps["viridis"](np.linspace(0, 0.92, 256)))
"""Without the yellow end, which lines on white do not show."""


class _Families:
    """Medians of many jobs, a line for each family: in one panel where they are few, else in several, or in shades."""

    def __init__(self, table: SweepTable, by: Sequence[str], curve: Callable[[Sequence[int]], Curve]) -> None:
        """Gather the `curve` of the rows of each family, by the values of some columns."""
        self.table, self.count = table, len(table.families(by))
        self.line = max(by, key=lambda key: len(table.values(key))) if self.count > MOST_FAMILIES else None
        """The column whose values are the lines of each panel, where panels differ in others."""
        every = list(range(len(table.rows)))
        outer = table.families([key for key in by if key != self.line]) if self.line else {"": every}
        self.curves: dict[str, dict[str, Curve]] = {}
        for panel in _spaced(list(outer), MOST_SMALL):
            rows = table.families([self.line] if self.line else by, outer[panel])
            self.curves[panel] = {name: curve(rows[name]) for name in _spaced(list(rows), MOST_CURVES)}
        self.all = [one for families in self.curves.values() for one in families.values()]

    def draw(self, *, marker: str = "", joined: bool = True) -> tuple[Figure, list[Axes]]:
        """Draw them, and return the panels."""
        count = len(self.curves)
        columns = min(COLUMNS, count)
        width, aspect = (WIDTH, 0.72) if count == 1 else (2.2 * columns + 0.6, 0.9)
        figure, panels = new_figure(columns, -(-count // columns), width=width, aspect=aspect)
        for unused in panels[count:]:
            unused.remove()
        names = list(dict.fromkeys(name for families in self.curves.values() for name in families))
        shades, colors = (
            self._shades(names) if len(names) > len(SERIES) else (None, dict(zip(names, SERIES, strict=False)))
        )
        handles = []
        titles = [textwrap.fill(panel, round(_PER_INCH * width / columns) - 4) for panel in self.curves]
        _grow(figure, max(title.count("\n") for title in titles) * -(-count // columns))
        for axes, title, families in zip(panels, titles, self.curves.values(), strict=False):
            axes.set_title(title, fontsize=SMALL)
            if axes is not panels[0]:
                axes.sharex(panels[0])
                axes.sharey(panels[0])
            for name, (x, values) in families.items():
                if np.isfinite(values).any():
                    look: dict[str, Any] = {"label": name or None, "color": colors[name], "marker": marker}
                    handles.append(draw_bands(axes, x, values, joined=joined, **look))
        if shades is not None:
            figure.colorbar(shades, ax=panels[:count], label=_words(str(self.line)), aspect=20 * -(-count // columns))
        elif count > 1:
            figure_legend(figure, handles)
        elif any(names):
            _legend(panels[0], handles)
        return figure, panels[:count]

    def _shades(self, names: Sequence[str]) -> tuple[ScalarMappable | None, dict[str, str]]:
        """Return the scale of the colours of more families than have colours of their own, none of words; and these."""
        at, rows = Coordinate(self.table, str(self.line)), self.table.families([str(self.line)])
        norm = (LogNorm if at.log else Normalize)(float(at.values[0]), float(at.values[-1]))
        colors = {name: to_hex(_SHADES(float(norm(at.at[rows[name][0]])))) for name in names}
        return None if at.words else ScalarMappable(norm, _SHADES), colors

    def label(self, figure: Figure, panels: Sequence[Axes], note: str, each: str, *, bands: bool = True) -> None:
        """Write a note on lines, bands and families that are left out; keep the labels of outer axes only."""
        most = max((int(np.isfinite(values).sum(axis=1).max(initial=0)) for _, values in self.all), default=0)
        around = ", bands 25-75 % and 5-95 %" if bands and most >= BANDS_FROM else f" and {each}s"
        parts = [*([f"median{around}"] if most > 1 else []), *([note] if note else [])]
        if self.count > len(self.all):
            parts.append(f"{len(self.all)} of {self.count} families are drawn, --where KEY=VALUE chooses others")
        text = "; ".join(parts).replace("; over", " over", 1)
        _say(figure, panels[0], text, figure.get_figwidth(), top=len(panels) > 1)
        for k, axes in enumerate(panels):
            axes.set_ylabel("" if k % COLUMNS else axes.get_ylabel())
            axes.set_xlabel("" if k + COLUMNS < len(panels) else axes.get_xlabel())


def _legend(axes: Axes, handles: Sequence[Line2D]) -> None:
    """Add a legend of two columns, or of a single column where labels are long; for many lines the picture grows."""
    wide = max((len(str(handle.get_label())) for handle in handles), default=0) > WIDE
    if isinstance(axes.figure, Figure):
        _grow(axes.figure, len(handles) / 2 if wide else max(0.0, len(handles) / 2 - 4))
    place_legend(axes, handles, columns=1 if wide else 2)


def _grow(figure: Figure, lines: float) -> None:
    """Make a picture higher by lines of small text."""
    figure.set_figheight(figure.get_figheight() + _LINE * lines)


def _say(figure: Figure, axes: Axes, note: str, width: float, *, top: bool = False) -> None:
    """Write a note above a picture, in as many lines as it takes; the picture grows by those after the second."""
    if not note:
        return
    text = textwrap.fill(note, round(_PER_INCH * width))
    _grow(figure, max(0, text.count("\n") - 1))
    if top:
        figure.suptitle(text, fontsize=SMALL, color=PALETTE.unsigned)
    else:
        axes.set_title(text, loc="left", fontsize=SMALL, color=PALETTE.unsigned)


def _spaced(names: Sequence[str], most: int) -> list[str]:
    """Return at most so many of the names, evenly spread, the ends among them."""
    if len(names) <= most:
        return list(names)
    return [names[round(k * (len(names) - 1) / (most - 1))] for k in range(most)]


def _by_value(xs: Floats, x_of: Floats, numbers: Floats) -> Floats:
    """Return numbers (k, N): those of each value of the axis in a row, filled with NaN."""
    rows = [numbers[x_of == x] for x in xs]
    longest = max([len(row) for row in rows], default=0)
    return np.array([np.pad(row, (0, longest - len(row)), constant_values=np.nan) for row in rows])


def _scale(numbers: Floats) -> Literal["log", "linear"]:
    """Return `log` for numbers that are all positive and span more than a factor `LOG_FROM`."""
    finite = numbers[np.isfinite(numbers)]
    return "log" if len(finite) and finite.min() > 0 and finite.max() / finite.min() > LOG_FROM else "linear"


def _words(name: str) -> str:
    return name if "." in name else name.replace("_", " ")

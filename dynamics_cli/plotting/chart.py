"""Curves as data: what runs, sweeps and theories show over training, settings or eigenvalues.

A `Chart` holds arrays and names colours by their roles, as a `Scene` does; Matplotlib draws it here
(`draw_chart`), and pages draw it in a browser. Scales that nobody asked for follow the curves.
"""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from numpy.typing import ArrayLike, NDArray

from dynamics_cli.plotting.labels import (
    ROOM,
    figure_legend,
    figure_note,
    format_number,
    note,
    panel_label,
    place_legend,
)
from dynamics_cli.plotting.scene import DASHES
from dynamics_cli.plotting.style import MARKER, PALETTE, SERIES, SMALL, new_figure, styled
from dynamics_cli.plotting.time_axis import (
    LogAxes,
    TimeScale,
    as_times,
    draw_curve,
    draw_curves,
    scale_of,
    set_time_axis,
    set_value_axis,
    visible,
)

Floats = NDArray[np.float64]

EARLY = 0.02
"""Share of the iterations that a linear axis hardly shows."""
LOG_RANGE = 20.0
"""A positive curve whose largest value is so many times its smallest is drawn on a log axis."""
QUANTILES = ((0.05, 0.95), (0.25, 0.75))
"""The ends of each band."""
FEW = 40
"""Points of a line up to which single ones have markers."""
EDGE = "v"
"""The marker of a value that a logarithmic axis cannot show, at its lower edge."""
LABEL_HEIGHT = 9.0
"""Distance in points that keeps two labels at the right edge apart."""
ROW_WIDTH = 7.0
"""Width of a row of several panels in inches: that of a page of two columns."""
WIDE = 52
"""Characters of a line of a legend."""
MARKED = 32
"""Characters that stand along the line of a mark."""
SHORTEST = 8
"""Characters of a line of a word along an axis."""


class Level(NamedTuple):
    """A value at which a curve rests, and the first and the last x of that."""

    value: float
    first: float
    last: float


class Reference(NamedTuple):
    """A value of y that a dashed line marks."""

    name: str
    value: float
    color: str = "theory"
    """A role of the palette: that of its curve, or `theory` where it belongs to all."""


def references(
    bounds: Sequence[tuple[tuple[str, float] | None, str]],
) -> list[Reference]:
    """Return a line for the bound of each curve in its colour, or a grey one if all are the same.

    `bounds` has the name and the value of each bound, None where a curve has none, and the colour
    of the curve.
    """
    different = dict.fromkeys(bound for bound, _ in bounds)
    if len(different) == 1:
        return [Reference(*bound) for bound in different if bound is not None]
    return [Reference(*bound, color) for bound, color in bounds if bound is not None]


class Statistics(NamedTuple):
    """Medians and bands of several jobs at each x, taken before any axis is chosen."""

    median: Floats
    """(k,), of the jobs that have a number; NaN where these are fewer than half."""
    bands: Floats
    """(2 b, k): the two ends of each of `QUANTILES`; NaN where there is no median."""
    counts: NDArray[np.int64]
    """(k,): the jobs that have a number."""
    of: NDArray[np.int64]
    """(k,): all jobs."""

    @property
    def partial(self) -> NDArray[np.bool_]:
        """Whether there is a median, but not of all jobs (k,)."""
        return np.isfinite(self.median) & (self.counts < self.of)

    @property
    def missing(self) -> NDArray[np.bool_]:
        """Whether there is no median, since fewer than half of the jobs have a number (k,)."""
        return np.isnan(self.median) & (self.of > 0)


def statistics(values: ArrayLike, of: ArrayLike | None = None) -> Statistics:
    """Return the statistics of rows of values (k, m); what is not finite is no number.

    `of` (k,) is the number of jobs that a row is of, by default m.
    """
    y = visible(values, log=False)
    count = np.isfinite(y).sum(axis=1)
    if of is None:
        of = y.shape[1]
    jobs = np.broadcast_to(np.asarray(of, np.int64), count.shape)
    known = (count > 0) & (2 * count >= jobs)

    median = np.full(len(y), np.nan)
    bands = np.full((2 * len(QUANTILES), len(y)), np.nan)
    if known.any():
        median[known] = np.nanmedian(y[known], axis=1)
        bands[:, known] = _quantiles(y[known], np.ravel(QUANTILES))
    return Statistics(median, bands, count, jobs)


def _quantiles(y: Floats, ends: Floats) -> Floats:
    # `nanquantile` takes ten times as long
    quantile = np.nanquantile if np.isnan(y).any() else np.quantile
    return np.asarray(quantile(y, ends, axis=1))


@dataclass(frozen=True, kw_only=True)
class Line:
    """A curve, or several that are alike."""

    x: ArrayLike
    """(k,), finite and never decreasing."""
    y: ArrayLike
    """(k,), or (k, m) for m curves of one look; what is not finite is a gap."""
    name: str = ""
    """In the legend (mathtext); without a name there is no entry."""
    color: str = "series-0"
    """A role of the palette."""
    dash: str = ""
    """A key of `DASHES`."""
    width: float = 1.3
    """In points."""
    points: bool = False
    """Whether there are markers, and no line that joins them."""
    bands: bool = False
    """Whether the m curves are shown by their median and `QUANTILES`."""
    of: ArrayLike | None = None
    """Of how many jobs a median is (k,) or at each x; by default m."""

    @property
    def columns(self) -> Floats:
        """The curves as (k, m)."""
        return np.atleast_2d(np.asarray(self.y, np.float64).T).T

    @cached_property
    def statistics(self) -> Statistics:
        """Medians and bands of the m curves."""
        return statistics(self.columns, self.of)

    @property
    def shown(self) -> Floats:
        """All numbers that are drawn (k, c): the curves, or their medians and bands."""
        if not self.bands:
            return self.columns
        beside = self.columns if self.points else self.statistics.bands.T
        return np.column_stack([self.statistics.median, beside])

    @property
    def dense(self) -> bool:
        """Whether it has too many points for a marker at single ones."""
        return np.size(self.x) > FEW

    def medians(self) -> tuple[Floats, Floats]:
        """Return medians (k,), and those not of all jobs, or NaN; a dense line has them apart."""
        median = self.statistics.median
        partial = self.statistics.partial
        if not self.dense or not partial.any():
            return median, np.where(partial, median, np.nan)
        joined = partial.copy()  # with the neighbours, so that no piece of the line is missing
        joined[1:] |= partial[:-1]
        joined[:-1] |= partial[1:]
        return np.where(partial, np.nan, median), np.where(joined, median, np.nan)


@dataclass(frozen=True, kw_only=True)
class Chart:
    """Curves on common axes."""

    lines: Sequence[Line]
    ylabel: str
    xlabel: str = "iteration"
    title: str = ""
    """What it shows, where it stands among others; by default `ylabel`."""
    log: LogAxes | None = None
    """The axes that are logarithmic, the others being linear; by default those that this suits."""
    linear: bool = False
    """Whether y is linear whatever is asked for."""
    reach: Sequence[float] = ()
    """Values that the y axis contains in any case."""
    levels: Sequence[Reference] = ()
    """Values of y that dashed lines mark."""
    plateaus: Sequence[Level] = ()
    marks: Sequence[tuple[float, str]] = ()
    """Places on the x axis with their words: a thin vertical line each."""
    scale_x: TimeScale | None = None
    """The scale of x unless one is asked for."""
    ticks: Mapping[float, str] = field(default_factory=dict)
    """Names of places on the x axis; by default they are numbers."""
    words: bool = False
    """Whether the places are words, which stand side by side."""
    note: str = ""
    """A few words under the chart."""

    @property
    def shown(self) -> Floats:
        """All numbers of the lines that are drawn."""
        return np.concatenate([np.zeros(0), *(line.shown.ravel() for line in self.lines)])

    @property
    def values(self) -> Floats:
        """All y that are drawn, and what the axis contains in any case."""
        levels = [level.value for level in self.levels]
        return np.concatenate([self.shown, self.reach, levels])

    @property
    def log_y(self) -> bool:
        """Whether y is, or would be, logarithmic; not by default where that would hide plateaus."""
        every = self.shown
        every = every[np.isfinite(every) & (every != 0)]
        low = every.min(initial=np.inf)
        high = every.max(initial=0.0)
        flat = sum(plateau.value > high / LOG_RANGE for plateau in self.plateaus) > 1
        return (
            not self.linear
            and scale_of("y", self.log, 0 < low < high / LOG_RANGE and not flat) == "log"
        )

    @property
    def below(self) -> Floats:
        """The drawn y that its logarithmic axis cannot show."""
        shown = self.shown
        return shown[self.log_y & np.isfinite(shown) & (shown <= 0)]

    @property
    def log_x(self) -> bool:
        """Whether x is logarithmic: time is where curves change mostly before `EARLY`."""
        suits = self.scale_x == "log"
        if self.xlabel in ("iteration", "time") and self.scale_x is None:
            log_y = self.log_y
            shares = np.array([_early(line, log_y) for line in self.lines])
            shares = shares[np.isfinite(shares)]
            suits = len(shares) > 0 and float(np.mean(shares)) > 0.5
        return scale_of("x", self.log, suits) == "log"


def remarks(charts: Sequence[Chart]) -> list[str]:
    """Return what readers of charts must know: bands, medians of some jobs, values at an edge."""
    lines = [line for chart in charts for line in chart.lines if line.bands]
    found = []
    if any(line.columns.shape[1] > 1 and not line.points for line in lines):
        shares = " and ".join(f"{high - low:.0%}" for low, high in sorted(QUANTILES, reverse=True))
        found.append(f"bands: middle {shares}")
    some = [line for line in lines if line.statistics.partial.any()]
    looks = {"dotted" if line.dense else "hollow" for line in some}
    what = " or ".join(sorted(looks))
    found += _counted(what, [(line.statistics, line.statistics.partial) for line in some])
    found += _counted("gap", [(line.statistics, line.statistics.missing) for line in lines])

    below = np.concatenate([np.zeros(0), *(chart.below for chart in charts)])
    if len(below):
        found.append("at the lower edge: 0" + " or less" * bool(below.min() < 0))
    return found


def _counted(what: str, parts: Sequence[tuple[Statistics, NDArray[np.bool_]]]) -> list[str]:
    """Return `what: k of n`, with the ranges of k and n at some places; nothing without any."""
    counts = np.concatenate([np.zeros(0, np.int64), *(numbers.counts[at] for numbers, at in parts)])
    jobs = np.concatenate([np.zeros(0, np.int64), *(numbers.of[at] for numbers, at in parts)])
    if not len(counts):
        return []
    return [f"{what}: {_range(counts)} of {_range(jobs)} jobs have a number"]


def _range(numbers: NDArray[np.int64]) -> str:
    ends = dict.fromkeys([numbers.min(), numbers.max()])
    return " to ".join(map(str, ends))


def relabelled(chart: Chart, labels: Mapping[str, str]) -> Chart:
    """Return a chart with other texts in place of those of its axes and its legend."""
    return replace(
        chart,
        xlabel=labels.get(chart.xlabel, chart.xlabel),
        ylabel=labels.get(chart.ylabel, chart.ylabel),
        lines=[replace(line, name=labels.get(line.name, line.name)) for line in chart.lines],
    )


def look(k: int) -> dict[str, Any]:
    """Return colour and dash of the k-th of several curves."""
    return {"color": f"series-{k}", "dash": [*DASHES][k // len(SERIES) % len(DASHES)]}


def _early(line: Line, log: bool) -> float:
    """Return the share of a line's total variation before `EARLY`; NaN if short or constant."""
    values = line.statistics.median[:, None] if line.bands else line.columns
    x = np.asarray(line.x, np.float64)
    y = visible(values, log=log)
    if len(x) < 8 or x[-1] <= 100:
        return np.nan
    if log:
        y = np.log(y)
    change = np.nansum(np.abs(np.diff(y, axis=0)), axis=1)
    total = float(change.sum())
    if total <= 0:
        return np.nan
    return float(change[x[1:] <= x[0] + EARLY * (x[-1] - x[0])].sum()) / total


@styled
def draw_chart(axes: Axes, chart: Chart) -> list[Artist]:
    """Draw a chart, and return the handles of a legend.

    Long curves are decimated without losing their extremes. Raises ValueError for x and y of
    unequal lengths, and for x that decreases.
    """
    log = set_value_axis(axes, chart.values, chart.ylabel, log=chart.log_y)
    scale: TimeScale = "log" if chart.log_x else "linear"
    lines = [line for line in chart.lines if np.size(line.x)]
    handles = [_draw_line(axes, line, log=log, scale=scale) for line in lines]
    every = np.sort(
        np.concatenate([np.asarray(line.x, np.float64) for line in lines] or [np.zeros(1)])
    )
    set_time_axis(axes, every, scale, chart.xlabel)
    if chart.ticks:
        names = [*chart.ticks.values()]
        if chart.words:
            names = [textwrap.fill(name, max(SHORTEST, ROOM // len(names))) for name in names]
            axes.set_xlim(min(chart.ticks) - 0.5, max(chart.ticks) + 0.5)
        axes.set_xticks([*chart.ticks], labels=names)
        axes.set_xticks([], minor=True)
    for plateau in chart.plateaus:
        if plateau.value > 0 or not log:
            _draw_plateau(axes, plateau)
    _draw_levels(axes, chart.levels)
    for at, words in chart.marks:
        axes.axvline(at, color=PALETTE.color("theory"), lw=0.6, zorder=1.5)
        axes.annotate(
            textwrap.shorten(words, MARKED, placeholder=" ..."),
            (at, 0.98),
            xycoords=axes.get_xaxis_transform(),
            xytext=(2, 0),
            textcoords="offset points",
            rotation=90,
            va="top",
            fontsize=SMALL,
            color=PALETTE.color("theory"),
            parse_math=False,  # words of users, which may have dollars
        )
    if chart.note:
        note(axes, chart.note)
    return [handle for handle in handles if not str(handle.get_label()).startswith("_")]


def _draw_line(axes: Axes, line: Line, *, log: bool, scale: TimeScale) -> Line2D:
    """Draw a line and return its handle; what a log axis cannot show is at its lower edge."""
    x = as_times(line.x)
    every = line.columns
    if len(x) != len(every):
        raise ValueError(f"curves of shape {every.shape} for x of shape {x.shape}")
    floor = axes.get_ylim()[0] if log else -np.inf
    color = PALETTE.color(line.color)
    dash = DASHES[line.dash]
    form: dict[str, Any] = {
        "color": color,
        "ls": dash,
        "lw": line.width,
        "label": line.name or None,
    }
    m = every.shape[1]
    if line.points:
        form |= {"ls": "none", "marker": MARKER, "ms": 3}
        if line.bands and m != 1:
            form |= {"marker": "_", "ms": 9}
    if m != 1 and not line.bands:
        thin: dict[str, Any] = {
            "linewidths": 0.9 if m <= 200 else 0.4,
            "alpha": float(np.clip(40 / max(m, 1), 0.08, 0.8)),
        }
        y = _lifted(every, floor)
        draw_curves(axes, x, y, log_time=scale == "log", colors=color, linestyles=dash, **thin)
        return Line2D([], [], **form)
    if not line.bands:
        _mark_edge(axes, x, every[:, 0], floor, color)
        return draw_curve(axes, x, _lifted(every[:, 0], floor), log_time=scale == "log", **form)

    if line.points:
        axes.scatter(
            np.repeat(x, m),
            _lifted(every, floor).ravel(),
            s=7,
            color=color,
            alpha=0.6,
            linewidths=0,
        )
    elif m > 1:
        bands = _lifted(line.statistics.bands, floor)
        for low, high in zip(bands[::2], bands[1::2], strict=True):
            axes.fill_between(x, low, high, color=color, alpha=0.2, linewidth=0)
    medians, partial = line.medians()
    _mark_edge(axes, x, line.statistics.median, floor, color)
    form |= {"log_time": scale == "log"}
    handle = draw_curve(axes, x, _lifted(medians, floor), **form)
    if np.isfinite(partial).any():
        of_some = {"ls": "none", "marker": MARKER, "ms": 4, "mfc": PALETTE.ground, "zorder": 3}
        if line.dense:
            of_some = {"ls": (0, (1, 1.5))}
        draw_curve(axes, x, _lifted(partial, floor), **{**form, "label": None, **of_some})
    return handle


def _lifted(y: Floats, floor: float) -> Floats:
    """Return y with NaN for what is not finite, and `floor` for what a log axis cannot show.

    A linear axis has the floor -inf.
    """
    y = visible(y, log=False)
    if floor == -np.inf:
        return y
    return np.where(y <= 0, floor, y)


def _mark_edge(axes: Axes, x: Floats, y: Floats, floor: float, color: str) -> None:
    """Mark values that a log axis cannot show at its edge; of many in a row the first and last."""
    below = np.isfinite(y) & (y <= 0)
    if floor == -np.inf or not below.any():
        return
    if below.sum() > FEW:
        inner = below.copy()
        inner[1:-1] &= below[:-2] & below[2:]
        inner[[0, -1]] = False
        below &= ~inner
    at = x[below]
    look: dict[str, Any] = {"ls": "none", "marker": EDGE, "ms": 4, "clip_on": False, "zorder": 4}
    axes.plot(at, np.full(len(at), floor), color=color, **look)


def _draw_plateau(axes: Axes, plateau: Level) -> None:
    """Underline a plateau and write its value above it, or below where the panel ends."""
    value, first, last = plateau
    look: dict[str, Any] = {
        "color": PALETTE.highlight,
        "lw": 4.5,
        "alpha": 0.55,
        "solid_capstyle": "butt",
        "zorder": 1,
    }
    axes.plot([first, last], [value, value], **look)
    text = format_number(value)
    scale = 72 / axes.figure.dpi
    box = axes.get_window_extent()
    height = axes.transData.transform((first, value))[1] * scale
    place: dict[str, Any] = {
        "xy": ((first + last) / 2, value),
        "xytext": (0, 3.5),
        "ha": "left",
        "va": "bottom",
    }
    if box.y1 * scale - height <= 12:
        place = {"xy": (last, value), "xytext": (0, -4.0), "ha": "right", "va": "top"}
    axes.annotate(text, textcoords="offset points", fontsize=SMALL, color=PALETTE.theory, **place)


def _draw_levels(axes: Axes, levels: Sequence[Reference]) -> None:
    """Draw a dashed line for every level, and names at the right edge that do not touch."""
    previous = -np.inf
    for name, value, role in sorted(levels, key=lambda level: level.value):
        color = PALETTE.color(role)
        axes.axhline(value, color=color, lw=0.8, ls=(0, (4, 2)), zorder=2.5)
        height = float(axes.transData.transform((0, value))[1]) * 72 / axes.figure.dpi
        at = max(height, previous + LABEL_HEIGHT)
        previous = at
        axes.annotate(
            name,
            (1.0, value),
            xycoords=axes.get_yaxis_transform(),
            xytext=(4, at - height),
            textcoords="offset points",
            va="center",
            fontsize=SMALL + 0.5,
            color=color,
        )


@styled
def draw_charts(
    charts: Sequence[Chart], mark: float | None = None, *, notes: Sequence[str] = ()
) -> Figure:
    """Return a figure of charts, three in a row at most, with letters where there are several.

    A dotted line marks the x `mark` in those over iterations; `notes` and what readers must know
    stand above.
    """
    columns = min(len(charts), 3)
    rows = -(-len(charts) // columns)
    width = ROW_WIDTH if columns == 3 else None
    aspect = 0.85 if columns > 1 else 0.72
    figure, panels = new_figure(columns, rows, width=width, aspect=aspect, extra_height=0.2)
    legends = [draw_chart(axes, chart) for axes, chart in zip(panels, charts, strict=False)]
    labels = [[str(handle.get_label()) for handle in handles] for handles in legends]
    longest = max((len(label) for of_chart in labels for label in of_chart), default=0) + 5
    same = len(charts) > 1 and all(of_chart == labels[0] for of_chart in labels)
    if same:
        figure_legend(figure, legends[0], columns=max(1, WIDE * columns // 2 // longest))
    for k, (axes, chart, handles) in enumerate(zip(panels, charts, legends, strict=False)):
        if not same:
            place_legend(axes, handles, columns=max(1, WIDE // columns // longest))
        if len(charts) > 1:
            panel_label(axes, k, textwrap.fill(chart.title, 72 // columns))
        if mark is not None and chart.xlabel == "iteration":
            _mark(axes, mark)
    for unused in panels[len(charts) :]:
        unused.remove()
    figure_note(figure, [*notes, *remarks(charts)])
    return figure


def _mark(axes: Axes, at: float) -> None:
    """Mark a time by a dotted line with its number at its top."""
    axes.axvline(at, color=PALETTE.theory, lw=0.8, ls=(0, (1, 1.5)), zorder=1.5)
    share, _ = axes.transAxes.inverted().transform(axes.transData.transform((at, 1.0)))
    side: dict[str, Any] = {"xytext": (2, -1), "ha": "left"}
    if share > 0.5:
        side = {"xytext": (-2, -1), "ha": "right"}
    axes.annotate(
        format_number(at),
        (at, 1.0),
        xycoords=axes.get_xaxis_transform(),
        textcoords="offset points",
        **side,
        va="top",
        fontsize=SMALL,
        color=PALETTE.theory,
    )

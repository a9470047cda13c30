"""Curves as data: what runs, sweeps and theories show over training, settings or eigenvalues.

A `Chart` holds arrays and names colours by their roles, as a `Scene` does; Matplotlib draws it here
(`draw_chart`), and pages draw it in a browser. Scales that nobody asked for follow the curves.
"""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Literal, NamedTuple

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.lines import Line2D
from numpy.typing import ArrayLike, NDArray

from dynamics_cli.mathematics import in_unicode
from dynamics_cli.plotting.labels import (
    ROOM,
    LegendPlace,
    figure_legend,
    figure_note,
    format_number,
    note,
    panel_label,
    place_legend,
)
from dynamics_cli.plotting.panels.phase import Phase, draw_phase
from dynamics_cli.plotting.scene import DASHES
from dynamics_cli.plotting.style import (
    MARKER,
    PALETTE,
    SERIES,
    SMALL,
    Drawing,
    Floats,
    Ints,
    new_figure,
    styled,
)
from dynamics_cli.plotting.time_axis import (
    LogAxes,
    TimeScale,
    decimate,
    draw_curve,
    scale_of,
    set_time_axis,
    set_value_axis,
    visible,
)

Limits = tuple[float | None, float | None]
Stat = Literal["", "median", "mean"]
"""The number of several jobs at each x; empty for curves as they are."""
Band = Literal["auto", "range", "90%", "se", "none"]
"""From the least to the largest, the middle 90 %, one standard error to either side, or nothing;
`auto` is the range of few jobs, and the middle 90 % and 50 % of `FEW_JOBS` or more."""
BAND_NAMES = {"range": "least to largest", "90%": "middle 90%", "se": "one standard error"}

EARLY = 0.02
"""Share of the iterations that a linear axis hardly shows."""
LOG_RANGE = 20.0
"""A positive curve whose largest value is so many times its smallest is drawn on a log axis."""
QUANTILES = ((0.05, 0.95), (0.25, 0.75))
"""The ends of each band of many jobs."""
FEW_JOBS = 10
"""Of fewer jobs the band goes from the least to the largest."""
CROWDED = 0.012
ALONG = 9
"""Share of a panel's width between points of a line that do not all have markers, and markers left
in it.
"""
NEAR = 3.0
"""A bound is drawn up to so many times the largest value, and from such a share of the least."""
FEW = 40
"""Points of a line up to which single ones have markers."""
MANY = 500
"""More thin curves of one look are pixels in a vector graphic."""
HIGH = 0.9
"""Share of a panel's height from which on there is no room above."""
EDGE = "v"
"""The marker of a value that a logarithmic axis cannot show, at its lower edge."""
LABEL_HEIGHT = 9.0
"""Distance in points that keeps two labels at the right edge apart."""
ROW_WIDTH = 7.0
"""Width of a row of several panels in inches: that of a page of two columns."""
WIDE = 52
"""Characters of a line of a legend."""
SQUASHED = 6.0
"""So many times the decades of most panels are no common axis, as where one of them diverges."""
NARROW = 2.0
"""Width in inches of a panel that is as high as it is wide."""
TITLE = 60
"""Characters of the titles of a row of panels."""
INCH = 17.0
"""Characters of a legend in an inch."""
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
    """Medians or means, and bands, of several jobs at each x, taken before any axis is chosen."""

    middle: Floats
    """(k,), of the jobs that have a number; NaN where these are fewer than half."""
    bands: Floats
    """(2 b, k): the two ends of each band; NaN where there is no middle."""
    counts: Ints
    """(k,): the jobs that have a number."""
    of: Ints
    """(k,): all jobs."""
    named: str
    """The bands in words; empty without any."""

    @property
    def partial(self) -> NDArray[np.bool_]:
        """Whether there is a middle, but not of all jobs (k,)."""
        return np.isfinite(self.middle) & (self.counts < self.of)

    @property
    def missing(self) -> NDArray[np.bool_]:
        """Whether there is no middle, since fewer than half of the jobs have a number (k,)."""
        return np.isnan(self.middle) & (self.of > 0)


def statistics(
    values: ArrayLike, of: ArrayLike | None = None, stat: Stat = "median", band: Band = "auto"
) -> Statistics:
    """Return the statistics of rows of values (k, m); what is not finite is no number.

    `of` (k,) is the number of jobs that a row is of, by default m.
    """
    y = visible(values, log=False)
    count = np.isfinite(y).sum(axis=1)
    if of is None:
        of = y.shape[1]
    jobs = np.broadcast_to(np.asarray(of, np.int64), count.shape)
    known = (count > 0) & (2 * count >= jobs)
    most = int(jobs.max(initial=0))
    ends: tuple[tuple[float, float], ...] = ((0.0, 1.0),)
    named = BAND_NAMES.get(band, "")
    if band == "90%":
        ends = QUANTILES[:1]
    elif band == "auto":
        named = BAND_NAMES["range"]
        if most >= FEW_JOBS:
            ends = QUANTILES
            named = "middle 50% and 90%"
    if band == "none" or most < 2:
        ends = ()
        named = ""

    middle = np.full(len(y), np.nan)
    bands = np.full((2 * len(ends), len(y)), np.nan)
    if known.any():
        average = np.nanmean if stat == "mean" else np.nanmedian
        middle[known] = average(y[known], axis=1)
        if band == "se" and ends:
            error = np.nanstd(y[known], axis=1) / np.sqrt(np.maximum(count[known] - 1, 1))
            bands[:, known] = middle[known] + np.array([-1, 1])[:, None] * error
        elif ends:
            bands[:, known] = _quantiles(y[known], np.ravel(ends))
    return Statistics(middle, bands, count, jobs, named)


def _quantiles(y: Floats, ends: Floats) -> Floats:
    # `nanquantile` takes ten times as long
    quantile = np.nanquantile if np.isnan(y).any() else np.quantile
    return np.asarray(quantile(y, ends, axis=1))


@dataclass(frozen=True, kw_only=True)
class Line:
    """A curve, or several that are alike."""

    x: ArrayLike
    """(k,), finite and, but on a path, never decreasing."""
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
    alpha: float = 1.0
    """Less than 1 where other curves shine through, in print."""
    points: bool = False
    """Whether there are markers, and no line that joins them."""
    marker: str = ""
    """The form of the markers; a line that is not `points` has some along it."""
    hollow: bool = False
    """Whether the markers have the colour of the ground."""
    path: bool = False
    """Whether it goes from state to state in any direction, its ends marked."""
    stat: Stat = ""
    """Whether the m curves are shown by their median, or mean, and a band."""
    band: Band = "auto"
    of: ArrayLike | None = None
    """Of how many jobs a median is (k,) or at each x; by default m."""

    @property
    def columns(self) -> Floats:
        """The curves as (k, m)."""
        return np.atleast_2d(np.asarray(self.y, np.float64).T).T

    @cached_property
    def statistics(self) -> Statistics:
        """Medians, or means, and bands of the m curves."""
        return statistics(self.columns, self.of, self.stat, self.band)

    @property
    def shown(self) -> Floats:
        """All numbers that are drawn (k, c): the curves, or their middles and bands."""
        if not self.stat:
            return self.columns
        beside = self.columns if self.points else self.statistics.bands.T
        return np.column_stack([self.statistics.middle, beside])

    @property
    def dense(self) -> bool:
        """Whether it has too many points for a marker at single ones."""
        return np.size(self.x) > FEW

    def middles(self) -> tuple[Floats, Floats]:
        """Return middles (k,), and those not of all jobs, or NaN; a dense line has them apart."""
        median = self.statistics.middle
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
    """Values of y that dashed lines mark, where they are `NEAR` the curves."""
    far: bool = False
    """Whether they are marked wherever they are."""
    plateaus: Sequence[Level] = ()
    legend: Sequence[Line] = ()
    """What the legend of print has in place of the names of lines, which pages have."""
    marks: Sequence[tuple[float, str]] = ()
    """Places on the x axis with their words: a thin vertical line each."""
    scale_x: TimeScale | None = None
    scale_y: TimeScale | None = None
    """The scales of x and y unless one is asked for."""
    reach_x: Sequence[float] = ()
    """Values that the x axis contains in any case."""
    ticks: Mapping[float, str] = field(default_factory=dict)
    """Names of places on the x axis; by default they are numbers."""
    words: bool = False
    """Whether the places are words, which stand side by side."""
    note: str = ""
    """A few words under the chart."""
    headed: bool = False
    """Whether the title stands above it where it is alone, too."""
    limits: Limits = (None, None)
    """The ends of the y axis, None where the curves decide; in print nothing goes beyond them."""
    limits_x: Limits = (None, None)

    @property
    def shown(self) -> Floats:
        """All numbers of the lines that are drawn."""
        return np.concatenate([np.zeros(0), *(line.shown.ravel() for line in self.lines)])

    @property
    def values(self) -> Floats:
        """All y that are drawn, and what the axis contains in any case."""
        levels = [level.value for level in self.near]
        return _within(np.concatenate([self.shown, self.reach, levels]), self.limits)

    @property
    def near(self) -> list[Reference]:
        """The levels that are marked: a bound far away would squash the curves."""
        values = np.concatenate([self.shown, self.reach])
        values = values[np.isfinite(values)]
        if self.far or not len(values):
            return [*self.levels]
        low = float(values.min())
        high = float(values.max())
        ends = (low / NEAR, high * NEAR) if low > 0 else (2 * low - high, 2 * high - low)
        return [level for level in self.levels if ends[0] <= level.value <= ends[1]]

    @property
    def log_y(self) -> bool:
        """Whether y is, or would be, logarithmic; not by default where that would hide plateaus."""
        if self.scale_y is not None:
            return not self.linear and scale_of("y", self.log, self.scale_y == "log") == "log"
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


def _within(values: Floats, limits: Limits) -> Floats:
    """Return values within limits, and the limits themselves."""
    ends = np.array(limits, np.float64)  # NaN where there is none
    return np.append(np.fmax(np.fmin(values, ends[1]), ends[0]), ends[np.isfinite(ends)])


def numbered_marks(charts: Sequence[Chart]) -> dict[str, int]:
    """Return the words of the marks of charts, each with its number."""
    words = dict.fromkeys(words for chart in charts for _, words in chart.marks if words)
    return {said: k for k, said in enumerate(words, 1)}


def remarks(charts: Sequence[Chart]) -> list[str]:
    """Return what readers of charts must know: bands, medians of some jobs, values at an edge."""
    lines = [line for chart in charts for line in chart.lines if line.stat]
    bands = [line for line in lines if line.columns.shape[1] > 1 and not line.points]
    named = dict.fromkeys(line.statistics.named for line in bands)
    found = [f"bands: {words}" for words in named if words]
    some = [line for line in lines if line.statistics.partial.any()]
    looks = {"dotted" if line.dense else "hollow" for line in some}
    what = " or ".join(sorted(looks))
    found += _counted(what, [(line.statistics, line.statistics.partial) for line in some])
    found += _counted("gap", [(line.statistics, line.statistics.missing) for line in lines])

    below = np.concatenate([np.zeros(0), *(chart.below for chart in charts)])
    if len(below):
        found.append("at the lower edge: 0" + " or less" * bool(below.min() < 0))
    beyond: dict[str, dict[str, None]] = {}
    for chart in charts:
        for level in {*chart.levels} - {*chart.near}:
            beyond.setdefault(level.name, {})[format_number(level.value)] = None
    for name, values in beyond.items():
        found.append(f"beyond the axis: {name} = {', '.join(values)}")
    return found


def _counted(what: str, parts: Sequence[tuple[Statistics, NDArray[np.bool_]]]) -> list[str]:
    """Return `what: k of n`, with the ranges of k and n at some places; nothing without any."""
    counts = np.concatenate([np.zeros(0, np.int64), *(numbers.counts[at] for numbers, at in parts)])
    jobs = np.concatenate([np.zeros(0, np.int64), *(numbers.of[at] for numbers, at in parts)])
    if not len(counts):
        return []
    return [f"{what}: {_range(counts)} of {_range(jobs)} jobs have a number"]


def _range(numbers: Ints) -> str:
    ends = dict.fromkeys([numbers.min(), numbers.max()])
    return " to ".join(map(str, ends))


def aligned(charts: Sequence[Chart], share: str = "xy") -> list[Chart]:
    """Give charts of one picture common axes: x where it is the same, y of the same quantity.

    `share` has the letters of the axes that are common.
    """

    def shared(chart: Chart) -> Chart:
        found: dict[str, Any] = {}
        beside = [other for other in charts if other.xlabel == chart.xlabel]
        if "x" in share and len(beside) > 1:
            logs = [other.log_x for other in beside]
            found["scale_x"] = "log" if 2 * sum(logs) > len(logs) else "linear"
            ends = np.concatenate([np.asarray(line.x, float) for c in beside for line in c.lines])
            if len(ends) and not chart.ticks:
                found["reach_x"] = (float(ends.min()), float(ends.max()))
        beside = [other for other in charts if other.ylabel == chart.ylabel]
        if "y" in share and len(beside) > 1:
            whole = replace(chart, lines=[line for other in beside for line in other.lines])
            found["scale_y"] = "log" if whole.log_y else "linear"
            values = np.concatenate([other.values for other in beside])
            values = values[np.isfinite(values) & ((values > 0) | (not whole.log_y))]
            if len(values) and not (whole.log_y and _apart(values, beside)):
                found["reach"] = (float(values.min()), float(values.max()))
        return replace(chart, **found)

    return [shared(chart) for chart in charts]


def _apart(values: Floats, charts: Sequence[Chart]) -> bool:
    """Whether the decades of all charts would squash the curves of most of them."""
    spans = []
    for chart in charts:
        own = chart.values
        own = np.log(own[np.isfinite(own) & (own > 0)])
        if len(own):
            spans.append(float(own.max() - own.min()))
    return float(np.log(values.max() / values.min())) > SQUASHED * float(np.median(spans))


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
    values = line.statistics.middle[:, None] if line.stat else line.columns
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
def draw_chart(axes: Axes, chart: Chart, numbers: Mapping[str, int] | None = None) -> list[Artist]:
    """Draw a chart, and return the handles of a legend; marks have the `numbers` of their words.

    Long curves are decimated without losing their extremes. Raises ValueError for x and y of
    unequal lengths, and for x that decreases.
    """
    log = set_value_axis(axes, chart.values, chart.ylabel, log=chart.log_y)
    scale: TimeScale = "log" if chart.log_x else "linear"
    lines = [line for line in chart.lines if np.size(line.x)]
    floor = axes.get_ylim()[0] if log else -np.inf
    handles = [_draw_line(axes, line, floor) for line in lines]
    every = np.concatenate([*(np.asarray(line.x) for line in lines), chart.reach_x])
    if not len(every):
        every = np.zeros(1)
    set_time_axis(axes, np.sort(_within(every, chart.limits_x)), scale, chart.xlabel)
    axes.set(xlim=chart.limits_x, ylim=chart.limits)
    if chart.ticks:
        names = [*chart.ticks.values()]
        if chart.words:
            names = [textwrap.fill(name, max(SHORTEST, ROOM // len(names))) for name in names]
            axes.set_xlim(min(chart.ticks) - 0.5, max(chart.ticks) + 0.5)
        axes.set_xticks([*chart.ticks], labels=names)
        axes.set_xticks([], minor=True)
    for plateau in chart.plateaus:
        if plateau.value > floor:
            _draw_plateau(axes, plateau)
    _draw_levels(axes, chart.near)
    for line, handle in zip(lines, handles, strict=True):
        if line.marker and not line.path:
            _thin_markers(axes, handle)
    if chart.legend:
        handles = [Line2D([], [], **_form(line)) for line in chart.legend]
    numbers = numbers or numbered_marks([chart])
    for at, words in chart.marks:
        draw_upright(axes, at, str(numbers.get(words, "")))
    if chart.note:
        note(axes, chart.note)
    named = {str(handle.get_label() or ""): handle for handle in handles[::-1]}
    return [handle for name, handle in [*named.items()][::-1] if name and name[0] != "_"]


def _draw_line(axes: Axes, line: Line, floor: float) -> Line2D:
    """Draw a line and return its handle; what a log axis cannot show is at its `floor`."""
    every = line.columns
    x = np.asarray(line.x, np.float64)
    if len(x) != len(every):
        raise ValueError(f"curves of shape {every.shape} for x of shape {x.shape}")
    form = _form(line)
    color = form["color"]
    m = every.shape[1]
    if line.path:
        return _draw_path(axes, x, every[:, 0], form)
    if m != 1 and not line.stat:
        _draw_family(axes, x, _lifted(every, floor), form)
        return Line2D([], [], **form)

    middle = partial = every[:, 0]
    if line.stat:
        middle = line.statistics.middle
    _mark_edge(axes, x, middle, floor, color)
    if line.stat:
        middle, partial = line.middles()
        if line.points:
            places = np.repeat(x, m)
            values = _lifted(every, floor).ravel()
            axes.scatter(places, values, s=7, color=color, alpha=0.6, linewidths=0)
        else:
            bands = _lifted(line.statistics.bands, floor)
            for low, high in zip(bands[::2], bands[1::2], strict=True):
                axes.fill_between(x, low, high, color=color, alpha=0.2, linewidth=0)
    handle = draw_curve(axes, x, _lifted(middle, floor), **form)
    if line.stat and np.isfinite(partial).any():
        form |= {"ls": "none", "marker": MARKER, "ms": 4, "mfc": PALETTE.ground, "zorder": 3}
        if line.dense:
            form |= {"ls": (0, (1, 1.5)), "marker": ""}
        draw_curve(axes, x, _lifted(partial, floor), **{**form, "label": None})
    return handle


def _thin_markers(axes: Axes, handle: Line2D) -> None:
    """Leave out markers of a line where points are crowded; never those that no line joins."""
    if handle.get_linestyle() == "None":
        return
    x = np.asarray(handle.get_xdata(), np.float64)
    across = axes.transData.transform(np.column_stack([x, x]))[:, 0]
    width = axes.get_window_extent().width
    if len(x) > ALONG and np.median(np.diff(across)) < CROWDED * width:
        _, first = np.unique(ALONG * across // width, return_index=True)
        handle.set_markevery(first.tolist())


def _form(line: Line) -> dict[str, Any]:
    """Return the look of a line as Matplotlib takes it."""
    color = PALETTE.color(line.color)
    form: dict[str, Any] = {"color": color, "ls": DASHES[line.dash], "lw": line.width}
    form |= {"alpha": line.alpha, "label": line.name or None}
    marker = line.marker or MARKER * line.points
    if not marker:
        return form
    form |= {"marker": marker, "ms": 5, "mfc": PALETTE.ground if line.hollow else color}
    if marker not in "x+_":  # strokes and outlines need more room than disks
        form["ms"] = 3 if marker == MARKER and not line.hollow else 4
    if line.points:
        form["ls"] = "none"
        if line.stat and line.columns.shape[1] != 1:
            form |= {"marker": "_", "ms": 9}
    return form


def _draw_path(axes: Axes, x: Floats, y: Floats, form: Mapping[str, Any]) -> Line2D:
    """Draw a path with its start hollow and its end filled, and return its handle."""
    marker = form.get("marker", MARKER)
    (handle,) = axes.plot(x, visible(y, log=False), **{**form, "markevery": []})
    there = np.flatnonzero(np.isfinite(x) & np.isfinite(y))
    for end, fill in ((there[:1], PALETTE.ground), (there[-1:], form["color"])):
        axes.plot(x[end], y[end], marker, ms=4, color=form["color"], mfc=fill, zorder=3)
    return handle


def _draw_family(axes: Axes, x: Floats, y: Floats, form: Mapping[str, Any]) -> None:
    """Draw thin curves y (k, m) of one look; a single state, which has no line, as a dash."""
    m = y.shape[1]
    if len(x) == 1:
        x = x + 0.02 * max(abs(x[0]), 1.0) * np.array([-1, 1])
        y = np.repeat(y, 2, axis=0)
    thin = LineCollection(
        [np.column_stack(decimate(x, column)) for column in y.T],
        colors=form["color"],
        linestyles=form["ls"],
        linewidths=min(form["lw"], 0.9 if m <= 200 else 0.4),
        alpha=float(np.clip(40 / max(m, 1), 0.08, 0.8)),
        rasterized=m > MANY,
    )
    axes.add_collection(thin)


def _lifted(y: Floats, floor: float) -> Floats:
    """Return y with NaN for what is not finite, and `floor` for what a log axis cannot show.

    A linear axis has the floor -inf.
    """
    y = visible(y, log=False)
    if floor == -np.inf:
        return y
    return np.where(y <= 0, floor, y)


def _mark_edge(axes: Axes, x: Floats, y: Floats, floor: float, color: str) -> None:
    """Mark values that a log axis cannot show at its edge, some of many."""
    at = x[np.isfinite(y) & (y <= 0)]
    if floor == -np.inf or not len(at):
        return
    some = -(-len(at) // FEW)
    form: dict[str, Any] = {"ms": 4, "color": color, "clip_on": False, "zorder": 4}
    axes.plot(at, np.full(len(at), floor), EDGE, markevery=some, **form)


def _share(axes: Axes, x: float, y: float) -> tuple[float, float]:
    """Return where a point of the data lies, as shares of the panel."""
    right, up = axes.transAxes.inverted().transform(axes.transData.transform((x, y)))
    return float(right), float(up)


def _draw_plateau(axes: Axes, plateau: Level) -> None:
    """Underline a plateau and write its value above it, or below where the panel ends."""
    value, first, last = plateau
    form: dict[str, Any] = {"lw": 4.5, "alpha": 0.55, "solid_capstyle": "butt", "zorder": 1}
    axes.plot([first, last], [value, value], color=PALETTE.highlight, **form)
    place: dict[str, Any] = {"xytext": (0, 3.5), "ha": "left", "va": "bottom"}
    at = (first + last) / 2
    if _share(axes, first, value)[1] > HIGH:
        place = {"xytext": (0, -4), "ha": "right", "va": "top"}
        at = last
    place |= {"textcoords": "offset points", "fontsize": SMALL, "color": PALETTE.theory}
    axes.annotate(format_number(value), (at, value), **place)


def draw_upright(axes: Axes, at: float, words: str, dash: str = "") -> None:
    """Draw a line at a time, with words at its top."""
    axes.axvline(at, color=PALETTE.theory, lw=0.7, ls=DASHES[dash], zorder=1.5)
    place: dict[str, Any] = {"xytext": (2, -1), "ha": "left"}
    if _share(axes, at, 1.0)[0] > 0.5:
        place = {"xytext": (-2, -1), "ha": "right"}
    place |= {"xycoords": axes.get_xaxis_transform(), "textcoords": "offset points"}
    axes.annotate(words, (at, 1.0), va="top", fontsize=SMALL, color=PALETTE.theory, **place)


def _draw_levels(axes: Axes, levels: Sequence[Reference]) -> None:
    """Draw a dashed line for every level, and names at the right edge that do not touch.

    Several of one name have it once: their colours tell whose they are.
    """
    previous = -np.inf
    named: set[str] = set()
    for name, value, role in sorted(levels, key=lambda level: level.value):
        color = PALETTE.color(role)
        axes.axhline(value, color=color, lw=0.8, ls=(0, (4, 2)), zorder=2.5)
        if name in named:
            continue
        named.add(name)
        height = float(axes.transData.transform((0, value))[1]) * 72 / axes.figure.dpi
        at = max(height, previous + LABEL_HEIGHT)
        previous = at
        single = sum(level.name == name for level in levels) == 1
        axes.annotate(
            name,
            (1.0, value),
            xycoords=axes.get_yaxis_transform(),
            xytext=(4, at - height),
            textcoords="offset points",
            va="center",
            fontsize=SMALL + 0.5,
            color=color if single else PALETTE.theory,
        )


@styled
def draw_charts(
    charts: Sequence[Chart | Phase],
    mark: float | None = None,
    *,
    notes: Sequence[str] = (),
    size: tuple[float | None, float | None] = (None, None),
    legend: LegendPlace | Literal["common"] = "below",
    noted: bool = True,
    columns: int = 0,
) -> Drawing:
    """Return a figure of charts, three in a row at most, with letters where there are several.

    A dotted line marks the x `mark` in those over iterations; `notes` and what readers must know
    stand above, unless not `noted`. `size` is width and height in inches; `columns`, if any,
    stand in a row. A `common` legend is one of all panels, whatever their names.
    """
    columns = columns or (2 if len(charts) == 4 and size[0] is not None else min(len(charts), 3))
    rows = -(-len(charts) // columns)
    width, height = size
    if width is None:
        width = ROW_WIDTH if columns == 3 else None
    narrow = width is not None and width < NARROW * columns
    aspect = 1.0 if narrow else 0.85 if columns > 1 else 0.72
    if any(isinstance(chart, Phase) for chart in charts):
        width = width or min(4.2 * columns, ROW_WIDTH)
    figure, panels = new_figure(columns, rows, width=width, aspect=aspect, extra_height=0.2)
    if height is not None:
        figure.set_figheight(height)
    told = [*notes]
    numbers = numbered_marks([chart for chart in charts if isinstance(chart, Chart)])
    # words of users may have dollars
    listed = [f"{k}: {words}".replace("$", r"\$") for words, k in numbers.items()]
    legends: list[list[Artist]] = []
    for axes, chart in zip(panels, charts, strict=False):
        if isinstance(chart, Phase):
            told += draw_phase(axes, chart, room=ROOM // columns)
            legends.append([])
        else:
            legends.append(draw_chart(axes, chart, numbers))
            if mark is not None and chart.xlabel == "iteration":
                draw_upright(axes, mark, format_number(mark), "dotted")
    _place_legends(figure, panels, legends, legend, columns)
    for k, (axes, chart) in enumerate(zip(panels, charts, strict=False)):
        if len(charts) > 1:
            words = chart.title.replace(" = ", "\N{NO-BREAK SPACE}=\N{NO-BREAK SPACE}")
            words = textwrap.fill(words, TITLE // columns)
            panel_label(axes, k, chart.title if "$" in chart.title else words)
        elif chart.headed:
            axes.set_title(chart.title, loc="left")
    for unused in panels[len(charts) :]:
        unused.remove()
    if noted:
        of_curves = remarks([chart for chart in charts if isinstance(chart, Chart)])
        figure_note(figure, dict.fromkeys([*told, *of_curves, *listed]))
    return figure


def _place_legends(
    figure: Drawing,
    panels: Sequence[Axes],
    legends: Sequence[Sequence[Artist]],
    place: LegendPlace | Literal["common"],
    columns: int,
) -> None:
    """Place one legend for all panels where their names agree, else one at each."""
    every = [handle for handles in legends for handle in handles]
    room = int(INCH * figure.get_figwidth())
    if place == "common":
        across = max(1, room // _longest(every))
        figure_legend(figure, every, columns=across)
        rows = len({str(handle.get_label()) for handle in every}) // across
        figure.set_figheight(figure.get_figheight() + 1.7 * SMALL / 72 * rows)
    elif place == "below" and len(legends) > 1 and _agree(legends):
        figure_legend(figure, every, columns=max(1, WIDE * columns // 2 // _longest(every)))
    else:
        for axes, own in zip(panels, legends, strict=False):
            place_legend(axes, own, place, columns=max(1, room // columns // _longest(own)))


def _longest(handles: Sequence[Artist]) -> int:
    """Return the characters of the longest label, with its line."""
    return 5 + max((len(in_unicode(str(handle.get_label()))) for handle in handles), default=0)


def _agree(legends: Sequence[Sequence[Any]]) -> bool:
    """Whether there are legends in which a name has one look, and a look one name."""
    looks: dict[str, set[Any]] = {}
    names: dict[Any, set[str]] = {}
    for handle in (handle for handles in legends for handle in handles):
        line = handle.get_linestyle()  # points stand for the line that would join them
        look = (handle.get_color(), line, handle.get_marker())
        if line == "None":
            look = (handle.get_color(), "-", "None")
        looks.setdefault(str(handle.get_label()), set()).add(look)
        names.setdefault(look, set()).add(str(handle.get_label()))
    return all(legends) and all(len(each) == 1 for each in [*looks.values(), *names.values()])

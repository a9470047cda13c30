"""Curves as data: what runs, sweeps and theories show over training, over a setting or over eigenvalues.

A `Chart` holds arrays and names colours by their roles, as a `Scene` does; Matplotlib draws it here (`draw_chart`), and
pages draw it in a browser. Scales that nobody asked for follow the curves.
"""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from numpy.typing import ArrayLike, NDArray

from dynamics_cli.plotting.layout import (
    figure_legend,
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
LABEL_HEIGHT = 9.0
"""Distance in points that keeps two labels at the right edge apart."""
ROW_WIDTH = 7.0
"""Width of a row of several panels in inches: that of a page of two columns."""
WIDE = 52
"""Characters of a line of a legend."""


class Level(NamedTuple):
    """A value at which a curve rests, and the first and the last x of that."""

    value: float
    first: float
    last: float


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

    @property
    def columns(self) -> Floats:
        """The curves as (k, m)."""
        y = np.asarray(self.y, np.float64)
        return y[:, None] if y.ndim == 1 else y


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
    levels: Mapping[str, float] = field(default_factory=dict)
    """Values of y that a dashed line marks, by their names."""
    plateaus: Sequence[Level] = ()
    scale_x: TimeScale | None = None
    """The scale of x unless one is asked for."""
    ticks: Mapping[float, str] = field(default_factory=dict)
    """Names of places on the x axis; by default they are numbers."""
    note: str = ""
    """A few words under the chart."""

    @property
    def values(self) -> Floats:
        """All y, and what the axis contains in any case."""
        return np.concatenate(
            [*(line.columns.ravel() for line in self.lines), self.reach, [*self.levels.values()]]
        )

    @property
    def log_y(self) -> bool:
        """Whether y is, or would be, logarithmic; not by default where that would hide plateaus."""
        every = np.concatenate([np.zeros(0), *(line.columns.ravel() for line in self.lines)])
        every = every[np.isfinite(every) & (every != 0)]
        low, high = every.min(initial=np.inf), every.max(initial=0.0)
        flat = sum(plateau.value > high / LOG_RANGE for plateau in self.plateaus) > 1
        return (
            not self.linear
            and scale_of("y", self.log, 0 < low < high / LOG_RANGE and not flat) == "log"
        )

    @property
    def log_x(self) -> bool:
        """Whether x is logarithmic: over time by default where curves change mostly before `EARLY`."""
        log_y, over_time = self.log_y, self.xlabel in ("iteration", "time") and self.scale_x is None
        shares = [
            share for line in self.lines if over_time and np.isfinite(share := _early(line, log_y))
        ]
        suits = self.scale_x == "log" or (len(shares) > 0 and float(np.mean(shares)) > 0.5)
        return scale_of("x", self.log, suits) == "log"


def look(k: int) -> dict[str, Any]:
    """Return colour and dash of the k-th of several curves."""
    return {"color": f"series-{k}", "dash": [*DASHES][k // len(SERIES) % len(DASHES)]}


def _early(line: Line, log: bool) -> float:
    """Return the share of the total variation of a line before `EARLY`; NaN for short and for constant lines."""
    x, y = np.asarray(line.x, np.float64), visible(line.columns, log=log)
    if len(x) < 8 or x[-1] <= 100:
        return np.nan
    change = np.nansum(np.abs(np.diff(np.log(y) if log else y, axis=0)), axis=1)
    total = float(change.sum())
    return (
        float(change[x[1:] <= x[0] + EARLY * (x[-1] - x[0])].sum()) / total if total > 0 else np.nan
    )


def quantiles(y: Floats, ends: Sequence[float]) -> Floats:
    """Return quantiles (len(ends), k) of the finite values in each row of (k, m)."""
    y = np.where(np.isfinite(y), y, np.nan)
    return np.asarray(
        np.quantile(y, ends, axis=1) if not np.isnan(y).any() else np.nanquantile(y, ends, axis=1)
    )


@styled
def draw_chart(axes: Axes, chart: Chart) -> list[Artist]:
    """Draw a chart, and return the handles of a legend; long curves are decimated without losing their extremes.

    Raises ValueError for x and y of unequal lengths, and for x that decreases.
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
        axes.set_xticks([*chart.ticks], labels=[*chart.ticks.values()])
        axes.set_xticks([], minor=True)
    for plateau in chart.plateaus:
        if plateau.value > 0 or not log:
            _draw_plateau(axes, plateau)
    _draw_levels(axes, chart.levels)
    if chart.note:
        note(axes, chart.note)
    return [handle for handle in handles if not str(handle.get_label()).startswith("_")]


def _draw_line(axes: Axes, line: Line, *, log: bool, scale: TimeScale) -> Line2D:
    """Draw a line and return its handle."""
    x, y = as_times(line.x), visible(line.columns, log=log)
    if len(x) != len(y):
        raise ValueError(f"curves of shape {y.shape} for x of shape {x.shape}")
    color, dash = PALETTE.color(line.color), DASHES[line.dash]
    form: dict[str, Any] = {
        "color": color,
        "ls": dash,
        "lw": line.width,
        "label": line.name or None,
    }
    m = y.shape[1]
    if line.points:
        form |= {"ls": "none", "marker": MARKER if m == 1 else "_", "ms": 3 if m == 1 else 9}
    if line.points and m > 1:
        axes.scatter(np.repeat(x, m), y.ravel(), s=7, color=color, alpha=0.6, linewidths=0)
        y = np.nanmedian(y, axis=1)[:, None]
    elif line.bands and m > 1:
        x, y = x[kept := np.isfinite(y).any(axis=1)], y[kept]
        for ends in QUANTILES:
            axes.fill_between(x, *quantiles(y, ends), color=color, alpha=0.2, linewidth=0)
        y = np.nanmedian(y, axis=1)[:, None]
    elif m != 1:
        thin: dict[str, Any] = {
            "linewidths": 0.9 if m <= 200 else 0.4,
            "alpha": float(np.clip(40 / max(m, 1), 0.08, 0.8)),
        }
        draw_curves(axes, x, y, log_time=scale == "log", colors=color, linestyles=dash, **thin)
        return Line2D([], [], **form)
    return draw_curve(axes, x, y[:, 0], log_time=scale == "log", **form)


def _draw_plateau(axes: Axes, plateau: Level) -> None:
    """Underline a plateau and write its value to its upper right, or where the panel ends, to its lower left."""
    value, first, last = plateau
    look: dict[str, Any] = {
        "color": PALETTE.highlight,
        "lw": 4.5,
        "alpha": 0.55,
        "solid_capstyle": "butt",
        "zorder": 1,
    }
    axes.plot([first, last], [value, value], **look)
    text, scale = format_number(value), 72 / axes.figure.dpi
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


def _draw_levels(axes: Axes, levels: Mapping[str, float]) -> None:
    """Draw a dashed line for every level and its name at the right edge, pushed apart where they would touch."""
    previous = -np.inf
    for name, value in sorted(levels.items(), key=lambda item: item[1]):
        axes.axhline(value, color=PALETTE.theory, lw=0.8, ls=(0, (4, 2)), zorder=2.5)
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
            color=PALETTE.theory,
        )


@styled
def draw_charts(charts: Sequence[Chart], mark: float | None = None) -> Figure:
    """Return a figure of charts, three in a row at most, with letters where there are several.

    A dotted line marks the x `mark` in those over iterations.
    """
    columns = min(len(charts), 3)
    rows = -(-len(charts) // columns)
    width = ROW_WIDTH if columns == 3 else None
    figure, panels = new_figure(
        columns, rows, width=width, aspect=0.72 if len(charts) == 1 else 0.85, extra_height=0.2
    )
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
    return figure


def _mark(axes: Axes, at: float) -> None:
    """Mark a time by a dotted line with its number at its top."""
    axes.axvline(at, color=PALETTE.theory, lw=0.8, ls=(0, (1, 1.5)), zorder=1.5)
    left = axes.transAxes.inverted().transform(axes.transData.transform((at, 1.0)))[0] > 0.5
    axes.annotate(
        format_number(at),
        (at, 1.0),
        xycoords=axes.get_xaxis_transform(),
        xytext=(-2 if left else 2, -1),
        textcoords="offset points",
        ha="right" if left else "left",
        va="top",
        fontsize=SMALL,
        color=PALETTE.theory,
    )

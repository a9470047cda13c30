"""Curves over training time: axes, values that a log axis cannot show, and decimated points."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, cast, get_args

import numpy as np
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter, LogFormatterSciNotation, MaxNLocator, NullFormatter
from numpy.typing import ArrayLike

from dynamics_cli.plotting.labels import format_number, set_axis_label
from dynamics_cli.plotting.style import MARKER, Floats, Ints, styled

TimeScale = Literal["linear", "log"]
"""Linear, or logarithmic with a linear start so that iteration 0 is on the axis."""

LogAxes = Literal["x", "y", "xy", "c", "xc", "yc", "xyc", "none"]
"""The axes that are logarithmic where that is asked for; x is time, or a setting, and c the colours
of a phase diagram.

Where x or y is named, the other is linear; colours that are not named are as they suit the values,
with `none` linear.
"""

COLUMNS = 1600
"""Pixel columns that a panel has at most: 5.5 inches at 300 dots an inch."""
MARGIN = 0.015
"""Share of the time span that the axis leaves free at either end."""
MULTIPLES = ((range(1, 10), 0.046), ((1, 2, 3, 4, 6), 0.125), ((1, 2, 5), 0.301), ((1, 3), 0.477))
"""Multiples of powers of ten that have labels, and the least distance of two in decades."""
PLAIN = (5e-4, 2e5)
"""The ends of a logarithmic axis whose labels have no powers of ten."""
DECADES = 200.0
"""Powers of ten that a log axis shows at most in either direction, so that no tick overflows."""


def scale_of(axis: Literal["x", "y", "c"], asked: LogAxes | None, suits: bool) -> TimeScale:
    """Return the scale of an axis: as `asked`, else logarithmic where that `suits` the values."""
    named = asked or ""
    beside = "c" if axis == "c" else "xy"
    if named == "none" or set(beside) & set(named):
        suits = axis in named
    return "log" if suits else "linear"


def as_times(iterations: ArrayLike) -> Floats:
    """Return `iterations` (k,) as floats.

    Raises ValueError: they are not one finite, non-decreasing row.
    """
    times = np.atleast_1d(np.asarray(iterations, dtype=np.float64))
    if times.ndim != 1 or len(times) == 0:
        raise ValueError(f"iterations must be one non-empty row, not of shape {times.shape}")
    if not np.isfinite(times).all() or (np.diff(times) < 0).any():
        raise ValueError("iterations must be finite and must not decrease")
    return times


class _TimeLocator(MaxNLocator):
    """Round ticks whose labels do not overlap on the drawn axis."""

    DIGIT = 5.1  # points that a digit of the tick labels takes

    def __init__(self, axes: Axes) -> None:
        super().__init__(steps=[1, 2, 2.5, 5, 10])
        self._axes = axes

    def tick_values(self, vmin: float, vmax: float) -> Sequence[float]:
        length = self._axes.get_window_extent().width * 72 / self._axes.figure.dpi
        label = self.DIGIT * len(str(round(max(abs(vmin), abs(vmax))))) + 9
        self.set_params(nbins=int(np.clip(length // label, 1, 5)))
        margin = MARGIN / (1 + 2 * MARGIN) * (vmax - vmin)
        return super().tick_values(vmin + margin, vmax - margin)


class LogLabels(LogFormatterSciNotation):
    """Labels of a logarithmic y axis: as many multiples of powers of ten as there is room for.

    They are 0.06 and 200 in place of powers where the whole axis is between 0.0005 and 200 000.
    """

    LINE = 11.0  # points that a label takes

    def __call__(self, x: float, pos: int | None = None) -> str:
        """Return the label at x, empty where there is no room."""
        axis = cast(Axis, self.axis)
        ends = axis.get_view_interval()
        height = axis.axes.bbox.height * 72 / axis.axes.figure.dpi
        decade = height / np.ptp(np.log10(ends))
        digit = round(x / 10 ** np.floor(np.log10(x)))
        if digit not in next((some for some, gap in MULTIPLES if gap * decade >= self.LINE), [1]):
            return ""
        plain = PLAIN[0] <= min(ends) and max(ends) <= PLAIN[1]
        return format_number(x) if plain else str(super().__call__(x, pos))


def label_multiples(axis: Axis) -> None:
    """Label multiples of powers of ten on a logarithmic y axis, where few powers are."""
    for set_formatter in (axis.set_major_formatter, axis.set_minor_formatter):
        set_formatter(LogLabels(minor_thresholds=(np.inf, np.inf)))


@styled
def set_time_axis(
    axes: Axes, iterations: ArrayLike, scale: TimeScale = "linear", label: str = "iteration"
) -> None:
    """Make x the training time: label, few round ticks (`100 000`), and limits even for one time.

    Times that curves of earlier calls reach stay in the window. Raises ValueError: there is no such
    scale.
    """
    if scale not in get_args(TimeScale):
        raise ValueError(f"a time axis is {' or '.join(get_args(TimeScale))}, not {scale!r}")
    times = as_times(iterations)
    axes.set_xlabel(label)
    reach = axes.dataLim.intervalx if np.isfinite(axes.dataLim.intervalx).all() else times
    low = float(min(reach[0], times[0]))
    high = float(max(reach[-1], times[-1]))
    positive = times[times > 0]
    if times[0] == times[-1]:
        pad = 0.5 * max(abs(times[0]), 1.0)
        axes.set_xticks([times[0]], labels=[format_number(times[0])])
        axes.set_xlim(times[0] - pad, times[0] + pad)
    elif scale == "log" and len(positive):
        start = low / 1.15
        if low > 0:
            axes.set_xscale("log")
        else:
            axes.set_xscale("symlog", linthresh=positive[0], linscale=0.5)
            # powers of ten in or at the linear start would overlap with 0
            powers = np.arange(np.ceil(np.log10(positive[0]) + 0.2), np.floor(np.log10(high)) + 1)
            if len(powers):
                axes.set_xticks([0.0, *10.0 ** powers[:: 1 + len(powers) // 8]])
            start = -0.15 * positive[0]
        axes.xaxis.set_minor_formatter(NullFormatter())
        axes.set_xlim(start, high * 1.15)
    else:
        axes.xaxis.set_major_locator(_TimeLocator(axes))
        axes.xaxis.set_major_formatter(
            FuncFormatter(lambda value, _: format_number(round(value, 9)))
        )
        axes.set_xlim(low - MARGIN * (high - low), high + MARGIN * (high - low))


def visible(values: ArrayLike, *, log: bool) -> Floats:
    """Return `values` with NaN for what is not finite, and on a log axis for numbers <= 0."""
    array = np.array(values, dtype=np.float64)
    hidden = ~np.isfinite(array)
    if log:
        hidden |= ~(array > 0)
    array[hidden] = np.nan
    return array


@styled
def set_value_axis(axes: Axes, values: ArrayLike, label: str, *, log: bool) -> bool:
    """Label y, make it logarithmic when asked and a value is positive, and return whether it is.

    Limits follow the values that can be drawn, with at least a factor of 4 between them on a log
    axis, so that a constant curve does not fill the panel with its rounding errors. Values of
    exactly 0 do not stretch a log axis.
    """
    shown = visible(values, log=log)
    shown = shown[np.isfinite(shown)]
    if not log or len(shown) == 0:
        shown = visible(values, log=False)
        shown = shown[np.isfinite(shown)]
        limits = (-0.06, 1.06)
        if shown.any():
            low = float(shown.min())
            high = float(shown.max())
            pad = 0.06 * (high - low) or 0.5 * abs(high) or 1.0
            limits = (low - pad, high + pad)
        axes.set_ylim(*limits)
        set_axis_label(axes.yaxis, label, limits)
        return False
    low, high = (float(np.clip(np.log10(v), -DECADES, DECADES)) for v in (shown.min(), shown.max()))
    pad = max(0.05 * (high - low), (np.log10(4) - (high - low)) / 2, 0.04)
    axes.set_yscale("log")
    axes.set_ylim(10 ** (low - pad), 10 ** (high + pad))
    axes.set_ylabel(label)
    if high - low <= 2:
        label_multiples(axes.yaxis)
    return True


@styled
def draw_curve(axes: Axes, times: ArrayLike, values: ArrayLike, **line: Any) -> Line2D:
    """Draw one decimated curve, values (k,) over times (k,); a single point is drawn as a dot."""
    x, y = decimate(times, values)
    if np.isfinite(y).sum() == 1:
        line = {"marker": MARKER, **line}
    return axes.plot(x, y, **line)[0]


def decimate(x: ArrayLike, y: ArrayLike, *, columns: int = COLUMNS) -> tuple[Floats, Floats]:
    """Return at most 12 points for each of `columns` pixel columns, among them all that is seen.

    A curve of 300 000 points drawn 1 000 pixels wide shows, in each pixel column, its first, last,
    lowest and highest value and nothing else: keeping exactly those (Jugel et al., "M4", VLDB 2014)
    leaves the picture as it was.

    `x` (k,) must be finite and must not decrease; `y` (k,) may hold gaps (NaN or infinite), which
    stay gaps. Of every column the first, last, lowest and highest point and the ends of its gaps
    are kept, so the curve keeps its endpoints and its extremes. Columns have equal widths in x, and
    others in log x (x > 0; the first of them takes all other x). Short curves come back unchanged.
    Raises ValueError for shapes that differ or an `x` that goes back.
    """
    x = as_times(x)
    y = np.asarray(y, dtype=np.float64)
    if x.shape != y.shape:
        raise ValueError(
            f"a curve needs x and y of the same length, not shapes {x.shape} and {y.shape}"
        )
    if len(x) <= 4 * columns:
        return x, y
    places = [x]
    if x[-1] > 0:
        places.append(np.log(np.maximum(x, x[x > 0][0])))
    keep = np.unique(np.concatenate([_kept(at, y, columns) for at in places]))
    return x[keep], y[keep]


def _kept(x: Floats, y: Floats, columns: int) -> Ints:
    """Return indices of first, last, lowest and highest points and gap ends of pixel columns."""
    column = np.zeros(len(x))
    if 0 < (span := x[-1] - x[0]) < np.inf:
        column = np.floor((x - x[0]) / span * columns).clip(max=columns - 1)
    finite = np.isfinite(y)
    gaps = np.flatnonzero(~finite)
    by_low = np.lexsort((np.where(finite, y, np.inf), column))
    by_high = np.lexsort((np.where(finite, y, -np.inf), column))
    first, last = _ends(column)
    gap_first, gap_last = _ends(column[gaps])
    return np.concatenate(
        [first, last, by_low[first], by_high[last], gaps[gap_first], gaps[gap_last]]
    )


def _ends(column: Floats) -> tuple[Ints, Ints]:
    """Return the first and the last index of every run of equal values."""
    values, first = np.unique(column, return_index=True)
    return first, np.searchsorted(column, values, side="right") - 1

"""Phases of training on a time line: measured ones above, predicted times below (Boursier et al. 2022, Fig. 1)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from dynamics_cli.plotting.layout import text_size
from dynamics_cli.plotting.style import PALETTE, SMALL, styled
from dynamics_cli.plotting.time_axis import set_time_axis

FONT = SMALL + 0.5
BAR = 15.0
"""Height of the bar of phases, in points."""
OFFSET = 2.5
"""Distance between a label and its leader, in points."""
GAP = 4.0
"""Least distance between two labels of a row, in points."""
LEADER = 7.0
"""Distance between the bar and the first row of labels, in points."""
PHASE_COLORS = ("#4A6FA5", "#5B2A8C", "#555555", "#B34700", "#00614A", "#7A5C00")
"""Colours of successive phases, dark enough for white text: alignment, positive, negative, convergence."""


class TimedPhase(NamedTuple):
    """A measured phase of training from `first` to `last`."""

    label: str
    first: float
    last: float


class Instant(NamedTuple):
    """A time with a name; labels may be mathtext."""

    label: str
    time: float


@styled
def draw_timeline(
    axes: Axes, intervals: Sequence[TimedPhase], predicted: Sequence[Instant] = (), *, end: float | None = None,
    xlabel: str = "iteration", titles: tuple[str, str] = ("measured", "theory"),
) -> None:  # fmt: skip
    """Draw measured `intervals` as a bar and `predicted` times below it, all labelled.

    A label that does not fit into its interval moves above the bar. Labels never overlap: those that would take
    different rows, joined to their time by a thin line; a figure too low for its rows grows, and one that
    has only this panel takes the height that it needs. The rows are worked out for the width that the panel has now,
    so draw the time line last. An infinite `last` runs to the end;
    `predicted` times that are not finite are left out. Raises ValueError without any finite time.
    """
    marks = [mark for mark in predicted if np.isfinite(mark.time)]
    times = [t for item in intervals for t in (item.first, item.last)] + [mark.time for mark in marks]
    finite = [t for t in [*times, *([] if end is None else [end])] if np.isfinite(t)]
    if not finite:
        raise ValueError("a time line needs at least one finite time")
    low, high = min(0.0, *finite), max(finite)
    set_time_axis(axes, [low, high], label=xlabel)
    for side in ("left", "right", "top"):
        axes.spines[side].set_visible(False)
    axes.set_yticks([0], labels=[titles[0]])
    axes.tick_params(axis="y", length=0)
    width, height = _size(axes)
    unit = (axes.get_xlim()[1] - axes.get_xlim()[0]) / width  # time a point

    upper = _draw_bar(axes, intervals, min(high, axes.get_xlim()[1]), unit)
    top, bottom = _draw_flags(axes, upper, unit, 1), _draw_flags(axes, marks, unit, -1)
    if marks:
        axes.set_yticks([0, -(BAR / 2 + bottom) / 2 - 2], labels=titles)
    _fit_height(axes, top, bottom, height)


def _size(axes: Axes) -> tuple[float, float]:
    """Return width and height of the panel in points, after the layout engine has placed it."""
    root = _root(axes)
    root.draw_without_rendering()
    box = axes.get_window_extent()
    return box.width * 72 / root.dpi, box.height * 72 / root.dpi


def _root(axes: Axes) -> Figure:
    root = axes.figure
    while not isinstance(root, Figure):
        root = root.figure
    return root


def _draw_bar(axes: Axes, intervals: Sequence[TimedPhase], end: float, unit: float) -> list[Instant]:
    """Draw the phases with the labels that fit inside; return as instants those that must go above."""
    above = []
    for k, item in enumerate(intervals):
        first, last = np.clip([item.first, item.last], None, end)
        color = PHASE_COLORS[k % len(PHASE_COLORS)]
        axes.add_patch(Rectangle((first, -BAR / 2), last - first, BAR, fc=color, ec="white", lw=0.8, zorder=3))
        center = (first + last) / 2
        if text_size(item.label, FONT)[0] + 6 <= (last - first) / unit:
            look: dict[str, Any] = {"ha": "center", "va": "center", "fontsize": FONT, "color": "white", "zorder": 4}
            axes.text(center, -0.5, item.label, **look)
        else:
            above.append(Instant(item.label, center))
    return above


def _draw_flags(axes: Axes, marks: Sequence[Instant], unit: float, way: int) -> float:
    """Label `marks` above (`way` 1) or below (-1) the bar; return how far from its middle the labels reach."""
    sizes = [text_size(mark.label, FONT) for mark in marks]
    low, high = (limit / unit for limit in axes.get_xlim())
    flags = place_flags([mark.time / unit for mark in marks], [size[0] for size in sizes], low, high)
    rows = [
        max(s[1] for s, f in zip(sizes, flags, strict=True) if f.level == k) for k in sorted({f.level for f in flags})
    ]
    starts = BAR / 2 + LEADER + np.concatenate([[0.0], np.cumsum(np.array(rows) + 4.0)])
    for mark, flag, size in zip(marks, flags, sizes, strict=True):
        middle = starts[flag.level] + rows[flag.level] / 2
        tip = middle + size[1] / 2
        dash: dict[str, Any] = {"ls": "-"} if way > 0 else {"ls": (0, (3, 1.5))}
        axes.plot([mark.time] * 2, [way * BAR / 2, way * tip], color=PALETTE.muted, lw=0.7, zorder=1, **dash)
        arrow: dict[str, Any] = {
            "marker": "v" if way > 0 else "^",
            "ms": 4,
            "color": PALETTE.theory,
            "mec": "white",
            "mew": 0.3,
        }
        axes.plot([mark.time], [way * (BAR / 2 + 2)], ls="none", zorder=4, **arrow)
        axes.annotate(
            mark.label, (mark.time, way * middle), xytext=(flag.side * OFFSET, 0), textcoords="offset points",
            ha="left" if flag.side > 0 else "right", va="center", fontsize=FONT, color=PALETTE.theory,
            bbox={"fc": "white", "ec": "none", "pad": 0.5}, zorder=2,
        )  # fmt: skip
    return float(starts[-1]) if marks else BAR / 2


def _fit_height(axes: Axes, top: float, bottom: float, height: float) -> None:
    """Make one unit of y one point; the figure grows, or shrinks around a single panel, to the height needed."""
    need = top + bottom + 6
    root = _root(axes)
    if need > height or len(root.axes) == 1:
        share = axes.get_window_extent().height / root.bbox.height
        root.set_figheight(root.get_figheight() + (need - height) / 72 / (share if len(root.axes) > 1 else 1.0))
        height = need
    axes.set_ylim(-bottom - 3 - (height - need) / 2, top + 3 + (height - need) / 2)


class Flag(NamedTuple):
    """A label beside its leader: to the right (`side` +1) or left (-1) of `at`, in row `level`, 0 nearest the line."""

    at: float
    width: float
    side: int
    level: int

    @property
    def left(self) -> float:
        """Left end of the label."""
        return self.at + OFFSET if self.side > 0 else self.at - OFFSET - self.width

    @property
    def right(self) -> float:
        """Right end of the label."""
        return self.left + self.width


def place_flags(positions: Sequence[float], widths: Sequence[float], low: float, high: float) -> list[Flag]:
    """Return a flag for every label of `widths` at `positions` (points), within [low, high] where that is possible.

    Labels never overlap. Leaders cross no label unless there is no other way. Taken from right to left, each label gets
    the lowest row that is free, and flies to the right where both sides are; it leaves the way up open for the rest.
    """
    placed: dict[int, Flag] = {}
    order = sorted(range(len(positions)), key=lambda i: (-positions[i], i))
    for turn, k in enumerate(order):
        options = [Flag(positions[k], widths[k], side, level) for level in range(len(positions)) for side in (1, -1)]
        inside = [flag for flag in options if low <= flag.left and flag.right <= high] or options
        apart = [flag for flag in inside if not any(_overlap(flag, other) for other in placed.values())]
        clear = [flag for flag in apart if not any(_crossed(flag, other) for other in placed.values())]
        waiting = [positions[i] for i in order[turn + 1 :]]
        polite = [flag for flag in clear if not any(flag.left - 1 < at < flag.right + 1 for at in waiting)]
        placed[k] = (polite or clear or apart)[0]
    return [placed[k] for k in range(len(positions))]


def _overlap(a: Flag, b: Flag) -> bool:
    """Tell whether two labels share a row and come closer than `GAP`."""
    return a.level == b.level and a.left < b.right + GAP and b.left < a.right + GAP


def _crossed(a: Flag, b: Flag) -> bool:
    """Tell whether the leader of the higher label runs through the lower one."""
    low, high = (a, b) if a.level <= b.level else (b, a)
    return low.left - 1 < high.at < low.right + 1

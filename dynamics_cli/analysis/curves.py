"""Pieces of panels over training: scales chosen from curves, a grid of panels, marks, a choice of neurons."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import ArrayLike

from dynamics_cli.analysis.states import ROW_WIDTH
from dynamics_cli.analysis.view import View, spread
from dynamics_cli.measures.arrays import Floats, Ints
from dynamics_cli.plotting.layout import format_number, note, panel_label
from dynamics_cli.plotting.style import PALETTE, SMALL, new_figure
from dynamics_cli.plotting.time_axis import LogAxes, TimeScale, scale_of

LOG_RANGE = 20.0
"""A positive curve whose largest value is so many times its smallest is drawn on a log axis."""
EARLY = 0.02
"""Share of the iterations that a linear axis hardly shows."""
MANY_NEURONS = 1000
"""More neurons than this are not all drawn over training; a note says how many are."""
LETTER = 24.0
"""Width of the letter of a panel and the gap after it, in points."""


def value_scale(values: ArrayLike, asked: LogAxes | None = None) -> TimeScale:
    """Return `log` for values that are never negative and span more than a factor `LOG_RANGE`, else `linear`.

    Values of exactly 0 and those that are not finite do not count. What is `asked` for comes first.
    """
    array = np.asarray(values, dtype=np.float64)
    array = array[np.isfinite(array)]
    positive = array[array > 0]
    suits = len(positive) > 0 and not (array < 0).any() and float(positive.max()) > LOG_RANGE * float(positive.min())
    return scale_of("y", asked, suits)


def time_scale(iterations: ArrayLike, *curves: ArrayLike, asked: LogAxes | None = None) -> TimeScale:
    """Return `log` when most of the change of `curves` over `iterations` (k,) is over after `EARLY` of them.

    Each of `curves` is (k,) or (k, m). Their change is the total variation, of the logarithm where `value_scale` is
    logarithmic; several curves have equal weight, the m columns of one count by their variation. Non-finite values are
    skipped. What is `asked` for comes first.
    """
    steps = np.asarray(iterations, dtype=np.float64)
    if asked is not None or len(steps) < 8 or steps[-1] <= 100:
        return scale_of("x", asked, False)
    early = steps[1:] <= steps[0] + EARLY * (steps[-1] - steps[0])
    changes = [_variation(np.asarray(curve, dtype=np.float64).reshape(len(steps), -1)) for curve in curves]
    shares = [change[early].sum() / change.sum() for change in changes if change.sum() > 0]
    return "log" if shares and float(np.mean(shares)) > 0.5 else "linear"


def _variation(array: Floats) -> Floats:
    """Return how much the columns of (k, m) change from row to row, together (k - 1,)."""
    if value_scale(array) == "log":
        array = np.log(np.where(array > 0, array, np.nan))
    change: Floats = np.abs(np.diff(np.where(np.isfinite(array), array, np.nan), axis=0))
    return np.asarray(np.nan_to_num(change, nan=0.0).sum(axis=1), dtype=np.float64)


def draw_over_training(
    view: View, iteration: int | None, draw: Sequence[Callable[[Axes], object]], *, titles: Sequence[str] = (),
    aspect: float = 0.72, extra_height: float = 0.0,
) -> Figure:  # fmt: skip
    """Return a figure with a panel for each of `draw`, three in a row at most; `iteration` is marked in all of them.

    Several panels get letters, with their `titles`. `aspect` and `extra_height` are those of `new_figure`.
    """
    columns = min(len(draw), 3)
    rows = -(-len(draw) // columns)
    width = ROW_WIDTH if columns == 3 else None
    figure, axes = new_figure(columns, rows, width=width, aspect=aspect, extra_height=extra_height)
    for k, draw_one in enumerate(draw):
        draw_one(axes[k])
        if len(draw) > 1:
            panel_label(axes[k], k, titles[k] if titles else "")
        mark_iteration(axes[k], view, iteration)
    for unused in axes[len(draw) :]:
        unused.remove()
    return figure


def mark_iteration(axes: Axes, view: View, iteration: int | None) -> None:
    """Mark an iteration (or the end of the run, if it has fewer) by a dotted line with its number on top."""
    if iteration is not None:
        at = min(iteration, view.run.iterations)
        mark_time(axes, at, format_number(at))


def mark_time(axes: Axes, at: float, label: str) -> None:
    """Mark a time by a dotted line with a label on top, to the right of the panel's letter if it has one."""
    from_left = float(axes.transData.transform((at, 0))[0] - axes.bbox.x0) * 72 / axes.figure.dpi
    crowded = bool(axes.get_title(loc="left")) and from_left < LETTER
    axes.axvline(at, color=PALETTE.theory, lw=0.8, ls=(0, (1, 1.5)), zorder=1.5)
    axes.annotate(
        label, (at, 1.0), xycoords=axes.get_xaxis_transform(),
        xytext=(max(LETTER - from_left, 0.0) if crowded else 0.0, 1.5), textcoords="offset points",
        ha="left" if crowded else "center", va="bottom", fontsize=SMALL, color=PALETTE.theory,
    )  # fmt: skip


def some_neurons(m: int) -> Ints:
    """Return the indices of the neurons that are drawn over training: all, or some at even distances."""
    return spread(m, MANY_NEURONS)


def note_some(axes: Axes, drawn: int, m: int) -> None:
    """Say under a panel how many of m neurons are drawn, if not all are."""
    if drawn < m:
        note(axes, f"{drawn} of {m} neurons")

"""What panels over training share: a mark at the iteration that was asked for."""

from __future__ import annotations

from matplotlib.axes import Axes

from dynamics_cli.analysis.view import View, spread
from dynamics_cli.measures.arrays import Ints
from dynamics_cli.plotting.layout import format_number
from dynamics_cli.plotting.style import PALETTE, SMALL

MANY_NEURONS = 1000
"""More neurons than this are not all drawn over training; a note says how many are."""
LETTER = 24.0
"""Width of the letter of a panel and the gap after it, in points."""


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
        label,
        (at, 1.0),
        xycoords=axes.get_xaxis_transform(),
        xytext=(max(LETTER - from_left, 0.0) if crowded else 0.0, 1.5),
        textcoords="offset points",
        ha="left" if crowded else "center",
        va="bottom",
        fontsize=SMALL,
        color=PALETTE.theory,
    )


def some_neurons(m: int) -> Ints:
    """Return the indices of the neurons that are drawn over training: all, or evenly spread ones."""
    return spread(m, MANY_NEURONS)

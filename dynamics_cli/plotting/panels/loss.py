"""Training loss over iterations, with its plateaus."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.text import Annotation
from numpy.typing import ArrayLike, NDArray

from dynamics_cli.plotting.layout import format_number, text_size
from dynamics_cli.plotting.style import PALETTE, SMALL, styled
from dynamics_cli.plotting.time_axis import TimeScale, as_times, draw_curve, set_time_axis, set_value_axis, visible

Level = tuple[float, float, float]
"""A value of the loss, and the first and the last iteration at which the loss stays near it."""


@dataclass(frozen=True)
class LossPanel:
    """Artists of `draw_loss`; `marks` holds the labels of exact zeros and of non-finite losses, if any."""

    line: Line2D
    plateaus: list[Line2D]
    labels: list[Annotation]
    marks: list[Annotation]
    log: bool


@styled
def draw_loss(
    axes: Axes, iterations: ArrayLike, losses: ArrayLike, *, scale: Literal["log", "linear"] = "log",
    time_scale: TimeScale = "linear", plateaus: Sequence[Level] = (), label: str | None = None,
    color: str = PALETTE.measured, xlabel: str = "iteration", ylabel: str = r"training loss $L(\theta^t)$",
) -> LossPanel:  # fmt: skip
    """Draw `losses` (k,) over `iterations` (k,); long curves are decimated without losing their extremes.

    Each plateau is underlined and labelled with its value. A log axis cannot show a loss of exactly 0: the curve ends
    there and a mark on the axis says from which iteration. The first non-finite loss is marked too. Draw several runs
    by calling this once for each with a `label`. Raises ValueError for shapes that differ.
    """
    times = as_times(iterations)
    raw = np.atleast_1d(np.asarray(losses, dtype=np.float64))
    if raw.shape != times.shape:
        raise ValueError(f"losses of shape {raw.shape} for iterations of shape {times.shape}")
    others = np.concatenate([np.empty(0), *(np.asarray(line.get_ydata(), dtype=np.float64) for line in axes.lines)])
    log = set_value_axis(axes, np.concatenate([raw, others]), ylabel, log=scale == "log")
    line = draw_curve(axes, times, visible(raw, log=log), log_time=time_scale == "log", color=color, label=label)
    set_time_axis(axes, times, time_scale, xlabel)
    underlines, labels = _draw_plateaus(axes, plateaus, log=log)
    return LossPanel(line, underlines, labels, _mark_unseen(axes, times, raw, log=log, color=color), log)


def _draw_plateaus(axes: Axes, plateaus: Sequence[Level], *, log: bool) -> tuple[list[Line2D], list[Annotation]]:
    """Underline each plateau and write its value to its upper right (at the top: below), where no falling curve is."""
    lines, labels = [], []
    for plateau in plateaus:
        value, *ends = plateau
        if log and value <= 0:
            continue
        lines += axes.plot(
            ends, [value, value], color=PALETTE.highlight, lw=4.5, alpha=0.55, solid_capstyle="butt", zorder=1
        )
        text = format_number(value)
        place = _label_place(axes, plateau, text)
        labels.append(axes.annotate(text, textcoords="offset points", fontsize=SMALL, color=PALETTE.theory, **place))
    return lines, labels


def _label_place(axes: Axes, plateau: Level, text: str) -> dict[str, Any]:
    """Place a plateau's label to its upper right, or where the panel ends, to its lower left."""
    value, first, last = plateau
    scale = 72 / axes.figure.dpi
    box = axes.get_window_extent()
    ends = axes.transData.transform([(first, value), (last, value)]) * scale
    if box.y1 * scale - ends[0, 1] > 12:
        middle = (first + last) / 2
        return {"xy": (middle, value), "xytext": (0, 3.5), "ha": "left", "va": "bottom"}
    fits = ends[1, 0] - box.x0 * scale > text_size(text, SMALL)[0]
    edge, side = (last, "right") if fits else (first, "left")
    return {"xy": (edge, value), "xytext": (0, -4.0), "ha": side, "va": "top"}


def _mark_unseen(
    axes: Axes, times: NDArray[np.float64], losses: NDArray[np.float64], *, log: bool, color: str
) -> list[Annotation]:
    """Mark where the loss first is exactly 0 (log axis only, at its foot) and where not finite (at its top)."""
    marks = []
    cases = [(~np.isfinite(losses), "not finite", 1.0, "x", -9.0)]
    if log:
        cases.append((losses == 0, "exactly 0", 0.0, "v", 5.0))
    for hit, words, height, marker, rise in cases:
        if not hit.any():
            continue
        at = times[int(np.argmax(hit))]
        transform = axes.get_xaxis_transform()
        axes.plot([at], [height], marker, color=color, ms=5, transform=transform, clip_on=False, zorder=4)
        left = at <= times[0] + 0.55 * (times[-1] - times[0])
        marks.append(
            axes.annotate(
                f"{words} from {format_number(at)}", (at, height), xycoords=transform,
                xytext=(5 if left else -12, rise), textcoords="offset points", ha="left" if left else "right",
                fontsize=SMALL, color=color,
            )
        )  # fmt: skip
    return marks

"""The spectrum of a weight matrix: singular values and stable rank over training, and explained variance."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator
from numpy.typing import ArrayLike

from dynamics_cli.plotting.layout import set_axis_label
from dynamics_cli.plotting.style import PALETTE, SMALL, styled
from dynamics_cli.plotting.time_axis import TimeScale, as_times, draw_curve, set_time_axis, set_value_axis, visible

NAMED = 3
"""Singular values that are dark and in the legend."""
BARS = 10
"""Principal components whose explained variance is drawn."""
LEADING = 2
"""Principal components that are dark and summed up."""


@styled
def draw_spectrum(
    axes: Axes, iterations: ArrayLike, singular_values: ArrayLike, stable_rank: ArrayLike, *, ylabel: str,
    log: bool = True, time_scale: TimeScale = "linear",
) -> list[Line2D]:  # fmt: skip
    """Draw `singular_values` (k, r) over `iterations` (k,), the `NAMED` largest dark; return handles for a legend.

    `stable_rank` (k,) is a dashed line on a right axis that starts at 0. Singular values of 0 are gaps on the log axis.
    Raises ValueError for shapes that differ.
    """
    times, raw = as_times(iterations), np.asarray(singular_values, dtype=np.float64)
    if raw.ndim != 2 or len(raw) != len(times):
        raise ValueError(f"singular values of shape {raw.shape} for {len(times)} iterations: expected (k, r)")
    is_log = set_value_axis(axes, raw, ylabel, log=log)
    named = min(NAMED, raw.shape[1])
    shades = colormaps["viridis"](np.linspace(0.0, 0.72, max(named, 1)))
    lines = []
    for i, values in enumerate(visible(raw, log=is_log).T):
        if i < named:
            look: dict[str, Any] = {"color": shades[i], "lw": 1.5, "zorder": 3, "label": rf"$\sigma_{{{i + 1}}}$"}
        else:
            look = {"color": "#BDBDBD", "lw": 0.6, "zorder": 2, "label": "others" if i == named else None}
        lines.append(draw_curve(axes, times, values, log_time=time_scale == "log", **look))
    rank_axes = axes.twinx()
    rank = visible(np.atleast_1d(np.asarray(stable_rank)), log=False)
    dashed: dict[str, Any] = {"color": PALETTE.rank, "ls": (0, (4, 1.5)), "lw": 1.4, "label": "stable rank"}
    rank_line = draw_curve(rank_axes, times, rank, log_time=time_scale == "log", **dashed)
    rank_axes.spines["right"].set_visible(True)
    rank_axes.spines["right"].set_color(PALETTE.rank)
    rank_axes.tick_params(axis="y", colors=PALETTE.rank)
    limits = (0.0, 1.1 * float(np.nanmax(rank)) if np.isfinite(rank).any() and np.nanmax(rank) > 0 else 1.0)
    rank_axes.set_ylim(*limits)
    set_axis_label(rank_axes.yaxis, "stable rank", limits)
    rank_axes.yaxis.label.set_color(PALETTE.rank)
    set_time_axis(axes, times, time_scale)
    return [*lines[: NAMED + 1], rank_line]


@styled
def draw_explained_variance(axes: Axes, ratios: ArrayLike) -> None:
    """Draw the first `BARS` of `ratios` (r,), largest first, as bars; the first `LEADING` are dark and summed up.

    What the bars leave out is summed up too (Boursier et al. 2022, Fig. 7b). Non-finite ratios (a matrix of zeros has
    none) count as 0. Raises ValueError for an empty array or one that is not a row.
    """
    all_ratios = np.nan_to_num(np.asarray(ratios, dtype=np.float64), nan=0.0, posinf=0.0, neginf=0.0)
    if all_ratios.ndim != 1 or len(all_ratios) == 0:
        raise ValueError(f"explained variance needs one non-empty row of ratios, not shape {all_ratios.shape}")
    heights = all_ratios[:BARS]
    colors = [PALETTE.measured if k < LEADING else "#A9C7DD" for k in range(len(heights))]
    axes.bar(np.arange(1, len(heights) + 1), heights, width=0.72, color=colors)
    axes.set(xlabel="principal component", ylabel="explained variance ratio", xlim=(0.3, len(heights) + 0.7))
    axes.set_ylim(0, 1.18 * float(heights.max()) if heights.max() > 0 else 1.0)
    axes.xaxis.set_major_locator(MaxNLocator(nbins=10, integer=True, steps=[1, 2, 5, 10]))
    axes.tick_params(axis="x", length=0)
    # the sums of the dark and of the hidden bars, to the upper right, where bars are low
    dark = min(LEADING, len(all_ratios))
    lines = [(f"first {dark}: {all_ratios[:dark].sum():.3f}", PALETTE.measured)] if dark > 1 else []
    if len(all_ratios) > BARS:
        lines.append((f"{len(all_ratios) - BARS} not shown: {all_ratios[BARS:].sum():.3f}", PALETTE.unsigned))
    where: dict[str, Any] = {"xycoords": "axes fraction", "textcoords": "offset points", "ha": "right", "va": "top"}
    for k, (text, color) in enumerate(lines):
        axes.annotate(text, (1.0, 1.0), xytext=(-2, -3 - 11 * k), fontsize=SMALL + 0.5, color=color, **where)

"""Singular values and stable rank of a weight matrix over training."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib import colormaps
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.legend import Legend
from matplotlib.lines import Line2D
from numpy.typing import ArrayLike

from dynamics_cli.plotting.layout import LegendPlace, place_legend, set_axis_label
from dynamics_cli.plotting.style import PALETTE, styled
from dynamics_cli.plotting.time_axis import TimeScale, as_times, draw_curve, set_time_axis, set_value_axis, visible


@dataclass(frozen=True)
class SpectrumPanel:
    """Artists of `draw_spectrum`; the rank has its own axis on the right, if it was given."""

    singular_values: list[Line2D]
    stable_rank: Line2D | None
    rank_axes: Axes | None
    log: bool
    legend: Legend | None


@styled
def draw_spectrum(
    axes: Axes,
    iterations: ArrayLike,
    singular_values: ArrayLike,
    stable_rank: ArrayLike | None = None,
    *,
    named: int = 3,
    log: bool = True,
    time_scale: TimeScale = "linear",
    legend: LegendPlace = "below",
    xlabel: str = "iteration",
    ylabel: str = r"singular values $\sigma_i(W^t)$",
    rank_label: str = r"stable rank $\Vert W\Vert_F^2\,/\,\Vert W\Vert_2^2$",
) -> SpectrumPanel:
    """Draw `singular_values` (k, r) over `iterations` (k,), the `named` largest dark and in the legend, others pale.

    `stable_rank` (k,) is a dashed line on a right axis that starts at 0. Singular values of 0 are gaps on the log axis.
    Raises ValueError for shapes that differ.
    """
    times = as_times(iterations)
    raw = np.asarray(singular_values, dtype=np.float64)
    if raw.ndim != 2 or len(raw) != len(times):
        raise ValueError(f"singular values of shape {raw.shape} for {len(times)} iterations: expected (k, r)")
    is_log = set_value_axis(axes, raw, ylabel, log=log)
    r = raw.shape[1]
    named = min(named, r)
    shades = colormaps["viridis"](np.linspace(0.0, 0.72, max(named, 1)))
    lines = []
    for i in range(r):
        look = (
            {"color": shades[i], "lw": 1.5, "zorder": 3} if i < named else {"color": "#BDBDBD", "lw": 0.6, "zorder": 2}
        )
        name = rf"$\sigma_{{{i + 1}}}$" if i < named else ("others" if i == named else None)
        values = visible(raw[:, i], log=is_log)
        lines.append(draw_curve(axes, times, values, log_time=time_scale == "log", label=name, **look))
    handles: list[Artist] = list(lines[: named + 1])
    rank_line, rank_axes = None, None
    if stable_rank is not None:
        rank_axes = axes.twinx()
        rank_line = _draw_rank(rank_axes, times, np.atleast_1d(np.asarray(stable_rank)), rank_label, time_scale)
        handles.append(rank_line)
    set_time_axis(axes, times, time_scale, xlabel)
    return SpectrumPanel(lines, rank_line, rank_axes, is_log, place_legend(axes, handles, legend, columns=3))


def _draw_rank(axes: Axes, times: ArrayLike, stable_rank: ArrayLike, label: str, time_scale: TimeScale) -> Line2D:
    """Draw the stable rank on its axis at the right."""
    rank = visible(stable_rank, log=False)
    look: dict[str, Any] = {"color": PALETTE.rank, "ls": (0, (4, 1.5)), "lw": 1.4, "label": "stable rank"}
    line = draw_curve(axes, times, rank, log_time=time_scale == "log", **look)
    axes.spines["right"].set_visible(True)
    axes.spines["right"].set_color(PALETTE.rank)
    axes.tick_params(axis="y", colors=PALETTE.rank)
    limits = (0.0, 1.1 * float(np.nanmax(rank)) if np.isfinite(rank).any() and np.nanmax(rank) > 0 else 1.0)
    axes.set_ylim(*limits)
    set_axis_label(axes.yaxis, label, limits)
    axes.yaxis.label.set_color(PALETTE.rank)
    return line

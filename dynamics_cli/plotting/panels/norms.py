"""Norms of the neurons over training."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.legend import Legend
from matplotlib.lines import Line2D
from matplotlib.patheffects import withStroke
from numpy.typing import ArrayLike, NDArray

from dynamics_cli.plotting.layout import LegendPlace, note, place_legend
from dynamics_cli.plotting.panels.shared import SIGN_NAMES, as_signs, sign_handle
from dynamics_cli.plotting.style import PALETTE, styled
from dynamics_cli.plotting.time_axis import (
    TimeScale,
    as_times,
    draw_curve,
    draw_curves,
    set_time_axis,
    set_value_axis,
    visible,
)

MANY = 200
"""More neurons than this and quantiles are drawn over the curves."""


@dataclass(frozen=True)
class NormsPanel:
    """Artists of `draw_norms`, by sign; `quantiles` (5, 50 and 95 %) only for more than `MANY` neurons."""

    curves: dict[int, LineCollection]
    quantiles: dict[int, list[Line2D]] = field(default_factory=dict)
    log: bool = True
    legend: Legend | None = None


@styled
def draw_norms(
    axes: Axes,
    iterations: ArrayLike,
    norms: ArrayLike,
    signs: ArrayLike | None = None,
    *,
    log: bool = True,
    time_scale: TimeScale = "linear",
    legend: LegendPlace = "below",
    xlabel: str = "iteration",
    ylabel: str = r"norm $\Vert w_j^t\Vert$",
) -> NormsPanel:
    """Draw `norms` (k, m) of m neurons over `iterations` (k,), coloured by `signs` (m,); without signs all are grey.

    On the log axis a norm of 0 is a gap, and neurons that are 0 throughout are counted in a note. Raises ValueError for
    shapes that differ.
    """
    times = as_times(iterations)
    raw = np.asarray(norms, dtype=np.float64)
    if raw.ndim != 2 or len(raw) != len(times):
        raise ValueError(f"norms of shape {raw.shape} for {len(times)} iterations: expected (k, m)")
    m = raw.shape[1]
    sign = as_signs(np.zeros(m) if signs is None else signs, m)
    is_log = set_value_axis(axes, raw, ylabel, log=log)
    values = visible(raw, log=is_log)
    curves, quantiles = {}, {}
    thin: dict[str, Any] = {"linewidths": 0.9 if m <= MANY else 0.4, "alpha": float(np.clip(40 / max(m, 1), 0.08, 0.8))}
    for value in (s for s in (1, -1, 0) if (sign == s).any()):
        group, color = values[:, sign == value], PALETTE.sign(value)
        curves[value] = draw_curves(axes, times, group, log_time=time_scale == "log", colors=color, zorder=2, **thin)
        if m > MANY:
            quantiles[value] = _draw_quantiles(
                axes, times, raw[:, sign == value], color, log=is_log, time_scale=time_scale
            )
    set_time_axis(axes, times, time_scale, xlabel)
    silent = int((~np.isfinite(values)).all(axis=0).sum())
    if is_log and silent:
        note(axes, f"{silent} of norm 0")
    drawn = place_legend(axes, _handles(curves, quantiles), legend, columns=2)
    return NormsPanel(curves, quantiles, is_log, drawn)


def _draw_quantiles(
    axes: Axes, times: NDArray[np.float64], norms: NDArray[np.float64], color: str, *, log: bool, time_scale: TimeScale
) -> list[Line2D]:
    """Draw the 5, 50 and 95 % quantiles over a group's finite norms (k, m_s): the median solid, the others dashed."""
    lines = []
    clean = np.where(np.isfinite(norms), norms, np.nan)
    some = np.isfinite(clean).any(axis=1)
    for share in (0.05, 0.5, 0.95):
        values = np.full(len(times), np.nan)
        values[some] = np.nanquantile(clean[some], share, axis=1)
        look: dict[str, Any] = {"lw": 1.7, "ls": "-"} if share == 0.5 else {"lw": 1.2, "ls": (0, (4, 1.5))}
        look["path_effects"] = [withStroke(linewidth=look["lw"] + 1.4, foreground="white")]
        seen = visible(values, log=log)
        lines.append(draw_curve(axes, times, seen, log_time=time_scale == "log", color=color, zorder=3, **look))
    return lines


def _handles(curves: dict[int, LineCollection], quantiles: dict[int, list[Line2D]]) -> list[Artist]:
    """Return legend handles: the signs unless all neurons are unsigned, and what dashed lines mean."""
    handles: list[Artist] = [sign_handle(value) for value in curves if set(curves) != {0} and value in SIGN_NAMES]
    if quantiles:
        gray = PALETTE.theory
        handles.append(Line2D([], [], color=gray, lw=1.7, label="median"))
        handles.append(Line2D([], [], color=gray, lw=1.1, ls=(0, (4, 1.5)), label="5 %, 95 %"))
    return handles

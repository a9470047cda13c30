"""Directions of the neurons over training, as cosines to a vector or as angles in the plane."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.legend import Legend
from matplotlib.lines import Line2D
from matplotlib.text import Annotation
from numpy.typing import ArrayLike, NDArray

from dynamics_cli.plotting.layout import LegendPlace, note, place_legend
from dynamics_cli.plotting.panels.shared import as_signs, sign_handle
from dynamics_cli.plotting.style import PALETTE, SMALL, styled
from dynamics_cli.plotting.time_axis import TimeScale, as_times, draw_curves, set_time_axis, visible

LABEL_HEIGHT = 9.0
"""Distance in points that keeps two labels at the right edge apart."""


@dataclass(frozen=True)
class DirectionsPanel:
    """Artists of `draw_directions`: curves by sign, dashed lines and labels by the name of the reference direction."""

    curves: dict[int, LineCollection]
    references: dict[str, Line2D]
    labels: dict[str, Annotation]
    legend: Legend | None


@styled
def draw_directions(
    axes: Axes,
    iterations: ArrayLike,
    values: ArrayLike,
    signs: ArrayLike | None = None,
    *,
    kind: Literal["cosine", "angle"] = "cosine",
    references: Mapping[str, float] | None = None,
    time_scale: TimeScale = "linear",
    legend: LegendPlace = "below",
    xlabel: str = "iteration",
    ylabel: str | None = None,
) -> DirectionsPanel:
    """Draw `values` (k, m), cosines or angles in degrees, of m neurons over `iterations` (k,), by `signs` (m,).

    Angles are shown in (-180, 180]; where a curve passes from one end to the other it is interrupted. `references` are
    dashed lines with labels in the right margin, such as `{"$D_+$": 26.6}`. Non-finite values (neurons without
    direction) are gaps. Raises ValueError for shapes that differ.
    """
    times = as_times(iterations)
    array = visible(values, log=False)
    if array.ndim != 2 or len(array) != len(times):
        raise ValueError(f"directions of shape {array.shape} for {len(times)} iterations: expected (k, m)")
    m = array.shape[1]
    sign = as_signs(np.zeros(m) if signs is None else signs, m)
    known = dict(references or {})
    if kind == "angle":
        array = 180 - (180 - array) % 360
        known = {name: 180 - (180 - value) % 360 for name, value in known.items()}
    thin: dict[str, Any] = {
        "linewidths": 0.9 if m <= 200 else 0.4,
        "alpha": float(np.clip(40 / max(m, 1), 0.08, 0.8)),
        "zorder": 2,
    }
    curves = {}
    for value in (s for s in (1, -1, 0) if (sign == s).any()):
        x, group = (times, array[:, sign == value])
        if kind == "angle":
            x, group = cut_wraps(times, group)
        curves[value] = draw_curves(axes, x, group, log_time=time_scale == "log", colors=PALETTE.sign(value), **thin)
    set_time_axis(axes, times, time_scale, xlabel)
    _value_axis(axes, kind, ylabel)
    lines, labels = _draw_references(axes, known)
    lost = int((~np.isfinite(array)).all(axis=0).sum())
    if lost:
        note(axes, f"{lost} undirected")
    handles = [sign_handle(value) for value in curves if value]
    return DirectionsPanel(curves, lines, labels, place_legend(axes, handles, legend, columns=3))


def cut_wraps(times: ArrayLike, angles: ArrayLike) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return times and angles (k', m) in degrees with a row added, NaN where an angle jumps by over 180 degrees."""
    x, a = np.asarray(times, dtype=np.float64), np.asarray(angles, dtype=np.float64)
    jumps = np.abs(np.diff(a, axis=0)) > 180  # (k - 1, m)
    rows = np.flatnonzero(jumps.any(axis=1))
    middle = (a[rows] + a[rows + 1]) / 2
    middle[jumps[rows]] = np.nan
    return np.insert(x, rows + 1, (x[rows] + x[rows + 1]) / 2), np.insert(a, rows + 1, middle, axis=0)


def _value_axis(axes: Axes, kind: Literal["cosine", "angle"], label: str | None) -> None:
    if kind == "cosine":
        axes.set_ylim(-1.06, 1.06)
        axes.set_yticks([-1, -0.5, 0, 0.5, 1])
        axes.set_ylabel(label or r"cosine")
    else:
        axes.set_ylim(-190, 190)
        axes.set_yticks([-180, -90, 0, 90, 180])
        axes.set_ylabel(label or r"direction of $w_j^t$ (degrees)")


def _draw_references(axes: Axes, references: Mapping[str, float]) -> tuple[dict[str, Line2D], dict[str, Annotation]]:
    """Draw a dashed line for every reference and its name at the right edge, pushed apart where they would touch."""
    lines, labels = {}, {}
    low, high = axes.get_ylim()
    height = max(axes.get_window_extent().height * 72 / axes.figure.dpi, 1.0) / (high - low)  # points a unit
    previous = -np.inf
    for name, value in sorted(references.items(), key=lambda item: item[1]):
        lines[name] = axes.axhline(value, color=PALETTE.theory, lw=0.8, ls=(0, (4, 2)), zorder=2.5)
        at = max(value * height, previous + LABEL_HEIGHT)
        previous = at
        labels[name] = axes.annotate(
            name,
            (1.0, value),
            xycoords=axes.get_yaxis_transform(),
            xytext=(4, at - value * height),
            textcoords="offset points",
            va="center",
            fontsize=SMALL + 0.5,
            color=PALETTE.theory,
        )
    return lines, labels

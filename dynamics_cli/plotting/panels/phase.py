"""A number over two settings as a heat map."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import LogNorm, Normalize
from numpy.typing import ArrayLike, NDArray

from dynamics_cli.plotting.layout import ticks_at
from dynamics_cli.plotting.style import styled
from dynamics_cli.plotting.time_axis import TimeScale

LOG_FROM = 50.0
"""Positive values that span at least this factor are coloured on a log scale."""
EQUAL = 1e-6
"""Values whose range is below this share of the largest are one value, to the digits that a colour bar shows."""


@styled
def draw_phase_diagram(
    axes: Axes,
    x: ArrayLike,
    y: ArrayLike,
    values: ArrayLike,
    *,
    labels: tuple[str, str, str],
    scales: tuple[TimeScale, TimeScale] = ("linear", "linear"),
) -> None:
    """Draw `values` (len(y), len(x)) over two increasing settings; a missing value (NaN) stays white.

    `labels` name x, y and the values; `scales` belong to x and y. Raises ValueError when shapes do not match, an
    axis has fewer than two values, or a logarithmic axis values that are not positive.
    """
    xs, ys, grid = np.asarray(x, float), np.asarray(y, float), np.asarray(values, float)
    if grid.shape != (len(ys), len(xs)) or min(grid.shape) < 2:
        raise ValueError(
            f"values have shape {grid.shape}, needed is ({len(ys)}, {len(xs)}) with at least 2 x 2"
        )
    shown = np.ma.masked_invalid(grid)
    low, high = (float(shown.min()), float(shown.max())) if shown.count() else (0.0, 1.0)
    equal = high - low <= EQUAL * max(abs(low), abs(high))
    ends = (
        (low - (0.1 * abs(low) or 1.0), high + (0.1 * abs(high) or 1.0)) if equal else (low, high)
    )
    log = low > 0 and high / low >= LOG_FROM
    edges = [
        _edges(centres, log=scale == "log") for centres, scale in zip((xs, ys), scales, strict=True)
    ]
    norm = LogNorm(*ends) if log else Normalize(*ends)
    mesh = axes.pcolormesh(*edges, shown, norm=norm, cmap="viridis", rasterized=True, linewidth=0)
    axes.set(xscale=scales[0], yscale=scales[1], xlabel=labels[0], ylabel=labels[1])
    for axis, at in ((axes.xaxis, xs), (axes.yaxis, ys)):
        if ticks := ticks_at(at):
            axis.set_ticks([*ticks], labels=[*ticks.values()])
            axis.set_ticks([], minor=True)
    bar = axes.figure.colorbar(mesh, ax=axes, label=labels[2])
    if equal:
        bar.set_ticks([low], labels=[f"{low:.6g}"])
    elif not log:
        bar.ax.ticklabel_format(useOffset=False, axis="y")


def _edges(centres: NDArray[np.float64], *, log: bool) -> NDArray[np.float64]:
    """Return the borders of cells whose centres are given."""
    c = np.log(centres) if log else centres
    middle = (c[1:] + c[:-1]) / 2
    edges = np.concatenate([[2 * c[0] - middle[0]], middle, [2 * c[-1] - middle[-1]]])
    return np.exp(edges) if log else edges

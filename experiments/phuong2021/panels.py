"""Panels that Figures 1, 2 and 4 share: singular values, rows of a weight matrix in the plane, correlations."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.lines import Line2D
from numpy.typing import NDArray

from dynamics_cli import kit

from .max_margin import HIGH

SHOWN = 10
"""Singular values drawn."""
ORANGE, BLUE = kit.PALETTE.highlight, kit.PALETTE.neurons
WIDTH = 0.05
"""Of the bars of a histogram of correlations; `HIGH` is between two of them."""


def two_colors(side: NDArray[Any]) -> list[str]:
    """Return orange for rows (m,) with a positive value, blue for the others."""
    return [ORANGE if s > 0 else BLUE for s in side]


def legend_of_colors(figure: kit.Drawing, orange: str, blue: str) -> None:
    """Say under the panels what orange and blue dots are."""
    dot: dict[str, Any] = {"marker": "o", "ls": "none", "ms": 4.5}
    kit.figure_legend(figure, [Line2D([], [], color=c, label=t, **dot) for c, t in ((ORANGE, orange), (BLUE, blue))])


def draw_values(axes: kit.Axes, values: kit.Floats) -> None:
    """Draw the largest of singular values in descending order as dots."""
    shown = values[:SHOWN]
    axes.plot(np.arange(1, len(shown) + 1), shown, "o", color=kit.PALETTE.neurons, ms=4)
    axes.set(xlabel="index", ylabel="singular value", xticks=(1, 4, 7, 10), ylim=(-0.05 * shown[0], 1.08 * shown[0]))


def draw_plane(axes: kit.Axes, points: kit.Floats, colors: list[str], means: kit.Floats | None = None) -> None:
    """Draw rows (m, 2) in the plane, each axis to its own scale, and lines from 0 along the main directions (k, 2)."""
    low, high = np.minimum(points.min(axis=0), 0.0), np.maximum(points.max(axis=0), 0.0)
    room = np.maximum(0.08 * (high - low), 1e-12)
    low, high = low - room, high + room
    for mean in () if means is None else means:
        along = np.where(np.abs(mean) > 1e-12, mean, 1e-12)
        long = float(np.min(np.where(along > 0, high, low) / along))
        axes.plot([0.0, long * mean[0]], [0.0, long * mean[1]], color=kit.PALETTE.muted, lw=0.9, zorder=1)
    axes.scatter(points[:, 0], points[:, 1], c=colors, s=12, linewidths=0.3, edgecolors="white", zorder=2)
    axes.set(xlim=(low[0], high[0]), ylim=(low[1], high[1]))
    axes.set(xlabel="1st singular direction", ylabel="2nd direction")
    axes.locator_params(axis="x", nbins=4)
    axes.locator_params(axis="y", nbins=5)


def draw_correlations(axes: kit.Axes, correlations: kit.Floats, side: NDArray[Any]) -> None:
    """Draw the histogram of correlations (m,), stacked by side (m,): positive ones orange, the others blue."""
    lowest = min(0.0, np.floor(np.nanmin(correlations) / WIDTH) * WIDTH)
    edges = np.linspace(lowest, 1.0, round((1.0 - lowest) / WIDTH) + 1)
    axes.hist(
        [correlations[side > 0], correlations[side <= 0]],
        bins=[*edges],
        stacked=True,
        color=[ORANGE, BLUE],
        edgecolor="white",
        linewidth=0.4,
    )
    axes.axvline(HIGH, color=kit.PALETTE.theory, ls=(0, (4, 2)), lw=0.9)
    axes.set(xlabel="correlation", ylabel="neurons")

"""Panels that Figures 1, 2 and 4 share: singular values, rows of a weight matrix in the plane,
correlations.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator
from numpy.typing import NDArray

from dynamics_cli import kit

HIGH = 0.9
"""A correlation that the paper calls high."""
SHOWN = 10
"""Singular values drawn."""
RAYS = (kit.PALETTE.rank, kit.PALETTE.function)
"""Colours of w+ and w-."""
GRAY = kit.PALETTE.muted
"""Of rows that have no sign."""
WIDTH = 0.05
"""Of the bars of a histogram of correlations; `HIGH` is between two of them."""


def two_colors(side: NDArray[Any]) -> list[str]:
    """Return the colours of signs for rows (m,) with a positive value, and for the others."""
    return [kit.PALETTE.positive if s > 0 else kit.PALETTE.negative for s in side]


def dot_handle(color: str, label: str) -> Line2D:
    """Return the legend handle of dots."""
    return Line2D([], [], color=color, label=label, marker=kit.MARKER, ls="none", ms=4.5)


def sign_handles(positive: str, negative: str) -> list[Line2D]:
    """Return the legend handles of the dots of both signs."""
    return [dot_handle(kit.PALETTE.positive, positive), dot_handle(kit.PALETTE.negative, negative)]


def ray_handles() -> list[Line2D]:
    """Return the legend of the lines of `draw_plane`."""
    rays = zip(RAYS, ("$w_+$", "$w_-$"), strict=True)
    return [
        Line2D([], [], color=kit.PALETTE.theory, lw=0.8, label="mean directions"),
        *(Line2D([], [], color=color, ls=kit.DASHED, lw=1.2, label=name) for color, name in rays),
    ]


def draw_values(axes: kit.Axes, values: kit.Floats) -> None:
    """Draw the largest of singular values in descending order as dots."""
    shown = values[:SHOWN]
    axes.plot(np.arange(1, len(shown) + 1), shown, kit.MARKER, color=kit.PALETTE.theory, ms=4)
    axes.set(
        xlabel="index",
        ylabel="singular value",
        xticks=(1, 4, 7, 10),
        ylim=(-0.05 * shown[0], 1.08 * shown[0]),
    )


def draw_plane(
    axes: kit.Axes,
    points: kit.Floats,
    colors: list[str],
    means: kit.Floats | None = None,
    rays: kit.Floats | None = None,
) -> None:
    """Draw rows (m, 2) in the plane, each axis to its own scale: the second direction is often much
    the shorter one.

    Lines from 0 are drawn along main directions (k, 2), dashed ones along w+ and w- (2, 2)
    projected on the plane.
    """
    far = 1.12 * float(kit.norms(points).max(initial=1e-12))
    for mean in () if means is None else means:
        axes.plot(
            [0.0, far * mean[0]], [0.0, far * mean[1]], color=kit.PALETTE.theory, lw=0.8, zorder=1
        )
    for ray, color in zip(() if rays is None else rays, RAYS, strict=False):
        x, y = far * ray / np.linalg.norm(ray)
        axes.plot([0.0, x], [0.0, y], color=color, ls=kit.DASHED, lw=1.2, zorder=3)
    axes.scatter(
        points[:, 0], points[:, 1], c=colors, s=12, linewidths=0.3, edgecolors="white", zorder=2
    )
    low = np.minimum(points.min(axis=0), 0.0)
    high = np.maximum(points.max(axis=0), 0.0)
    middle = (low + high) / 2
    half = 0.56 * np.maximum(high - low, 1e-12)
    axes.set(
        xlim=(middle[0] - half[0], middle[0] + half[0]),
        ylim=(middle[1] - half[1], middle[1] + half[1]),
    )
    axes.set(xlabel="1st singular direction", ylabel="2nd direction")
    axes.xaxis.set_major_locator(MaxNLocator(3, steps=[1, 2, 4, 5, 10]))
    axes.locator_params(axis="y", nbins=5)


def draw_correlations(axes: kit.Axes, correlations: kit.Floats, side: NDArray[Any]) -> None:
    """Draw the histogram of correlations (m,), stacked by side (m,), in the colours of signs."""
    lowest = min(0.0, np.floor(np.nanmin(correlations) / WIDTH) * WIDTH)
    edges = np.linspace(lowest, 1.0, round((1.0 - lowest) / WIDTH) + 1)
    axes.hist(
        [correlations[side > 0], correlations[side <= 0]],
        bins=[*edges],
        stacked=True,
        edgecolor="white",
        color=two_colors(np.array([1, -1])),
        linewidth=0.4,
    )
    axes.axvline(HIGH, color=kit.PALETTE.theory, ls=kit.DASHED, lw=0.9)
    axes.set(xlabel="correlation", ylabel="neurons")

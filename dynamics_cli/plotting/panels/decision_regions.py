"""Decision regions and level sets of a classifier of two inputs, from exact polygons and segments."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection, PolyCollection
from matplotlib.colors import to_rgb
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from numpy.typing import ArrayLike

from dynamics_cli.plotting.style import PALETTE, styled

Window = tuple[float, float, float, float]
"""x from, x to, y from, y to."""


@dataclass(frozen=True)
class RegionsPanel:
    """Artists of `draw_regions`: the filled bands, the lines between them, the data by label."""

    regions: PolyCollection
    lines: LineCollection
    data: dict[int, Line2D]
    handles: list[Artist]
    """For a legend."""


@styled
def draw_regions(
    axes: Axes,
    polygons: Sequence[ArrayLike],
    bands: ArrayLike,
    segments: Sequence[ArrayLike],
    window: Window,
    *,
    colors: Sequence[Any] | None = None,
    x: ArrayLike | None = None,
    y: ArrayLike | None = None,
    xlabel: str = "$x_1$",
    ylabel: str = "$x_2$",
) -> RegionsPanel:
    """Fill convex `polygons` by their band (0, 1, ...) and draw the `segments` (2, 2) between them.

    `colors` are those of the bands: by default two, where the output is negative and positive. Data `x` (n, 2) are dots
    in the colour of their label's sign. Raises ValueError for data that are not two-dimensional.
    """
    shades = [tint(PALETTE.negative), tint(PALETTE.positive)] if colors is None else list(colors)
    corners = [np.asarray(polygon, dtype=np.float64) for polygon in polygons]
    fills = [shades[int(band)] for band in np.asarray(bands, dtype=np.int64)]
    # a rim in the same colour closes the hairlines between neighbours
    regions = PolyCollection(corners, facecolors=fills, edgecolors=fills, linewidths=0.4, zorder=0)
    regions.set_rasterized(len(corners) > 2000)
    axes.add_collection(regions)
    lines = LineCollection([np.asarray(s) for s in segments], colors=PALETTE.theory, linewidths=1.1, zorder=2)
    lines.set_capstyle("round")
    axes.add_collection(lines)
    data = _draw_data(axes, x, y)
    axes.set_aspect("equal")
    axes.set(xlim=window[:2], ylim=window[2:], xlabel=xlabel, ylabel=ylabel)
    handles: list[Artist] = [] if colors is not None else list(_region_handles())
    if len(lines.get_segments()):
        handles.append(Line2D([], [], color=PALETTE.theory, lw=1.1, label="decision boundary"))
    return RegionsPanel(regions, lines, data, [*handles, *data.values()])


def _region_handles() -> list[Patch]:
    both = (("$N(x)>0$", PALETTE.positive), ("$N(x)<0$", PALETTE.negative))
    return [Patch(facecolor=tint(color), edgecolor="none", label=label) for label, color in both]


def _draw_data(axes: Axes, x: ArrayLike | None, y: ArrayLike | None) -> dict[int, Line2D]:
    """Draw the data, one artist for each sign of the label."""
    if x is None or y is None:
        return {}
    points, labels = np.asarray(x, dtype=np.float64), np.asarray(y, dtype=np.float64)
    if points.ndim != 2 or points.shape[1] != 2 or len(points) != len(labels):
        raise ValueError(f"decision regions need data (n, 2) with as many labels, not {points.shape}, {labels.shape}")
    data = {}
    for sign, marker in ((1, "o"), (-1, "s")):
        chosen = points[labels > 0] if sign > 0 else points[labels <= 0]
        look: dict[str, Any] = {"marker": marker, "ms": 3.4, "mec": "white", "mew": 0.4, "ls": "none", "zorder": 3}
        name = f"$y={'+' if sign > 0 else '-'}1$"
        data[sign] = axes.plot(*chosen.T, mfc=PALETTE.sign(sign), label=name, **look)[0]
    return data


@styled
def draw_levels(
    axes: Axes,
    polygons: Sequence[ArrayLike],
    bands: ArrayLike,
    segments: Sequence[Sequence[ArrayLike]],
    levels: ArrayLike,
    window: Window,
) -> RegionsPanel:
    """Fill the bands between `levels` (L,), purple where positive, and draw the level sets, that of 0 thicker."""
    values = np.asarray(levels, dtype=np.float64)
    middle = np.concatenate([[values[0]], (values[1:] + values[:-1]) / 2, [values[-1]]])
    largest = float(np.abs(middle).max()) or 1.0
    shades = [mpl.colormaps["PuOr"](0.5 + 0.42 * value / largest) for value in middle]
    shades = [tint(color, 0.75) for color in shades]
    flat = [segment for level in segments for segment in level]
    panel = draw_regions(axes, polygons, bands, flat, window, colors=shades)
    zero = np.repeat(values == 0, [len(level) for level in segments])
    panel.lines.set_linewidth(np.where(zero, 1.6, 0.6).tolist() or [0.6])
    return panel


def tint(color: Any, strength: float = 0.3) -> tuple[float, float, float]:
    """Return a colour mixed with white."""
    r, g, b = (1 - strength + strength * channel for channel in to_rgb(color))
    return r, g, b


def data_window(x: ArrayLike, margin: float = 0.25) -> Window:
    """Return a square window around the data (n, 2) and the origin, with a margin as a share of its width."""
    points = np.concatenate([np.asarray(x, dtype=np.float64)[:, :2], np.zeros((1, 2))])
    low, high = points.min(axis=0), points.max(axis=0)
    middle, half = (low + high) / 2, float((high - low).max()) * (0.5 + margin) or 1.0
    return (middle[0] - half, middle[0] + half, middle[1] - half, middle[1] + half)

"""What a network does with its inputs: the function of one input, decision regions and samples in the plane."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import matplotlib as mpl
import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection, PolyCollection
from matplotlib.colors import to_rgb
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import MaxNLocator
from numpy.typing import ArrayLike, NDArray

from dynamics_cli.plotting.layout import note, set_axis_label
from dynamics_cli.plotting.style import PALETTE, SERIES, styled

Array = NDArray[np.float64]
Function = Callable[[Array], Array]
Limits = tuple[float, float]
Window = tuple[float, float, float, float]
"""x from, x to, y from, y to."""

INPUT, OUTPUT, NEURON = "input $x$", r"output $h_\theta(x)$", r"neuron $\mathsf{s}_j\,\Vert w_j\Vert$"

# One input: function, data and neurons (Boursier et al. 2022, Fig. 2) -----------------------------------------------


@dataclass
class FunctionPanel:
    """Artists of `draw_function_1d`; `outside` counts the neurons whose kink is not in the window (or nowhere)."""

    axes: Axes
    neuron_axes: Axes
    points: Line2D
    function: Line2D
    stars: Line2D
    outside: int = 0

    def move(self, function: Function, kinks: ArrayLike, outputs: ArrayLike) -> None:
        """Show a function ((k,) -> (k,)) and neurons (m,), on the same axes; a note counts the neurons outside.

        The function is evaluated at every visible kink, so that kinks are sharp. Raises ValueError for shapes that
        differ.
        """
        places, heights = _pair(kinks, outputs, "neurons")
        low, high = self.axes.get_xlim()
        seen = (places >= low) & (places <= high) & np.isfinite(heights)
        grid = np.union1d(np.linspace(low, high, 512), places[seen])
        values = np.asarray(function(grid), dtype=np.float64)
        self.function.set_data(grid, np.where(np.isfinite(values), values, np.nan))
        self.stars.set_data(places[seen], heights[seen])
        self.outside = int(len(places) - seen.sum())
        self.axes.set_xlabel(INPUT)
        if self.outside:
            note(self.axes, f"{self.outside} \N{BLACK STAR} outside")


@styled
def draw_function_1d(
    axes: Axes, function: Function, x: ArrayLike, y: ArrayLike, *, kinks: ArrayLike, outputs: ArrayLike,
    window: Limits, limits: Limits, neuron_limits: Limits,
) -> FunctionPanel:  # fmt: skip
    """Draw data (n,), `function` ((k,) -> (k,)) on `window`, and a star at (`kinks`, `outputs`) for each of m neurons.

    `kinks` are -b_j/w_j, `outputs` s_j ||w_j||; the stars have their own y axis on the right. `limits` are those of the
    left axis, `neuron_limits` those of the right one (see `common_zero`). What has no finite position is left out.
    Raises ValueError for shapes that differ.
    """
    x, y = _pair(x, y, "data")
    twin = axes.twinx()
    axes.axhline(0, color=PALETTE.faint, lw=0.7, zorder=0)
    star: dict[str, Any] = {"ls": "none", "marker": "*", "ms": 7.0, "mfc": PALETTE.neurons, "mec": "white", "mew": 0.3}
    (stars,) = twin.plot([], [], **star, label="neurons", zorder=2.5)
    (line,) = axes.plot([], [], color=PALETTE.function, lw=1.6, label=r"estimated function $h_\theta$", zorder=3)
    dot: dict[str, Any] = {"ls": "none", "marker": "o", "ms": 5.5, "mfc": PALETTE.data, "mec": "white", "mew": 0.5}
    (points,) = twin.plot(x, y, **dot, label="data", zorder=4, transform=axes.transData)
    axes.set_xlim(*window)
    for shared, limit, label in ((axes, limits, OUTPUT), (twin, neuron_limits, NEURON)):
        shared.set_ylim(*limit)
        set_axis_label(shared.yaxis, label, limit)
    axes.xaxis.set_major_locator(MaxNLocator(nbins=5, steps=[1, 2, 2.5, 5, 10]))
    twin.spines["right"].set_visible(True)
    twin.spines["right"].set_color(PALETTE.neurons)
    twin.tick_params(axis="y", colors=PALETTE.neurons)
    twin.yaxis.label.set_color(PALETTE.neurons)
    panel = FunctionPanel(axes, twin, points, line, stars)
    panel.move(function, kinks, outputs)
    return panel


def default_window(x: ArrayLike) -> Limits:
    """Return the range of the finite inputs `x`, 25 % wider on both sides; unit margins around a single input."""
    finite = np.asarray(x, dtype=np.float64)
    finite = finite[np.isfinite(finite)]
    if len(finite) == 0:
        return -1.0, 1.0
    span = float(finite.max() - finite.min())
    margin = 0.25 * span if span > 0 else 1.0
    return float(finite.min() - margin), float(finite.max() + margin)


def common_zero(left: ArrayLike, right: ArrayLike, margin: float = 0.1) -> tuple[Limits, Limits]:
    """Return limits for two y axes that contain all finite values, with some `margin`, and whose zeros are level.

    Values that are all 0 (or none) get the unit interval's share of the axis.
    """
    extents = [_extent(left), _extent(right)]
    shares = [(down / (down + up), up / (down + up)) for down, up in extents]
    down, up = max(share[0] for share in shares), max(share[1] for share in shares)
    limits = []
    for low, high in extents:
        unit = max(low / down if down else 0.0, high / up if up else 0.0)
        pad = margin * (down + up)
        limits.append((-unit * (down + pad), unit * (up + pad)))
    return limits[0], limits[1]


def _extent(values: ArrayLike) -> tuple[float, float]:
    """Return how far the finite values reach below and above 0; (0, 1) when they are all 0."""
    array = np.asarray(values, dtype=np.float64)
    array = array[np.isfinite(array)]
    down = float(max(0.0, -array.min())) if len(array) else 0.0
    up = float(max(0.0, array.max())) if len(array) else 0.0
    return (down, up) if down + up > 0 else (0.0, 1.0)


def _pair(first: ArrayLike, second: ArrayLike, what: str) -> tuple[Array, Array]:
    a = np.asarray(first, dtype=np.float64).ravel()
    b = np.asarray(second, dtype=np.float64).ravel()
    if a.shape != b.shape:
        raise ValueError(f"{what}: {len(a)} positions for {len(b)} values")
    return a, b


# Two inputs: decision regions and level sets, from exact polygons and segments --------------------------------------


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
    axes: Axes, polygons: Sequence[ArrayLike], bands: ArrayLike, segments: Sequence[ArrayLike], window: Window, *,
    colors: Sequence[Any] | None = None, x: ArrayLike | None = None, y: ArrayLike | None = None,
    x_test: ArrayLike | None = None, y_test: ArrayLike | None = None,
) -> RegionsPanel:  # fmt: skip
    """Fill convex `polygons` by their band (0, 1, ...) and draw the `segments` (2, 2) between them.

    `colors` are those of the bands: by default two, where the output is negative and positive. Data `x` (n, 2) are dots
    in the colour of their label's sign, held-out ones rings. Raises ValueError for data that are not two-dimensional.
    """
    shades = [tint(PALETTE.negative), tint(PALETTE.positive)] if colors is None else list(colors)
    corners = [np.asarray(polygon, dtype=np.float64) for polygon in polygons]
    filled = np.asarray(bands, dtype=np.int64)
    fills = [shades[int(band)] for band in filled]
    # a rim in the same colour closes the hairlines between neighbours
    regions = PolyCollection(corners, facecolors=fills, edgecolors=fills, linewidths=0.4, zorder=0)
    regions.set_rasterized(len(corners) > 2000)
    axes.add_collection(regions)
    lines = LineCollection([np.asarray(s) for s in segments], colors=PALETTE.theory, linewidths=1.1, zorder=2)
    lines.set_capstyle("round")
    axes.add_collection(lines)
    data = _draw_data(axes, x, y)
    held = _draw_data(axes, x_test, y_test, held=True)
    axes.set_aspect("equal")
    axes.set(xlim=window[:2], ylim=window[2:], xlabel="$x_1$", ylabel="$x_2$")
    both = ((1, "$N(x)>0$", PALETTE.positive), (0, "$N(x)<0$", PALETTE.negative))
    handles: list[Artist] = [
        Patch(facecolor=tint(color), edgecolor="none", label=label) for band, label, color in both if band in filled
    ]
    handles = handles if colors is None else []
    if len(lines.get_segments()):
        handles.append(Line2D([], [], color=PALETTE.theory, lw=1.1, label="decision boundary"))
    return RegionsPanel(regions, lines, data, [*handles, *data.values(), *held.values()])


def _draw_data(axes: Axes, x: ArrayLike | None, y: ArrayLike | None, *, held: bool = False) -> dict[int, Line2D]:
    """Draw training or held-out data, one artist for each sign of the label that there is."""
    if x is None or y is None:
        return {}
    points, labels = np.asarray(x, dtype=np.float64), np.asarray(y, dtype=np.float64)
    if points.ndim != 2 or points.shape[1] != 2 or len(points) != len(labels):
        raise ValueError(f"decision regions need data (n, 2) with as many labels, not {points.shape}, {labels.shape}")
    data = {}
    for sign, marker in ((1, "o"), (-1, "s")):
        chosen, color = points[labels > 0] if sign > 0 else points[labels <= 0], PALETTE.sign(sign)
        look: dict[str, Any] = {"marker": marker, "ms": 3.4, "ls": "none", "zorder": 2.8 if held else 3}
        look |= {"mfc": "white", "mec": color, "mew": 0.8} if held else {"mfc": color, "mec": "white", "mew": 0.4}
        if len(chosen):
            name = f"$y={'+' if sign > 0 else '-'}1$" + held * ", held out"
            data[sign] = axes.plot(*chosen.T, label=name, **look)[0]
    return data


@styled
def draw_levels(
    axes: Axes, polygons: Sequence[ArrayLike], bands: ArrayLike, segments: Sequence[Sequence[ArrayLike]],
    levels: ArrayLike, window: Window,
) -> RegionsPanel:  # fmt: skip
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


# Samples of a generator over the points that it was to imitate ----------------------------------------------------


class SamplesPanel(NamedTuple):
    """Artists of `draw_samples`; `handles` are for a legend."""

    data: Line2D
    samples: Line2D
    handles: list[Line2D]


@styled
def draw_samples(axes: Axes, data: ArrayLike, samples: ArrayLike, window: Window) -> SamplesPanel:
    """Draw `data` (n, 2) and on top of them `samples` (k, 2), in a window (left, right, bottom, top).

    Raises ValueError for points that are not in the plane.
    """
    drawn, handles = [], []
    for points, label, color in ((data, "data", PALETTE.data), (samples, "samples", SERIES[1])):
        xy = np.asarray(points, dtype=np.float64)
        if xy.ndim != 2 or xy.shape[1] != 2:
            raise ValueError(f"{label} must have shape (n, 2), not {xy.shape}")
        drawn += axes.plot(*xy.T, ".", ms=2.0, color=color, alpha=0.5, mec="none", rasterized=True)
        handles.append(Line2D([], [], ls="", marker="o", ms=4, color=color, mec="none", label=label))
    axes.set(xlim=window[:2], ylim=window[2:], aspect="equal", xlabel="$x_1$", ylabel="$x_2$")
    return SamplesPanel(drawn[0], drawn[1], handles)

"""Many runs at once: a number over two settings as a heat map, and curves as their median with quantile bands."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.colors import LogNorm, Normalize
from matplotlib.lines import Line2D
from numpy.typing import ArrayLike, NDArray

from dynamics_cli.plotting.style import MARKER, styled

LOG_FROM = 50.0
"""Positive values that span at least this factor are coloured on a log scale."""
EQUAL = 1e-6
"""Values whose range is below this share of the largest are one value, to the digits that a colour bar shows."""
BANDS_FROM = 5
"""Values at one place that quantiles need; fewer are drawn each."""
QUANTILES = ((0.05, 0.95), (0.25, 0.75))
"""The ends of each band."""


@styled
def draw_phase_diagram(
    axes: Axes, x: ArrayLike, y: ArrayLike, values: ArrayLike, *, xlabel: str, ylabel: str, label: str,
    log_x: bool = False, log_y: bool = False, limits: tuple[float, float] | None = None,
) -> None:  # fmt: skip
    """Draw `values` (len(y), len(x)) over two increasing settings; a missing value (NaN) stays white.

    `limits` are the ends of the colours, by default the smallest and the largest value. Raises ValueError when shapes
    do not match or an axis has fewer than two values.
    """
    xs, ys, grid = np.asarray(x, float), np.asarray(y, float), np.asarray(values, float)
    if grid.shape != (len(ys), len(xs)) or min(grid.shape) < 2:
        raise ValueError(f"values have shape {grid.shape}, needed is ({len(ys)}, {len(xs)}) with at least 2 x 2")
    shown = np.ma.masked_invalid(grid)
    ends = limits or ((float(shown.min()), float(shown.max())) if shown.count() else (0.0, 1.0))
    equal = ends[1] - ends[0] <= EQUAL * max(map(abs, ends))
    low, high = (ends[0] - (0.1 * abs(ends[0]) or 1.0), ends[1] + (0.1 * abs(ends[1]) or 1.0)) if equal else ends
    log = low > 0 and high / low >= LOG_FROM
    norm = LogNorm(low, high) if log else Normalize(low, high)
    mesh = axes.pcolormesh(
        _edges(xs, log_x), _edges(ys, log_y), shown, norm=norm, cmap="viridis", rasterized=True, linewidth=0
    )
    axes.set_xscale("log" if log_x else "linear")
    axes.set_yscale("log" if log_y else "linear")
    axes.set_xlabel(xlabel)
    axes.set_ylabel(ylabel)
    bar = axes.figure.colorbar(mesh, ax=axes, label=label)
    if not log:
        bar.ax.ticklabel_format(useOffset=False, axis="y")
    if equal:
        bar.set_ticks([ends[0]], labels=[f"{ends[0]:.6g}"])


def _edges(centres: NDArray[np.float64], log: bool) -> NDArray[np.float64]:
    """Return the borders of cells whose centres are given."""
    c = np.log(centres) if log else centres
    middle = (c[1:] + c[:-1]) / 2
    edges = np.concatenate([[2 * c[0] - middle[0]], middle, [2 * c[-1] - middle[-1]]])
    return np.exp(edges) if log else edges


@styled
def draw_bands(
    axes: Axes, x: ArrayLike, values: ArrayLike, *, label: str | None = None, color: str, marker: str = "",
    joined: bool = True,
) -> Line2D:  # fmt: skip
    """Draw the median of `values` (k, N) over `x` (k,), which is returned, and a band for each of `QUANTILES`.

    NaN are left out. Of fewer than `BANDS_FROM` values at each place, and between places that are not `joined`, there
    are no bands: each value is a point, or each column of `values` a thin line where medians have no `marker`.

    Raises ValueError when shapes do not match.
    """
    xs, curves = np.asarray(x, float), np.asarray(values, float)
    if curves.ndim != 2 or len(curves) != len(xs):
        raise ValueError(f"values have shape {curves.shape}, needed is ({len(xs)}, N)")
    kept = np.isfinite(curves).any(axis=1)
    xs, curves = xs[kept], curves[kept]
    most = int(np.isfinite(curves).sum(axis=1).max(initial=0))
    if most >= BANDS_FROM and joined:
        for low, high in QUANTILES:
            lower, upper = np.nanquantile(curves, [low, high], axis=1)
            axes.fill_between(xs, lower, upper, color=color, alpha=0.2, linewidth=0)
    elif most > 1 and marker:
        axes.scatter(np.repeat(xs, curves.shape[1]), curves.ravel(), s=7, color=color, alpha=0.6, linewidths=0)
    elif most > 1:
        lines = [np.column_stack([xs, column]) for column in curves.T]
        axes.add_collection(LineCollection(lines, colors=color, linewidths=0.5, alpha=0.6))
    alone = most == 1
    marker = (marker if alone or most >= BANDS_FROM else "") if joined else (marker or MARKER) if alone else "_"
    (median,) = axes.plot(xs, np.nanmedian(curves, axis=1), color=color, label=label, marker=marker)
    median.set(markersize=3 if joined else 9, linestyle="-" if joined else "none")
    return median

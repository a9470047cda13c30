"""Many runs at once: a number over two settings as a heat map, and curves as their median with quantile bands."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import LogNorm, Normalize
from matplotlib.lines import Line2D
from numpy.typing import ArrayLike, NDArray

from dynamics_cli.plotting.style import styled

LOG_FROM = 50.0
"""Positive values that span at least this factor are coloured on a log scale."""
CONTOURS = 6
QUANTILES = ((0.05, 0.95), (0.25, 0.75))
"""The ends of each band."""


@styled
def draw_phase_diagram(
    axes: Axes, x: ArrayLike, y: ArrayLike, values: ArrayLike, *, xlabel: str, ylabel: str, label: str,
    log_x: bool = False, log_y: bool = False, limits: tuple[float, float] | None = None,
) -> None:  # fmt: skip
    """Draw `values` (len(y), len(x)) over two increasing settings; a missing value (NaN) stays white.

    Contours need at least three values on each axis, and none missing. `limits` are the ends of the colours, by default
    the smallest and the largest value. Raises ValueError when shapes do not match or an
    axis has fewer than two values.
    """
    xs, ys, grid = np.asarray(x, float), np.asarray(y, float), np.asarray(values, float)
    if grid.shape != (len(ys), len(xs)) or min(grid.shape) < 2:
        raise ValueError(f"values have shape {grid.shape}, needed is ({len(ys)}, {len(xs)}) with at least 2 x 2")
    shown = np.ma.masked_invalid(grid)
    low, high = _limits(shown if limits is None else np.ma.masked_invalid(limits))
    log = low > 0 and high / low >= LOG_FROM
    norm = LogNorm(low, high) if log else Normalize(low, high)
    mesh = axes.pcolormesh(
        _edges(xs, log_x), _edges(ys, log_y), shown, norm=norm, cmap="viridis", rasterized=True, linewidth=0
    )
    axes.set_xscale("log" if log_x else "linear")
    axes.set_yscale("log" if log_y else "linear")
    axes.set_xlabel(xlabel)
    axes.set_ylabel(ylabel)
    if min(grid.shape) >= 3 and not np.ma.is_masked(shown):
        levels = (np.geomspace if log else np.linspace)(low, high, CONTOURS + 2)[1:-1]
        axes.contour(xs, ys, shown, levels=levels, colors="white", linewidths=0.6, alpha=0.8)
    axes.figure.colorbar(mesh, ax=axes, label=label)


def _limits(values: np.ma.MaskedArray) -> tuple[float, float]:
    finite = values.compressed()
    if len(finite) == 0:
        return 0.0, 1.0
    low, high = float(finite.min()), float(finite.max())
    return (low, high) if high > low else (low, low + max(abs(low), 1e-300) * 1e-6)


def _edges(centres: NDArray[np.float64], log: bool) -> NDArray[np.float64]:
    """Return the borders of cells whose centres are given."""
    c = np.log(centres) if log else centres
    middle = (c[1:] + c[:-1]) / 2
    edges = np.concatenate([[2 * c[0] - middle[0]], middle, [2 * c[-1] - middle[-1]]])
    return np.exp(edges) if log else edges


@styled
def draw_bands(
    axes: Axes,
    x: ArrayLike,
    values: ArrayLike,
    *,
    label: str | None = None,
    color: str,
    marker: str = "",
    joined: bool = True,
) -> Line2D:
    """Draw the median of `values` (k, N) over `x` (k,), which is returned, and a band for each of `QUANTILES`.

    NaN are left out. Unless they are `joined`, medians are points and bands are bars.

    Raises ValueError when shapes do not match.
    """
    xs, curves = np.asarray(x, float), np.asarray(values, float)
    if curves.ndim != 2 or len(curves) != len(xs):
        raise ValueError(f"values have shape {curves.shape}, needed is ({len(xs)}, N)")
    kept = np.isfinite(curves).any(axis=1)
    xs, curves = xs[kept], curves[kept]
    if curves.shape[1] > 1:
        for low, high in QUANTILES:
            lower, upper = np.nanquantile(curves, [low, high], axis=1)
            if joined:
                axes.fill_between(xs, lower, upper, color=color, alpha=0.2, linewidth=0)
            else:
                axes.vlines(xs, lower, upper, color=color, alpha=0.3, linewidth=3)
    (line,) = axes.plot(xs, np.nanmedian(curves, axis=1), color=color, label=label, marker=marker, markersize=3)
    if not joined:
        line.set(linestyle="none", marker=marker or "o")
    return line

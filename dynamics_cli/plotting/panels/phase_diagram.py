"""A number over two settings: a heat map with contours."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from matplotlib.colors import LogNorm, Normalize
from numpy.typing import ArrayLike, NDArray

from dynamics_cli.plotting.style import styled

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.collections import QuadMesh
    from matplotlib.colorbar import Colorbar
    from matplotlib.contour import QuadContourSet

_LOG_FROM = 50.0
"""Positive values that span at least this factor are coloured on a log scale."""
_CONTOURS = 6


@dataclass(frozen=True)
class PhaseDiagramPanel:
    """The artists of a phase diagram."""

    mesh: QuadMesh
    colorbar: Colorbar
    contours: QuadContourSet | None


@styled
def draw_phase_diagram(
    axes: Axes,
    x: ArrayLike,
    y: ArrayLike,
    values: ArrayLike,
    *,
    xlabel: str,
    ylabel: str,
    label: str,
    log_x: bool = False,
    log_y: bool = False,
) -> PhaseDiagramPanel:
    """Draw `values` (len(y), len(x)) over two increasing settings; a missing value (NaN) stays white.

    Raises:
        ValueError: shapes do not match, or an axis has fewer than two values.

    """
    xs, ys, grid = np.asarray(x, float), np.asarray(y, float), np.asarray(values, float)
    if grid.shape != (len(ys), len(xs)) or min(grid.shape) < 2:
        raise ValueError(f"values have shape {grid.shape}, needed is ({len(ys)}, {len(xs)}) with at least 2 x 2")
    shown = np.ma.masked_invalid(grid)
    low, high = _limits(shown)
    log = low > 0 and high / low >= _LOG_FROM
    norm = LogNorm(low, high) if log else Normalize(low, high)
    mesh = axes.pcolormesh(
        _edges(xs, log_x), _edges(ys, log_y), shown, norm=norm, cmap="viridis", rasterized=True, linewidth=0
    )
    axes.set_xscale("log" if log_x else "linear")
    axes.set_yscale("log" if log_y else "linear")
    axes.set_xlabel(xlabel)
    axes.set_ylabel(ylabel)
    contours = None
    if min(grid.shape) >= 3 and not np.ma.is_masked(shown):
        levels = (np.geomspace if log else np.linspace)(low, high, _CONTOURS + 2)[1:-1]
        contours = axes.contour(xs, ys, shown, levels=levels, colors="white", linewidths=0.6, alpha=0.8)
    figure = axes.figure
    colorbar = figure.colorbar(mesh, ax=axes, label=label)
    return PhaseDiagramPanel(mesh, colorbar, contours)


def _limits(values: np.ma.MaskedArray) -> tuple[float, float]:
    found = values.compressed()
    if len(found) == 0:
        return 0.0, 1.0
    low, high = float(found.min()), float(found.max())
    return (low, high) if high > low else (low, low + max(abs(low), 1e-300) * 1e-6)


def _edges(centres: NDArray[np.float64], log: bool) -> NDArray[np.float64]:
    """Return the borders of cells whose centres are given."""
    c = np.log(centres) if log else centres
    middle = (c[1:] + c[:-1]) / 2
    edges = np.concatenate([[2 * c[0] - middle[0]], middle, [2 * c[-1] - middle[-1]]])
    return np.exp(edges) if log else edges

"""Many curves of one kind as their median with quantile bands."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from dynamics_cli.plotting.style import PALETTE, styled

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.collections import FillBetweenPolyCollection
    from matplotlib.lines import Line2D


@dataclass(frozen=True)
class BandsPanel:
    """The artists of one family of curves."""

    median: Line2D
    bands: list[FillBetweenPolyCollection]


@styled
def draw_bands(
    axes: Axes,
    x: ArrayLike,
    values: ArrayLike,
    *,
    label: str | None = None,
    color: str = PALETTE.function,
    quantiles: tuple[tuple[float, float], ...] = ((0.05, 0.95), (0.25, 0.75)),
    marker: str = "",
) -> BandsPanel:
    """Draw the median of `values` (k, N) over `x` (k,) and one band per pair of quantiles; NaN are left out.

    Raises:
        ValueError: shapes do not match.

    """
    xs, curves = np.asarray(x, float), np.asarray(values, float)
    if curves.ndim != 2 or len(curves) != len(xs):
        raise ValueError(f"values have shape {curves.shape}, needed is ({len(xs)}, N)")
    kept = np.isfinite(curves).any(axis=1)
    xs, curves = xs[kept], curves[kept]
    bands = []
    if curves.shape[1] > 1:
        for low, high in quantiles:
            lower, upper = np.nanquantile(curves, [low, high], axis=1)
            bands.append(axes.fill_between(xs, lower, upper, color=color, alpha=0.2, linewidth=0))
    middle = np.nanmedian(curves, axis=1)
    (median,) = axes.plot(xs, middle, color=color, label=label, marker=marker, markersize=3)
    return BandsPanel(median, bands)

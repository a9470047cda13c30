"""Points that a generator gives, over those it was to imitate."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from numpy.typing import ArrayLike

from dynamics_cli.plotting.style import PALETTE, SERIES, styled

Window = tuple[float, float, float, float]


class SamplesPanel(NamedTuple):
    """Artists of `draw_samples`; `handles` are for a legend."""

    data: Line2D
    samples: Line2D
    handles: list[Line2D]


@styled
def draw_samples(
    axes: Axes, data: ArrayLike, samples: ArrayLike, window: Window, *, xlabel: str = "$x_1$", ylabel: str = "$x_2$"
) -> SamplesPanel:
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
    axes.set(xlim=window[:2], ylim=window[2:], aspect="equal", xlabel=xlabel, ylabel=ylabel)
    return SamplesPanel(drawn[0], drawn[1], handles)

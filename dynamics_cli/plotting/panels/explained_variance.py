"""Explained variance of principal components, as bars (Boursier et al. 2022, Fig. 7b)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.container import BarContainer
from matplotlib.text import Text
from matplotlib.ticker import MaxNLocator
from numpy.typing import ArrayLike, NDArray

from dynamics_cli.plotting.style import PALETTE, SMALL, styled


@dataclass(frozen=True)
class ExplainedVariancePanel:
    """Artists of `draw_explained_variance`; `leading` is the sum of the highlighted ratios."""

    bars: BarContainer
    leading: float
    labels: list[Text]


@styled
def draw_explained_variance(
    axes: Axes,
    ratios: ArrayLike,
    *,
    shown: int = 10,
    highlighted: int = 2,
    xlabel: str = "principal component",
    ylabel: str = "explained variance ratio",
) -> ExplainedVariancePanel:
    """Draw the first `shown` of `ratios` (r,), largest first, as bars; the `highlighted` first are dark and summed up.

    What the bars leave out is summed up too. Non-finite ratios (a matrix of zeros has none) count as 0. Raises
    ValueError for an empty array or one that is not a row.
    """
    all_ratios = np.nan_to_num(np.asarray(ratios, dtype=np.float64), nan=0.0, posinf=0.0, neginf=0.0)
    if all_ratios.ndim != 1 or len(all_ratios) == 0:
        raise ValueError(f"explained variance needs one non-empty row of ratios, not shape {all_ratios.shape}")
    heights = all_ratios[:shown]
    position = np.arange(1, len(heights) + 1)
    highlighted = min(highlighted, len(heights))
    colors = [PALETTE.measured if k < highlighted else "#A9C7DD" for k in range(len(heights))]
    bars = axes.bar(position, heights, width=0.72, color=colors)
    axes.set(xlabel=xlabel, ylabel=ylabel, xlim=(0.3, len(heights) + 0.7))
    axes.set_ylim(0, 1.18 * float(heights.max()) if heights.max() > 0 else 1.0)
    axes.xaxis.set_major_locator(MaxNLocator(nbins=10, integer=True, steps=[1, 2, 5, 10]))
    axes.tick_params(axis="x", length=0)
    leading = float(all_ratios[:highlighted].sum())
    return ExplainedVariancePanel(bars, leading, _sums(axes, all_ratios, highlighted, len(heights)))


def _sums(axes: Axes, ratios: NDArray[np.float64], highlighted: int, shown: int) -> list[Text]:
    """Write the sums of the highlighted and of the hidden bars to the upper right, where bars are low."""
    lines = [(f"first {highlighted}: {ratios[:highlighted].sum():.3f}", PALETTE.measured)] if highlighted > 1 else []
    if len(ratios) > shown:
        lines.append((f"{len(ratios) - shown} not shown: {ratios[shown:].sum():.3f}", PALETTE.unsigned))
    where: dict[str, Any] = {"xycoords": "axes fraction", "textcoords": "offset points", "ha": "right", "va": "top"}
    return [
        axes.annotate(text, (1.0, 1.0), xytext=(-2, -3 - 11 * k), fontsize=SMALL + 0.5, color=color, **where)
        for k, (text, color) in enumerate(lines)
    ]

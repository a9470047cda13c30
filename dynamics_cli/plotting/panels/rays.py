"""Two-dimensional neurons as rays from the origin."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.legend import Legend
from matplotlib.lines import Line2D
from numpy.typing import ArrayLike

from dynamics_cli.plotting.layout import LegendPlace, note, place_legend, set_axis_label
from dynamics_cli.plotting.panels.shared import as_signs, round_up, sign_handle
from dynamics_cli.plotting.style import PALETTE, styled


@dataclass(frozen=True)
class RaysPanel:
    """Artists of `draw_rays`, by sign; `directions` mark the data, `limit` is the half-width of the window."""

    rays: dict[int, LineCollection]
    tips: dict[int, Line2D]
    directions: list[Line2D]
    limit: float
    legend: Legend | None


@styled
def draw_rays(
    axes: Axes,
    weights: ArrayLike,
    signs: ArrayLike,
    *,
    data: ArrayLike | None = None,
    labels: ArrayLike | None = None,
    limit: float | None = None,
    legend: LegendPlace = "below",
    xlabel: str = "$w_{j,1}$",
    ylabel: str = "$w_{j,2}$",
) -> RaysPanel:
    """Draw each of the `weights` (m, 2) as a ray from 0 in the colour of its sign (m,), with a dot at its tip.

    `data` (n, 2) are shown by direction only: a green triangle on the rim, pointing up for `labels` > 0 and down for
    < 0 (a diamond without labels). `limit` fixes the half-width of the square window. Rays that are not finite are left
    out and counted in a note. Raises ValueError for weights or data that are not two-dimensional.
    """
    w = np.asarray(weights, dtype=np.float64)
    if w.ndim != 2 or w.shape[1] != 2:
        raise ValueError(f"rays need weights of shape (m, 2), not {w.shape}")
    sign = as_signs(signs, len(w))
    shown = np.isfinite(w).all(axis=1)
    if limit is None:
        limit = round_up(float(np.linalg.norm(w[shown], axis=1).max())) if shown.any() else 1.0
    _square(axes, limit, xlabel, ylabel)
    rays, tips = {}, {}
    for value in (s for s in (1, -1, 0) if (sign[shown] == s).any()):
        ends = w[shown & (sign == value)]
        color = PALETTE.sign(value)
        segments = np.stack([np.zeros_like(ends), ends], axis=1)  # (m_s, 2, 2)
        rays[value] = LineCollection(
            list(segments), colors=color, linewidths=0.9, alpha=0.55, capstyle="round", zorder=2
        )
        axes.add_collection(rays[value])
        (tips[value],) = axes.plot(*ends.T, ls="none", marker="o", ms=3.2, mfc=color, mec="white", mew=0.3, zorder=3)
    directions = _draw_directions(axes, data, labels, limit)
    if not shown.all():
        note(axes, f"{int((~shown).sum())} not finite")
    handles: list[Artist] = [sign_handle(value, marker="o", size=4.5) for value in rays]
    drawn = place_legend(axes, [*handles, *directions], legend, columns=2)
    return RaysPanel(rays, tips, directions, limit, drawn)


def _square(axes: Axes, limit: float, xlabel: str, ylabel: str) -> None:
    """Make the window [-limit, limit]^2 with room for the rim's markers, and light lines through 0."""
    axes.set_aspect("equal")
    axes.set(xlim=(-1.22 * limit, 1.22 * limit), ylim=(-1.22 * limit, 1.22 * limit))
    for axis, label in ((axes.xaxis, xlabel), (axes.yaxis, ylabel)):
        set_axis_label(axis, label, (-limit, limit))
    axes.axhline(0, color=PALETTE.faint, lw=0.7, zorder=0)
    axes.axvline(0, color=PALETTE.faint, lw=0.7, zorder=0)
    circle = np.linspace(0, 2 * np.pi, 181)
    rim = 1.12 * limit
    axes.plot(rim * np.cos(circle), rim * np.sin(circle), color=PALETTE.faint, lw=0.7, zorder=0)


def _draw_directions(axes: Axes, data: ArrayLike | None, labels: ArrayLike | None, limit: float) -> list[Line2D]:
    """Mark the directions of the data on the rim, one artist for each sign of the label."""
    if data is None:
        return []
    x = np.asarray(data, dtype=np.float64)
    if x.ndim != 2 or x.shape[1] != 2:
        raise ValueError(f"directions need data of shape (n, 2), not {x.shape}")
    y = np.zeros(len(x)) if labels is None else np.asarray(labels, dtype=np.float64).ravel()
    if len(y) != len(x):
        raise ValueError(f"{len(y)} labels for {len(x)} points")
    norm = np.linalg.norm(x, axis=1)
    directed = np.isfinite(norm) & (norm > 0)
    kinds = [(y > 0, "^", "$x_k$, $y_k>0$"), (y < 0, "v", "$x_k$, $y_k<0$"), (y == 0, "D", "data direction")]
    artists = []
    for which, marker, name in kinds:
        on_rim = 1.12 * limit * x[which & directed] / norm[which & directed, None]
        if len(on_rim):
            shape: dict[str, Any] = {"marker": marker, "ms": 6.5 if marker != "D" else 5.0, "mec": "white", "mew": 0.4}
            artists += axes.plot(*on_rim.T, ls="none", mfc=PALETTE.function, label=name, zorder=4, **shape)
    return artists

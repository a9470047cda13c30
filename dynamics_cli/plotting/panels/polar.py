"""Neurons in polar coordinates around an inner circle that stands for norm 0 (Boursier et al. 2022, Fig. 6)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import PathCollection
from matplotlib.legend import Legend
from matplotlib.patches import Circle
from matplotlib.ticker import MaxNLocator
from numpy.typing import ArrayLike, NDArray

from dynamics_cli.plotting.layout import LegendPlace, format_number, note, place_legend
from dynamics_cli.plotting.panels.shared import as_signs, free_angle, round_up, sign_handle
from dynamics_cli.plotting.style import PALETTE, SMALL, styled

INNER = 0.28
"""Radius of the inner circle when that of the outermost ring is 1."""


@dataclass(frozen=True)
class PolarPanel:
    """Artists of `draw_polar`; positions are on a disc whose outer ring, of radius 1, stands for norm `limit`."""

    stars: PathCollection
    inner: Circle
    rings: dict[float, Circle]
    limit: float
    legend: Legend | None


@styled
def draw_polar(
    axes: Axes,
    coordinates: ArrayLike,
    signs: ArrayLike,
    *,
    limit: float | None = None,
    log: bool = False,
    floor: float | None = None,
    legend: LegendPlace = "below",
    names: tuple[str, str] = ("PC 1", "PC 2"),
) -> PolarPanel:
    """Draw each neuron, `coordinates` (m, 2), as a star at its angle and at radius inner circle + norm.

    The inner circle is norm 0, so that directions can be read while norms are still tiny. Red: s_j = -1, purple:
    s_j = +1. `limit` is the norm of the outer ring (default: the largest, rounded up); fix it to compare panels. With
    `log` the radius grows with log(norm / `floor`), and norms below `floor` (default: 6 decades below `limit`) lie on
    the inner circle. Neurons that are not finite are left out and counted in a note. Raises ValueError for a wrong
    shape.
    """
    w = np.asarray(coordinates, dtype=np.float64)
    if w.ndim != 2 or w.shape[1] != 2:
        raise ValueError(f"polar coordinates need shape (m, 2), not {w.shape}")
    sign = as_signs(signs, len(w))
    shown = np.isfinite(w).all(axis=1)
    norms, angles = np.hypot(w[:, 0], w[:, 1]), np.arctan2(w[:, 1], w[:, 0])
    if limit is None:
        limit = round_up(float(norms[shown].max())) if shown.any() else 1.0
    floor = floor if floor is not None else limit * 1e-6
    if not 0 < floor < limit:
        raise ValueError(f"the floor of a log radius must lie between 0 and the limit {limit}, not at {floor}")
    radius = disc_radius(norms, limit, floor if log else None)
    inner, rings = _draw_disc(axes, limit, floor if log else None, names)
    _label_rings(axes, rings, angles[shown], free=bool((radius[shown] > 1.3 * INNER).any()), log=log)
    star: dict[str, Any] = {"marker": "*", "s": 44 if len(w) <= 100 else 30, "linewidths": 0.25, "edgecolors": "white"}
    x, y = radius[shown] * np.cos(angles[shown]), radius[shown] * np.sin(angles[shown])
    stars = axes.scatter(x, y, c=[PALETTE.sign(s) for s in sign[shown]], zorder=3, clip_on=False, **star)
    if not shown.all():
        note(axes, f"{int((~shown).sum())} not finite")
    handles = [sign_handle(value, marker="*") for value in (-1, 1, 0) if (sign[shown] == value).any()]
    return PolarPanel(stars, inner, rings, limit, place_legend(axes, handles, legend, columns=3, drop=4.0))


def disc_radius(norms: ArrayLike, limit: float, floor: float | None = None) -> NDArray[np.float64]:
    """Return the radius on the disc for `norms`: `INNER` at 0, 1 at `limit`, linear between, or in log(norm/floor)."""
    norm = np.asarray(norms, dtype=np.float64)
    share = norm / limit if floor is None else np.log(np.maximum(norm, floor) / floor) / np.log(limit / floor)
    return INNER + (1 - INNER) * share


def _draw_disc(
    axes: Axes, limit: float, floor: float | None, names: tuple[str, str]
) -> tuple[Circle, dict[float, Circle]]:
    """Draw the inner circle, the rings of round norms, and the two axes; return the inner circle and rings by norm."""
    axes.set_aspect("equal")
    axes.axis("off")
    axes.set(xlim=(-1.16, 1.16), ylim=(-1.16, 1.16))
    line: dict[str, Any] = {"color": PALETTE.faint, "lw": 0.7, "zorder": 0}
    for angle in np.arange(8) * np.pi / 4:
        axes.plot(*np.outer([np.cos(angle), np.sin(angle)], [INNER, 1.0]), **line)
    rings = {}
    for norm in _ring_norms(limit, floor):
        edge = PALETTE.muted if norm == limit else PALETTE.faint
        rings[norm] = Circle((0, 0), float(disc_radius(norm, limit, floor)), fill=False, ec=edge, lw=0.7, zorder=0)
        axes.add_patch(rings[norm])
    inner = Circle((0, 0), INNER, fc="#F6F6F6", ec=PALETTE.muted, lw=0.9, zorder=1)
    axes.add_patch(inner)
    text: dict[str, Any] = {"fontsize": SMALL + 0.5, "color": PALETTE.unsigned}
    axes.text(1.04, 0, names[0], ha="left", va="center", **text)
    axes.text(0, 1.04, names[1], ha="center", va="bottom", **text)
    zero = "0" if floor is None else rf"$\leq 10^{{{round(np.log10(floor))}}}$"
    axes.text(0, 0, "norm\n" + zero, ha="center", va="center", fontsize=SMALL, color=PALETTE.unsigned, zorder=2)
    return inner, rings


def _ring_norms(limit: float, floor: float | None) -> list[float]:
    """Return the norms of the rings, the outermost being `limit`: two or three round ones, or powers of ten."""
    if floor is None:
        ticks = MaxNLocator(nbins=3, steps=[1, 2, 2.5, 5, 10]).tick_values(0, limit)
        return [float(t) for t in ticks if 0 < t < 0.9 * limit] + [limit]
    low, high = np.log10(floor), np.log10(limit)
    step = max(1, int(np.ceil((high - low) / 3)))
    powers = np.arange(np.floor(high), low + 0.5, -step)
    return [float(10.0**p) for p in powers[::-1] if p < high - 0.3] + [limit]


def _label_rings(axes: Axes, rings: dict[float, Circle], angles: NDArray[np.float64], *, free: bool, log: bool) -> None:
    """Write the norm on every ring, in the direction that the neurons leave free."""
    at = free_angle(
        angles if free else np.empty(0), np.radians([67.5, 112.5, -67.5, -112.5, 22.5, 157.5, -22.5, -157.5])
    )
    for norm, ring in rings.items():
        power = np.log10(norm)
        text = f"$10^{{{round(power)}}}$" if log and abs(power - round(power)) < 1e-9 else format_number(norm)
        box = {"facecolor": "white", "edgecolor": "none", "pad": 0.6, "alpha": 0.85}
        x, y = ring.get_radius() * np.cos(at), ring.get_radius() * np.sin(at)
        axes.text(x, y, text, ha="center", va="center", fontsize=SMALL, color=PALETTE.unsigned, bbox=box, zorder=2)

"""What the drawings in the plane share: vectors, half-planes and cones, and the toy data they use."""

from __future__ import annotations

import numpy as np
from matplotlib.patches import Wedge
from numpy.typing import ArrayLike

from dynamics_cli import kit

ASSUMED: dict[str, kit.Origin] = {"data": "assumed", "neurons": "assumed"}
TOY_X: kit.Floats = np.array([[2.95, 0.52], [2.60, 1.50], [2.12, 2.12], [-0.77, 0.64], [-0.91, 0.42], [-0.98, 0.17]])
TOY_Y: kit.Floats = np.array([1.0, 1.0, 1.0, -1.0, -1.0, -1.0])
"""The data of Figure 6."""


def plain(axes: kit.Axes, reach: float, y: tuple[float, float] | None = None) -> None:
    """Make a window without axes, `reach` to both sides of 0 and, unless `y` is given, as far up and down."""
    axes.set_aspect("equal")
    axes.set(xlim=(-reach, reach), ylim=y or (-reach, reach), xticks=[], yticks=[])
    for spine in axes.spines.values():
        spine.set_visible(False)
    axes.plot(0, 0, "o", ms=2.5, color=kit.PALETTE.theory, zorder=5)


def arrow(
    axes: kit.Axes, end: ArrayLike, color: str, label: str = "", *, start: ArrayLike = (0.0, 0.0), lw: float = 1.4,
    head: float = 10.0,
) -> None:  # fmt: skip
    """Draw an arrow from `start` to `end` (2,) with a label at its tip; `head` is the size of its head in points."""
    tip, tail = np.asarray(end, dtype=np.float64), np.asarray(start, dtype=np.float64)
    look = {"arrowstyle": "-|>", "color": color, "lw": lw, "shrinkA": 0, "shrinkB": 0, "mutation_scale": head}
    axes.annotate("", tuple(tip), tuple(tail), arrowprops=look, zorder=4)
    if label:
        off = tip - tail
        place = tip + (0.08 + 0.025 * len(label.strip("$"))) * off / max(float(np.linalg.norm(off)), 1e-12)
        axes.text(
            float(place[0]), float(place[1]), label, color=color, ha="center", va="center", fontsize=8.5, zorder=6
        )


def half_plane(axes: kit.Axes, normal: ArrayLike, reach: float) -> None:
    """Shade where `<normal, z> > 0` and draw its boundary."""
    angle = float(np.degrees(np.arctan2(*np.asarray(normal, dtype=np.float64)[::-1])))
    shade = Wedge((0, 0), 2 * reach, angle - 90, angle + 90, color=kit.PALETTE.faint, alpha=0.6, zorder=0, lw=0)
    axes.add_patch(shade)
    along = np.radians(angle + 90)
    ends = np.array([[-1.0], [1.0]]) * 2 * reach * np.array([np.cos(along), np.sin(along)])
    axes.plot(*ends.T, color=kit.PALETTE.muted, lw=0.8, ls="--", zorder=1)


def cone_angles(x: kit.Floats, inside: kit.Bools) -> list[tuple[float, float]]:
    """Return the arcs (degrees) of directions that are active on exactly the data `inside` (n,) of `x (n, 2)`."""
    degrees = np.arange(0.0, 360.0, 0.1)
    units = np.stack([np.cos(np.radians(degrees)), np.sin(np.radians(degrees))])
    kept = ((x @ units > 0) == inside[:, None]).all(axis=0)
    if not kept.any():
        return []
    starts = np.flatnonzero(kept & ~np.roll(kept, 1))
    ends = np.flatnonzero(kept & ~np.roll(kept, -1))
    if ends[0] < starts[0]:
        ends = np.append(ends[1:], ends[0] + len(degrees))
    return [(float(a) * 0.1, float(b) * 0.1) for a, b in zip(starts, ends, strict=True)]

"""A number over two settings as a heat map."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import QuadMesh
from matplotlib.colors import LogNorm, Normalize
from numpy.typing import ArrayLike

from dynamics_cli.plotting.labels import ROOM, ticks_at
from dynamics_cli.plotting.style import MARKER, PALETTE, SMALL, Floats, Ints, styled
from dynamics_cli.plotting.time_axis import LogAxes, TimeScale, label_multiples, scale_of

LOG_FROM = 1000.0
"""Positive values that span at least this factor are coloured on a logarithmic scale."""
EQUAL = 1e-6
"""Values whose range is below this share of the largest are one value to a colour bar's digits."""
NARROW = 12
"""Columns up to which a cell has room for `k/n`."""


@dataclass(frozen=True, kw_only=True)
class Phase:
    """A number over two settings."""

    x: ArrayLike
    y: ArrayLike
    """Increasing settings (k,) and (l,)."""
    values: ArrayLike
    """(l, k); a missing value (NaN) stays white."""
    xlabel: str
    ylabel: str
    label: str
    """Of the values."""
    scales: tuple[TimeScale, TimeScale] = ("linear", "linear")
    """Of x and y."""
    log: LogAxes | None = None
    """Whether colours are logarithmic (`c`); by default where positive values span three decades
    and none is negative. What they cannot show has the colour of the lower end.
    """
    jobs: tuple[ArrayLike, ArrayLike] | None = None
    """How many jobs of a cell have a number, and how many there are; a cell where these differ says
    so.
    """
    title: str = ""
    headed: bool = False


@styled
def draw_phase(axes: Axes, phase: Phase, room: float = ROOM) -> list[str]:
    """Draw a heat map with `room` characters along an axis; return what its reader must know.

    Raises ValueError: shapes do not match, an axis has fewer than two values, or a logarithmic axis
    has values that are not positive.
    """
    xs = np.asarray(phase.x, float)
    ys = np.asarray(phase.y, float)
    grid = np.asarray(phase.values, float)
    if grid.shape != (len(ys), len(xs)) or min(grid.shape) < 2:
        raise ValueError(
            f"values have shape {grid.shape}, needed is ({len(ys)}, {len(xs)}) with at least 2 x 2"
        )
    shown = np.ma.masked_invalid(grid)
    values = shown.compressed()
    positive = values[values > 0]
    wide = len(positive) > 0 and positive.max() >= LOG_FROM * positive.min() and values.min() >= 0
    logarithmic = len(positive) > 0 and scale_of("c", phase.log, bool(wide)) == "log"
    coloured = positive if logarithmic else values
    low, high = (coloured.min(), coloured.max()) if len(coloured) else (0.0, 1.0)
    equal = high - low <= EQUAL * max(abs(low), abs(high))
    ends = (low, high)
    if equal:
        ends = (low - (0.1 * abs(low) or 1.0), high + (0.1 * abs(high) or 1.0))
    norm = LogNorm(*ends, clip=True) if logarithmic else Normalize(*ends)
    sides = ((axes.xaxis, xs, phase.scales[0]), (axes.yaxis, ys, phase.scales[1]))
    edges = [cell_edges(centres, log=scale == "log") for _, centres, scale in sides]
    remarks = []
    extend = "neither"
    if logarithmic and values.min() <= 0:
        remarks.append("darkest: 0" + " or less" * bool(values.min() < 0))
        extend = "min"
    mesh = axes.pcolormesh(*edges, shown, norm=norm, cmap="viridis", rasterized=True, linewidth=0)
    axes.set(xlabel=phase.xlabel, ylabel=phase.ylabel)
    axes.set(xscale=phase.scales[0], yscale=phase.scales[1])
    for axis, at, scale in sides:
        if ticks := ticks_at(at, log=scale == "log", room=room):
            axis.set_ticks([*ticks], labels=[*ticks.values()])
            axis.set_ticks([], minor=True)
    bar = axes.figure.colorbar(mesh, ax=axes, label=phase.label, extend=extend)
    if equal:
        bar.set_ticks([low], labels=[f"{low:.6g}"])
    elif logarithmic:
        label_multiples(bar.ax.yaxis)
    elif not logarithmic:
        bar.ax.ticklabel_format(useOffset=False, axis="y")
    if phase.jobs is not None:
        counts, of = (np.asarray(numbers, int) for numbers in phase.jobs)
        remarks += _say_counts(axes, xs, ys, mesh, counts, of)
    return remarks


def _say_counts(
    axes: Axes, xs: Floats, ys: Floats, mesh: QuadMesh, counts: Ints, of: Ints
) -> list[str]:
    """Write `k/n` into cells where k of n jobs have a number, or dots, and return what it means."""
    partial = np.argwhere(counts < of)
    if not len(partial):
        return []
    colours = mesh.to_rgba(np.ma.asarray(mesh.get_array())).reshape(*counts.shape, 4)
    for i, j in partial:
        dark = colours[i, j, 3] > 0 and colours[i, j, :3].mean() < 0.5
        color = PALETTE.ground if dark else PALETTE.theory
        if len(xs) <= NARROW:
            said = f"{counts[i, j]}/{of[i, j]}"
            axes.text(
                xs[j], ys[i], said, color=color, ha="center", va="center", fontsize=SMALL - 1.5
            )
        else:
            axes.plot(xs[j], ys[i], MARKER, ms=1.5, color=color)
    some = counts[counts < of]
    said = f"dots: {some.min()} to {some.max()} of {of.max()} jobs have a number"
    if len(xs) <= NARROW:
        said = "k/n: k of n jobs have a number"
    return [said, "white: fewer than half"]


def cell_edges(centres: Floats, *, log: bool) -> Floats:
    """Return the borders of cells whose centres are given."""
    if log:
        return np.exp(cell_edges(np.log(centres), log=False))
    if len(centres) < 2:
        return np.concatenate([centres - 0.5, centres + 0.5])
    middle = (centres[1:] + centres[:-1]) / 2
    first = 2 * centres[0] - middle[0]
    last = 2 * centres[-1] - middle[-1]
    return np.concatenate([[first], middle, [last]])

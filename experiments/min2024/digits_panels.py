"""Figures 5, 10 and 11: the four panels."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Drawing
from matplotlib.patches import Rectangle

from dynamics_cli.measures.alignment_history import GroupAlignment
from dynamics_cli.measures.arrays import Floats
from dynamics_cli.plotting.layout import panel_label
from dynamics_cli.plotting.style import PALETTE, SERIES, SMALL, new_figure, styled
from dynamics_cli.plotting.time_axis import draw_curve, set_time_axis

from .digits import Evidence, Pictures


@styled
def draw(found: Evidence) -> Drawing:
    """Draw correlations, alignment, convergence and pictures."""
    figure, axes = new_figure(2, 2, aspect=0.78)
    _heat_map(figure, axes[0], found)
    _alignment(axes[1], found)
    _convergence(axes[2], found)
    _pictures(axes[3], found.pictures)
    titles = ("Data correlation", "Alignment with $x_+$, $x_-$", "Convergence and rank", "Data and neurons")
    for k, title in enumerate(titles):
        panel_label(axes[k], k, title)
    return figure


def _heat_map(figure: Drawing, axes: Axes, found: Evidence) -> None:
    size = float(np.quantile(np.abs(found.products), 0.98)) or 1.0
    shown = axes.imshow(found.products, cmap="RdBu_r", vmin=-size, vmax=size, interpolation="nearest")
    half = len(found.products) / 2
    axes.axhline(half - 0.5, color="black", lw=0.5)
    axes.axvline(half - 0.5, color="black", lw=0.5)
    axes.set_xticks([half / 2, 1.5 * half], labels=["$y=+1$", "$y=-1$"])
    axes.set_yticks([half / 2, 1.5 * half], labels=["$y=+1$", "$y=-1$"])
    axes.tick_params(length=0)
    bar = figure.colorbar(shown, ax=axes, shrink=0.9, extend="both")
    bar.set_label(r"$\langle x_i, x_j\rangle$", fontsize=8)
    bar.ax.tick_params(labelsize=SMALL)


def _alignment(axes: Axes, found: Evidence) -> None:
    groups: tuple[tuple[GroupAlignment, str, str], ...] = (
        (found.history.plus, PALETTE.positive, r"$\cos(\overline{w}_+, x_+)$"),
        (found.history.minus, PALETTE.negative, r"$\cos(\overline{w}_-, x_-)$"),
    )
    for k, (group, color, label) in enumerate(groups):
        axes.fill_between(found.iterations, group.low, group.high, color=color, alpha=0.18, lw=0)
        draw_curve(axes, found.iterations, group.mean, color=color, label=label, ls="--" if k else "-")
    axes.set_ylim(-0.35, 1.05)
    set_time_axis(axes, found.iterations)
    axes.set_ylabel("cosine (band: min to max)")
    axes.legend(loc="center right")


def _convergence(axes: Axes, found: Evidence) -> None:
    lines = [
        (found.loss_iterations, found.losses, r"loss $\mathcal{L}$", PALETTE.measured, "-"),
        (found.iterations, found.history.stable_rank, r"$\|W\|_F^2/\|W\|_2^2$", PALETTE.rank, "--"),
        (found.iterations, found.history.squared_norm, r"$\|W\|_2^2$", SERIES[2], "-."),
    ]
    for times, values, label, color, style in lines:
        draw_curve(axes, times, values, label=label, color=color, ls=style)
    top = float(found.history.squared_norm.max())
    axes.set_ylim(0, max(3.0, 1.1 * top))
    set_time_axis(axes, found.iterations)
    axes.set_ylabel("value")
    axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.24), ncols=3)


def _pictures(axes: Axes, pictures: Pictures) -> None:
    """Draw x_+, x_-, with and without the mean image, and the mean neurons below them."""
    p = pictures
    rows = [
        [(p.x_plus, r"$\bar{x}_+$"), (p.x_minus, r"$\bar{x}_-$")],
        [(p.w_plus, r"$\overline{w}_+$"), (p.w_minus, r"$\overline{w}_-$")],
    ]
    side = round(np.sqrt(len(p.mean)))
    if side * side != len(p.mean):
        raise ValueError(f"{len(p.mean)} inputs are not a square image")
    for r, row in enumerate(rows):
        for c, (vector, name) in enumerate([*row, *((v + p.mean, f"{n}$+\\bar{{x}}$") for v, n in row)]):
            _tile(axes, vector, side, (c * (side + 4), r * (side + 13)))
            centre = c * (side + 4) + side / 2
            axes.text(centre, r * (side + 13) + side + 2, name, ha="center", va="top", fontsize=8)
    axes.set_xlim(-1, 4 * (side + 4) - 3)
    axes.set_ylim(2 * (side + 13), -1)
    axes.set_aspect("equal")
    axes.set_axis_off()


def _tile(axes: Axes, vector: Floats, side: int, corner: tuple[int, int]) -> None:
    extent = (corner[0], corner[0] + side, corner[1] + side, corner[1])
    axes.imshow(vector.reshape(side, side), cmap="gray", extent=extent, interpolation="nearest")
    axes.add_patch(Rectangle(corner, side, side, fill=False, ec=PALETTE.muted, lw=0.4))

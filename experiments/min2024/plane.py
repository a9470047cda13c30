"""Figures 6 to 9: neurons in the plane with the data, at a few iterations."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Drawing

from dynamics_cli.errors import InputError
from dynamics_cli.measures.arrays import Bools, Floats, Ints
from dynamics_cli.measures.neurons import cosines, norms
from dynamics_cli.measures.regions import DEAD, MINUS, PLUS, regions
from dynamics_cli.plotting.layout import figure_legend, format_number, panel_label
from dynamics_cli.plotting.panels.neurons import round_up, sign_handle
from dynamics_cli.plotting.style import PALETTE, SMALL, new_figure, styled

from .shared import States


@dataclass(frozen=True)
class Moment:
    """The neurons at one iteration."""

    iteration: int
    W: Floats
    """(m, 2)"""
    v: Floats
    found: Ints
    """(m,) regions."""

    @property
    def plus(self) -> Bools:
        """V_+ now."""
        return self.v > 0

    @property
    def outside(self) -> Bools:
        """(m,) neurons that are not dead, and not in the region of their sign."""
        right = np.where(self.plus, self.found == PLUS, self.found == MINUS)
        live: Bools = ~right & (self.found != DEAD)
        return live

    @property
    def dead(self) -> int:
        """Number of dead neurons."""
        return int(np.count_nonzero(self.found == DEAD))


def moment(states: States, iteration: int) -> Moment:
    """Return the neurons at the state nearest to an iteration; raises InputError outside the plane."""
    if states.x.shape[1] != 2:
        raise InputError(f"this figure shows neurons in the plane, the data have {states.x.shape[1]} dimensions")
    k = states.index(iteration)
    W, v = np.array(states.W[k], dtype=np.float64), np.array(states.v[k], dtype=np.float64)
    return Moment(int(states.iterations[k]), W, v, regions(states.x, states.y, W))


def least_cosine(now: Moment, members: Bools, target: Floats) -> float:
    """Return the smallest cosine of some neurons (m,) with a vector (2,); NaN when there are none."""
    return float(cosines(now.W[members], target).min()) if members.any() else float("nan")


def mean_cosine(now: Moment, members: Bools, target: Floats) -> float:
    """Return the mean cosine of some neurons (m,) with a vector (2,); NaN when there are none."""
    return float(cosines(now.W[members], target).mean()) if members.any() else float("nan")


@styled
def draw_moments(
    x: Floats, y: Floats, moments: Sequence[Moment], titles: Sequence[str], *, outside: bool = False
) -> Drawing:
    """Draw one panel a moment: dots to the scale of that moment, thin rays for directions, the data to one scale."""
    figure, axes = new_figure(len(moments), width=5.5, aspect=1.08, extra_height=0.25)
    for k, (now, title) in enumerate(zip(moments, titles, strict=True)):
        _panel(axes[k], x, y, now)
        panel_label(axes[k], k, f"{title}\niteration {format_number(now.iteration)}")
        if outside:
            count = int(np.count_nonzero(now.outside & now.plus))
            axes[k].text(0.02, 0.09, f"{count} outside $S_+$", transform=axes[k].transAxes, fontsize=SMALL)
    points = [axes[0].plot([], [], ls="none", color=PALETTE.function, **look)[0] for look in _looks(y)]
    signs = [sign_handle(s, marker="o", size=4.5) for s in (1, -1)]
    for handle, relation in zip(signs, "><", strict=True):
        handle.set_label(f"$v_j{relation}0$")  # the paper's symbol
    figure_legend(figure, [*points, *signs], columns=4)
    return figure


def _looks(y: Floats) -> list[dict[str, Any]]:
    positive: dict[str, Any] = {"marker": "^", "ms": 6.0, "label": "$x_i$, $y_i=+1$"}
    negative: dict[str, Any] = {"marker": "v", "ms": 6.0, "label": "$x_i$, $y_i=-1$"}
    return [positive] + ([negative] if (y < 0).any() else [])


def _panel(axes: Axes, x: Floats, y: Floats, now: Moment) -> None:
    reach = float(np.linalg.norm(x, axis=1).max())
    lengths = norms(now.W)
    largest = round_up(float(lengths.max()))
    shown = now.W / largest * reach  # (m, 2)
    axes.set_aspect("equal")
    axes.set(xlim=(-1.12 * reach, 1.12 * reach), ylim=(-1.4 * reach, 1.12 * reach), xticks=[], yticks=[])
    for spine in axes.spines.values():
        spine.set_visible(False)
    ends = np.array([-1.12, 1.12]) * reach  # above the text
    axes.plot(ends, [0, 0], color=PALETTE.faint, lw=0.7, zorder=0)
    axes.plot([0, 0], ends, color=PALETTE.faint, lw=0.7, zorder=0)
    rim = 1.05 * reach * now.W / np.where(lengths > 0, lengths, 1.0)[:, None]
    for sign in (1, -1):
        for end in rim[np.sign(now.v) == sign]:
            axes.plot([0, end[0]], [0, end[1]], color=PALETTE.sign(sign), lw=0.5, alpha=0.35, zorder=1)
        for tip in shown[np.sign(now.v) == sign]:
            axes.plot([0, tip[0]], [0, tip[1]], color=PALETTE.sign(sign), lw=0.8, alpha=0.5, zorder=2)
        tips = shown[np.sign(now.v) == sign]
        axes.plot(*tips.T, ls="none", marker="o", ms=3.2, mfc=PALETTE.sign(sign), mec="white", mew=0.3, zorder=3)
    for label, marker in ((1, "^"), (-1, "v")):
        axes.plot(
            *x[np.sign(y) == label].T, ls="none", marker=marker, ms=6, color=PALETTE.function, mec="white", zorder=4
        )
    axes.text(0.02, 0.01, _scale_text(largest), transform=axes.transAxes, fontsize=SMALL)


def _scale_text(largest: float) -> str:
    power = int(np.floor(np.log10(largest) + 1e-9))
    factor = largest / 10.0**power
    number = f"{factor:g}" if -2 <= power <= 2 else rf"{factor:g}\cdot 10^{{{power}}}"
    return rf"rim: $\|w_j\|={number if not -2 <= power <= 2 else f'{largest:g}'}$"

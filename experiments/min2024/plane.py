"""Figures 6 to 9: neurons in the plane with the data, at a few iterations."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from dynamics_cli import kit

from .shared import States
from .theory.cones import DEAD, misplaced, regions

SEEDS = 200
"""Networks that claims on the number of neurons outside are decided by: it depends on the seed."""


@dataclass(frozen=True)
class Moment:
    """The neurons at one iteration."""

    iteration: int
    W: kit.Floats
    """(m, 2)"""
    v: kit.Floats
    reached: kit.Ints
    """(m,) regions."""

    @property
    def plus(self) -> kit.Bools:
        """V_+ now."""
        return self.v > 0

    @property
    def outside(self) -> kit.Bools:
        """(m,) neurons that are not dead, and not in the region of their sign."""
        return misplaced(self.reached, self.v)

    @property
    def strays(self) -> kit.Bools:
        """(m,) neurons of V_+ among them."""
        return self.outside & self.plus

    @property
    def dead(self) -> int:
        """Number of dead neurons."""
        return int(np.count_nonzero(self.reached == DEAD))

    @property
    def largest(self) -> float:
        """Largest norm of a neuron."""
        return float(np.linalg.norm(self.W, axis=1).max())


def moment(states: States, iteration: int) -> Moment:
    """Return the neurons at the state nearest to an iteration; raises InputError outside the plane."""
    if states.x.shape[1] != 2:
        raise kit.InputError(f"this figure shows neurons in the plane, the data have {states.x.shape[1]} dimensions")
    k = states.index(iteration)
    W, v = np.array(states.W[k], dtype=np.float64), np.array(states.v[k], dtype=np.float64)
    return Moment(int(states.iterations[k]), W, v, regions(states.x, states.y, W))


def moments_of(run: kit.Run, iteration: int) -> list[Moment]:
    """Return the moment of each replica of a run at the state nearest to an iteration."""
    x, y = run.dataset().x, run.dataset().y
    k = int(np.argmin(np.abs(np.array(run.snapshot_iterations) - iteration)))
    weights = zip(*(np.asarray(run.parameters[name][k]) for name in ("hidden_weight", "output_weight")), strict=True)
    return [Moment(int(run.snapshot_iterations[k]), W, v, regions(x, y, W)) for W, v in weights]


def least_cosine(now: Moment, members: kit.Bools, target: kit.Floats) -> float:
    """Return the least cosine of some neurons (m,) with a vector (2,); NaN when there are none."""
    return float(kit.cosines(now.W[members], target).min()) if members.any() else float("nan")


@kit.styled
def draw_moments(
    states: States, moments: Sequence[Moment], titles: Sequence[str], *, count_strays: bool = False
) -> kit.Drawing:
    """Draw one panel a moment: dots to the scale of that moment, thin rays for directions, the data to one scale."""
    figure, axes = kit.new_figure(len(moments), width=5.5, aspect=1.16, extra_height=0.25)
    for k, (now, title) in enumerate(zip(moments, titles, strict=True)):
        _panel(axes[k], states.x, states.y, now)
        kit.panel_label(axes[k], k, f"{title}\niteration {kit.format_number(now.iteration)}")
        if count_strays:
            ends = 1.05 * np.linalg.norm(states.x, axis=1).max() * kit.directions(now.W[now.strays])
            axes[k].plot(*ends.T, ls="none", marker="o", ms=3, mfc="white", mec=kit.PALETTE.positive, zorder=5)
            text = f"{np.count_nonzero(now.strays)} outside $S_+$"
            axes[k].text(0.02, 0.1, text, transform=axes[k].transAxes, fontsize=kit.SMALL)
    handles: list[kit.Artist] = []
    for marker, label in (("^", "+1"), ("v", "-1")):
        if marker == "^" or (states.y < 0).any():
            look: dict[str, Any] = {"ls": "none", "marker": marker, "ms": 6.0, "color": kit.PALETTE.function}
            handles += axes[0].plot([], [], label=f"$x_i$, $y_i={label}$", **look)
    for sign, relation in ((1, ">"), (-1, "<")):
        handle = kit.sign_handle(sign, marker="o", size=4.5)
        handle.set_label(f"$v_j{relation}0$")  # the paper's symbol
        handles.append(handle)
    if count_strays:
        look = {"ls": "none", "marker": "o", "ms": 4, "mfc": "white", "mec": kit.PALETTE.positive}
        handles += axes[0].plot([], [], label="outside $S_+$", **look)
    kit.figure_legend(figure, handles, columns=4)
    return figure


def _panel(axes: kit.Axes, x: kit.Floats, y: kit.Floats, now: Moment) -> None:
    reach = float(np.linalg.norm(x, axis=1).max())
    lengths = kit.norms(now.W)
    largest = kit.round_up(now.largest)
    tips = now.W / largest * reach  # (m, 2)
    axes.set_aspect("equal")
    axes.set(xlim=(-1.12 * reach, 1.12 * reach), ylim=(-1.62 * reach, 1.12 * reach), xticks=[], yticks=[])
    for spine in axes.spines.values():
        spine.set_visible(False)
    ends = np.array([-1.12, 1.12]) * reach  # above the text
    axes.plot(ends, [0, 0], color=kit.PALETTE.faint, lw=0.7, zorder=0)
    axes.plot([0, 0], ends, color=kit.PALETTE.faint, lw=0.7, zorder=0)
    rim = 1.05 * reach * now.W / np.where(lengths > 0, lengths, 1.0)[:, None]
    for sign in (1, -1):
        color, members = kit.PALETTE.sign(sign), np.sign(now.v) == sign
        for end in rim[members]:
            axes.plot([0, end[0]], [0, end[1]], color=color, lw=0.5, alpha=0.35, zorder=1)
        for tip in tips[members]:
            axes.plot([0, tip[0]], [0, tip[1]], color=color, lw=0.8, alpha=0.5, zorder=2)
        axes.plot(*tips[members].T, ls="none", marker="o", ms=3.2, mfc=color, mec="white", mew=0.3, zorder=3)
    for label, marker in ((1, "^"), (-1, "v")):
        look: dict[str, Any] = {"ls": "none", "marker": marker, "ms": 6, "color": kit.PALETTE.function, "mec": "white"}
        axes.plot(*x[np.sign(y) == label].T, zorder=4, **look)
    axes.text(0.02, 0.01, _scale_text(largest), transform=axes.transAxes, fontsize=kit.SMALL)


def _scale_text(largest: float) -> str:
    power = int(np.floor(np.log10(largest) + 1e-9))
    number = f"{largest:g}" if -2 <= power <= 2 else rf"{largest / 10.0**power:g}\cdot 10^{{{power}}}"
    return rf"rim: $\|w_j\|={number}$"

"""Figures 20 and 21: the single neuron of Appendices E.3 and E.4, without and with many
Caratheodory solutions.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from dynamics_cli import kit

from .sketches import arrow
from .theory.caratheodory import CaratheodoryNeuron

X: kit.Floats = np.array([1.0, 0.0])
START: kit.Floats = np.array([0.0, 1.0, 1.0])
W = START[:2]
"""One point x = (1, 0), one neuron w(0) = (0, 1), v(0) = 1 (printed)."""
SLOPE = 0.5
"""sigma'(0) = a in Figure 20; any a > 0 does."""
PUSHED = CaratheodoryNeuron(X, -1.0, SLOPE)
"""The neuron of Figure 20."""
STEPS = (0.1, 0.01, 0.001)
FREE = CaratheodoryNeuron(X, 1.0)
"""The neuron of Figure 21, with sigma'(0) = 0."""
LEAVES = (0.0, 0.5, 1.0, np.inf)
"""Times t_0 at which the solutions leave Sdead."""

SHADE = "#ECECEC"
"""Of S_dead."""


def _draw_scene(axes: kit.Axes, neuron: CaratheodoryNeuron) -> None:
    """Draw S_dead, the data point, the initial neuron, and the direction of w' on a grid for v =
    1.
    """
    axes.axvspan(-1.2, 0.0, color=SHADE, lw=0, zorder=0)
    axes.text(
        -0.5,
        -0.19,
        r"$S_\mathrm{dead}$",
        ha="center",
        va="center",
        color=kit.PALETTE.unsigned,
        fontsize=8,
    )
    axes.axvline(0.0, color=kit.PALETTE.muted, lw=0.8, ls="--", zorder=1)
    grid = np.stack(
        np.meshgrid(np.linspace(-1.0, 1.2, 12), np.linspace(-0.3, 1.5, 9)), axis=-1
    ).reshape(-1, 2)
    turn = neuron.field(np.column_stack([grid, np.ones(len(grid))]))[:, :2]
    moving = (turn != 0).any(axis=1)
    units = kit.directions(turn[moving])
    axes.quiver(
        *grid[moving].T,
        *units.T,
        color=kit.PALETTE.muted,
        angles="xy",
        scale=22,
        width=0.004,
        zorder=2,
    )
    axes.plot(*grid[~moving].T, ".", ms=2, color=kit.PALETTE.muted, zorder=2)
    arrow(axes, X, kit.PALETTE.sign(neuron.y), "$x$")
    arrow(axes, W, kit.PALETTE.theory)
    axes.text(-0.04, 1.165, "$w(0)$", ha="right", va="center", color=kit.PALETTE.theory, fontsize=8)
    axes.set(xlim=(-1.2, 1.35), ylim=(-0.4, 1.6), xlabel="$w_1$", ylabel="$w_2$")
    axes.set_aspect("equal")


def evidence_fig20(_: kit.Runs) -> list[kit.Floats]:
    """Return paths (T, 3) of gradient descent with sigma'(0) = a for smaller and smaller steps,
    up to time 1.
    """
    return [PUSHED.descend(START, step, round(1 / step)) for step in STEPS]


def claims_fig20(e: list[kit.Floats]) -> list[kit.Claim]:
    """Compare with Appendix E.3: the path that stays is no solution, and there is no other."""
    source = "Appendix E.3, Figure 20"
    times = np.linspace(0.0, 1.0, 101)
    stays = np.tile(START, (101, 1))
    moves = max(np.count_nonzero((np.diff(path, axis=0) != 0).any(axis=1)) for path in e)
    distance = max(
        np.abs(path[-1, :2] - W).max() / step for path, step in zip(e, STEPS, strict=True)
    )
    return [
        kit.theory(
            "pushed",
            r"At w(0) the non-zero $\sigma'(0)$ pushes the neuron (speed)",
            source,
            kit.more_than(0.0),
            np.linalg.norm(PUSHED.field(START)[:2]),
        ),
        kit.theory(
            "not-staying",
            "Staying is no solution: its defect at t = 1 is the speed",
            source,
            kit.near(SLOPE, 1e-9),
            PUSHED.defect(times, stays),
        ),
        kit.theory(
            "not-entering",
            "Inside Sdead there is no flow: descent moves in one step only",
            source,
            kit.exactly(1),
            moves,
        ),
        kit.theory(
            "limit",
            "The path of descent tends to staying as the step falls (distance over step)",
            source,
            kit.near(SLOPE, 1e-9),
            distance,
        ),
        kit.theory(
            "zero",
            r"With $\sigma'(0) = 0$ staying is a solution (defect)",
            source,
            kit.exactly(0.0),
            CaratheodoryNeuron(X, -1.0).defect(times, stays),
        ),
    ]


def draw_fig20(e: list[kit.Floats]) -> kit.Drawing:
    looks = ("C0", "C1 dashed", "C2 dotted")
    return beside(
        PUSHED,
        kit.chart(
            "Gradient descent",
            r"$\|w(t)-w(0)\|$",
            *(
                kit.line(
                    step * np.arange(1, len(path)),
                    kit.norms(path[1:, :2] - W),
                    f"step {step:g}",
                    look,
                )
                for step, path, look in zip(STEPS, e, looks, strict=True)
            ),
            log="y",
            limits=(1e-4, 1),
        ),
    )


def beside(neuron: CaratheodoryNeuron, over_time: kit.Chart) -> kit.Drawing:
    """Draw the flow of a neuron, and a chart beside it."""
    figure, axes = kit.new_figure(2, aspect=0.8)
    _draw_scene(axes[0], neuron)
    kit.panel_label(axes[0], 0, "Flow at $v=1$")
    handles = kit.panel(axes[1], 1, replace(over_time, xlabel="time $t$"))
    kit.place_legend(axes[1], handles, "inside")
    return figure


@dataclass(frozen=True)
class Solutions:
    """Solutions of Eq. 47 that leave at the times `LEAVES`."""

    times: kit.Floats
    paths: list[kit.Floats]
    defects: list[float]


def evidence_fig21(_: kit.Runs) -> Solutions:
    """Compute solutions of Eq. 47, paths (T, 3) from the same start that leave at the times
    `LEAVES`.
    """
    times = np.linspace(0.0, 2.0, 4001)
    paths = [FREE.leave(START, at, times) for at in LEAVES]
    return Solutions(times, paths, defects=[FREE.defect(times, path) for path in paths])


def claims_fig21(e: Solutions) -> list[kit.Claim]:
    source = "Appendix E.4, Figure 21"
    ends = [path[-1] for path in e.paths]
    apart = min(np.linalg.norm(a - b) for k, a in enumerate(ends) for b in ends[:k])
    return [
        kit.theory(
            "solutions",
            r"Each path satisfies $\theta(t) = \theta(0) + \int F$ (largest defect; the grid "
            "gives 1e-3)",
            source,
            kit.at_most(1e-3),
            max(e.defects),
        ),
        kit.theory(
            "stays",
            "Staying for ever is a solution (defect)",
            source,
            kit.exactly(0.0),
            e.defects[-1],
        ),
        kit.theory(
            "different",
            "Solutions differ although they start at the same point (least distance at t = 2)",
            source,
            kit.more_than(0.05),
            apart,
        ),
    ]


def draw_fig21(e: Solutions) -> kit.Drawing:
    looks = ("C0", "C1 dashed", "C2 dotted")
    leaving = zip(LEAVES, e.paths, looks, strict=False)
    figure = beside(
        FREE,
        kit.chart(
            "Four solutions",
            r"$\langle x, w(t)\rangle$",
            *(
                kit.line(e.times, path[:, 0], f"leaves at $t_0={at:g}$", look)
                for at, path, look in leaving
            ),
            kit.line(e.times, e.paths[-1][:, 0], "stays for ever", "theory dotted"),
        ),
    )
    figure.axes[0].plot(*e.paths[0][:, :2].T, color="C0", lw=1.6, zorder=5)
    return figure


FIGURES = kit.by_id(
    kit.Figure(
        id="min2024-fig20",
        caption=(
            "One point x = (1, 0) of label -1, one neuron at w(0) = (0, 1). With sigma'(0) = a ="
            " 0.5 it is pushed into Sdead (shaded), where nothing moves. Gradient descent does one"
            " step there, and the smaller its steps the closer it stays."
        ),
    ),
    kit.Figure(
        id="min2024-fig21",
        caption=(
            "As Figure 20 with label +1 and sigma'(0) = 0: the neuron can stay on the boundary of"
            " Sdead or leave it at any time; all of these are Caratheodory solutions."
        ),
    ),
)

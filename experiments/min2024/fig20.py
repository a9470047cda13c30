"""Figure 20: a single neuron without Caratheodory solution.

`dyn reproduce min2024-fig20`. About 1 s.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from matplotlib.figure import Figure as Drawing

from dynamics_cli.measures.arrays import Floats
from dynamics_cli.plotting.style import PALETTE, new_figure, styled
from dynamics_cli.reproduction.claims import Claim, claim, exactly, more_than, near
from dynamics_cli.reproduction.figure import Figure, Runs

from .single_neuron import OVER, STATED, V, W, draw_scene, neuron

SLOPE = 0.5
"""sigma'(0) = a; any a > 0 does."""
STEPS = (0.1, 0.01, 0.001)


@dataclass(frozen=True)
class Evidence:
    """Paths of gradient descent for smaller and smaller steps, up to time 1."""

    paths: list[Floats]
    """(T, 3) each"""
    moves: int
    """Largest number of steps in which the neuron moved."""
    speed: float
    """`||w'||` at the start."""
    staying: float
    """Defect of staying for sigma'(0) = a."""
    staying_zero: float
    """The same for sigma'(0) = 0."""


def evidence(_: Runs) -> Evidence:
    """Descend with sigma'(0) = a, and test the path that stays."""
    one = neuron(-1.0, SLOPE)
    paths = [one.descend(W, V, step, round(1 / step)) for step in STEPS]
    times = np.linspace(0.0, 1.0, 101)
    stays = np.tile([*W, V], (101, 1))
    return Evidence(
        paths=paths,
        moves=max(int(np.count_nonzero((np.diff(path, axis=0) != 0).any(axis=1))) for path in paths),
        speed=float(np.linalg.norm(one.field(W, V)[0])),
        staying=one.defect(times, stays),
        staying_zero=neuron(-1.0).defect(times, stays),
    )


def claims(found: Evidence) -> list[Claim]:
    """Compare with Appendix E.3."""
    source = "Appendix E.3, Figure 20"
    limit = max(float(np.abs(path[-1, :2] - W).max()) / step for path, step in zip(found.paths, STEPS, strict=True))
    return [
        claim(
            "pushed",
            "At w(0) the non-zero sigma'(0) pushes the neuron (speed)",
            source,
            expected=more_than(0.0),
            measured=found.speed,
        ),
        claim(
            "not-staying",
            "so staying is no solution: its defect at t = 1 is the speed",
            source,
            expected=near(SLOPE, 1e-9),
            measured=found.staying,
        ),
        claim(
            "not-entering",
            "but inside Sdead there is no flow: descent moves in one step only",
            source,
            expected=exactly(1),
            measured=found.moves,
        ),
        claim(
            "limit",
            "and its path tends to staying as the step falls (distance over step)",
            source,
            expected=near(SLOPE, 1e-9),
            measured=limit,
        ),
        claim(
            "zero",
            "With sigma'(0) = 0 staying is a solution (defect)",
            source,
            expected=exactly(0.0),
            measured=found.staying_zero,
        ),
    ]


@styled
def draw(found: Evidence) -> Drawing:
    """Draw the field and the ends of the paths."""
    figure, (axes,) = new_figure(1, width=3.4, aspect=0.85)
    draw_scene(axes, neuron(-1.0, SLOPE))
    for step, path in zip(STEPS, found.paths, strict=True):
        axes.plot(*path[-1, :2], "o", ms=4, color=PALETTE.measured, mec="white", zorder=5)
        if step == STEPS[0]:
            axes.annotate(
                f"step {step:g}",
                tuple(path[-1, :2]),
                (-0.75, 0.75),
                fontsize=7.5,
                color=PALETTE.measured,
                bbox=OVER,
                arrowprops={"arrowstyle": "-", "color": PALETTE.measured, "lw": 0.6},
            )
    return figure


FIGURE = Figure(
    id="min2024-fig20",
    caption=(
        "One point x = (1, 0) of label -1, one neuron at w(0) = (0, 1). With sigma'(0) = a = 0.5 it is pushed"
        " into Sdead (shaded), where nothing moves. Dots: gradient descent at time 1 for steps 0.1, 0.01 and "
        "0.001."
    ),
    origin=STATED,
    evidence=evidence,
    claims=claims,
    draw=draw,
)

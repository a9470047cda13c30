"""Figure 7: a shared neuron on the hyperboloid of two sheets, c = -1."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from mpl_toolkits.mplot3d import Axes3D
from numpy.typing import NDArray

from dynamics_cli import kit

from . import hyperboloid

C = -1.0
STARTS = np.array([[0.05, 0.3], [0.05, 0.8], [0.05, 1.3], [0.05, 1.7], [0.4, 1.2], [0.8, 0.8], [0.3, 0.4], [1.2, 0.6]])
"""(alpha0, beta0) of the trajectories that are drawn."""


@dataclass(frozen=True)
class Evidence:
    """Trajectories on both sheets, and the winners from all over the upper one."""

    upper: list[hyperboloid.Trajectory]
    lower: list[hyperboloid.Trajectory]
    """Their mirror images."""
    winners: NDArray[np.int8]
    """(R,) which class won each trained neuron."""


def evidence(runs: kit.Runs) -> Evidence:
    """Integrate and train from starts on both sheets."""
    alpha, beta = (array.ravel() for array in np.meshgrid(np.linspace(0.02, 2.0, 25), np.linspace(0.02, 2.0, 25)))
    starts = hyperboloid.on_sheet(STARTS[:, 0], STARTS[:, 1], C)
    return Evidence(
        upper=hyperboloid.follow(runs["shared"], starts, until=hyperboloid.UNTIL, points=600),
        lower=hyperboloid.follow(runs["shared"], hyperboloid.mirrored(starts), until=hyperboloid.UNTIL, points=600),
        winners=hyperboloid.trained_winners(
            runs["shared"], hyperboloid.on_sheet(alpha, beta, C), until=hyperboloid.UNTIL
        ),
    )


def _slack(one: hyperboloid.Trajectory) -> float:
    """Return the least of `-||x_2||^2 sqrt(-c) / 2 - beta'` along a trajectory while beta > 0."""
    beta, z = one.ode.beta, one.ode.z
    rate = -z / (1 + np.exp(-z * beta))  # beta' of Eq. 24, norms 1
    return float((-np.sqrt(-C) / 2 - rate)[beta > 0].min())


def claims(e: Evidence) -> list[kit.Claim]:
    """Compare with Theorem 3.4 for c <= 0."""
    drawn = [*e.upper, *e.lower]
    return [
        kit.claim("winner", "On the sheet with z > 0 beta always reaches 0: D_1 prevails (share of trained networks)",
                  "Theorem 3.4, Figure 7", kit.exactly(1), float(np.mean(e.winners == 1))),
        kit.claim("overlay", "Trained networks follow Eq. 4 (largest difference of confidences)",
                  "Eq. 4; limit of small steps", kit.at_most(1e-3), hyperboloid.largest_error(drawn)),
        kit.theory("invariant", "Trajectories stay on their hyperboloid (largest relative drift)",
                   "Theorem 3.4", kit.at_most(1e-8), max(one.drift for one in drawn)),
        kit.theory("rate",
                   "beta falls at least as fast as ||x_2||^2 sqrt(-c) / 2 (least margin; print has c for sqrt(-c))",
                   "A.8, c < 0", kit.at_least(0), min(_slack(one) for one in e.upper)),
        kit.theory("symmetric", "With alpha and beta exchanged and z negative D_2 prevails (share of the trajectories "
                   "on the lower sheet)", "Section 3.4, symmetry of Eq. 4", kit.exactly(1),
                   float(np.mean([one.winner == 2 for one in e.lower]))),
        kit.finding("tried", "Networks trained for the first claim", "Figure 7", len(e.winners)),
        kit.finding("latest", "Latest time at which beta reaches 0 among the trajectories drawn",
                    "Figure 7", max(one.ode.beta_zero for one in drawn if one.winner == 1)),
    ]  # fmt: skip


def draw(e: Evidence) -> kit.Drawing:
    """Draw both sheets and the trajectories."""
    figure, (flat,) = kit.new_figure(1, 1, width=kit.COLUMN_WIDTH, aspect=0.95, extra_height=0.3)
    flat.remove()
    axes: Axes3D = figure.add_subplot(projection="3d")
    hyperboloid.draw_sheets(axes, C, [*e.upper, *e.lower], elevation=38, azimuth=28)
    kit.figure_legend(figure, hyperboloid.handles(separatrix=False), columns=3)
    return figure


FIGURE = kit.Figure(
    id="tachet2018-fig7",
    caption=(
        "Solutions of Eq. 4 for c = -1: from every start on the upper sheet beta reaches 0, from their mirror images "
        "on the lower one alpha does. Dots are trained networks."
    ),
    configs={"shared": "tachet2018/shared.yaml"},
    origin={"c, norms": "stated", "starts": "assumed", "step": "assumed"}, evidence=evidence, claims=claims,
    draw=draw,
)  # fmt: skip

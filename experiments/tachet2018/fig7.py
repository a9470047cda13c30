"""Figure 7: a shared neuron on the hyperboloid of two sheets, c = -1.

`dyn reproduce tachet2018-fig7`. About 2 s.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from matplotlib.figure import Figure as Drawing
from mpl_toolkits.mplot3d import Axes3D

from dynamics_cli.plotting.layout import figure_legend
from dynamics_cli.plotting.style import COLUMN_WIDTH, new_figure
from dynamics_cli.reproduction.claims import Claim, at_least, at_most, claim, exactly, finding
from dynamics_cli.reproduction.figure import Figure, Runs

from .hyperboloid import (
    UNTIL,
    Trajectory,
    draw_surface,
    draw_trajectories,
    follow,
    handles,
    on_sheet,
    set_box,
    trained_winners,
)

C = -1.0
STARTS = np.array([[0.05, 0.3], [0.05, 0.8], [0.05, 1.3], [0.05, 1.7], [0.4, 1.2], [0.8, 0.8], [0.3, 0.4], [1.2, 0.6]])
"""(alpha0, beta0) of the trajectories that are drawn."""


@dataclass(frozen=True)
class Evidence:
    """Trajectories, and the winners from all over the upper sheet."""

    trajectories: list[Trajectory]
    winners: tuple[int, int]
    """How many trained neurons D_1 won, and how many were trained."""
    slack: float
    """Least of `-||x_2||^2 sqrt(-c) / 2 - beta'` along the upper trajectories while beta > 0."""
    mirrored: float
    """Share of the trajectories on the lower sheet that D_2 wins."""


def evidence(runs: Runs) -> Evidence:
    """Integrate and train from starts on the upper sheet."""
    alpha, beta = (array.ravel() for array in np.meshgrid(np.linspace(0.02, 2.0, 25), np.linspace(0.02, 2.0, 25)))
    won = trained_winners(runs["shared"], on_sheet(alpha, beta, C), until=UNTIL)
    upper = on_sheet(STARTS[:, 0], STARTS[:, 1], C)
    mirrored = upper[:, [1, 0, 2]] * np.array([1.0, 1.0, -1.0])
    trajectories = follow(runs["shared"], np.concatenate([upper, mirrored]), until=UNTIL, points=600)
    return Evidence(
        trajectories=trajectories,
        winners=(int((won == 1).sum()), len(won)),
        slack=min(_slack(one) for one in trajectories[: len(upper)]),
        mirrored=float(np.mean([one.winner == 2 for one in trajectories[len(upper) :]])),
    )


def _slack(one: Trajectory) -> float:
    beta, z = one.ode.beta, one.ode.z
    rate = -z / (1 + np.exp(-z * beta))  # beta' of Eq. 24, norms 1
    return float((-np.sqrt(-C) / 2 - rate)[beta > 0].min())


def claims(found: Evidence) -> list[Claim]:
    """Compare with Theorem 3.4 for c <= 0."""
    return [
        claim(
            "winner",
            "On the sheet with z > 0 beta always reaches 0: D_1 prevails (share of trained networks)",
            "Theorem 3.4, Figure 7",
            expected=exactly(1),
            measured=found.winners[0] / found.winners[1],
        ),
        claim(
            "overlay",
            "Trained networks follow Eq. 4 (largest difference of confidences)",
            "Eq. 4; limit of small steps",
            expected=at_most(1e-3),
            measured=max(one.error for one in found.trajectories),
        ),
        claim(
            "invariant",
            "Trajectories stay on their hyperboloid (largest relative drift)",
            "Theorem 3.4",
            expected=at_most(1e-8),
            measured=max(one.drift for one in found.trajectories),
        ),
        claim(
            "rate",
            "beta falls at least as fast as ||x_2||^2 sqrt(-c) / 2 (least margin; print has c for sqrt(-c))",
            "A.8, c < 0",
            expected=at_least(0),
            measured=found.slack,
        ),
        claim(
            "symmetric",
            "With alpha and beta exchanged and z negative D_2 prevails (share of the trajectories on the lower sheet)",
            "Section 3.4, symmetry of Eq. 4",
            expected=exactly(1),
            measured=found.mirrored,
        ),
        finding("tried", "Networks trained for the first claim", "Figure 7", measured=found.winners[1]),
        finding(
            "latest",
            "Latest time at which beta reaches 0 among the trajectories drawn",
            "Figure 7",
            measured=max(one.ode.beta_zero for one in found.trajectories if one.winner == 1),
        ),
    ]


def draw(found: Evidence) -> Drawing:
    """Draw both sheets and the trajectories."""
    figure, (flat,) = new_figure(1, 1, width=COLUMN_WIDTH, aspect=0.95, extra_height=0.3)
    flat.remove()
    axes: Axes3D = figure.add_subplot(projection="3d")
    draw_surface(axes, C)
    draw_trajectories(axes, found.trajectories)
    set_box(axes, elevation=38, azimuth=28)
    figure_legend(figure, handles(separatrix=False), columns=3)
    return figure


FIGURE = Figure(
    id="tachet2018-fig7",
    caption=(
        "Solutions of Eq. 4 for c = -1: from every start on the upper sheet beta reaches 0, from their mirror images "
        "on the lower one alpha does. Dots are trained networks."
    ),
    configs={"shared": "tachet2018/shared.yaml"},
    origin={"c, norms": "stated", "starts": "assumed", "step": "assumed"},
    evidence=evidence,
    claims=claims,
    draw=draw,
)

"""Figure 2: the plane of the two weights of one mode, with its stable manifold and two
trajectories.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.integrate import solve_ivp

from dynamics_cli import kit
from dynamics_cli.theory.linear_modes import linear_mode

STARTS = ((-0.9, 1.1), (0.1, 0.05), (0.01, 0.01), (-1.0, 1.0))
"""Two trajectories, one that begins balanced, and one on the stable manifold of the saddle."""
S = 1.0


@dataclass(frozen=True)
class Evidence:
    """Paths (T, 2) of the two weights."""

    times: kit.Floats
    paths: list[kit.Floats]


def evidence(runs: kit.Runs) -> Evidence:
    """Integrate `a' = b (s - a b)`, `b' = a (s - a b)`: `paths` (T, 2) at `times` (T,)."""
    times = np.linspace(0, 12, 400)

    def field(_: float, w: kit.Floats) -> kit.Floats:
        return np.asarray(w[::-1] * (S - w[0] * w[1]))

    solved = [
        solve_ivp(field, (0, times[-1]), start, t_eval=times, rtol=1e-10, atol=1e-14).y.T
        for start in STARTS
    ]
    return Evidence(times=times, paths=[np.asarray(path) for path in solved])


def claims(e: Evidence) -> list[kit.Claim]:
    kept = [path[:, 0] ** 2 - path[:, 1] ** 2 for path in e.paths]
    balanced = linear_mode(e.times, STARTS[2][0] * STARTS[2][1], S, 2)[:, 0]
    return [
        kit.theory(
            "conserved",
            "$a^2 - b^2$ is conserved (largest change)",
            "Section 1.1, Figure 2",
            kit.at_most(1e-7),
            max(np.ptp(path) for path in kept),
        ),
        kit.theory(
            "learnt",
            "Trajectories off the line a = -b end on the hyperbola a b = s (largest distance)",
            "Figure 2",
            kit.at_most(1e-3),
            max(abs(path[-1].prod() - S) for path in e.paths[:3]),
        ),
        kit.theory(
            "saddle",
            "On a = -b trajectories end in the saddle at 0 (largest size of a weight in the end)",
            "Figure 2",
            kit.at_most(0.01),
            np.abs(e.paths[3][-1]).max(),
        ),
        kit.theory(
            "logistic",
            "From a = b the product a b follows Eq. 12 (largest difference)",
            "Eq. 12",
            kit.at_most(1e-6),
            np.abs(e.paths[2].prod(1) - balanced).max(),
        ),
    ]


def draw(e: Evidence) -> kit.Drawing:
    figure, (axes,) = kit.new_figure(1, aspect=1.0, extra_height=0.1)
    a, b = np.meshgrid(np.linspace(-2, 2, 50), np.linspace(-2, 2, 50))
    axes.streamplot(
        a,
        b,
        b * (S - a * b),
        a * (S - a * b),
        color=kit.PALETTE.faint,
        density=1.0,
        linewidth=0.7,
        arrowsize=0.7,
    )
    x = np.linspace(S / 2, 2, 100)
    for sign in (1, -1):
        axes.plot(
            sign * x,
            sign * S / x,
            color=kit.PALETTE.function,
            lw=2,
            label="$ab = s$" if sign > 0 else None,
        )
    axes.plot([-2, 2], [2, -2], color=kit.PALETTE.rank, ls="--", label="stable manifold of 0")
    for k, path in enumerate(e.paths[:2]):
        axes.plot(*path.T, color=kit.PALETTE.measured, label=None if k else "trajectories")
        axes.plot(*path[0], marker=kit.MARKER, color=kit.PALETTE.measured)
    axes.set(xlim=(-2, 2), ylim=(-2, 2), xlabel="$a$", ylabel="$b$", aspect="equal")
    kit.figure_legend(figure, kit.labelled(axes))
    return figure


FIGURE = kit.Figure(
    id="saxe2014-fig2",
    caption=(
        "The plane of the two weights of one mode of strength s = 1: the field, the hyperbola of"
        " solutions, the stable manifold of the saddle at 0, and two trajectories."
    ),
)

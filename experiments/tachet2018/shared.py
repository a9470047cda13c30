"""Figures 3 and 7: one neuron that both classes activate, on the hyperboloids of Theorem 3.4."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from matplotlib.lines import Line2D
from mpl_toolkits.mplot3d import Axes3D
from numpy.typing import NDArray

from dynamics_cli import kit

from .theory.shared_neuron import (
    between,
    confidences,
    hyperboloid,
    mirrored,
    separatrix,
    shared_neuron,
    stationary,
)
from .trained import TRAINED, dots, if_learnt, sigmoidal, step, train_together

COLORS = {1: "#2E8B57", 2: "#E0B000", 0: "#8A8A8A"}
"""The paper's green where D_1 prevails (beta reaches 0), yellow where D_2 does (alpha reaches
0).
"""
REACH = 2.0
"""Largest alpha, beta and |z| shown."""
UNTIL = 12.0
"""Time by which trajectories have left the picture or gone to rest."""


@dataclass(frozen=True)
class Trajectory:
    """One neuron at K times, integrated and trained: states (K, 3) are alpha, beta, z."""

    t: kit.Floats
    """(K,)"""
    ode: kit.Floats
    zeros: kit.Floats
    """When alpha and beta reach 0, (2,)."""
    trained: kit.Floats

    @property
    def winner(self) -> int:
        """1 when beta reached 0, 2 when alpha did, 0 when neither."""
        return 1 if np.isfinite(self.zeros[1]) else 2 if np.isfinite(self.zeros[0]) else 0

    @property
    def confidences(self) -> kit.Floats:
        """(2, K) of the trained network, in D_1 on x_1 and in D_2 on x_2."""
        return confidences(self.trained)

    @property
    def error(self) -> float:
        """Largest difference of the confidences in both classes between training and the ODE."""
        return float(np.abs(self.confidences - confidences(self.ode)).max())

    @property
    def drift(self) -> float:
        """Largest departure of the ODE solution from its hyperboloid, relative to the size of
        its terms.
        """
        c = hyperboloid(*self.ode.T)
        size = 1.0 + self.ode[:, 0] ** 2 + self.ode[:, 1] ** 2
        return float(np.abs((c - c[0]) / size).max())


def largest_error(learning: Sequence[Trajectory], failing: Sequence[Trajectory] = ()) -> float:
    """Return the largest `error` of all; NaN unless each network of `learning` reaches `LEARNT`
    in one class.
    """
    least = min(float(path.confidences.max()) for path in learning)
    return if_learnt(least, max(path.error for path in (*learning, *failing)))


def follow(run: kit.Run, starts: kit.Floats, *, until: float, points: int) -> list[Trajectory]:
    """Integrate Eq. 4 and train the shared neuron of a run from `starts (R, 3)`, for its
    iterations at most.
    """
    snapshots = np.unique(np.round(np.linspace(0.0, _updates(run, until), points)).astype(np.int64))
    paths = train_together(run, starts[:, :2], starts[:, 2], snapshots=snapshots)
    trained = np.concatenate([paths.w, paths.z[..., None]], axis=-1)  # (K, R, 3)
    return [
        Trajectory(paths.t, *shared_neuron(paths.t, start), trained=trained[:, r])
        for r, start in enumerate(starts)
    ]


def trained_winners(run: kit.Run, starts: kit.Floats, *, until: float) -> NDArray[np.int8]:
    """Return which class alone activates the trained neuron in the end (0: none or both), (R,)."""
    end = train_together(run, starts[:, :2], starts[:, 2], snapshots=[_updates(run, until)])
    alpha, beta = end.w[0].T
    return np.select([(alpha > 0) & (beta <= 0), (beta > 0) & (alpha <= 0)], [1, 2], 0).astype(
        np.int8
    )


def _updates(run: kit.Run, until: float) -> int:
    return min(round(until / step(run)), run.iterations)


def on_sheet(alpha: kit.Floats, beta: kit.Floats, c: float) -> kit.Floats:
    """Return starts (R, 3) on the upper part of the hyperboloid `c`."""
    return np.column_stack([alpha, beta, np.sqrt(alpha**2 + beta**2 - c)])


def draw_sheets(
    axes: Axes3D, c: float, trajectories: list[Trajectory], *, elevation: float, azimuth: float
) -> None:
    """Draw the part of the hyperboloid `c` with alpha, beta >= 0 as a light net, seen from the
    given direction.

    Integrated trajectories on it are lines, trained ones dots, coloured by winner.
    """
    angle = np.linspace(0.0, np.pi / 2, 25)
    heights = (
        [np.linspace(-REACH, REACH, 41)]
        if c > 0
        else [np.linspace(s * np.sqrt(-c), s * REACH, 21) for s in (1, -1)]
    )
    for height in heights:
        radius = np.sqrt(np.maximum(c + height**2, 0.0))
        z, phi = np.meshgrid(height, angle)
        r = np.broadcast_to(radius, z.shape)
        axes.plot_surface(
            r * np.cos(phi),
            r * np.sin(phi),
            z,
            color="#DDE6EE",
            alpha=0.5,
            linewidth=0.3,
            edgecolor="#B9C6D2",
            rstride=3,
            cstride=4,
            shade=False,
            zorder=0,
        )
    for start in trajectories:
        color = COLORS[start.winner]
        path, trained = (
            array[(np.abs(array) <= REACH * 1.001).all(axis=1)]
            for array in (start.ode, start.trained)
        )
        axes.plot(*path.T, color=color, lw=1.3, zorder=4)
        length = np.concatenate([[0.0], np.cumsum(np.linalg.norm(np.diff(path, axis=0), axis=1))])
        places = np.searchsorted(length, np.arange(0.0, length[-1], 0.45))
        dots = trained[places[places < len(trained)]]
        axes.scatter(
            *dots.T,
            s=7,
            color="white",
            edgecolors=color,
            linewidths=0.8,
            depthshade=False,
            zorder=5,
        )
    axes.computed_zorder = False  # what is drawn later is in front
    axes.set_box_aspect((1, 1, 1.15), zoom=0.98)
    axes.set(
        xlim=(0, REACH),
        ylim=(0, REACH),
        zlim=(-REACH, REACH),
        xticks=[0.5, 1, 1.5],
        yticks=[0.5, 1, 1.5],
    )
    axes.set_zticks([-1, 0, 1])
    axes.set_xlabel(r"$\alpha$", labelpad=-4)
    axes.set_ylabel(r"$\beta$", labelpad=-4)
    axes.set_zlabel("$z$", labelpad=-6)
    axes.tick_params(pad=-2, labelsize=7)
    axes.view_init(elev=elevation, azim=azimuth)
    for axis in (axes.xaxis, axes.yaxis, axes.zaxis):
        axis.pane.set_facecolor("white")
        axis.pane.set_edgecolor("#DDDDDD")


def winner_handles() -> list[Line2D]:
    """Return the legend of the colours."""
    return [
        Line2D([], [], color=COLORS[1], label=r"$D_1$ prevails ($\beta\to0$)"),
        Line2D([], [], color=COLORS[2], label=r"$D_2$ prevails ($\alpha\to0$)"),
    ]


C_3 = 1.0
CAPTION_STARTS = np.array([[0.1, 0.1, 0.1], [0.2, 0.9, 0.2], [1.0, 0.0, -1.1]])
"""(alpha0, beta0, z0) of the right panel."""
END = 50.0
ZERO = 1e-3
"""Distance from 0 within which a weight has reached it: it stops within a step, here of 1e-3
times its gradient.
"""
STARTS_COLORS = ("C0", "C3", "C1")
"""Of the three starts, none of which is the green or the yellow of the winners."""
NORMS = (1.0, 2.0)
"""Of both points, for the limit of Theorem 3.4."""
CONE = np.array([0.1, 0.1, 0.1 * np.sqrt(2.0)])
"""A start with c = 0."""
SHOWN = 20.0
"""Time that the right panel shows."""


@dataclass(frozen=True)
class Fig3Evidence:
    """Trajectories on the hyperboloid, and what Theorem 3.4 says of others.

    The stationary point is in the middle of the separatrix `curve` (n, 3); `attracted` starts on it
    where alpha is 0.2; `three` are the starts of the caption; `winners` (R,) says whether the
    winner, trained with ten times the step, agrees with the side of the curve on which the start
    lies.
    """

    trajectories: list[Trajectory]
    curve: kit.Floats
    attracted: Trajectory
    three: list[Trajectory]
    winners: kit.Bools
    limit: kit.Floats
    """(3,) of Theorem 3.4, for points of the norms `NORMS`."""
    nearest: kit.Floats
    """(3,) state at which a neuron comes nearest to it."""
    cone: float
    """When beta reaches 0 from `CONE`."""


def evidence_fig3(runs: kit.Runs) -> Fig3Evidence:
    """Integrate and train all trajectories."""
    curve = separatrix(C_3)
    upper = curve[curve[:, 2] > 0]
    on_curve = upper[np.argmin(np.abs(upper[:, 0] - 0.2))]
    # starts with z > 0 on both sides of the separatrix, and, for the winners, starts all over with
    # z of both signs
    alpha, beta = np.array(
        [[0.05, 0.05, 0.05, 0.05, 1.0, 0.5, 0.4], [1.1, 1.35, 1.6, 1.9, 0.6, 1.2, 1.8]]
    )
    shown = on_sheet(alpha, beta, C_3)
    radii = np.linspace(1.02, 2.2, 9)
    r, phi = np.reshape(np.meshgrid(radii, np.linspace(0.06, np.pi / 2 - 0.06, 9)), (2, -1))
    above = on_sheet(r * np.cos(phi), r * np.sin(phi), C_3)
    grid = np.concatenate([above, above * np.array([1.0, 1.0, -1.0])])
    limit, nearest = to_limit()
    return Fig3Evidence(
        trajectories=follow(
            runs["shared"], np.concatenate([shown, mirrored(shown)]), until=UNTIL, points=600
        ),
        curve=curve,
        attracted=follow(runs["shared"], on_curve[None], until=UNTIL, points=1200)[0],
        three=follow(runs["shared"], CAPTION_STARTS, until=END, points=1000),
        winners=trained_winners(runs["coarse"], grid, until=200.0) == _sides(grid, curve),
        limit=limit,
        nearest=nearest,
        cone=float(shared_neuron(np.array([0.0, UNTIL]), CONE)[1][1]),
    )


def to_limit() -> tuple[kit.Floats, kit.Floats]:
    """Return the limit (3,) of Theorem 3.4 for points of the norms `NORMS`, and the state (3,) at
    which a neuron comes nearest to it, from the curve between both outcomes.
    """
    start = between(0.3, 0.4, NORMS, UNTIL * 10)
    alpha, beta, z = start.tolist()
    limit = stationary(float(hyperboloid(alpha, beta, z, NORMS)), NORMS)
    path = shared_neuron(np.linspace(0.0, UNTIL * 5, 3000), start, NORMS)[0]
    return limit, path[np.argmin(np.linalg.norm(path - limit, axis=1))]


def _sides(starts: kit.Floats, curve: kit.Floats) -> kit.Ints:
    """Return 1 for starts (R, 3) above the curve (n, 3), whose z ascends with the angle in the
    plane, else 2: (R,).
    """
    angles, phi = (np.arctan2(points[:, 1], points[:, 0]) for points in (curve, starts))
    ascending = np.argsort(angles)
    return np.where(starts[:, 2] > np.interp(phi, angles[ascending], curve[ascending, 2]), 1, 2)


def claims_fig3(e: Fig3Evidence) -> list[kit.Claim]:
    green, yellow, failed = e.three
    learning = (green, yellow, *e.trajectories)
    return [
        kit.claim(
            "green",
            r"From (0.1, 0.1, 0.1) $\beta$ reaches 0 (trained $\beta$ at t = 50)",
            "Figure 3, caption",
            kit.near(0, ZERO),
            green.trained[-1, 1],
        ),
        kit.claim(
            "green-P",
            "From (0.1, 0.1, 0.1) the confidence on $D_1$ tends to 1 (trained, t = 50)",
            "Figure 3, caption",
            kit.at_least(0.99),
            green.confidences[0][-1],
        ),
        kit.claim(
            "yellow",
            r"From (0.2, 0.9, 0.2) $\alpha$ reaches 0 (trained $\alpha$ at t = 50)",
            "Figure 3, caption",
            kit.near(0, ZERO),
            yellow.trained[-1, 0],
        ),
        kit.claim(
            "yellow-2",
            "From (0.2, 0.9, 0.2) the confidence on $D_2$ tends to 1 (trained, t = 50)",
            "Figure 3, caption",
            kit.at_least(0.99),
            yellow.confidences[1][-1],
        ),
        kit.claim(
            "failure",
            r"From (1, 0, -1.1) $\alpha$ tends to 0 (trained $\alpha$ at t = 50)",
            "Figure 3, caption",
            kit.near(0, ZERO),
            failed.trained[-1, 0],
        ),
        kit.claim(
            "sigmoidal",
            "The confidence on $D_1$ from the first start is sigmoidal, although H2 does not hold "
            "(trained; 1: convex, then concave)",
            "Theorem 3.4, Interpretation",
            kit.exactly(1),
            sigmoidal(green.t, green.confidences[0]),
        ),
        kit.claim(
            "overlay",
            "Trained networks follow Eq. 4 (largest difference of confidences, all trajectories)",
            "Eq. 4; limit of small steps",
            kit.at_most(1e-3),
            largest_error(learning, (failed,)),
        ),
        kit.claim(
            "winners",
            "Above the curve $C_c$ $D_1$ prevails, below it $D_2$ (share of trained networks)",
            "Theorem 3.4, Figure 3 left",
            kit.exactly(1),
            e.winners.mean(),
        ),
        kit.theory(
            "yellow-P",
            r"Once $\alpha$ is 0 the confidence on $D_1$ is 0.5, from the second start",
            "Figure 3, caption",
            kit.exactly(0.5),
            yellow.confidences[0][-1],
        ),
        kit.theory(
            "failure-P",
            r"Once $\alpha$ is 0 the confidence on $D_1$ is 0.5, from the third start",
            "Figure 3, caption",
            kit.exactly(0.5),
            failed.confidences[0][-1],
        ),
        kit.theory(
            "invariant",
            "Trajectories stay on their hyperboloid, also after a value has reached 0 (largest "
            "relative drift)",
            "Theorem 3.4",
            kit.at_most(1e-8),
            max(p.drift for p in (*learning, failed)),
        ),
        kit.theory(
            "separatrix",
            "From the curve $C_c$ neurons go to the stationary point (least distance, Eq. 4)",
            "Theorem 3.4, Figure 3 left",
            kit.at_most(0.01),
            np.linalg.norm(e.attracted.ode - e.curve[len(e.curve) // 2], axis=1).min(),
        ),
        kit.theory(
            "limit-norms",
            r"For norms 1 and 2 the neuron between both outcomes goes to the limit of Theorem 3.4"
            r" ($\alpha$ there over "
            "the theorem's, Eq. 4)",
            "Theorem 3.4",
            kit.near(1, 0.01),
            e.nearest[0] / e.limit[0],
        ),
        kit.theory(
            "cone",
            r"For c = 0 $\beta$ reaches 0, since $\beta' \le -\alpha_0/2$ (time, from $\alpha_0 ="
            r" \beta_0$ = 0.1; Eq. 4)",
            r"Theorem 3.4, A.8, c = 0: at most 2 beta0 / alpha0",
            kit.at_most(2 * CONE[1] / CONE[0]),
            e.cone,
        ),
    ]


def numbers_fig3(e: Fig3Evidence) -> dict[str, float]:
    """Return the limit of Theorem 3.4 for other norms, and when beta reaches 0 for c = 0."""
    return {
        "alpha and beta of the limit for norms 1 and 2": e.limit[0],
        "alpha where the neuron is nearest to it": e.nearest[0],
        "time at which beta is 0, from alpha0 = beta0 = 0.1 with c = 0": e.cone,
    }


def draw_fig3(e: Fig3Evidence) -> kit.Drawing:
    figure, (flat, *axes) = kit.new_figure(2, 2, aspect=0.85, extra_height=0.42)
    flat.remove()
    sheet: Axes3D = figure.add_subplot(2, 2, 1, projection="3d")
    draw_sheets(sheet, C_3, e.trajectories, elevation=24, azimuth=52)
    inside = (np.abs(e.curve) <= 2.0).all(axis=1)
    sheet.plot(*e.curve[inside].T, color="black", lw=1.8, zorder=6)
    sheet.scatter(*e.curve[len(e.curve) // 2], color="black", s=12, zorder=7)
    kit.panel_label(sheet, 0, "Trajectories, $c=1$")
    starts = ("(0.1, 0.1, 0.1)", "(0.2, 0.9, 0.2)", "(1, 0, \N{MINUS SIGN}1.1)")

    def over_time(
        title: str, ylabel: str, top: float, measure: Callable[[kit.Floats], kit.Floats]
    ) -> kit.Chart:
        lines = [TRAINED]
        for k, (path, look, start) in enumerate(zip(e.three, STARTS_COLORS, starts, strict=True)):
            at = np.arange(14 + 22 * k, int(len(path.t) * SHOWN / END), 66)
            lines += [
                kit.line(path.t, measure(path.ode), start, look),
                dots(path.t, measure(path.trained), at, look),
            ]
        limits = (-0.03 * top, top)
        return kit.chart(
            title, ylabel, *lines, xlabel="time $t$", limits_x=(0, SHOWN), limits=limits
        )

    separatrix = Line2D([], [], color="black", lw=1.8, label=r"separatrix $\mathcal{C}_c$")
    handles: list[kit.Artist] = [*winner_handles(), separatrix]
    for k, chart in enumerate(
        (
            over_time(
                r"Weight $\alpha$, three starts", r"$\alpha_t$", 2.5, lambda states: states[:, 0]
            ),
            over_time(r"Weight $\beta$", r"$\beta_t$", 2.5, lambda states: states[:, 1]),
            over_time(
                "Confidence in $D_1$",
                "$P_t(D_1)$",
                1.05,
                lambda states: confidences(states)[0],
            ),
        )
    ):
        handles += kit.panel(axes[k], 1 + k, chart)
    kit.figure_legend(figure, handles, columns=3)
    return figure


ACTIVE = (
    "As long as the neuron is active on both classes a ReLU is linear; the two differ once alpha or"
    " beta is 0."
)


FIGURE_3 = kit.Figure(
    id="tachet2018-fig3",
    caption=(
        "(a) Solutions of Eq. 4 on the hyperboloid c = 1, green where D_1 prevails, yellow where"
        " D_2 does, and the separatrix between them. (b-d) alpha, beta and the confidence in D_1"
        " from three starts (alpha, beta, z). Dots are trained networks."
    ),
    configs={
        "shared": "tachet2018/shared.yaml",
        "coarse": kit.Wanted(
            "tachet2018/shared.yaml",
            ("optimizer.lr=0.01", "optimizer.iterations=20000", "record.snapshots.interval=20"),
        ),
    },
    passes={
        "linear": {"green-P yellow-2 sigmoidal winners": ACTIVE},
        "wrong_gradient": {
            "yellow failure": (
                "The output moves away from the labels, until no point activates the neuron: alpha"
                " ends at 0 from every start, and claims of other ends fail."
            )
        },
    },
)


C_7 = -1.0
STARTS = np.array(
    [
        [0.05, 0.3],
        [0.05, 0.8],
        [0.05, 1.3],
        [0.05, 1.7],
        [0.4, 1.2],
        [0.8, 0.8],
        [0.3, 0.4],
        [1.2, 0.6],
    ]
)
"""(alpha0, beta0) of the trajectories that are drawn."""


@dataclass(frozen=True)
class Fig7Evidence:
    """Trajectories from both sheets, and the winners of many starts."""

    drawn: list[Trajectory]
    winners: NDArray[np.int8]


def evidence_fig7(runs: kit.Runs) -> Fig7Evidence:
    """Integrate and train from starts on both sheets."""
    grid = np.linspace(0.02, 2.0, 25)
    alpha, beta = np.reshape(np.meshgrid(grid, grid), (2, -1))
    starts = on_sheet(STARTS[:, 0], STARTS[:, 1], C_7)
    return Fig7Evidence(
        drawn=follow(
            runs["shared"], np.concatenate([starts, mirrored(starts)]), until=UNTIL, points=600
        ),
        winners=trained_winners(runs["shared"], on_sheet(alpha, beta, C_7), until=UNTIL),
    )


def _slack(path: Trajectory) -> float:
    """Return the least of `-||x_2||^2 sqrt(-c) / 2 - beta'` along a trajectory while beta > 0."""
    _, beta, z = path.ode.T
    rate = -z / (1 + np.exp(-z * beta))  # beta' of Eq. 24, norms 1
    return float((-np.sqrt(-C_7) / 2 - rate)[beta > 0].min())


def claims_fig7(e: Fig7Evidence) -> list[kit.Claim]:
    upper = e.drawn[: len(STARTS)]
    lower = e.drawn[len(STARTS) :]
    return [
        kit.claim(
            "winner",
            r"On the sheet with z > 0 $\beta$ always reaches 0: $D_1$ prevails (share of trained "
            "networks)",
            "Theorem 3.4, Figure 7",
            kit.exactly(1),
            np.mean(e.winners == 1),
        ),
        kit.claim(
            "overlay",
            "Trained networks follow Eq. 4 (largest difference of confidences)",
            "Eq. 4; limit of small steps",
            kit.at_most(1e-3),
            largest_error(e.drawn),
        ),
        kit.theory(
            "invariant",
            "Trajectories stay on their hyperboloid (largest relative drift)",
            "Theorem 3.4",
            kit.at_most(1e-8),
            max(p.drift for p in e.drawn),
        ),
        kit.theory(
            "rate",
            r"$\beta$ falls at least as fast as $\|x_2\|^2 \sqrt{-c}/2$ (least margin; print has c"
            r" for "
            "sqrt(-c))",
            "A.8, c < 0",
            kit.at_least(0),
            min(_slack(p) for p in upper),
        ),
        kit.theory(
            "symmetric",
            r"With $\alpha$ and $\beta$ exchanged and z negative $D_2$ prevails (share of the "
            "trajectories on the lower sheet)",
            "Section 3.4, symmetry of Eq. 4",
            kit.exactly(1),
            np.mean([p.winner == 2 for p in lower]),
        ),
    ]


def draw_fig7(e: Fig7Evidence) -> kit.Drawing:
    figure, (flat,) = kit.new_figure(1, 1, width=kit.COLUMN_WIDTH, aspect=0.95, extra_height=0.3)
    handles = kit.panel(flat, 0, kit.chart("", "", TRAINED, limits_x=(0, 1)))
    flat.remove()
    axes: Axes3D = figure.add_subplot(projection="3d")
    draw_sheets(axes, C_7, e.drawn, elevation=38, azimuth=28)
    kit.figure_legend(figure, [*winner_handles(), *handles], columns=3)
    return figure


FIGURE_7 = kit.Figure(
    id="tachet2018-fig7",
    caption=(
        "Solutions of Eq. 4 for c = -1: from every start on the upper sheet beta reaches 0, from"
        " their mirror images on the lower one alpha does. Dots are trained networks."
    ),
    configs={"shared": "tachet2018/shared.yaml"},
    passes={"linear": {"winner": ACTIVE}},
)


FIGURES = kit.by_id(FIGURE_3, FIGURE_7)

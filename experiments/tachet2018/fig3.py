"""Figure 3: one neuron that both classes activate; its trajectories and three learning curves."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from mpl_toolkits.mplot3d import Axes3D

from dynamics_cli import kit

from . import hyperboloid
from .theory.shared_neuron import saddle, saddle_eigenvalues, separatrix
from .trained import draw_trained, order, sigmoidal

C = 1.0
CAPTION_STARTS = np.array([[0.1, 0.1, 0.1], [0.2, 0.9, 0.2], [1.0, 0.0, -1.1]])
"""(alpha0, beta0, z0) of the right panel."""
END = 50.0
SHOWN = 20.0
"""Time that the right panel shows."""
COARSE = 10
"""The coarse run takes steps this many times as long."""


@dataclass(frozen=True)
class Evidence:
    """Trajectories on the hyperboloid c = 1, its separatrix, and the three starts of the caption."""

    trajectories: list[hyperboloid.Trajectory]
    curve: kit.Floats
    """(n, 3) separatrix."""
    stationary: kit.Floats
    """(3,)"""
    attracted: hyperboloid.Trajectory
    """Started on the separatrix, where alpha is 0.2."""
    three: list[hyperboloid.Trajectory]
    coarse: list[hyperboloid.Trajectory]
    """The three at ten times the step."""
    winners: kit.Bools
    """(R,) whether the trained winner is that of the side of the curve on which the start lies."""


def evidence(runs: kit.Runs) -> Evidence:
    """Integrate and train all trajectories."""
    curve = separatrix(C)
    upper = curve[curve[:, 2] > 0]
    on_curve = upper[np.argmin(np.abs(upper[:, 0] - 0.2))]
    grid = _starts(9)
    return Evidence(
        trajectories=hyperboloid.follow(runs["shared"], _shown(), until=hyperboloid.UNTIL, points=600),
        curve=curve,
        stationary=saddle(C),
        attracted=hyperboloid.follow(runs["shared"], on_curve[None], until=hyperboloid.UNTIL, points=1200)[0],
        three=hyperboloid.follow(runs["shared"], CAPTION_STARTS, until=END, points=1000),
        coarse=hyperboloid.follow(runs["coarse"], CAPTION_STARTS, until=END, points=1000),
        winners=hyperboloid.trained_winners(runs["coarse"], grid, until=200.0) == _sides(grid, curve),
    )


def _shown() -> kit.Floats:
    """Starts with z > 0 on both sides of the separatrix, and their mirror images."""
    beta = np.array([1.1, 1.35, 1.6, 1.9, 0.6, 1.2, 1.8])
    alpha = np.array([0.05, 0.05, 0.05, 0.05, 1.0, 0.5, 0.4])
    upper = hyperboloid.on_sheet(alpha, beta, C)
    return np.concatenate([upper, hyperboloid.mirrored(upper)])


def _starts(count: int) -> kit.Floats:
    """Starts all over the hyperboloid, with z of both signs."""
    radius, angle = np.meshgrid(np.linspace(1.02, 2.2, count), np.linspace(0.06, np.pi / 2 - 0.06, count))
    r, phi = radius.ravel(), angle.ravel()
    upper = hyperboloid.on_sheet(r * np.cos(phi), r * np.sin(phi), C)
    return np.concatenate([upper, upper * np.array([1.0, 1.0, -1.0])])


def _sides(starts: kit.Floats, curve: kit.Floats) -> kit.Ints:
    """Return 1 for starts (R, 3) above the curve (n, 3), whose z ascends with the angle in the plane, else 2: (R,)."""
    angles, own = (np.arctan2(points[:, 1], points[:, 0]) for points in (curve, starts))
    ascending = np.argsort(angles)
    return np.where(starts[:, 2] > np.interp(own, angles[ascending], curve[ascending, 2]), 1, 2)


def claims(e: Evidence) -> list[kit.Claim]:
    """Compare with Theorem 3.4 and the caption."""
    fine, coarse = (max(one.error for one in runs) for runs in (e.three, e.coarse))
    green, yellow, failed = e.three
    learning = (green, yellow, *e.trajectories)
    return [
        kit.claim("green", "From (0.1, 0.1, 0.1) beta reaches 0 (trained beta at t = 50)",
                  "Figure 3, caption", kit.at_most(0.0), float(green.trained[-1, 1])),
        kit.claim("green-P", "and the confidence on D_1 tends to 1 (trained, t = 50)",
                  "Figure 3, caption", kit.at_least(0.99), green.confidences[0][-1]),
        kit.claim("yellow", "From (0.2, 0.9, 0.2) alpha reaches 0 (trained alpha at t = 50)",
                  "Figure 3, caption", kit.at_most(0.0), float(yellow.trained[-1, 0])),
        kit.claim("yellow-2", "and that on D_2 to 1",
                  "Figure 3, caption", kit.at_least(0.99), yellow.confidences[1][-1]),
        kit.claim("failure", "From (1, 0, -1.1) alpha tends to 0 (trained alpha at t = 50)",
                  "Figure 3, caption", kit.at_most(0.0), float(failed.trained[-1, 0])),
        kit.claim("sigmoidal", "The confidence on D_1 from the first start is sigmoidal, although H2 does not hold "
                  "(trained; 1: convex, then concave)", "Theorem 3.4, Interpretation", kit.exactly(1),
                  sigmoidal(green.ode.t, green.confidences[0])),
        kit.finding("green-time", "beta reaches 0 at", "Eq. 4", green.ode.beta_zero),
        kit.finding("yellow-time", "alpha reaches 0 at", "Eq. 4", yellow.ode.alpha_zero),
        kit.finding("failure-time", "alpha reaches 0, in finite time, at", "Eq. 4", failed.ode.alpha_zero),
        kit.claim("overlay", "Trained networks follow Eq. 4 (largest difference of confidences, all trajectories)",
                  "Eq. 4; limit of small steps", kit.at_most(1e-3), hyperboloid.largest_error(learning, (failed,))),
        kit.claim("first-order", "and deviate in proportion to the step (power of the step)",
                  "gradient descent is Euler's method of Eq. 4", kit.near(1.0, 0.1), order(coarse, fine, (COARSE, 1))),
        kit.claim("winners", "Above the curve C_c D_1 prevails, below it D_2 (share of trained networks)",
                  "Theorem 3.4, Figure 3 left", kit.exactly(1), float(e.winners.mean())),
        kit.theory("yellow-P", "Once alpha is 0 the confidence on D_1 is 0.5, from the second start",
                   "Figure 3, caption", kit.exactly(0.5), yellow.confidences[0][-1]),
        kit.theory("failure-P", "and from the third", "Figure 3, caption", kit.exactly(0.5),
                   failed.confidences[0][-1]),
        kit.theory("invariant",
                   "Trajectories stay on their hyperboloid, also after a value has reached 0 (largest relative drift)",
                   "Theorem 3.4", kit.at_most(1e-8), max(one.drift for one in (*learning, failed))),
        kit.theory("separatrix", "From the curve C_c neurons go to the stationary point (least distance, Eq. 4)",
                   "Theorem 3.4, Figure 3 left", kit.at_most(0.01),
                   float(np.linalg.norm(e.attracted.path - e.stationary, axis=1).min())),
        kit.finding("tried", "Networks trained from both sides of C_c", "Theorem 3.4", len(e.winners)),
        *(kit.finding(f"c-{k + 1}", f"c of start {k + 1} of the caption: not 1", "Figure 3", one.c)
          for k, one in enumerate(e.three)),
        kit.finding("edge-beta", "C_1 meets alpha = 0 at this beta", "Figure 3 left", float(e.curve[0, 1])),
        kit.finding("edge-z", "and this z", "Figure 3 left", float(e.curve[0, 2])),
        kit.finding("eigenvalue", "Positive eigenvalue at the saddle", "A.8", saddle_eigenvalues(C)[0]),
    ]  # fmt: skip


def draw(e: Evidence) -> kit.Drawing:
    """Draw the hyperboloid and the three learning curves."""
    figure, (flat, right) = kit.new_figure(2, 1, width=kit.TEXT_WIDTH, aspect=0.95, extra_height=0.42)
    flat.remove()
    left: Axes3D = figure.add_subplot(1, 2, 1, projection="3d")
    hyperboloid.draw_sheets(left, C, e.trajectories, elevation=24, azimuth=52)
    inside = (np.abs(e.curve) <= 2.0).all(axis=1)
    left.plot(*e.curve[inside].T, color="black", lw=1.8, zorder=6)
    left.scatter(*e.stationary, color="black", s=12, zorder=7)
    kit.panel_label(left, 0, "Trajectories, $c=1$")
    lines = _curves(right, e)
    kit.panel_label(right, 1, "Three starts")
    right.set_box_aspect(0.95)
    kit.figure_legend(figure, [*hyperboloid.handles(separatrix=True), *lines], columns=3)
    return figure


def _curves(axes: Axes, e: Evidence) -> list[Line2D]:
    styles = ("-", (0, (4, 2)), (0, (4, 1.5, 1, 1.5)))
    starts = ("(0.1, 0.1, 0.1)", "(0.2, 0.9, 0.2)", "(1, 0, \N{MINUS SIGN}1.1)")
    colors = {"alpha": "#0072B2", "beta": "#D55E00", "P": "#222222"}
    made = []
    for k, (one, ls, start) in enumerate(zip(e.three, styles, starts, strict=True)):
        alpha, beta, _ = one.trained.T
        series = {"alpha": (one.ode.alpha, alpha), "beta": (one.ode.beta, beta)}
        if k == 2:
            del series["beta"]
        series["P"] = (one.ode.confidence_1, one.confidences[0])
        for name, (theory, trained) in series.items():
            axes.plot(one.ode.t, theory, ls=ls, color=colors[name], lw=1.2)
            dots = slice(14 + 22 * k, int(len(one.ode.t) * SHOWN / END), 66)
            draw_trained(axes, one.ode.t[dots], trained[dots], colors[name], size=2.6)
        made.append(Line2D([], [], ls=ls, color=kit.PALETTE.muted, label=start))
    names = {"alpha": r"$\alpha_t$", "beta": r"$\beta_t$", "P": "$P_t(D_1)$"}
    axes.set(xlim=(0, SHOWN), ylim=(-0.06, 2.5), xlabel="time $t$", ylabel=r"$\alpha_t$, $\beta_t$ and $P_t(D_1)$")
    return [*[Line2D([], [], color=colors[key], label=names[key]) for key in names], *made]


FIGURE = kit.Figure(
    id="tachet2018-fig3",
    caption=(
        "Left: solutions of Eq. 4 on the hyperboloid c = 1, green where D_1 prevails, yellow where D_2 does, and the "
        "separatrix between them. Right: alpha, beta and the confidence in D_1 from three starts. Dots are trained "
        "networks."
    ),
    configs={
        "shared": "tachet2018/shared.yaml",
        "coarse": kit.Wanted(
            "tachet2018/shared.yaml",
            ("optimizer.lr=0.01", "optimizer.iterations=20000", "record.snapshots.interval=20"),
        ),
    },
    origin={"norms": "stated", "starts, right": "stated", "starts, left": "assumed", "step": "assumed"},
    evidence=evidence, claims=claims, draw=draw,
)  # fmt: skip

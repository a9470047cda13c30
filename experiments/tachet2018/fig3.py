"""Figure 3: one neuron that both classes activate; its trajectories and three learning curves.

`dyn reproduce tachet2018-fig3`. About 4 s.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Drawing
from matplotlib.lines import Line2D
from mpl_toolkits.mplot3d import Axes3D

from dynamics_cli.measures.arrays import Floats
from dynamics_cli.plotting.layout import figure_legend, panel_label
from dynamics_cli.plotting.style import TEXT_WIDTH, new_figure
from dynamics_cli.reproduction.claims import Claim, at_least, at_most, claim, exactly, finding, near
from dynamics_cli.reproduction.figure import Figure, Runs, Wanted

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
from .theory.shared_neuron import saddle, saddle_eigenvalues, separatrix, winner
from .trained import order

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

    trajectories: list[Trajectory]
    curve: Floats
    """(n, 3) separatrix."""
    three: list[Trajectory]
    coarse: list[Trajectory]
    """The three at ten times the step."""
    agree: float
    """Share of starts on the hyperboloid whose trained winner is the ODE's."""
    tried: int
    attracted: float
    """Least distance to the stationary point of an ODE started on the separatrix, where alpha is 0.2."""
    stationary: Floats
    """(3,)"""


def evidence(runs: Runs) -> Evidence:
    """Integrate and train all trajectories."""
    curve = separatrix(C)
    upper = curve[curve[:, 2] > 0]
    near_ = upper[np.argmin(np.abs(upper[:, 0] - 0.2))]
    from_curve = follow(runs["shared"], near_[None], until=UNTIL, points=1200)[0]
    grid = _starts(9)
    ode = np.array([winner(*start, until=200.0) for start in grid])
    middle = saddle(C)
    return Evidence(
        trajectories=follow(runs["shared"], _shown(), until=UNTIL, points=600),
        curve=curve,
        three=follow(runs["shared"], CAPTION_STARTS, until=END, points=1000),
        coarse=follow(runs["coarse"], CAPTION_STARTS, until=END, points=1000),
        agree=float(np.mean(trained_winners(runs["coarse"], grid, until=200.0) == ode)),
        tried=len(grid),
        attracted=float(np.linalg.norm(from_curve.path - middle, axis=1).min()),
        stationary=middle,
    )


def _shown() -> Floats:
    """Starts with z > 0 on both sides of the separatrix, and their mirror images."""
    beta = np.array([1.1, 1.35, 1.6, 1.9, 0.6, 1.2, 1.8])
    alpha = np.array([0.05, 0.05, 0.05, 0.05, 1.0, 0.5, 0.4])
    upper = on_sheet(alpha, beta, C)
    # the mirror images of Section 3.4: alpha and beta exchanged, z negative
    return np.concatenate([upper, upper[:, [1, 0, 2]] * np.array([1.0, 1.0, -1.0])])


def _starts(count: int) -> Floats:
    """Starts all over the hyperboloid, with z of both signs."""
    radius, angle = np.meshgrid(np.linspace(1.02, 2.2, count), np.linspace(0.06, np.pi / 2 - 0.06, count))
    r, phi = radius.ravel(), angle.ravel()
    upper = on_sheet(r * np.cos(phi), r * np.sin(phi), C)
    return np.concatenate([upper, upper * np.array([1.0, 1.0, -1.0])])


def claims(found: Evidence) -> list[Claim]:
    """Compare with Theorem 3.4 and the caption."""
    fine, coarse = (max(one.error for one in runs) for runs in (found.three, found.coarse))
    return [
        *_caption(found),
        claim(
            "overlay",
            "Trained networks follow Eq. 4 (largest difference of confidences, all trajectories)",
            "Eq. 4; limit of small steps",
            expected=at_most(1e-3),
            measured=max(one.error for one in (*found.three, *found.trajectories)),
        ),
        claim(
            "first-order",
            "and deviate in proportion to the step (power of the step)",
            "gradient descent is Euler's method of Eq. 4",
            expected=near(1.0, 0.1),
            measured=order(coarse, fine, (COARSE, 1)),
        ),
        claim(
            "invariant",
            "Trajectories stay on their hyperboloid, also after a value has reached 0 (largest relative drift)",
            "Theorem 3.4",
            expected=at_most(1e-8),
            measured=max(one.drift for one in (*found.three, *found.trajectories)),
        ),
        claim(
            "separatrix",
            "From the curve C_c neurons go to the stationary point (least distance)",
            "Theorem 3.4, Figure 3 left",
            expected=at_most(0.01),
            measured=found.attracted,
        ),
        claim(
            "winners",
            "From each side of C_c another class prevails (share of trained networks with the ODE's winner)",
            "Theorem 3.4, Figure 3 left",
            expected=at_least(0.99),
            measured=found.agree,
        ),
        finding("tried", "Networks trained for the claim before", "Theorem 3.4", measured=found.tried),
        *[
            finding(f"c-{k + 1}", f"c of start {k + 1} of the caption: not 1", "Figure 3", measured=one.c)
            for k, one in enumerate(found.three)
        ],
        finding("edge-beta", "C_1 meets alpha = 0 at this beta", "Figure 3 left", measured=float(found.curve[0, 1])),
        finding("edge-z", "and this z", "Figure 3 left", measured=float(found.curve[0, 2])),
        finding("eigenvalue", "Positive eigenvalue at the saddle", "A.8", measured=saddle_eigenvalues(C)[0]),
    ]


def _caption(found: Evidence) -> list[Claim]:
    green, yellow, failed = found.three
    last = [one.trained[-1] for one in found.three]
    P = [1 / (1 + np.exp(-z * max(alpha, 0.0))) for alpha, _, z in last]
    return [
        claim("green", "From (0.1, 0.1, 0.1) beta reaches 0 (trained beta at t = 50)", "Figure 3, caption",
              expected=at_most(0.0), measured=float(last[0][1])),
        claim("green-P", "and the confidence on D_1 tends to 1 (trained, t = 50)", "Figure 3, caption",
              expected=at_least(0.99), measured=float(P[0])),
        claim("yellow", "From (0.2, 0.9, 0.2) alpha reaches 0 (trained alpha at t = 50)", "Figure 3, caption",
              expected=at_most(0.0), measured=float(last[1][0])),
        claim("yellow-P", "the confidence on D_1 goes to 0.5", "Figure 3, caption",
              expected=exactly(0.5), measured=float(P[1])),
        claim("yellow-2", "and that on D_2 to 1", "Figure 3, caption",
              expected=at_least(0.99), measured=float(1 / (1 + np.exp(last[1][2] * last[1][1])))),
        claim("failure", "From (1, 0, -1.1) alpha tends to 0 (trained alpha at t = 50)", "Figure 3, caption",
              expected=at_most(0.0), measured=float(last[2][0])),
        claim("failure-P", "and the confidence to 0.5", "Figure 3, caption",
              expected=exactly(0.5), measured=float(P[2])),
        finding("green-time", "beta reaches 0 at", "Eq. 4", measured=green.ode.beta_zero),
        finding("yellow-time", "alpha reaches 0 at", "Eq. 4", measured=yellow.ode.alpha_zero),
        finding("failure-time", "alpha reaches 0, in finite time, at", "Eq. 4", measured=failed.ode.alpha_zero),
    ]  # fmt: skip


def draw(found: Evidence) -> Drawing:
    """Draw the hyperboloid and the three learning curves."""
    figure, (flat, right) = new_figure(2, 1, width=TEXT_WIDTH, aspect=0.95, extra_height=0.42)
    flat.remove()
    left: Axes3D = figure.add_subplot(1, 2, 1, projection="3d")
    draw_surface(left, C)
    draw_trajectories(left, found.trajectories)
    inside = (np.abs(found.curve) <= 2.0).all(axis=1)
    left.plot(*found.curve[inside].T, color="black", lw=1.8, zorder=6)
    left.scatter(*found.stationary, color="black", s=12, zorder=7)
    set_box(left, elevation=24, azimuth=52)
    panel_label(left, 0, "Trajectories, $c=1$")
    lines = _curves(right, found)
    panel_label(right, 1, "Three starts")
    right.set_box_aspect(0.95)
    figure_legend(figure, [*handles(separatrix=True), *lines], columns=3)
    return figure


def _curves(axes: Axes, found: Evidence) -> list[Line2D]:
    styles = ("-", (0, (4, 2)), (0, (4, 1.5, 1, 1.5)))
    starts = ("(0.1, 0.1, 0.1)", "(0.2, 0.9, 0.2)", "(1, 0, \N{MINUS SIGN}1.1)")
    colors = {"alpha": "#0072B2", "beta": "#D55E00", "P": "#222222"}
    made = []
    for k, (one, ls, start) in enumerate(zip(found.three, styles, starts, strict=True)):
        alpha, beta, z = one.trained.T
        series = {"alpha": (one.ode.alpha, alpha), "beta": (one.ode.beta, beta)}
        if k == 2:
            del series["beta"]
        P = 1 / (1 + np.exp(-z * np.maximum(alpha, 0.0)))
        series["P"] = (one.ode.confidence_1, P)
        for name, (theory, trained) in series.items():
            axes.plot(one.ode.t, theory, ls=ls, color=colors[name], lw=1.2)
            dots = slice(14 + 22 * k, int(len(one.ode.t) * SHOWN / END), 66)
            axes.plot(one.ode.t[dots], trained[dots], "o", ms=2.6, mfc="white", mec=colors[name], mew=0.8)
        made.append(Line2D([], [], ls=ls, color="#222222", label=start))
    names = {"alpha": r"$\alpha_t$", "beta": r"$\beta_t$", "P": "$P_t(D_1)$"}
    axes.set(xlim=(0, SHOWN), ylim=(-0.06, 2.5), xlabel="time $t$")
    return [*[Line2D([], [], color=colors[key], label=names[key]) for key in names], *made]


FIGURE = Figure(
    id="tachet2018-fig3",
    caption=(
        "Left: solutions of Eq. 4 on the hyperboloid c = 1, green where D_1 prevails, yellow where D_2 does, and the "
        "separatrix between them. Right: alpha, beta and the confidence in D_1 from three starts. Dots are trained "
        "networks."
    ),
    configs={
        "shared": "tachet2018/shared.yaml",
        "coarse": Wanted(
            "tachet2018/shared.yaml",
            ("optimizer.lr=0.01", "optimizer.iterations=5000", "record.snapshots.interval=5"),
        ),
    },
    origin={"norms": "stated", "starts, right": "stated", "starts, left": "assumed", "step": "assumed"},
    evidence=evidence,
    claims=claims,
    draw=draw,
)

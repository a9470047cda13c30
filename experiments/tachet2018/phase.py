"""Figures 2 and 9: a grid of initialisations (z0, y0) that are all trained, and learning curves of several modes."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import ListedColormap
from matplotlib.patches import Patch
from scipy.ndimage import maximum_filter, minimum_filter

from dynamics_cli import kit

from .theory.hinge_class import hinge_class
from .theory.modes import Outcome, hinge_death_time, logistic_mode, logit_bound, outcome
from .trained import (
    ModeCurve,
    Paths,
    crossing,
    draw_curves,
    if_learnt,
    largest_error,
    layers,
    mode_curve,
    ode_check,
    order,
    outputs,
    reached,
    sigmoidal,
    step,
    times,
    train_together,
    trained_handle,
)

CELLS = 120
"""Initialisations along either axis of the diagram."""
REACH = 1.0
"""The diagram shows [-1, 1]^2."""
CASES = {"c_1": (-0.6, 0.42), "c_2": (-0.5, 0.7), "c_3": (-0.8, 0.35)}
"""(z0, y0) of the three cases of Section 3.3, placed like in the paper's picture; c_1 is on the line y = -0.7 z."""
LABELS = (((4, 2), "left"), ((-3, 3), "right"), ((-1, -11), "center"))
"""Where the names of the cases go, in points."""
STARTS = {
    "c = 0": ("[[0.2], [0.4]]", "[[0.2], [0.2]]"),
    "c = 1": ("[[1.019803902718557], [1.0770329614269007]]", "[[0.2], [0.2]]"),
    "c = -0.5": ("[[0.2], [0.2]]", "[[0.7348469228349535], [0.3674234614174767]]"),
}
"""y0 and z0 of both classes, of norms 1 and 2, for the curves."""
COLORS = ("#F3B7A6", "#BFE3D0", "#FFFFFF", "#E08A73")
"""Of frozen, solved, undecided and dead neurons."""


def configs(fine: tuple[str, ...], coarse: tuple[str, ...]) -> dict[str, kit.Wanted]:
    """Return the runs of all curves with the changes `fine` and, at the coarse step, `coarse`."""

    def wanted(name: str, changes: tuple[str, ...]) -> kit.Wanted:
        y, z = STARTS[name]
        start = (f"initialization.y={y}", f"initialization.z={z}")
        return kit.Wanted("tachet2018/two_classes.yaml", (*start, *changes))

    return {name: wanted(name, fine) for name in STARTS} | {f"{name}, coarse": wanted(name, coarse) for name in STARTS}


def diagram(runs: kit.Runs) -> kit.Evidence:
    """Train the grid of the run `phase` and compare the curves with their closed forms."""
    fine, coarse = [runs[name] for name in STARTS], [runs[f"{name}, coarse"] for name in STARTS]
    return kit.Evidence(
        grid=train_grid(runs["phase"]),
        curves=[mode_curve(run, label) for run in fine for label in (1, -1)],
        coarse=[mode_curve(run, label) for run in coarse for label in (1, -1)],
        steps=(step(coarse[0]), step(fine[0])),
    )


def train_grid(run: kit.Run) -> kit.Evidence:
    """Train the single neuron of a run on its single point, of this `norm`, from every cell of the grid.

    `trained` (G, G) are outcomes of training, y0 down the rows, values of `Outcome`, `VANISHES` where neither came to
    pass. `disagree_inside` counts cells that disagree with Section 3.3 although all cells around them are in the same
    region there. `cases` are the neurons of `CASES`, trained.
    """
    x = float(run.dataset().x[0, 0])
    axis: kit.Floats = (np.arange(CELLS, dtype=np.float64) + 0.5) * (2 * REACH / CELLS) - REACH
    z0, y0 = (array.ravel() for array in np.meshgrid(axis, axis))
    total = run.iterations
    path = train_together(run, (y0 / x)[:, None], z0, snapshots=[total])
    y, z = path.w[0, :, 0] * x, path.z[0]
    frozen = (path.w[0, :, 0] == y0 / x) & (z == z0) & (y0 <= 0)
    ends = np.select([frozen, y <= 0, z > 0], [Outcome.FROZEN, Outcome.DIES, Outcome.SOLVED], Outcome.VANISHES)
    starts = np.array(list(CASES.values()))
    cases = train_together(
        run, (starts[:, 1] / x)[:, None], starts[:, 0], snapshots=np.linspace(0, total, 81).astype(np.int64)
    )
    trained, theory = (one.reshape(CELLS, CELLS) for one in (ends.astype(np.int8), outcome(y0, z0, abs(x))))
    inside = maximum_filter(theory, 3) == minimum_filter(theory, 3)
    return kit.Evidence(
        norm=abs(x), trained=trained, disagree_inside=int(((trained != theory) & inside).sum()),
        cases=Paths(cases.t, cases.w * x, cases.z),
    )  # fmt: skip


def draw_diagram(
    shown: kit.Evidence, titles: tuple[str, str, str], *, label: str, until: float | None = None
) -> tuple[kit.Drawing, list[Axes]]:
    """Draw the grid on the left, y and P (the axis `label`) on the right; return the figure and the three panels."""
    figure, axes = kit.new_figure(3, 1, width=kit.TEXT_WIDTH, aspect=1.05, extra_height=0.3)
    patches = _draw_grid(axes[0], shown.grid)
    lines = draw_curves(axes[1], shown.curves, values="y", label="$y_t$", until=until)
    draw_curves(axes[2], shown.curves, values="P", label=label, until=until)
    for k, (panel, title) in enumerate(zip(axes, titles, strict=True)):
        kit.panel_label(panel, k, title)
        panel.set_box_aspect(1)
    kit.figure_legend(figure, [*patches, *lines, trained_handle()], columns=4)
    return figure, axes


def _draw_grid(axes: Axes, grid: kit.Evidence) -> list[Patch]:
    """Draw regions, hyperbolas, asymptotes and the three cases; return handles for a legend."""
    edges = np.linspace(-REACH, REACH, CELLS + 1)
    axes.pcolormesh(edges, edges, grid.trained, cmap=ListedColormap(COLORS), vmin=-0.5, vmax=3.5, rasterized=True)
    line = np.linspace(-REACH, REACH, 400)
    for c in (0.03, 0.12, 0.3):
        upper = np.sqrt(c + (grid.norm * line) ** 2)
        right = np.sqrt(np.maximum((line**2 + c) / grid.norm**2, 0.0))
        look: dict[str, Any] = {"color": kit.PALETTE.muted, "lw": 0.6}
        axes.plot(line, upper, **look)
        axes.plot(line, -upper, **look)
        axes.plot(right, line, **look)
        axes.plot(-right, line, **look)
    for slope in (1, -1):
        axes.plot(line, slope * grid.norm * line, color=kit.PALETTE.theory, lw=0.9)
    for k, name in enumerate(CASES):
        z, y = grid.cases.z[:, k], grid.cases.w[:, k, 0]
        inside = (np.abs(z) <= REACH) & (np.abs(y) <= REACH)
        axes.plot(z[inside], y[inside], color=kit.PALETTE.neurons, lw=1.5)
        axes.plot(z[0], y[0], kit.MARKER, color=kit.PALETTE.neurons, mec="white", mew=0.5)
        (dx, dy), side = LABELS[k]
        axes.annotate(f"${name}$", (z[0], y[0]), xytext=(dx, dy), textcoords="offset points", ha=side)
    axes.axhline(0, color=kit.PALETTE.theory, lw=0.5)
    axes.axvline(0, color=kit.PALETTE.theory, lw=0.5)
    axes.set(xlim=(-REACH, REACH), ylim=(-REACH, REACH), xlabel="$z_0$", ylabel="$y_0$", box_aspect=1)
    names = {1: "solved", 0: "frozen", 3: "neuron dies"}
    return [Patch(color=COLORS[k], label=label) for k, label in names.items()]


COARSE_2 = ("optimizer.lr=0.01", "optimizer.iterations=2400", "record.snapshots.interval=4")
ODE_STARTS = ((0.2, 0.2, 1.0, 1), (1.2, 0.1, 0.7, 1), (0.2, 0.9, 1.3, 1), (0.9, -0.3, 1.0, 1), (0.5, -0.4, 2.0, -1))


def evidence_fig2(runs: kit.Runs) -> kit.Evidence:
    """Train the diagram, compare all curves with their closed forms, and those with an ODE solver (error, drift)."""
    checks = [ode_check(y, z, norm, until=40.0, label=label) for y, z, norm, label in ODE_STARTS]
    return kit.Evidence(diagram=diagram(runs), ode=(max(one for one, _ in checks), max(drift for _, drift in checks)))


def claims_fig2(e: kit.Evidence) -> list[kit.Claim]:
    """Compare training with Sections 3.2, 3.3 and A.3."""
    grid, curves = e.diagram.grid, e.diagram.curves
    late = [crossing(curve.t, curve.P, 0.9) for curve in curves]
    coarse = max(curve.error for curve in e.diagram.coarse)
    y, z = grid.cases.w[..., 0], grid.cases.z
    ends = np.select([y[-1] <= 0, z[-1] > 0], [Outcome.DIES, Outcome.SOLVED], Outcome.VANISHES)
    decay = float(np.log(y[-2, 0] / y[-1, 0]) / np.diff(grid.cases.t)[-1]) if (y[:, 0] > 0).all() else float("nan")
    t = np.linspace(0.0, 50.0, 4000)
    balanced = max(float((logistic_mode(t, norm * z0, z0, norm).u - logit_bound(t, norm * z0**2, norm)).max())
                   for norm in (0.3, 1.0, 3.0) for z0 in (0.03, 0.3, 3.0))  # fmt: skip
    uneven = float((logistic_mode(t, 3.0, 0.1).u - logit_bound(t, 0.3)).max())
    return [
        kit.claim("overlay", "Trained networks follow the closed form (largest |P_train - P_theory|, both classes, c = "
                  "0, c > 0, c < 0)", "Theorem 3.2, Eqs. 2, 3, A.3; limit of small steps", kit.at_most(1e-3),
                  largest_error(curves)),
        kit.claim("first-order", "and deviate in proportion to the step (power of the step)",
                  "gradient descent is Euler's method of Eqs. 12 and 16", kit.near(1.0, 0.1),
                  order(coarse, largest_error(curves), e.diagram.steps)),
        kit.claim("sigmoidal", "All classification curves are sigmoidal: slow, then faster, then saturating (trained "
                  "curves of six that are convex, then concave)", "Abstract; Section 3.2, Figure 2 right",
                  kit.exactly(len(curves)), sum(sigmoidal(one.t, one.P) for one in curves)),
        kit.claim("sigmoidal-y", "and so are the hidden activations y_t (trained curves of six)", "Section 1, Figure 2 "
                  "right", kit.exactly(len(curves)), sum(sigmoidal(one.t, one.y) for one in curves)),
        kit.claim("larger-norm", "A larger ||x|| converges faster (largest ratio of the times to P = 0.9, ||x|| = 2 to "
                  "||x|| = 1, same c)", "Section 3.2, Figure 2 right", kit.less_than(1),
                  max(late[k + 1] / max(late[k], 1e-9) for k in range(0, len(late), 2))),
        kit.claim("regions",
                  "Trained networks end as the diagram says (cells that do not, more than one cell from a boundary)",
                  "Section 3.3, Figure 2 left", kit.exactly(0), grid.disagree_inside),
        kit.claim("case-1", "c_1, on the line y = -||x|| z, converges to 0 and never gets there: y falls like "
                  "exp(-||x|| t / 2) (trained rate in the end)", "Section 3.3, case 1; A.6",
                  kit.near(grid.norm / 2, 0.01 * grid.norm / 2), decay),
        kit.claim("case-2", "c_2, above it: learnt (outcome; 1: solved)",
                  "Section 3.3, case 2", kit.exactly(Outcome.SOLVED), ends[1]),
        kit.claim("case-3", "c_3, below it: the neuron dies in finite time (outcome; 3: dead)",
                  "Section 3.3, case 3", kit.exactly(Outcome.DIES), ends[2]),
        kit.claim("failure",
                  "Even under H2 training fails from a set of positive measure (share of dead neurons among y0 > 0)",
                  "Section 3.3, failure modes (the area of the triangle below the line)",
                  kit.near(grid.norm / 4, 0.01), np.sum(grid.trained == Outcome.DIES) / (grid.trained.size / 2)),
        kit.theory("closed-form",
                   "The closed form solves the differential equation (largest |dP| against an ODE solver)",
                   "Eqs. 2, 12, 16, 20-22", kit.at_most(1e-8), e.ode[0]),
        kit.theory("invariant", "y^2 - ||x||^2 z^2 is conserved (largest drift of the ODE solution)",
                   "Section 3.2, Eq. 13", kit.at_most(1e-8), e.ode[1]),
        kit.theory("eq-19", "For c = 0 the logit stays below 2 log(||x|| t + exp(u0 / 2)) (largest excess, nine starts "
                   "and norms)", "A.3, Eq. 19", kit.at_most(1e-12), balanced),
        kit.finding("eq-19-uneven", "For c > 0 it fails: largest excess from (y0, z0, ||x||) = (3, 0.1, 1)",
                    "A.3, Eq. 19", uneven),
    ]  # fmt: skip


def draw_fig2(e: kit.Evidence) -> kit.Drawing:
    """Draw the diagram on the left, y and P on the right."""
    figure, axes = draw_diagram(e.diagram, ("Phase diagram", "Preactivation", "Confidence"), label="$P_t$")
    axes[1].set_ylim(0, None)
    axes[2].set_ylim(0.5, 1.005)
    return figure


FIGURE_2 = kit.Figure(
    id="tachet2018-fig2",
    caption=(
        "Left: what became of networks trained from each (z0, y0), ||x|| = 0.7, with hyperbolas, asymptotes of slope "
        "±||x|| and the trained paths of the three cases. Right: y and the confidence for several c and ||x||, closed "
        "form (lines) and trained networks (dots)."
    ),
    configs={"phase": "tachet2018/phase.yaml", **configs((), COARSE_2)},
    origin={"norm of the diagram": "stated", "curves": "chosen", "step": "chosen", "grid": "chosen"},
)  # fmt: skip


HINGE = ("loss.kind=hinge",)
FINE = (*HINGE, "optimizer.lr=5.0e-4", "optimizer.iterations=16000", "record.snapshots.interval=20")
COARSE = (*HINGE, "optimizer.lr=5.0e-3", "optimizer.iterations=1600", "record.snapshots.interval=2")
GENERAL = kit.Wanted(
    "tachet2018/two_classes.yaml",
    (
        "dataset.x=[[1.0, 0.2], [0.5, 0.9], [0.8, 0.6], [-0.3, -0.6]]", "dataset.y=[1, 1, 1, -1]",
        "initialization.y=[[0.1], [0.1]]", "initialization.z=[[0.1], [0.1]]", "loss.kind=hinge", "loss.reduction=sum",
        "optimizer.lr=1.0e-4", "optimizer.iterations=30000", "record.snapshots.interval=50",
    ),
)  # fmt: skip
"""A class of three points in general position (C.2)."""
CASE_3 = kit.Wanted(
    "tachet2018/phase.yaml",
    (
        *HINGE,
        "initialization.hidden_weight=[[0.5]]",
        "initialization.output_weight=[-0.8]",
        "optimizer.lr=1.0e-3",
        "record.snapshots.interval=10",
    ),
)


def evidence_fig9(runs: kit.Runs) -> kit.Evidence:
    """Train the diagram and compare the curves with Eq. 27.

    `outputs` (K, 3) are those on the points of `GENERAL`, trained, by C.2 piece by piece (`theory`), and by C.2 as
    `printed`, which holds `until` the first point has margin 1, continued to the end; `death` is when the trained
    neuron of c_3 dies.
    """
    run = runs["general"]
    dataset, t = run.dataset(), times(run)
    x = dataset.x[dataset.y == 1]
    w0, z0 = layers(run)[0][0, 0], float(layers(run)[1][0, 0, 0])
    theory, satisfied = hinge_class(t, x, w0, z0)
    dying = runs["c_3"]
    y = layers(dying)[0][:, 0, 0] * float(dying.dataset().x[0, 0])
    return kit.Evidence(
        diagram=diagram(runs), outputs=outputs(run, x), theory=theory, until=float(satisfied.min()),
        printed=_printed(t, x, w0, z0), death=crossing(times(dying), -y, 0.0),
    )  # fmt: skip


def _printed(t: kit.Floats, x: kit.Floats, w0: kit.Floats, z0: float) -> kit.Floats:
    """Return the outputs (K, m) on the points `x (m, d)` by C.2's formula for the whole class, used to the end."""
    X = x.sum(axis=0)
    length, y = float(np.linalg.norm(X)), float(w0 @ X)
    growth, decay = np.exp(length * t), np.exp(-length * t)
    y_t = 0.5 * ((y + length * z0) * growth + (y - length * z0) * decay)
    z_t = 0.5 * ((y + length * z0) * growth - (y - length * z0) * decay) / length
    w_t = w0 + (y_t - y)[:, None] * X / length**2
    return np.asarray(np.minimum(z_t[:, None] * (w_t @ x.T), 1.0))


def _before_margin(curves: list[ModeCurve]) -> float:
    """Return the largest difference while theory is below 0.9: where it stops, a step may pass the margin or not."""
    return max(float(np.abs(one.P - one.P_theory)[one.P_theory < 0.9].max(initial=0.0)) for one in curves)


def claims_fig9(e: kit.Evidence) -> list[kit.Claim]:
    """Compare with Section 5 and Appendix C."""
    grid, curves, steps = e.diagram.grid, e.diagram.curves, e.diagram.steps
    z3, y3 = CASES["c_3"]
    return [
        kit.claim("overlay", "Trained networks follow Eqs. 6 and 27 (largest difference of outputs, both classes, c = "
                  "0, c > 0, c < 0)", "Theorem 5.1, C.1; limit of small steps", kit.at_most(1e-3),
                  largest_error(curves)),
        kit.claim("first-order", "and deviate in proportion to the step until the margin is near (power of the step, "
                  "outputs below 0.9)", "gradient descent is Euler's method of Eq. 26", kit.near(1.0, 0.1),
                  order(_before_margin(e.diagram.coarse), if_learnt(reached(curves), _before_margin(curves)), steps)),
        kit.claim("sigmoidal", "The curves are hard sigmoids: ever faster until the output stops (trained curves of "
                  "six)", "Section 5, C.1", kit.exactly(len(curves)), sum(sigmoidal(one.t, one.P) for one in curves)),
        kit.claim("stops",
                  "Learning stops when the output reaches 1 (largest final output; a step may pass it by its own size)",
                  "Theorem 5.1", kit.near(1.0, 5 * steps[1]), max(float(one.P[-1]) for one in curves)),
        kit.claim("regions",
                  "Trained networks end as the diagram says (cells that do not, more than one cell from a boundary)",
                  "C.1, Figure 9 left", kit.exactly(0), grid.disagree_inside),
        kit.claim("death", "In case 3 the neuron dies at |theta_0| / (2 p ||x||) (trained time over it)",
                  "Eq. 27 with z_0 < 0", kit.near(1.0, 0.01), e.death / float(hinge_death_time(y3, z3, grid.norm))),
        kit.claim("general",
                  "A class of several points, full batches: outputs follow C.2, piece by piece (largest difference)",
                  "C.2; limit of small steps", kit.at_most(1e-3),
                  if_learnt(float(e.outputs[-1].min()), float(np.abs(e.outputs - e.theory).max()))),
        kit.finding("general-until", "C.2 as printed holds until the first point reaches margin 1, at time",
                    "C.2", e.until),
        kit.finding("general-late", "beyond it its outputs are wrong by up to",
                    "C.2", float(np.abs(e.printed - e.outputs).max())),
    ]  # fmt: skip


def draw_fig9(e: kit.Evidence) -> kit.Drawing:
    """Draw the diagram on the left, y and the output on the right."""
    titles = ("Initialisations", "Preactivation", "Output")
    figure, axes = draw_diagram(e.diagram, titles, label="output $|u_t|$", until=5.0)
    for panel in axes[1:]:
        panel.set_ylim(0, None)
    return figure


FIGURE_9 = kit.Figure(
    id="tachet2018-fig9",
    caption=(
        "Left: what became of networks trained under the hinge loss from each (z0, y0), ||x|| = 0.7. Right: the "
        "solutions of Eq. 27, which stop when the output reaches 1, and trained networks (dots)."
    ),
    configs={
        "phase": kit.Wanted("tachet2018/phase.yaml", HINGE),
        "c_3": CASE_3,
        **configs(FINE, COARSE),
        "general": GENERAL,
    },
    origin={"loss": "stated", "norm of the diagram": "inferred", "curves": "chosen", "step": "chosen"},
)  # fmt: skip


FIGURES = kit.by_id(FIGURE_2, FIGURE_9)

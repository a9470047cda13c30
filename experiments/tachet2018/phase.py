"""Figures 2 and 9: a grid of initialisations (z0, y0) that are all trained, and learning curves
of several modes.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import ListedColormap
from matplotlib.patches import Patch
from numpy.typing import NDArray
from scipy.ndimage import maximum_filter, minimum_filter

from dynamics_cli import kit

from .theory.hinge_class import hinge_class
from .theory.modes import Mode, Outcome, logistic_mode, outcome
from .trained import (
    ModeCurve,
    Paths,
    if_learnt,
    largest_error,
    layers,
    mode_curve,
    ode_drift,
    one_point,
    outputs,
    over_time,
    reached,
    sigmoidal,
    step,
    times,
    train_together,
)

CELLS = 120
"""Initialisations along either axis of the diagram."""
REACH = 1.0
"""The diagram shows [-1, 1]^2."""
CASES = {"c_1": (-0.6, 0.42), "c_2": (-0.5, 0.7), "c_3": (-0.8, 0.35)}
"""(z0, y0) of the three cases of Section 3.3, placed like in the paper's picture; c_1 is on the
line y = -0.7 z.
"""
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


def configs(*changes: str) -> dict[str, kit.Wanted]:
    """Return the runs of all curves, with some changes."""
    starts = {
        name: (f"initialization.y={y}", f"initialization.z={z}") for name, (y, z) in STARTS.items()
    }
    return {
        name: kit.Wanted("tachet2018/two_classes.yaml", (*start, *changes))
        for name, start in starts.items()
    }


@dataclass(frozen=True)
class Diagram:
    """The grid, the curves, and their gaps to the asymptote."""

    grid: Grid
    curves: list[ModeCurve]
    gaps: list[kit.Floats]
    step: float


def diagram(runs: kit.Runs) -> Diagram:
    """Train the grid of the run `phase` and compare the curves with their closed forms."""
    curves = [mode_curve(runs[name], label) for name in STARTS for label in (1, -1)]
    gaps = [gap(runs[name], label) for name in STARTS if name != "c = 0" for label in (1, -1)]
    return Diagram(
        grid=train_grid(runs["phase"]), curves=curves, gaps=gaps, step=step(runs["c = 0"])
    )


def gap(run: kit.Run, label: int) -> kit.Floats:
    """Return how far a trained mode is from the asymptote of its hyperbola, at the start and in the
    end (2,).

    This is `|y - ||x|| |z|| / (y + ||x|| |z|)`, 1 on an axis and 0 on the asymptote.
    """
    x, norm, _ = one_point(run, label)
    hidden, output = layers(run)
    neuron = 0 if label == 1 else -1
    y = hidden[:, neuron] @ x
    z = norm * np.abs(output[:, 0, neuron])
    return np.abs(y - z)[[0, -1]] / (y + z)[[0, -1]]


@dataclass(frozen=True)
class Grid:
    """The grid of initialisations, trained.

    `trained` (G, G) are outcomes of training, y0 down the rows, values of `Outcome`, `VANISHES`
    where neither came to pass. `disagree_inside` counts cells that disagree with Section 3.3
    although all cells around them are in the same region there. `cases` are the neurons of `CASES`,
    trained.
    """

    norm: float
    trained: NDArray[np.int8]
    disagree_inside: int
    cases: Paths


def train_grid(run: kit.Run) -> Grid:
    """Train the single neuron of a run on its single point, of this `norm`, from every cell of the
    grid.
    """
    x = float(run.dataset().x[0, 0])
    axis: kit.Floats = (np.arange(CELLS, dtype=np.float64) + 0.5) * (2 * REACH / CELLS) - REACH
    z0, y0 = np.reshape(np.meshgrid(axis, axis), (2, -1))
    total = run.iterations
    path = train_together(run, (y0 / x)[:, None], z0, snapshots=[total])
    y = path.w[0, :, 0] * x
    z = path.z[0]
    frozen = (path.w[0, :, 0] == y0 / x) & (z == z0) & (y0 <= 0)
    ends = np.select(
        [frozen, y <= 0, z > 0], [Outcome.FROZEN, Outcome.DIES, Outcome.SOLVED], Outcome.VANISHES
    )
    starts = np.array(list(CASES.values()))
    cases = train_together(
        run,
        (starts[:, 1] / x)[:, None],
        starts[:, 0],
        snapshots=np.linspace(0, total, 81).astype(np.int64),
    )
    trained, theory = (
        outcomes.reshape(CELLS, CELLS)
        for outcomes in (ends.astype(np.int8), outcome(y0, z0, abs(x)))
    )
    inside = maximum_filter(theory, 3) == minimum_filter(theory, 3)
    return Grid(
        norm=abs(x),
        trained=trained,
        disagree_inside=int(((trained != theory) & inside).sum()),
        cases=Paths(cases.t, cases.w * x, cases.z),
    )


def draw_diagram(
    shown: Diagram,
    titles: tuple[str, str, str],
    *,
    label: str,
    limits: tuple[float, float | None],
    until: float,
) -> kit.Drawing:
    """Draw the grid on the left, y and P (the axis `label`) until a time on the right."""
    figure, axes = kit.new_figure(3, 1, width=kit.TEXT_WIDTH, aspect=1.05, extra_height=0.3)
    handles: list[kit.Artist] = [*_draw_grid(axes[0], shown.grid)]
    kit.panel_label(axes[0], 0, titles[0])
    y = over_time(titles[1], "$y_t$", shown.curves, "y", until, limits=(0, None))
    P = over_time(titles[2], label, shown.curves, "P", until, limits=limits)
    handles += kit.panel(axes[1], 1, y) + kit.panel(axes[2], 2, P)
    for panel in axes:
        panel.set_box_aspect(1)
    kit.figure_legend(figure, handles)
    return figure


def _draw_grid(axes: Axes, grid: Grid) -> list[Patch]:
    """Draw regions, hyperbolas, asymptotes and the three cases; return handles for a legend."""
    edges = np.linspace(-REACH, REACH, CELLS + 1)
    axes.pcolormesh(
        edges,
        edges,
        grid.trained,
        cmap=ListedColormap(COLORS),
        vmin=-0.5,
        vmax=3.5,
        rasterized=True,
    )
    line = np.linspace(-REACH, REACH, 400)
    for c in (0.03, 0.12, 0.3):
        upper = np.sqrt(c + (grid.norm * line) ** 2)
        right = np.sqrt(np.maximum((line**2 + c) / grid.norm**2, 0.0))
        for x, y in ((line, upper), (line, -upper), (right, line), (-right, line)):
            axes.plot(x, y, color=kit.PALETTE.muted, lw=0.6)
    _draw_flow(axes, grid.norm)
    for slope in (1, -1):
        axes.plot(line, slope * grid.norm * line, color=kit.PALETTE.theory, lw=0.9)
    for k, name in enumerate(CASES):
        z = grid.cases.z[:, k]
        y = grid.cases.w[:, k, 0]
        inside = (np.abs(z) <= REACH) & (np.abs(y) <= REACH)
        axes.plot(z[inside], y[inside], color=kit.PALETTE.neurons, lw=1.5)
        axes.plot(z[0], y[0], kit.MARKER, color=kit.PALETTE.neurons, mec="white", mew=0.5)
        (dx, dy), side = LABELS[k]
        axes.annotate(
            f"${name}$", (z[0], y[0]), xytext=(dx, dy), textcoords="offset points", ha=side
        )
    axes.axhline(0, color=kit.PALETTE.theory, lw=0.5)
    axes.axvline(0, color=kit.PALETTE.theory, lw=0.5)
    axes.set(
        xlim=(-REACH, REACH), ylim=(-REACH, REACH), xlabel="$z_0$", ylabel="$y_0$", box_aspect=1
    )
    names = {1: "solved", 0: "frozen", 3: "neuron dies"}
    return [Patch(color=COLORS[k], label=label) for k, label in names.items()]


def _draw_flow(axes: Axes, norm: float) -> None:
    """Draw arrows along the flow where the neuron is active: `(z', y')` is along `(y, ||x||^2
    z)`.
    """
    z, y = np.meshgrid(np.linspace(-0.86, 0.86, 7), np.linspace(0.14, 0.86, 4))
    along = np.array([y, norm**2 * z])
    along /= np.hypot(*along)
    axes.quiver(
        z,
        y,
        *along,
        color=kit.PALETTE.muted,
        pivot="mid",
        scale=16,
        width=0.008,
        headwidth=4.5,
        zorder=2,
    )


ODE_STARTS = (
    (0.2, 0.2, 1.0, 1),
    (1.2, 0.1, 0.7, 1),
    (0.2, 0.9, 1.3, 1),
    (0.9, -0.3, 1.0, 1),
    (0.5, -0.4, 2.0, -1),
)


@dataclass(frozen=True)
class Fig2Evidence:
    """The diagram of cross-entropy."""

    diagram: Diagram
    drift: float


def evidence_fig2(runs: kit.Runs) -> Fig2Evidence:
    """Train the diagram, compare all curves with their closed forms, and integrate (largest
    drift of the invariant).
    """
    return Fig2Evidence(
        diagram=diagram(runs), drift=max(ode_drift(*start, until=40.0) for start in ODE_STARTS)
    )


def claims_fig2(e: Fig2Evidence) -> list[kit.Claim]:
    grid = e.diagram.grid
    curves = e.diagram.curves
    late = np.array([kit.crossing(curve.t, curve.P, 0.9) for curve in curves])
    y = grid.cases.w[..., 0]
    z = grid.cases.z
    ends = np.select([y[-1] <= 0, z[-1] > 0], [Outcome.DIES, Outcome.SOLVED], Outcome.VANISHES)
    decay = (
        float(np.log(y[-2, 0] / y[-1, 0]) / np.diff(grid.cases.t)[-1])
        if (y[:, 0] > 0).all()
        else np.nan
    )
    t = np.linspace(0.0, 50.0, 4000)
    balanced = max(
        float(
            (
                logistic_mode(t, norm * z0, z0, norm).u
                - 2 * np.log(norm * t + np.exp(norm * z0**2 / 2))
            ).max()
        )
        for norm in (0.3, 1.0, 3.0)
        for z0 in (0.03, 0.3, 3.0)
    )
    return [
        kit.claim(
            "overlay",
            "Trained networks follow the closed form (largest "
            r"$|P_\mathrm{train} - P_\mathrm{theory}|$, both classes, c = 0, c > 0, c < 0)",
            "Theorem 3.2, Eqs. 2, 3, A.3; limit of small steps",
            kit.at_most(1e-3),
            largest_error(curves),
        ),
        kit.claim(
            "sigmoidal",
            "All classification curves are sigmoidal: slow, then faster, then saturating (trained "
            "curves of six that are convex, then concave)",
            "Abstract; Section 3.2, Figure 2 right",
            kit.exactly(len(curves)),
            sum(sigmoidal(c.t, c.P) for c in curves),
        ),
        kit.claim(
            "sigmoidal-y",
            "All hidden activations $y_t$ are sigmoidal (trained curves of six)",
            "Section 1, Figure 2 right",
            kit.exactly(len(curves)),
            sum(sigmoidal(c.t, c.y) for c in curves),
        ),
        kit.claim(
            "larger-norm",
            r"A larger $\|x\|$ converges faster (largest ratio of the times to P = 0.9, $\|x\|$ "
            r"= 2 to $\|x\|$ = 1, same c)",
            "Section 3.2, Figure 2 right",
            kit.less_than(1),
            np.max(late[1::2] / late[::2]),
        ),
        kit.claim(
            "c-fades",
            r"The effect of c fades: points come closer to the asymptote $y = \|x\| z$ (largest"
            r" ratio of the gap "
            r"$|y - \|x\| z| / (y + \|x\| z)$ in the end to that at the start)",
            "Section 3.2, Interpretation",
            kit.less_than(1),
            if_learnt(reached(curves), max(late / early for early, late in e.diagram.gaps)),
        ),
        kit.claim(
            "regions",
            "Trained networks end as the diagram says (cells that do not, more than one cell from a"
            " boundary)",
            "Section 3.3, Figure 2 left",
            kit.exactly(0),
            grid.disagree_inside,
        ),
        kit.claim(
            "case-1",
            r"$c_1$, on the line $y = -\|x\| z$, converges to 0 and never gets there: y falls like "
            r"$\exp(-\|x\| t/2)$ (trained rate in the end)",
            "Section 3.3, case 1; A.6",
            kit.near(grid.norm / 2, 0.01 * grid.norm / 2),
            decay,
        ),
        kit.claim(
            "case-2",
            "$c_2$, above it: learnt (outcome; 1: solved)",
            "Section 3.3, case 2",
            kit.exactly(Outcome.SOLVED),
            ends[1],
        ),
        kit.claim(
            "case-3",
            "$c_3$, below it: the neuron dies in finite time (outcome; 3: dead)",
            "Section 3.3, case 3",
            kit.exactly(Outcome.DIES),
            ends[2],
        ),
        kit.claim(
            "failure",
            "Even under H2 training fails from a set of positive measure (share of dead neurons"
            " among y0 > 0)",
            "Section 3.3, failure modes (the area of the triangle below the line)",
            kit.near(grid.norm / 4, 0.01),
            np.sum(grid.trained == Outcome.DIES) / (grid.trained.size / 2),
        ),
        kit.theory(
            "invariant",
            r"$y^2 - \|x\|^2 z^2$ is conserved (largest drift of the ODE solution)",
            "Section 3.2, Eq. 13",
            kit.at_most(1e-8),
            e.drift,
        ),
        kit.theory(
            "eq-19",
            r"For c = 0 the logit stays below $2\log(\|x\| t + \exp(u_0/2))$ (largest excess, nine "
            "starts and norms)",
            "A.3, Eq. 19",
            kit.at_most(1e-12),
            balanced,
        ),
    ]


def numbers_fig2(e: Fig2Evidence) -> dict[str, float]:
    """Return the largest gap to the asymptote at the start, and what is left of it."""
    early, late = max(e.diagram.gaps, key=lambda gaps: gaps[1] / gaps[0])
    return {
        "gap to the asymptote at the start, of the mode that keeps most of it": early,
        "the same in the end": late,
    }


def draw_fig2(e: Fig2Evidence) -> kit.Drawing:
    return draw_diagram(
        e.diagram,
        ("Phase diagram", "Preactivation", "Confidence"),
        label="$P_t$",
        limits=(0.5, 1.005),
        until=max(float(curve.t[-1]) for curve in e.diagram.curves),
    )


FIGURE_2 = kit.Figure(
    id="tachet2018-fig2",
    caption=(
        "Left: what became of networks trained from each (z0, y0), ||x|| = 0.7, with hyperbolas,"
        " asymptotes of slope ±||x||, arrows along the flow where the neuron is active, and the"
        " trained paths of the three cases. Right: y and the confidence for several c and ||x||,"
        " closed form (lines) and trained networks (dots)."
    ),
    configs={"phase": "tachet2018/phase.yaml", **configs()},
    passes={
        "random_features": {
            "case-2": "With y fixed above 0, z rises by itself from there and becomes positive."
        },
        "wrong_gradient": {
            "case-3": "Under this null every neuron dies; the cases that say otherwise fail."
        },
    },
)


HINGE = ("loss.kind=hinge",)
FINE = (*HINGE, "optimizer.lr=5.0e-4", "optimizer.iterations=16000", "record.snapshots.interval=20")
GENERAL = kit.Wanted(
    "tachet2018/two_classes.yaml",
    (
        "dataset.x=[[1.0, 0.2], [0.5, 0.9], [0.8, 0.6], [-0.3, -0.6]]",
        "dataset.y=[1, 1, 1, -1]",
        "initialization.y=[[0.1], [0.1]]",
        "initialization.z=[[0.1], [0.1]]",
        "loss.kind=hinge",
        "loss.reduction=sum",
        "optimizer.lr=1.0e-4",
        "optimizer.iterations=30000",
        "record.snapshots.interval=50",
    ),
)
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


@dataclass(frozen=True)
class Fig9Evidence:
    """The diagram of the hinge loss, and two single runs.

    `outputs` (K, 3) are those on the points of `GENERAL`, trained, and by C.2 piece by piece
    (`theory`); `death` is when the trained neuron of c_3 dies.
    """

    diagram: Diagram
    outputs: kit.Floats
    theory: kit.Floats
    death: float


def evidence_fig9(runs: kit.Runs) -> Fig9Evidence:
    """Train the diagram and compare the curves with Eq. 27."""
    run = runs["general"]
    dataset = run.dataset()
    x = dataset.x[dataset.y == 1]
    w0 = layers(run)[0][0, 0]
    z0 = float(layers(run)[1][0, 0, 0])
    dying = runs["c_3"]
    y = layers(dying)[0][:, 0, 0] * float(dying.dataset().x[0, 0])
    return Fig9Evidence(
        diagram=diagram(runs),
        outputs=outputs(run, x),
        theory=hinge_class(times(run), x, w0, z0),
        death=kit.crossing(times(dying), -y, 0.0),
    )


def claims_fig9(e: Fig9Evidence) -> list[kit.Claim]:
    grid = e.diagram.grid
    curves = e.diagram.curves
    z3, y3 = CASES["c_3"]
    dies = Mode(y3, z3, grid.norm, 1).last_progress / grid.norm
    return [
        kit.claim(
            "overlay",
            "Trained networks follow Eqs. 6 and 27 (largest difference of outputs, both classes, c"
            " = 0, c > 0, c < 0)",
            "Theorem 5.1, C.1; limit of small steps",
            kit.at_most(1e-3),
            largest_error(curves),
        ),
        kit.claim(
            "sigmoidal",
            "The curves are hard sigmoids: ever faster until the output stops (trained curves of "
            "six)",
            "Section 5, C.1",
            kit.exactly(len(curves)),
            sum(sigmoidal(c.t, c.P) for c in curves),
        ),
        kit.claim(
            "stops",
            "Learning stops when the output reaches 1 (largest final output; a step may pass it by"
            " its own size)",
            "Theorem 5.1",
            kit.near(1.0, 5 * e.diagram.step),
            max(float(mode.P[-1]) for mode in curves),
        ),
        kit.claim(
            "regions",
            "Trained networks end as the diagram says (cells that do not, more than one cell from a"
            " boundary)",
            "C.1, Figure 9 left",
            kit.exactly(0),
            grid.disagree_inside,
        ),
        kit.claim(
            "death",
            r"In case 3 the neuron dies at $|\theta_0|/(2 p \|x\|)$ (trained time over it)",
            "Eq. 27 with z_0 < 0",
            kit.near(1.0, 0.01),
            e.death / dies,
        ),
        kit.claim(
            "general",
            "A class of several points, full batches: outputs follow C.2, piece by piece (largest "
            "difference)",
            "C.2; limit of small steps",
            kit.at_most(1e-3),
            if_learnt(float(e.outputs[-1].min()), float(np.abs(e.outputs - e.theory).max())),
        ),
    ]


def draw_fig9(e: Fig9Evidence) -> kit.Drawing:
    titles = ("Initialisations", "Preactivation", "Output")
    return draw_diagram(e.diagram, titles, label="output $|u_t|$", limits=(0, None), until=5.0)


FIGURE_9 = kit.Figure(
    id="tachet2018-fig9",
    caption=(
        "Left: what became of networks trained under the hinge loss from each (z0, y0), ||x|| ="
        " 0.7, with arrows along the flow. Right: the solutions of Eq. 27, which stop when the"
        " output reaches 1, and trained networks (dots)."
    ),
    configs={
        "phase": kit.Wanted("tachet2018/phase.yaml", HINGE),
        "c_3": CASE_3,
        **configs(*FINE),
        "general": GENERAL,
    },
    passes={
        "random_features": {"stops": "The output layer alone learns until the output reaches 1."}
    },
)


FIGURES = kit.by_id(FIGURE_2, FIGURE_9)

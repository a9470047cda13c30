"""Figure 9: the hinge loss, initialisation diagram and learning curves.

`dyn reproduce tachet2018-fig9`. About 4 s: 120 x 120 initialisations are trained.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from matplotlib.figure import Figure as Drawing

from dynamics_cli.measures.arrays import Floats
from dynamics_cli.plotting.layout import figure_legend, panel_label
from dynamics_cli.plotting.style import TEXT_WIDTH, new_figure
from dynamics_cli.reproduction.claims import Claim, at_most, claim, exactly, finding, near
from dynamics_cli.reproduction.figure import Figure, Runs, Wanted
from dynamics_cli.runs import Run

from .curves import draw_curves, mode_curve, trained_handle
from .fig2 import STARTS, starts
from .phase_grid import CASES, PhaseGrid, draw_grid, train_grid
from .theory.hinge_class import hinge_class
from .theory.modes import Outcome, hinge_death_time
from .trained import Curve, crossing, layers, order, outputs, step, times

HINGE = ("loss.kind=hinge",)
SHORT = ("optimizer.lr=5.0e-4", "optimizer.iterations=16000", "record.snapshots.interval=20")
ROUGH = ("optimizer.lr=5.0e-3", "optimizer.iterations=1600", "record.snapshots.interval=2")
GENERAL = Wanted(
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


@dataclass(frozen=True)
class Evidence:
    """The diagram, the curves, and a class of several points."""

    grid: PhaseGrid
    curves: list[Curve]
    coarse: list[Curve]
    steps: tuple[float, float]
    general: float
    """Largest difference of outputs on the three points of D_1, trained and C.2."""
    general_first: float
    """When the first of them reaches margin 1: C.2 as printed holds until then."""
    late: float
    """Largest difference between trained outputs and C.2 as printed, continued beyond that time."""
    death: tuple[float, float]
    """When the neuron of c_3 dies: trained, closed form."""


def evidence(runs: Runs) -> Evidence:
    """Train the diagram and compare the curves with Eq. 27."""
    grid = train_grid(runs["phase"])
    fine, coarse = [runs[name] for name in STARTS], [runs[f"{name}, coarse"] for name in STARTS]
    general, first, late = _general(runs["general"])
    z3, y3 = CASES["c_3"]
    return Evidence(
        grid=grid,
        curves=[mode_curve(run, label) for run in fine for label in (1, -1)],
        coarse=[mode_curve(run, label) for run in coarse for label in (1, -1)],
        steps=(step(coarse[0]), step(fine[0])),
        general=general,
        general_first=first,
        late=late,
        death=(_death(runs["c_3"]), float(hinge_death_time(y3, z3, grid.norm))),
    )


def _general(run: Run) -> tuple[float, float, float]:
    dataset, t = run.dataset(), times(run)
    x = dataset.x[dataset.y == 1]
    trained = outputs(run, x)  # (K, m)
    w0, z0 = layers(run)[0][0, 0], float(layers(run)[1][0, 0, 0])
    path = hinge_class(t, x, w0, z0)
    return float(np.abs(trained - path.outputs).max()), path.valid_until, _printed_gap(t, x, w0, z0, trained)


def _printed_gap(t: Floats, x: Floats, w0: Floats, z0: float, trained: Floats) -> float:
    """Return how far C.2's formula for the whole class departs from training when used to the end."""
    X = x.sum(axis=0)
    length, y = float(np.linalg.norm(X)), float(w0 @ X)
    growth, decay = np.exp(length * t), np.exp(-length * t)
    y_t = 0.5 * ((y + length * z0) * growth + (y - length * z0) * decay)
    z_t = 0.5 * ((y + length * z0) * growth - (y - length * z0) * decay) / length
    w_t = w0 + (y_t - y)[:, None] * X / length**2
    return float(np.abs(np.minimum(z_t[:, None] * (w_t @ x.T), 1.0) - trained).max())


def _death(run: Run) -> float:
    y = layers(run)[0][:, 0, 0] * float(run.dataset().x[0, 0])
    return crossing(times(run), -y, 0.0)


def _before_margin(one: Curve) -> float:
    """Return the largest difference while theory is below 0.9: where it stops, a step may pass the margin or not."""
    early = one.P_theory < 0.9
    return float(np.abs(one.P - one.P_theory)[early].max())


def claims(found: Evidence) -> list[Claim]:
    """Compare with Section 5 and Appendix C."""
    worst = max(one.error for one in found.curves)
    smooth = [max(_before_margin(one) for one in curves) for curves in (found.coarse, found.curves)]
    stops = max(float(one.P[-1]) for one in found.curves)
    return [
        claim(
            "overlay",
            "Trained networks follow Eqs. 6 and 27 (largest difference of outputs, both classes, c = 0, c > 0, c < 0)",
            "Theorem 5.1, C.1; limit of small steps",
            expected=at_most(1e-3),
            measured=worst,
        ),
        claim(
            "first-order",
            "and deviate in proportion to the step until the margin is near (power of the step, outputs below 0.9)",
            "gradient descent is Euler's method of Eq. 26",
            expected=near(1.0, 0.1),
            measured=order(smooth[0], smooth[1], found.steps),
        ),
        claim(
            "stops",
            "Learning stops when the output reaches 1 (largest final output; a step may pass it by its own size)",
            "Theorem 5.1",
            expected=near(1.0, 5 * found.steps[1]),
            measured=stops,
        ),
        claim(
            "regions",
            "Trained networks end as the diagram says (cells that do not, more than one cell from a boundary)",
            "C.1, Figure 9 left",
            expected=exactly(0),
            measured=found.grid.disagree_inside,
        ),
        claim(
            "death",
            "In case 3 the neuron dies at |theta_0| / (2 p ||x||) (trained time over it)",
            "Eq. 27 with z_0 < 0",
            expected=near(1.0, 0.01),
            measured=found.death[0] / found.death[1],
        ),
        claim(
            "general",
            "A class of several points, full batches: outputs follow C.2, piece by piece (largest difference)",
            "C.2; limit of small steps",
            expected=at_most(1e-3),
            measured=found.general,
        ),
        finding(
            "general-until",
            "C.2 as printed holds until the first point reaches margin 1, at time",
            "C.2",
            measured=found.general_first,
        ),
        finding("general-late", "beyond it its outputs are wrong by up to", "C.2", measured=found.late),
        finding("agreement", "Share of all trained cells that agree", "Figure 9", measured=found.grid.agreement),
        finding("solved", "Trained cells that solve the task", "Figure 9", measured=found.grid.count(Outcome.SOLVED)),
    ]


def draw(found: Evidence) -> Drawing:
    """Draw the diagram on the left, y and the output on the right."""
    figure, axes = new_figure(3, 1, width=TEXT_WIDTH, aspect=1.05, extra_height=0.3)
    patches = draw_grid(axes[0], found.grid)
    panel_label(axes[0], 0, "Initialisations")
    lines = draw_curves(axes[1], found.curves, values="y", label="$y_t$", until=5.0)
    panel_label(axes[1], 1, "Preactivation")
    draw_curves(axes[2], found.curves, values="P", label="output $|u_t|$", until=5.0)
    panel_label(axes[2], 2, "Output")
    for panel in axes[1:]:
        panel.set_box_aspect(1)
        panel.set_ylim(0, None)
    figure_legend(figure, [*patches, *lines, trained_handle()], columns=4)
    return figure


FIGURE = Figure(
    id="tachet2018-fig9",
    caption=(
        "Left: what became of networks trained under the hinge loss from each (z0, y0), ||x|| = 0.7. Right: the "
        "solutions of Eq. 27, which stop when the output reaches 1, and trained networks (dots)."
    ),
    configs={
        "phase": Wanted("tachet2018/phase.yaml", HINGE),
        "c_3": Wanted(
            "tachet2018/phase.yaml",
            (
                *HINGE,
                "initialization.hidden_weight=[[0.5]]",
                "initialization.output_weight=[-0.8]",
                "optimizer.lr=1.0e-3",
                "record.snapshots.interval=10",
            ),
        ),
        **{name: starts(name, *HINGE, *SHORT) for name in STARTS},
        **{f"{name}, coarse": starts(name, *HINGE, *ROUGH) for name in STARTS},
        "general": GENERAL,
    },
    origin={"loss": "stated", "norm of the diagram": "inferred", "curves": "assumed", "step": "assumed"},
    evidence=evidence,
    claims=claims,
    draw=draw,
)

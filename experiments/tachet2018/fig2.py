"""Figure 2: phase diagram of one mode, and learning curves for several hyperbolas and norms.

`dyn reproduce tachet2018-fig2`. About 5 s: 120 x 120 initialisations of the diagram are trained.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from matplotlib.figure import Figure as Drawing

from dynamics_cli.plotting.layout import figure_legend, panel_label
from dynamics_cli.plotting.style import TEXT_WIDTH, new_figure
from dynamics_cli.reproduction.claims import Claim, at_most, claim, exactly, finding, less_than, near
from dynamics_cli.reproduction.figure import Figure, Runs, Wanted

from .curves import draw_curves, mode_curve, ode_check, trained_handle
from .phase_grid import CASES, PhaseGrid, draw_grid, train_grid
from .theory.modes import Outcome, logistic_mode, logit_bound
from .trained import Curve, crossing, order, step

CONFIG = "tachet2018/two_classes.yaml"
STARTS = {
    "c = 0": ("[[0.2], [0.4]]", "[[0.2], [0.2]]"),
    "c = 1": ("[[1.019803902718557], [1.0770329614269007]]", "[[0.2], [0.2]]"),
    "c = -0.5": ("[[0.2], [0.2]]", "[[0.7348469228349535], [0.3674234614174767]]"),
}
"""y0 and z0 of both classes, of norms 1 and 2."""
ODE_STARTS = ((0.2, 0.2, 1.0, 1), (1.2, 0.1, 0.7, 1), (0.2, 0.9, 1.3, 1), (0.9, -0.3, 1.0, 1), (0.5, -0.4, 2.0, -1))


def starts(name: str, *extra: str) -> Wanted:
    """Return the run of the two classes from one of `STARTS`."""
    y, z = STARTS[name]
    return Wanted(CONFIG, (f"initialization.y={y}", f"initialization.z={z}", *extra))


COARSE = ("optimizer.lr=0.01", "optimizer.iterations=2400", "record.snapshots.interval=4")


@dataclass(frozen=True)
class Evidence:
    """The diagram, and the curves with their closed forms."""

    grid: PhaseGrid
    curves: list[Curve]
    """Two classes each of `STARTS`: norm 1, norm 2."""
    coarse: list[Curve]
    """The same at ten times the step."""
    steps: tuple[float, float]
    ode: tuple[float, float]
    """Largest difference in P between closed form and an ODE solver, and the solver's drift of the invariant."""
    cases: tuple[int, int, int]
    """What the trained neurons of c_1, c_2 and c_3 came to."""
    cases_error: float
    """Largest difference of their confidences from the closed form."""
    excess: float
    """By how much a curve with c > 0 exceeds the bound of Eq. 19."""


def evidence(runs: Runs) -> Evidence:
    """Train the diagram and compare all curves with their closed forms."""
    grid = train_grid(runs["phase"])
    fine, coarse = [runs[name] for name in STARTS], [runs[f"{name}, coarse"] for name in STARTS]
    checks = [ode_check(y, z, norm, until=40.0, label=label) for y, z, norm, label in ODE_STARTS]
    starts_ = np.array(list(CASES.values()))
    path = logistic_mode(grid.cases.t[:, None], starts_[:, 1], starts_[:, 0], grid.norm)
    u = grid.cases.z * np.maximum(grid.cases.w[..., 0], 0.0)
    y, z = grid.cases.w[-1, :, 0], grid.cases.z[-1]
    ends = np.select([y <= 0, z > 0], [Outcome.DIES, Outcome.SOLVED], Outcome.VANISHES)
    t = np.linspace(0.0, 5.0, 400)
    return Evidence(
        grid=grid,
        curves=[mode_curve(run, label) for run in fine for label in (1, -1)],
        coarse=[mode_curve(run, label) for run in coarse for label in (1, -1)],
        steps=(step(coarse[0]), step(fine[0])),
        ode=(max(one for one, _ in checks), max(drift for _, drift in checks)),
        cases=(int(ends[0]), int(ends[1]), int(ends[2])),
        cases_error=float(np.abs(1 / (1 + np.exp(-u)) - path.confidence).max()),
        excess=float((logistic_mode(t, 3.0, 0.1).u - logit_bound(t, 0.3)).max()),
    )


def claims(found: Evidence) -> list[Claim]:
    """Compare training with Sections 3.2, 3.3 and A.3."""
    return [*_curves(found), *_diagram(found), *_findings(found)]


def _curves(found: Evidence) -> list[Claim]:
    worst, coarse = (max(curve.error for curve in curves) for curves in (found.curves, found.coarse))
    late = [crossing(curve.t, curve.P, 0.9) for curve in found.curves]
    return [
        claim(
            "overlay",
            "Trained networks follow the closed form (largest |P_train - P_theory|, both classes, c = 0, c > 0, c < 0)",
            "Theorem 3.2, Eqs. 2, 3, A.3; limit of small steps",
            expected=at_most(1e-3),
            measured=worst,
        ),
        claim(
            "first-order",
            "and deviate in proportion to the step (power of the step)",
            "gradient descent is Euler's method of Eqs. 12 and 16",
            expected=near(1.0, 0.1),
            measured=order(coarse, worst, found.steps),
        ),
        claim(
            "closed-form",
            "The closed form solves the differential equation (largest |dP| against an ODE solver)",
            "Eqs. 2, 12, 16, 20-22",
            expected=at_most(1e-8),
            measured=found.ode[0],
        ),
        claim(
            "invariant",
            "y^2 - ||x||^2 z^2 is conserved (largest drift of the ODE solution)",
            "Section 3.2, Eq. 13",
            expected=at_most(1e-8),
            measured=found.ode[1],
        ),
        claim(
            "larger-norm",
            "A larger ||x|| converges faster (largest ratio of the times to P = 0.9, ||x|| = 2 to ||x|| = 1, same c)",
            "Section 3.2, Figure 2 right",
            expected=less_than(1),
            measured=max(late[k + 1] / late[k] for k in range(0, len(late), 2)),
        ),
    ]


def _diagram(found: Evidence) -> list[Claim]:
    grid = found.grid
    return [
        claim(
            "regions",
            "Trained networks end as the diagram says (cells that do not, more than one cell from a boundary)",
            "Section 3.3, Figure 2 left",
            expected=exactly(0),
            measured=grid.disagree_inside,
        ),
        claim(
            "case-1",
            "c_1, on the line y = -||x|| z: neither learnt nor dead when training ends (outcome; 2: undecided)",
            "Section 3.3, case 1",
            expected=exactly(Outcome.VANISHES),
            measured=found.cases[0],
        ),
        claim(
            "case-2",
            "c_2, above it: learnt (outcome; 1: solved)",
            "Section 3.3, case 2",
            expected=exactly(Outcome.SOLVED),
            measured=found.cases[1],
        ),
        claim(
            "case-3",
            "c_3, below it: the neuron dies in finite time (outcome; 3: dead)",
            "Section 3.3, case 3",
            expected=exactly(Outcome.DIES),
            measured=found.cases[2],
        ),
        claim(
            "failure",
            "Even under H2 training fails from a set of positive measure (share of dead neurons among y0 > 0)",
            "Section 3.3, failure modes (the area of the triangle below the line)",
            expected=near(grid.norm / 4, 0.01),
            measured=grid.count(Outcome.DIES) / (grid.trained.size / 2),
        ),
    ]


def _findings(found: Evidence) -> list[Claim]:
    grid = found.grid
    return [
        finding("agreement", "Share of all trained cells that agree", "Figure 2 left", measured=grid.agreement),
        finding("cells", "Initialisations trained for the diagram", "Figure 2 left", measured=grid.trained.size),
        finding("solved", "Trained cells that solve the task", "Figure 2", measured=grid.count(Outcome.SOLVED)),
        finding(
            "cases-error",
            "Largest |P_train - P_theory| of c_1, c_2 and c_3 (step 0.01)",
            "Section 3.3",
            measured=found.cases_error,
        ),
        finding(
            "eq-19",
            "Eq. 19 holds for c = 0 only: by how much the logit from (y0, z0, ||x||) = (3, 0.1, 1) exceeds it",
            "A.3, Eq. 19",
            measured=found.excess,
        ),
    ]


def draw(found: Evidence) -> Drawing:
    """Draw the diagram on the left, y and P on the right."""
    figure, axes = new_figure(3, 1, width=TEXT_WIDTH, aspect=1.05, extra_height=0.3)
    patches = draw_grid(axes[0], found.grid)
    panel_label(axes[0], 0, "Phase diagram")
    lines = draw_curves(axes[1], found.curves, values="y", label="$y_t$")
    panel_label(axes[1], 1, "Preactivation")
    draw_curves(axes[2], found.curves, values="P", label="$P_t$")
    panel_label(axes[2], 2, "Confidence")
    for panel in axes[1:]:
        panel.set_box_aspect(1)
    axes[1].set_ylim(0, None)
    axes[2].set_ylim(0.5, 1.005)
    figure_legend(figure, [*patches, *lines, trained_handle()], columns=4)
    return figure


FIGURE = Figure(
    id="tachet2018-fig2",
    caption=(
        "Left: what became of networks trained from each (z0, y0), ||x|| = 0.7, with hyperbolas, asymptotes of slope "
        "±||x|| and the trained paths of the three cases. Right: y and the confidence for several c and ||x||, closed "
        "form (lines) and trained networks (dots)."
    ),
    configs={
        "phase": "tachet2018/phase.yaml",
        **{name: starts(name) for name in STARTS},
        **{f"{name}, coarse": starts(name, *COARSE) for name in STARTS},
    },
    origin={"norm of the diagram": "stated", "curves": "assumed", "step": "assumed", "grid": "assumed"},
    evidence=evidence,
    claims=claims,
    draw=draw,
)

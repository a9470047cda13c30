"""Figure 2: phase diagram of one mode (120 x 120 trained starts); learning curves for several hyperbolas and norms."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dynamics_cli import kit

from .phase_grid import CASES, Diagram, configs, diagram, draw_diagram
from .theory.modes import Outcome, logistic_mode, logit_bound
from .trained import crossing, largest_error, ode_check, order, sigmoidal

COARSE = ("optimizer.lr=0.01", "optimizer.iterations=2400", "record.snapshots.interval=4")
ODE_STARTS = ((0.2, 0.2, 1.0, 1), (1.2, 0.1, 0.7, 1), (0.2, 0.9, 1.3, 1), (0.9, -0.3, 1.0, 1), (0.5, -0.4, 2.0, -1))


@dataclass(frozen=True)
class Evidence:
    """The diagram with its curves, and the closed form against an ODE solver."""

    diagram: Diagram
    ode: tuple[float, float]
    """Largest difference in P between closed form and an ODE solver, and the solver's drift of the invariant."""


def evidence(runs: kit.Runs) -> Evidence:
    """Train the diagram and compare all curves with their closed forms."""
    checks = [ode_check(y, z, norm, until=40.0, label=label) for y, z, norm, label in ODE_STARTS]
    return Evidence(diagram(runs), (max(one for one, _ in checks), max(drift for _, drift in checks)))


def claims(e: Evidence) -> list[kit.Claim]:
    """Compare training with Sections 3.2, 3.3 and A.3."""
    grid, curves = e.diagram.grid, e.diagram.curves
    late = [crossing(curve.t, curve.P, 0.9) for curve in curves]
    coarse = max(curve.error for curve in e.diagram.coarse)
    starts = np.array(list(CASES.values()))
    path = logistic_mode(grid.cases.t[:, None], starts[:, 1], starts[:, 0], grid.norm)
    y, z = grid.cases.w[..., 0], grid.cases.z
    P = 1 / (1 + np.exp(-z * np.maximum(y, 0.0)))
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
                  order(coarse, max(one.error for one in curves), e.diagram.steps)),
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
                  kit.near(grid.norm / 4, 0.01), grid.count(Outcome.DIES) / (grid.trained.size / 2)),
        kit.theory("closed-form",
                   "The closed form solves the differential equation (largest |dP| against an ODE solver)",
                   "Eqs. 2, 12, 16, 20-22", kit.at_most(1e-8), e.ode[0]),
        kit.theory("invariant", "y^2 - ||x||^2 z^2 is conserved (largest drift of the ODE solution)",
                   "Section 3.2, Eq. 13", kit.at_most(1e-8), e.ode[1]),
        kit.theory("eq-19", "For c = 0 the logit stays below 2 log(||x|| t + exp(u0 / 2)) (largest excess, nine starts "
                   "and norms)", "A.3, Eq. 19", kit.at_most(1e-12), balanced),
        kit.finding("agreement", "Share of all trained cells that agree", "Figure 2 left", grid.agreement),
        kit.finding("cells", "Initialisations trained for the diagram", "Figure 2 left", grid.trained.size),
        kit.finding("solved", "Trained cells that solve the task", "Figure 2", grid.count(Outcome.SOLVED)),
        kit.finding("cases-error", "Largest |P_train - P_theory| of c_1, c_2 and c_3 (step 0.01)",
                    "Section 3.3", float(np.abs(P - path.confidence).max())),
        kit.finding("eq-19-uneven", "For c > 0 it fails: largest excess from (y0, z0, ||x||) = (3, 0.1, 1)",
                    "A.3, Eq. 19", uneven),
    ]  # fmt: skip


def draw(e: Evidence) -> kit.Drawing:
    """Draw the diagram on the left, y and P on the right."""
    figure, axes = draw_diagram(e.diagram, ("Phase diagram", "Preactivation", "Confidence"), label="$P_t$")
    axes[1].set_ylim(0, None)
    axes[2].set_ylim(0.5, 1.005)
    return figure


FIGURE = kit.Figure(
    id="tachet2018-fig2",
    caption=(
        "Left: what became of networks trained from each (z0, y0), ||x|| = 0.7, with hyperbolas, asymptotes of slope "
        "±||x|| and the trained paths of the three cases. Right: y and the confidence for several c and ||x||, closed "
        "form (lines) and trained networks (dots)."
    ),
    configs={"phase": "tachet2018/phase.yaml", **configs((), COARSE)},
    origin={"norm of the diagram": "stated", "curves": "assumed", "step": "assumed", "grid": "assumed"},
    evidence=evidence, claims=claims, draw=draw,
)  # fmt: skip

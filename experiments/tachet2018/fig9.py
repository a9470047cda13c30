"""Figure 9: the hinge loss, initialisation diagram (120 x 120 trained starts) and learning curves."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dynamics_cli import kit

from .phase_grid import CASES, Diagram, configs, diagram, draw_diagram
from .theory.hinge_class import HingeClass, hinge_class
from .theory.modes import Outcome, hinge_death_time
from .trained import Curve, crossing, largest_error, layers, order, outputs, sigmoidal, times

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


@dataclass(frozen=True)
class Evidence:
    """The diagram with its curves, a class of several points, and a neuron that dies."""

    diagram: Diagram
    outputs: kit.Floats
    """(K, 3) on the three points of D_1, trained."""
    theory: HingeClass
    """The same by C.2, piece by piece."""
    printed: kit.Floats
    """(K, 3) C.2 as printed, which holds until the first point reaches margin 1, continued to the end."""
    death: float
    """When the trained neuron of c_3 dies."""


def evidence(runs: kit.Runs) -> Evidence:
    """Train the diagram and compare the curves with Eq. 27."""
    run = runs["general"]
    dataset, t = run.dataset(), times(run)
    x = dataset.x[dataset.y == 1]
    w0, z0 = layers(run)[0][0, 0], float(layers(run)[1][0, 0, 0])
    dying = runs["c_3"]
    y = layers(dying)[0][:, 0, 0] * float(dying.dataset().x[0, 0])
    return Evidence(
        diagram=diagram(runs), outputs=outputs(run, x), theory=hinge_class(t, x, w0, z0),
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


def _before_margin(curves: list[Curve]) -> float:
    """Return the largest difference while theory is below 0.9: where it stops, a step may pass the margin or not."""
    return max(float(np.abs(one.P - one.P_theory)[one.P_theory < 0.9].max(initial=0.0)) for one in curves)


def claims(e: Evidence) -> list[kit.Claim]:
    """Compare with Section 5 and Appendix C."""
    grid, curves, steps = e.diagram.grid, e.diagram.curves, e.diagram.steps
    z3, y3 = CASES["c_3"]
    return [
        kit.claim("overlay", "Trained networks follow Eqs. 6 and 27 (largest difference of outputs, both classes, c = "
                  "0, c > 0, c < 0)", "Theorem 5.1, C.1; limit of small steps", kit.at_most(1e-3),
                  largest_error(curves)),
        kit.claim("first-order", "and deviate in proportion to the step until the margin is near (power of the step, "
                  "outputs below 0.9)", "gradient descent is Euler's method of Eq. 26", kit.near(1.0, 0.1),
                  order(_before_margin(e.diagram.coarse), _before_margin(curves), steps)),
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
                  "C.2; limit of small steps", kit.at_most(1e-3), float(np.abs(e.outputs - e.theory.outputs).max())),
        kit.finding("general-until", "C.2 as printed holds until the first point reaches margin 1, at time",
                    "C.2", e.theory.valid_until),
        kit.finding("general-late", "beyond it its outputs are wrong by up to",
                    "C.2", float(np.abs(e.printed - e.outputs).max())),
        kit.finding("agreement", "Share of all trained cells that agree", "Figure 9", grid.agreement),
        kit.finding("solved", "Trained cells that solve the task", "Figure 9", grid.count(Outcome.SOLVED)),
    ]  # fmt: skip


def draw(e: Evidence) -> kit.Drawing:
    """Draw the diagram on the left, y and the output on the right."""
    titles = ("Initialisations", "Preactivation", "Output")
    figure, axes = draw_diagram(e.diagram, titles, label="output $|u_t|$", until=5.0)
    for panel in axes[1:]:
        panel.set_ylim(0, None)
    return figure


FIGURE = kit.Figure(
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
    origin={"loss": "stated", "norm of the diagram": "inferred", "curves": "assumed", "step": "assumed"},
    evidence=evidence, claims=claims, draw=draw,
)  # fmt: skip

"""Gradient descent at the edge of stability beside its central flow (Cohen, Damian et al. 2024)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from dynamics_cli import kit
from dynamics_cli.gradients.derivatives import derivatives_of
from dynamics_cli.gradients.lanczos import largest_eigenvalues
from dynamics_cli.training.problem import build_problem

from .theory.central_flow import CentralFlow, averaged, central_flow, states_of, trained_weights

MARGIN = 100
"""Iterations at either end where the smoothed loss is too biased to be compared."""


@dataclass(frozen=True)
class Evidence:
    """Gradient descent, gradient flow and the central flow.

    Losses, raw, `smoothed` and of gradient `flow`, are those at the steps 0..N; `to_flow`,
    `to_central` (N,) are distances of the midpoints of gradient descent, `variance` (N,) its
    squared half step in the eigenvectors near the edge, and `top` the median sharpness at midpoints
    in the second half over 2/eta.
    """

    eta: float
    inner: slice
    measured: tuple[kit.Ints, kit.Floats]
    losses: kit.Floats
    smoothed: kit.Floats
    flow: kit.Floats
    central: CentralFlow
    to_flow: kit.Floats
    to_central: kit.Floats
    variance: kit.Floats
    top: float


def evidence(runs: kit.Runs) -> Evidence:
    """Integrate the central flow from the initial weights of the run."""
    run = runs["descent"]
    flow = runs["flow"]
    problem = build_problem(run.config, run.dataset())
    eta, N = float(run.config.optimizer.lr), run.iterations  # type: ignore[attr-defined]
    w = trained_weights(run)
    timing: Any = flow.config.optimizer
    each = np.rint(np.arange(N) * eta * timing.points / timing.until).astype(int)
    v = trained_weights(flow)[each]  # at the times of the steps
    state = states_of(problem)
    central = central_flow(problem, w[0], eta, N)
    middle = (w[1:] + w[:-1]) / 2
    half = np.diff(w, axis=0) / 2
    near = (central.top[:-1] > 1.95 / eta) & (central.variance[:-1, None] > 0)
    along = np.einsum("np,npk->nk", half, central.vectors[:-1])
    late = middle[N // 2 :: max(1, N // 40)]
    products = [derivatives_of(state(m)).hessian_product for m in late]
    sharp = [
        largest_eigenvalues(product, np.ones(w.shape[1]), tolerance=1e-4)[0][0]
        for product in products
    ]
    sharpness = run.measures["sharpness"]
    known = np.isfinite(sharpness).all(axis=1)
    return Evidence(
        eta=eta,
        inner=slice(MARGIN, N + 1 - MARGIN),
        measured=(run.snapshot_iterations[known], sharpness[known]),
        losses=run.losses,
        smoothed=averaged(run.losses, run.loss_iterations),
        flow=flow.losses,
        central=central,
        to_flow=np.linalg.norm(middle - v, axis=1),
        to_central=np.linalg.norm(middle - central.weights[:-1], axis=1),
        variance=np.sum(np.where(near, along**2, 0.0), axis=1),
        top=float(np.median(sharp)) * eta / 2,
    )


def claims(e: Evidence) -> list[kit.Claim]:
    """Compare with the central flow's predictions: its loss from the edge on, before which it is
    gradient flow.
    """
    c = e.central
    inner = e.inner
    at_edge = np.arange(inner.start, inner.stop)[c.variance[inner] > 0]
    inner = slice(int(at_edge[0]) if len(at_edge) else inner.stop, inner.stop)
    half = slice(len(e.variance) // 2, None)
    size = float(c.variance[:-1][half].mean()) or np.nan  # there is none before the edge
    wrong = np.abs(c.predicted / e.smoothed - 1)[inner]
    return [
        kit.theory(
            "edge",
            r"The central flow keeps the sharpness at or below $2/\eta$ (its largest over it)",
            "central flow, complementarity",
            kit.at_most(1.02),
            c.top.max() * e.eta / 2,
        ),
        kit.claim(
            "loss",
            "The central flow predicts the time-averaged loss of gradient descent at the edge"
            " (median relative error, within 10 %)",
            "central flow, L + tr(Sigma)/eta",
            kit.at_most(0.1),
            np.median(wrong) if len(wrong) else np.nan,
        ),
        kit.claim(
            "distance",
            "Gradient descent stays near the central flow (distance at the end over that from "
            "gradient flow)",
            "central flow",
            kit.at_most(0.2),
            e.to_central[-1] / e.to_flow[-1],
        ),
        kit.claim(
            "variance",
            "The central flow predicts the size of the oscillation (mean squared half step along "
            "the eigenvectors near the edge in the second half, over tr(Sigma))",
            "central flow",
            kit.Interval(0.8, 1.25),
            e.variance[half].mean() / size,
        ),
        kit.claim(
            "edge-descent",
            "Gradient descent itself is at the edge (median sharpness at midpoints of its steps "
            r"in the second half over $2/\eta$)",
            "abstract (2021)",
            kit.Interval(0.95, 1.15),
            e.top,
        ),
    ]


def draw(e: Evidence) -> kit.Drawing:
    c = e.central
    at, values = e.measured
    inner = np.arange(len(e.losses))[e.inner]
    theory = r"central flow $+\ \mathrm{tr}\,\Sigma/\eta$"
    return kit.charts(
        kit.chart(
            "Loss",
            "training loss",
            kit.line(0, e.losses, "gradient descent", "C5 0.5"),
            kit.line(inner, e.smoothed[e.inner], "smoothed", "measured pale 4"),
            kit.line(0, e.flow, "gradient flow", "muted dotted"),
            kit.line(0, c.losses, "central flow", "rank 0.9"),
            kit.line(0, c.predicted, theory, "theory dashed 1.0"),
            limits=(0, 1.05 * float(e.losses.max())),
        ),
        kit.chart(
            "Eigenvalues",
            r"eigenvalue $\times\ \eta/2$",
            kit.line(at, values * e.eta / 2, look="C5 0.5"),
            kit.line(0, c.top * e.eta / 2, look="rank 0.9"),
            kit.level(1),
        ),
        kit.chart(
            "Distance",
            "distance from descent",
            kit.line(0, e.to_flow, look="muted dotted"),
            kit.line(0, e.to_central, look="rank"),
        ),
    )


FIGURE = kit.Figure(
    passes={
        "one_step": {
            "distance": "After a step descent and central flow have hardly left their common start."
        }
    },
    id="cohen2021-central",
    caption=(
        "Random labels, mean squared error, eta = 0.1. Left: loss of gradient descent, raw and"
        " smoothed over 50 iterations, of gradient flow, of the central flow, and the average that"
        " the central flow predicts. Middle: the three largest eigenvalues of the Hessian, of"
        " gradient descent (thin) and along the central flow, times eta/2; dashed: 1, the edge."
        " Right: distance of the weights of gradient descent (midpoints of its steps) from those of"
        " both flows."
    ),
    configs={
        "descent": "cohen2021/random_labels.yaml",
        "flow": kit.Wanted(
            "cohen2021/random_labels.yaml",
            ("optimizer={kind: gradient_flow, until: 70.0, points: 700, rtol: 1.0e-6}",),
        ),
    },
)

"""The quadratic model of the loss at the edge, and sharpness when the step is cut there (Cohen
et al. 2021).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dynamics_cli import kit
from dynamics_cli.gradients.derivatives import derivatives_of
from dynamics_cli.training.problem import build_problem

from .edge import BAND, NAN, Edge, described, edge, sharpness
from .theory.central_flow import loss_of, states_of, trained_weights

BEFORE = 0.9
"""The model begins where the sharpness last is below this share of 2/eta, and at the first peak
above it.
"""
STEPS = 200
GROWTH = 100.0
"""Steps within which the model of the edge diverges: its loss exceeds this multiple of the
first.
"""
CUT = 1400
"""Iteration at which the step is halved."""


@dataclass(frozen=True)
class Evidence:
    """A run, the models begun on it, and a run whose step is cut."""

    run: Edge
    before: Model
    peak: Model
    cut: Edge
    later: Edge


def evidence(runs: kit.Runs) -> Evidence:
    """Continue the models begun `before` and at the `peak` of a `run`; `later` begins after a
    `cut` step.
    """
    run = runs["run"]
    descent = edge(run)
    s = descent.sharpness / descent.bound
    K = len(descent.sharpness)
    first = min(descent.first, K - 1)
    falling = np.flatnonzero(np.diff(s[first:]) < 0)
    peak = first + int(falling[0]) if len(falling) else first
    before = (
        int(np.flatnonzero(s[: first + 1] <= BEFORE)[-1]) if (s[: first + 1] <= BEFORE).any() else 0
    )
    c = edge(runs["cut"])
    kept = c.iterations >= CUT
    later = described(
        c.lr / 2, 2 * c.bound, c.iterations[kept] - CUT, c.sharpness[kept], c.losses[CUT:]
    )
    return Evidence(
        run=descent, before=taylor(run, before), peak=taylor(run, peak), cut=c, later=later
    )


@dataclass(frozen=True)
class Model:
    """Gradient descent on the quadratic model.

    From its `iteration` on: `losses` (S + 1,) of the model, while finite, and `actual` ones of the
    network. The model's loss grows by `rate` a step in the end, `(eta S - 1)^2` is `predicted`.
    """

    iteration: int
    losses: kit.Floats
    actual: kit.Floats
    rate: float
    predicted: float


def taylor(run: kit.Run, i: int, steps: int = STEPS) -> Model:
    """Continue gradient descent from snapshot `i` on `L + g d + d H d / 2`, exactly, in the
    eigenvectors of H.
    """
    eta, at = float(run.config.optimizer.lr), int(run.snapshot_iterations[i])  # type: ignore[attr-defined]
    state = states_of(build_problem(run.config, run.dataset()))(trained_weights(run)[i])
    derivatives = derivatives_of(state)
    values, vectors = np.linalg.eigh(derivatives.hessian())
    g = vectors.T @ derivatives.gradient()
    k = np.arange(steps + 1)[:, None]
    with np.errstate(over="ignore", invalid="ignore"):
        shares = 1 - (1 - eta * values) ** k  # d_k = -H^-1 (1 - (1 - eta H)^k) g
        small = np.abs(values) < 1e-9
        d = np.where(small, -eta * k * g, -shares * g / np.where(small, 1.0, values))
        losses = loss_of(state) + d @ g + (d**2 @ values) / 2
    rate = (losses[-1] - losses[-2]) / (losses[-2] - losses[-3])
    actual = np.asarray(run.losses[at : at + steps + 1])
    predicted = float((eta * values[-1] - 1) ** 2)
    return Model(iteration=at, losses=losses, actual=actual, rate=float(rate), predicted=predicted)


def claims(e: Evidence) -> list[kit.Claim]:
    b = e.before
    p = e.peak
    later = e.later
    exceeds = np.flatnonzero(p.losses > GROWTH * p.losses[0])
    reached = np.isfinite(e.run.crossing)
    diverges = len(exceeds) and e.run.unstable
    near = min(51, len(b.actual))
    return [
        kit.claim(
            "before",
            "Before the edge gradient descent on the quadratic model stays close to that on the"
            " loss (largest relative difference of the losses in 50 steps)",
            "quadratic model (recalled)",
            kit.at_most(0.1),
            np.abs(b.losses[:near] / b.actual[:near] - 1).max() if reached else NAN,
        ),
        kit.claim(
            "diverges",
            "At the edge gradient descent on the quadratic model diverges: the model's loss grows"
            f" by {GROWTH:g} within {STEPS} steps (after how many)",
            "quadratic model (recalled)",
            kit.at_most(STEPS),
            exceeds[0] if diverges else NAN,
        ),
        kit.claim(
            "stays",
            "The network's loss is lower in the end, where the model's diverges (over its first)",
            "quadratic model (recalled)",
            kit.less_than(1),
            p.actual[-1] / p.actual[0] if diverges else NAN,
        ),
        kit.theory(
            "rate",
            r"The model's loss grows by $(\eta S - 1)^2$ a step (growth over it)",
            "gradient descent on a quadratic",
            kit.near(1, 0.01),
            p.rate / p.predicted,
        ),
        kit.claim(
            "resumes",
            "When the step is halved at the edge, sharpness rises again, above all that it reaches"
            " with the old step (its largest over the largest of the run whose step stays)",
            "step size drop (recalled)",
            kit.more_than(1),
            # a run may end before the edge, and has no later states then
            kit.given(
                np.isfinite(e.cut.crossing),
                later.sharpness.max(initial=0.0) / e.run.sharpness.max(),
            ),
        ),
        kit.claim(
            "new-edge",
            "The sharpness hovers at, or just above, the bound of the new step (median after the "
            "crossing over it)",
            "step size drop (recalled)",
            BAND,
            later.band if np.isfinite(e.cut.crossing) else NAN,
        ),
    ]


def draw(e: Evidence) -> kit.Drawing:
    def losses(title: str, model: Model, log: str) -> kit.Chart:
        shown = model.losses[: int(np.argmax(model.losses > GROWTH * model.losses[0])) or None]
        return kit.chart(
            title,
            "training loss",
            kit.line(model.iteration, model.actual, "gradient descent", "measured"),
            kit.line(model.iteration, shown, "on its quadratic model", "rank dashed"),
            limits_x=(None, model.iteration + STEPS),
            log=log,
        )

    return kit.charts(
        losses("Before the edge", e.before, "none"),
        losses("At the edge", e.peak, "y"),
        kit.chart(
            "Step halved",
            "sharpness",
            sharpness(e.cut.iterations, e.cut, "C0"),
            kit.level(2 * e.cut.bound, look="C1 dashed 0.8"),
            kit.upright(CUT),
            limits=(0, None),
        ),
    )


FIGURE = kit.Figure(
    id="cohen2021-taylor",
    caption=(
        "A Chebyshev polynomial of degree 4, eta = 0.4. (a) and (b): the loss of gradient descent,"
        " and of gradient descent continued on the quadratic Taylor model of the loss, begun before"
        " sharpness reaches 2/eta and at its first peak above. (c): sharpness when the step is"
        " halved (dotted); dashed: 2/eta of both steps."
    ),
    configs={
        "run": "cohen2021/chebyshev.yaml",
        "cut": kit.Wanted(
            "cohen2021/chebyshev.yaml",
            (
                f"optimizer.schedule={{kind: step, every: {CUT}, gamma: 0.5}}",
                f"optimizer.iterations={2 * CUT - 1}",
            ),
        ),
    },
    nulls={"uncut": ("optimizer.schedule=null",)},
)

"""Figure 1: the timeline of the phases, measured, beside the predicted multiples of -ln(lambda)/||D+|| and /||D-||.

`dyn reproduce boursier2022-fig1`. About 3 s.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from matplotlib.figure import Figure as Drawing

from dynamics_cli.measures.curves import escape_iteration, first_below
from dynamics_cli.plotting.panels.timeline import Instant, Interval, draw_timeline
from dynamics_cli.plotting.style import TEXT_WIDTH, new_figure
from dynamics_cli.reproduction.claims import Claim, at_least, at_most, claim, exactly, finding, less_than
from dynamics_cli.reproduction.figure import Figure, Runs
from dynamics_cli.runs import Run

from .orthogonal import (
    CONFIG,
    ORIGIN,
    VARIANTS,
    Setting,
    assumption_claim,
    least_cosines,
    predict,
    read_setting,
    violations,
)
from .states import LOSS_FACTOR, clock, horizon, is_flow, loss_curve, state_at, time_label
from .theory.phases import PhaseTimes, largest_epsilon, leading_time, phase_times

EPSILON = 0.05
"""The epsilon of the predicted times: any up to `largest_epsilon`, 1/8 for these data, is allowed."""
ALIGNED = 0.99
"""Cosine from which on a neuron counts as aligned."""
DONE = 0.01
"""Labels count as fitted, and a saddle as left, at this share of the loss."""


@dataclass(frozen=True)
class Evidence:
    """Measured and predicted ends of the phases; all in iterations, NaN for what did not happen."""

    setting: Setting
    flow: bool
    """Whether the run is gradient flow itself."""
    aligned: float
    """First snapshot at which all of `S_{+,1}` and `S_{-,1}` are aligned."""
    loss_aligned: float
    """Loss there over loss at the start."""
    positive: float
    """The loss has come within 1 % of that of the intermediate saddle."""
    left: float
    """The loss has fallen 1 % below it."""
    negative: float
    """The loss has fallen to 1 % of it."""
    end: float
    predicted: PhaseTimes | None
    """In iterations, with `EPSILON`."""
    leading: tuple[float, float]
    """`-ln(lambda) / ||D||` for the labels fitted first and second."""
    epsilon: float
    """The largest one that Appendix B.2 allows."""
    early: tuple[float, float, float]
    """At the time of Lemma 2 with that epsilon: both least cosines, and largest norm."""
    half: tuple[float, float]
    """When the logistic growths are half done."""


def evidence(runs: Runs) -> Evidence:
    """Measure the ends of the phases of the orthogonal run, and predict them."""
    run = runs["orthogonal"]
    setting = read_setting(run)
    iterations, losses = loss_curve(run)
    aligned = _aligned(run, setting)
    nan, end = float("nan"), float(horizon(run))
    loss_aligned = float(losses[iterations <= aligned][-1] / losses[0]) if np.isfinite(aligned) else nan
    prediction = predict(setting, iterations)
    if prediction is None:
        nothing = (nan, nan)
        return Evidence(
            setting, is_flow(run), aligned, loss_aligned, nan, nan, nan, end, None, nothing, nan, (nan,) * 3, nothing
        )
    level, x, y = prediction.saddle_loss, setting.x, setting.y
    epsilon = largest_epsilon(x, y)
    lemma_2 = state_at(run, round(_times(setting, epsilon).aligned))
    first, second = prediction.first_sign, -prediction.first_sign
    leading = [leading_time(x, y, setting.lambda_, s, loss_factor=LOSS_FACTOR) / setting.lr for s in (first, second)]
    return Evidence(
        setting=setting,
        flow=is_flow(run),
        aligned=aligned,
        loss_aligned=loss_aligned,
        positive=_number(first_below(iterations, losses, level * (1 + DONE))),
        left=_number(escape_iteration(iterations, losses, level, drop=DONE)),
        negative=_number(first_below(iterations, losses, level * DONE)),
        end=end,
        predicted=_times(setting, EPSILON),
        leading=(leading[0], leading[1]),
        epsilon=epsilon,
        early=(*least_cosines(setting, lemma_2), float(lemma_2.norms.max())),
        half=prediction.half,
    )


def _times(setting: Setting, epsilon: float) -> PhaseTimes:
    """Return the times of Lemmas 2 to 4 and Fact 1 in iterations."""
    times = phase_times(setting.x, setting.y, setting.lambda_, epsilon, loss_factor=LOSS_FACTOR)
    return PhaseTimes(times.first_sign, *(value / setting.lr for value in list(vars(times).values())[1:]))


def _aligned(run: Run, setting: Setting) -> float:
    for iteration in clock(run, run.snapshot_iterations):
        if min(least_cosines(setting, state_at(run, int(iteration)))) > ALIGNED:
            return float(iteration)
    return float("nan")


def claims(found: Evidence) -> list[Claim]:
    """Compare the measured times with Lemmas 2 to 4."""
    s, epsilon = found.setting, found.epsilon
    measured = [0.0, found.aligned, found.positive, found.left, found.negative, found.end]
    plus, minus = float(np.linalg.norm(s.D_plus)), float(np.linalg.norm(s.D_minus))
    r = max(plus, minus) / min(plus, minus) if min(plus, minus) > 0 else float("nan")
    c = float(np.linalg.norm(s.W_0, axis=1).max() / s.lambda_)
    usable = found.predicted is not None
    cosine_bound = 1 - 2 * s.lambda_**epsilon if usable else 0.0
    norm_bound = 2 * c * s.lambda_ ** (1 - r * epsilon) if usable else float("nan")
    return [
        assumption_claim(s),
        claim(
            "order",
            "Alignment, fitting positive labels, saddle, fitting negative labels, convergence follow one another",
            "Section 4.2, Figure 1 (number of phases in this order)",
            expected=exactly(5),
            measured=float(np.sum(np.diff(measured) > 0)),
        ),
        claim(
            "alignment-before-growth",
            "Alignment is over before the loss falls (its relative fall when all cosines exceed 0.99)",
            "Section 4.2, Lemma 2",
            expected=less_than(DONE),
            measured=1 - found.loss_aligned,
        ),
        claim(
            "lemma-2-cosine",
            f"At -eps ln(lambda)/||D-|| neurons are aligned (least cosine), eps = {epsilon:.3g}",
            "Lemma 2 (i), (ii): 1 - 2 lambda^eps",
            expected=at_least(cosine_bound),
            measured=min(found.early[:2]),
        ),
        claim(
            "lemma-2-norm",
            f"and all norms are small (largest one over its bound), eps = {epsilon:.3g}",
            "Lemma 2 (iii): 2 c lambda^(1 - r eps)",
            expected=at_most(1.0),
            measured=found.early[2] / norm_bound,
        ),
        claim(
            "lemma-3",
            f"Positive labels are fitted by (1 + 3 eps) times -ln(lambda)/||D+||, eps = {EPSILON:g} (multiple)",
            "Lemma 3, Figure 1",
            expected=at_most(1 + 3 * EPSILON),
            measured=found.positive / found.leading[0],
        ),
        claim(
            "lemma-4",
            f"Negative labels are fitted by (1 + 3 r eps) times -ln(lambda)/||D-||, eps = {EPSILON:g} (multiple)",
            "Lemma 4, Figure 1",
            expected=at_most(1 + 3 * r * EPSILON),
            measured=found.negative / found.leading[1],
        ),
        finding(
            "saddle-left",
            "Multiple of -ln(lambda)/||D-|| at which the intermediate saddle is left (loss down by 1 %)",
            "Fact 1: 1 - eps as lambda -> 0",
            measured=found.left / found.leading[1],
        ),
        finding("aligned", "Iteration at which all cosines exceed 0.99", "Lemma 2", measured=found.aligned),
    ]


def draw(found: Evidence) -> Drawing:
    """Draw the measured phases as a bar and the predicted times below."""
    figure, (axes,) = new_figure(width=TEXT_WIDTH, aspect=0.28)
    intervals = [
        Interval("early alignment (Lemma 2)", 0, found.aligned),
        Interval("fitting positive labels (Lemma 3)", found.aligned, found.positive),
        Interval("intermediate saddle (Fact 1)", found.positive, found.left),
        Interval("fitting negative labels (Lemma 4)", found.left, found.negative),
        Interval("final convergence", found.negative, found.end),
    ]
    known = [one for one in intervals if np.isfinite([one.first, one.last]).all()]
    times = found.predicted
    predicted = (
        []
        if times is None
        else [
            Instant(r"$\frac{-\varepsilon\ln\lambda}{\Vert D_-\Vert}$", times.aligned),
            Instant(r"$\frac{-(1+3\varepsilon)\ln\lambda}{\Vert D_+\Vert}$", times.first_fitted),
            Instant(r"$\frac{-(1-\varepsilon)\ln\lambda}{\Vert D_-\Vert}$", times.saddle_left),
            Instant(r"$\frac{-(1+3r\varepsilon)\ln\lambda}{\Vert D_-\Vert}$", times.second_fitted),
        ]
    )
    draw_timeline(
        axes,
        known,
        predicted,
        end=found.end,
        xlabel=time_label(found.flow),
        titles=("measured", rf"theory, $\varepsilon={EPSILON:g}$"),
    )
    return figure


def _number(iteration: int | None) -> float:
    return float("nan") if iteration is None else float(iteration)


FIGURE = Figure(
    id="boursier2022-fig1",
    caption=(
        "The phases of training on two orthogonal points, measured, above the ends of the phases that Lemmas 2 to 4 "
        "and Fact 1 give. Times are halved, since the experiment minimises the mean squared error."
    ),
    configs={"orthogonal": CONFIG},
    variants=VARIANTS,
    origin={**ORIGIN, "epsilon": "assumed", "criteria of measured ends": "assumed"},
    evidence=evidence,
    claims=claims,
    draw=draw,
    remarks=lambda found: violations(found.setting),
)

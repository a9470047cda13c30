"""Figure 1: the timeline of the phases, measured, beside the predicted multiples of -ln(lambda)/||D+|| and /||D-||."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from dynamics_cli import kit
from dynamics_cli.plotting.panels.timeline import Instant, TimedPhase, draw_timeline

from .orthogonal import CONFIGS, VARIANTS, Setting, assumption_claim, least_cosines, predict, read_setting, violations
from .states import LOSS_FACTOR, NAN, ORIGIN, LossCurve, State, clock, horizon, loss_curve, state_at
from .theory.growth import Saddle
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
    curve: LossCurve
    ends: list[float]
    """Start; alignment of all of `S_{+,1}` and `S_{-,1}`; loss within 1 % of that of the intermediate saddle, 1 %
    below it, and at 1 % of it; end of training."""
    predicted: PhaseTimes | None = None
    """With `EPSILON`."""
    leading: tuple[float, float] = (NAN, NAN)
    """`-ln(lambda) / ||D||` for the labels fitted first and second."""
    epsilon: float = NAN
    """The largest one that Appendix B.2 allows."""
    lemma_2: State | None = None
    """The network at the time of Lemma 2 with that epsilon."""
    fact_1: tuple[float, float] = (NAN, NAN)
    """With that epsilon: the largest distance from the intermediate saddle over the times of Fact 1, and its bound."""


def evidence(runs: kit.Runs) -> Evidence:
    """Measure the ends of the phases of the orthogonal run, and predict them."""
    run = runs["orthogonal"]
    setting, curve = read_setting(run), loss_curve(run)
    aligned, end = _aligned(run, setting), float(horizon(run))
    prediction = predict(setting, curve.iterations)
    if prediction is None:
        return Evidence(setting, curve, [0.0, aligned, NAN, NAN, NAN, end])
    x, y, lambda_, saddle = setting.x, setting.y, setting.lambda_, prediction.saddle
    level, epsilon = saddle.loss, largest_epsilon(x, y)
    times = _times(setting, epsilon)
    first, second = (
        leading_time(x, y, lambda_, s, loss_factor=LOSS_FACTOR) / setting.lr for s in (saddle.sign, -saddle.sign)
    )
    iterations = clock(run, run.snapshot_iterations)
    at_saddle = iterations[(iterations >= times.first_fitted) & (iterations <= times.saddle_left)]
    distances = [distance(state_at(run, int(one)), saddle) for one in at_saddle]
    loss_ends = [curve.first_below(level * (1 + DONE)), curve.escape(level, DONE), curve.first_below(level * DONE)]
    return Evidence(
        setting=setting, curve=curve, ends=[0.0, aligned, *loss_ends, end], predicted=_times(setting, EPSILON),
        leading=(first, second), epsilon=epsilon, lemma_2=state_at(run, round(times.aligned)),
        fact_1=(max(distances, default=NAN), lambda_ ** (epsilon / 5)),
    )  # fmt: skip


def distance(state: State, saddle: Saddle) -> float:
    """Return the distance of a network from the nearest saddle of Fact 1.

    That is any split of the merged neuron: `(w_j, a_j) = c_j v` with `c_j >= 0`, `sum c_j^2 = 2 a^2` and `||v|| = 1`.
    """
    theta = np.column_stack([state.W, state.a])  # (m, d + 1)
    v = np.append(saddle.w, saddle.a) / np.hypot(np.linalg.norm(saddle.w), saddle.a)
    along = np.maximum(theta @ v, 0.0)
    c = along * np.sqrt(2) * abs(saddle.a) / np.linalg.norm(along)
    return float(np.linalg.norm(theta - np.outer(c, v)))


def _times(setting: Setting, epsilon: float) -> PhaseTimes:
    """Return the times of Lemmas 2 to 4 and Fact 1 in iterations."""
    return phase_times(setting.x, setting.y, setting.lambda_, epsilon, loss_factor=LOSS_FACTOR * setting.lr)


def _aligned(run: kit.Run, setting: Setting) -> float:
    """Return the first snapshot at which all neurons of both sets are aligned."""
    for iteration in clock(run, run.snapshot_iterations):
        if min(least_cosines(setting, state_at(run, int(iteration)))) > ALIGNED:
            return float(iteration)
    return NAN


def claims(e: Evidence) -> list[kit.Claim]:
    """Compare the measured times with Lemmas 2 to 4."""
    s, eps = e.setting, e.epsilon
    _, aligned, positive, left, negative, _ = e.ends
    first, second = e.leading
    plus, minus = float(np.linalg.norm(s.D_plus)), float(np.linalg.norm(s.D_minus))
    r = max(plus, minus) / min(plus, minus) if min(plus, minus) > 0 else NAN
    c = float(np.linalg.norm(s.W_0, axis=1).max() / s.lambda_)
    cosine, norm, cosine_bound, norm_bound = NAN, NAN, 0.0, NAN
    if e.lemma_2 is not None:
        cosine, norm = min(least_cosines(s, e.lemma_2)), float(e.lemma_2.norms.max())
        cosine_bound, norm_bound = 1 - 2 * s.lambda_**eps, 2 * c * s.lambda_ ** (1 - r * eps)
    before = e.curve.losses[e.curve.iterations <= aligned]  # none where alignment never ends
    fall = 1 - float(before[-1] / e.curve.start) if before.size else NAN
    return [
        assumption_claim(s),
        kit.claim("order",
                  "Alignment, fitting positive labels, saddle, fitting negative labels, convergence follow one another",
                  "Section 4.2, Figure 1 (number of phases in this order)",
                  kit.exactly(5), float(np.sum(np.diff(e.ends) > 0))),
        kit.claim("alignment-before-growth",
                  "Alignment is over before the loss falls (its relative fall when all cosines exceed 0.99)",
                  "Section 4.2, Lemma 2", kit.less_than(DONE), fall),
        kit.claim("lemma-2-cosine", f"At -eps ln(lambda)/||D-|| neurons are aligned (least cosine), eps = {eps:.3g}",
                  "Lemma 2 (i), (ii): 1 - 2 lambda^eps", kit.at_least(cosine_bound), cosine),
        kit.claim("lemma-2-norm", f"and all norms are small (largest one over its bound), eps = {eps:.3g}",
                  "Lemma 2 (iii): 2 c lambda^(1 - r eps)", kit.at_most(1.0), norm / norm_bound),
        kit.claim("lemma-3",
                  f"Positive labels are fitted by (1 + 3 eps) times -ln(lambda)/||D+||, eps = {EPSILON:g} (multiple)",
                  "Lemma 3, Figure 1", kit.at_most(1 + 3 * EPSILON), positive / first),
        kit.claim("lemma-4",
                  f"Negative labels are fitted by (1 + 3 r eps) times -ln(lambda)/||D-||, eps = {EPSILON:g} (multiple)",
                  "Lemma 4, Figure 1", kit.at_most(1 + 3 * r * EPSILON), negative / second),
        kit.claim("fact-1",
                  "From (1 + 3 eps) times -ln(lambda)/||D+|| to (1 - eps) times -ln(lambda)/||D-|| the network stays "
                  f"near an intermediate saddle (largest distance from the nearest), eps = {eps:.3g}",
                  "Fact 1: lambda^(eps/5)", kit.at_most(e.fact_1[1]) if e.lemma_2 else kit.near(NAN, 0), e.fact_1[0]),
        kit.finding("saddle-left",
                    "Multiple of -ln(lambda)/||D-|| at which the intermediate saddle is left (loss down by 1 %)",
                    "Fact 1: 1 - eps as lambda -> 0", left / second),
        kit.finding("aligned", "Iteration at which all cosines exceed 0.99", "Lemma 2", aligned),
    ]  # fmt: skip


def draw(e: Evidence) -> kit.Drawing:
    """Draw the measured phases as a bar and the predicted times below."""
    figure, (axes,) = kit.new_figure(width=kit.TEXT_WIDTH, aspect=0.28)
    names = (
        "early alignment (Lemma 2)",
        "fitting positive labels (Lemma 3)",
        "intermediate saddle (Fact 1)",
        "fitting negative labels (Lemma 4)",
        "final convergence",
    )
    phases = [TimedPhase(name, *ends) for name, ends in zip(names, pairwise(e.ends), strict=True)]
    predicted = []
    if e.predicted is not None:
        predicted = [
            Instant(r"$\frac{-\varepsilon\ln\lambda}{\Vert D_-\Vert}$", e.predicted.aligned),
            Instant(r"$\frac{-(1+3\varepsilon)\ln\lambda}{\Vert D_+\Vert}$", e.predicted.first_fitted),
            Instant(r"$\frac{-(1-\varepsilon)\ln\lambda}{\Vert D_-\Vert}$", e.predicted.saddle_left),
            Instant(r"$\frac{-(1+3r\varepsilon)\ln\lambda}{\Vert D_-\Vert}$", e.predicted.second_fitted),
        ]
    draw_timeline(
        axes, [one for one in phases if np.isfinite([one.first, one.last]).all()], predicted, end=e.ends[-1],
        xlabel=e.curve.xlabel, titles=("measured", rf"theory, $\varepsilon={EPSILON:g}$"),
    )  # fmt: skip
    return figure


FIGURE = kit.Figure(
    id="boursier2022-fig1",
    caption=(
        "The phases of training on two orthogonal points, measured, above the ends of the phases that Lemmas 2 to 4 "
        "and Fact 1 give. Times are halved, since the experiment minimises the mean squared error."
    ),
    configs=CONFIGS,
    variants=VARIANTS,
    origin={**ORIGIN, "epsilon": "chosen", "criteria of measured ends": "chosen"},
    remarks=lambda e: violations(e.setting),
)  # fmt: skip

"""Figure 3: the training loss on two orthogonal points, from saddle to saddle, beside the
prediction of Section 4.2.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dynamics_cli import kit

from .orthogonal import (
    CONFIGS,
    NULLS,
    PASSES,
    VARIANTS,
    Setting,
    assumption_claim,
    presupposed,
    read_setting,
)
from .states import (
    LOSS_FACTOR,
    NAN,
    LossCurve,
    NetworkState,
    clock,
    loss_chart,
    loss_curve,
    state_at,
    time_text,
)
from .theory.growth import intermediate_saddle, lemma_5_log_lambda, predicted_loss
from .theory.phases import largest_epsilon

DROP = 0.01
"""A saddle is left when the loss has fallen by this share for good: the width of the line in the
figure.
"""
OTHER_DROPS = (0.005, 0.02, 0.03, 0.05, 0.1)
"""Other readings of it, which the notes quote."""
NEAR = 5e-4
"""The loss is that of a saddle within this distance."""
DONE = 0.01
"""The convergence phase starts at this share of the loss."""


@dataclass(frozen=True)
class Evidence:
    """The loss of the orthogonal run, and the predicted curve.

    `gradients` (k,) are norms of the gradient at the recorded states, at `iterations` (k,),
    `distances` (k,) their distances from the last state, `left` the iterations at which the saddle
    at 0 and the intermediate saddle, of the loss `saddle_loss` (Fact 1), are left, NaN if never;
    `ratios` (k,) are both sides of Eq. 31. Without a
    `prediction` (k,) the theory does not apply.
    """

    setting: Setting
    curve: LossCurve
    prediction: kit.Floats | None
    saddle_loss: float
    iterations: kit.Ints
    left: tuple[float, float]
    gradients: kit.Floats
    distances: kit.Floats
    ratios: kit.Floats


def evidence(runs: kit.Runs) -> Evidence:
    """Read the loss of the orthogonal run, and predict the curve."""
    run = runs["orthogonal"]
    setting = read_setting(run)
    curve = loss_curve(run)
    iterations = clock(run, run.snapshot_iterations)
    states = [state_at(run, int(i)) for i in iterations]
    gradients = gradient_norms(states, setting)
    theta = np.stack([np.column_stack([state.W, state.a]).ravel() for state in states])
    distances = np.linalg.norm(theta - theta[-1], axis=1)
    prediction = None
    saddle_loss = NAN
    second = NAN
    if setting.usable:
        x = setting.x
        y = setting.y
        times = np.asarray(curve.iterations * setting.lr)
        prediction = predicted_loss(x, y, setting.W_0, setting.a_0, times, LOSS_FACTOR)
        saddle_loss = intermediate_saddle(x, y, LOSS_FACTOR).loss
        second = curve.escape(saddle_loss, DROP)
    return Evidence(
        setting,
        curve,
        prediction,
        saddle_loss,
        iterations,
        left=(curve.escape(curve.start, DROP), second),
        gradients=gradients,
        distances=distances,
        ratios=sides_of_eq_31(states, gradients, curve, setting),
    )


def claims(e: Evidence) -> list[kit.Claim]:
    curve = e.curve
    start = e.curve.start
    first, second = e.left
    flat = np.abs(curve.losses[curve.iterations <= 4000] / start - 1).max()
    saddle = curve.plateau(8000, NEAR) if curve.iterations[-1] >= 8000 else None
    passed = saddle is not None and flat <= DROP and abs(saddle.value - e.saddle_loss) <= NEAR
    deviation = (
        float(np.abs(e.prediction - curve.losses).max() / start)
        if e.prediction is not None
        else NAN
    )
    lowest = np.nanmin([*e.ratios, np.inf])
    at_saddles = [kit.value_at(e.iterations, e.gradients, i) for i in (4000, 8000)]
    rate = final_rate(e)
    radius, constant = local_pl(e)
    made = [
        assumption_claim(e.setting),
        kit.claim(
            "first-saddle",
            "The saddle at 0 is left after 5000 iterations (loss down by 1 %)",
            "Section 5, Figure 3",
            kit.around(5000),
            first,
        ),
        kit.claim(
            "first-flat",
            "Until 4000 the loss stays at the zero network's (largest relative change)",
            "Section 5, Figure 3",
            kit.at_most(DROP),
            kit.given(np.isfinite(first), flat),
        ),
        kit.claim(
            "saddle-loss",
            "Near iteration 8000 the loss is the intermediate saddle's",
            "Fact 1, Figure 3",
            kit.near(e.saddle_loss, NEAR),
            saddle.value if saddle else NAN,
        ),
        kit.claim(
            "second-saddle",
            "The second saddle is only left around iteration 11000 (loss down by 1 %)",
            "Section 5, Figure 3",
            kit.around(11000),
            second,
        ),
        kit.claim(
            "small-gradients",
            "The gradient is small near both saddles, so that no PL inequality holds all the "
            "way (the larger of its norms at 4000 and 8000, over the largest of all)",
            "Section 3.2, Figure 3",
            kit.at_most(0.1),
            kit.given(passed, max(at_saddles) / e.gradients.max()),
        ),
        kit.claim(
            "rate",
            r"In the end the loss falls exponentially at a rate $\|D_-\|$ at least (rate over"
            r" $\|D_-\|$)",
            "Section 4.2, Lemma 5",
            kit.at_least(1.0),
            rate,
        ),
        pl_claim(e.setting, radius, constant),
        kit.claim(
            "lemma-14",
            r"$\|\nabla L\|^2$ is at least $2 L \min(u_-, u_+)/n$ in every state (least ratio;"
            r" $\min_k \|x_k\|^2$ times that for inputs that are not unit vectors)",
            "Lemma 14",
            kit.at_least(1.0),
            kit.given(curve.losses[-1] < DONE * start, lowest),
        ),
        kit.claim(
            "zero-loss",
            "At the end of training the loss is 0 (final loss over initial loss)",
            "Theorem 1, Section 5, Figure 3",
            kit.less_than(1e-6),
            curve.losses[-1] / start,
        ),
        kit.claim(
            "predicted-curve",
            "Two logistic growths give the loss curve (largest deviation over initial loss)",
            "Section 4.2, equation for u+",
            kit.at_most(0.01),
            kit.given(np.isfinite(first) and np.isfinite(second), deviation),
        ),
    ]
    return presupposed(made, e.setting)


def gradient_norm(state: NetworkState, x: kit.Floats, y: kit.Floats) -> float:
    """Return the norm of the gradient of the mean squared error on `x` (n, d), `y` (n,) with
    respect to all weights.

    A neuron that has been driven to the boundary of a point, exactly 0 up to rounding along the
    flow, is off there.
    """
    z = x @ state.W.T  # (n, m)
    on = z > 1e-6 * np.outer(np.linalg.norm(x, axis=1), state.norms)
    errors = LOSS_FACTOR / len(y) * (state.h - y)[:, None] * on
    return float(
        np.hypot(
            np.linalg.norm((errors.T @ x) * state.a[:, None]),
            np.linalg.norm((errors * z).sum(axis=0)),
        )
    )


def final_rate(e: Evidence) -> float:
    """Return the exponential rate of the loss between 1 % and a millionth of the first, over
    `||D_-||`.

    NaN when it does not fall so far, or no label has the other sign.
    """
    first, last = (e.curve.first_below(share * e.curve.start) for share in (DONE, DONE * 1e-4))
    if not last > first or e.setting.slower == 0:
        return NAN
    return float(
        np.log(e.curve.at(first) / e.curve.at(last))
        / ((last - first) * e.setting.lr * e.setting.slower)
    )


def local_pl(e: Evidence) -> tuple[float, float]:
    """Return the radius of Lemma 5 and the least `||grad L||^2 / (L ||D_-||)` within it.

    Losses below 1e-9 of the first are left out: rounding decides there.
    """
    losses = np.array([e.curve.at(i) for i in e.iterations])
    reliable = losses > 1e-9 * e.curve.start
    if not e.setting.usable or not reliable.any():
        return NAN, NAN
    ratios = (e.gradients**2 / losses / e.setting.slower)[reliable]
    distances = e.distances[reliable]
    radius = e.setting.lambda_ ** (largest_epsilon(e.setting.x, e.setting.y) / 240)
    return radius, float(ratios[distances <= radius].min(initial=np.inf))


def pl_claim(setting: Setting, radius: float, constant: float) -> kit.Claim:
    """Return Lemma 5, where the scale of the run is one that the lemma allows."""
    made = kit.claim(
        "local-pl",
        r"$\|\nabla L\|^2 / L$ is $\|D_-\|$ at least within $\lambda^{\epsilon/240}$ of the "
        rf"limit ({radius:.3g}, $\epsilon$ of Appendix B.2; least ratio over $\|D_-\|$)",
        "Lemma 5",
        kit.at_least(1.0),
        constant,
    )
    premise = "The lambda that the proof of Lemma 15 takes for Lemma 5, log10(lambda)"
    largest = log_lambda(setting)
    return kit.presupposing(made, premise, kit.at_most(largest), float(np.log10(setting.lambda_)))


def log_lambda(setting: Setting) -> float:
    """Return `log10(lambda*)` of Lemma 5; NaN where the theory says nothing."""
    if not setting.usable:
        return NAN
    epsilon = largest_epsilon(setting.x, setting.y)
    return lemma_5_log_lambda(setting.x, setting.y, len(setting.a_0), epsilon)


def gradient_norms(states: Sequence[NetworkState], setting: Setting) -> kit.Floats:
    """Return the norms (k,) of the gradient in k states."""
    return np.array([gradient_norm(state, setting.x, setting.y) for state in states])


def sides_of_eq_31(
    states: Sequence[NetworkState], gradients: kit.Floats, curve: LossCurve, setting: Setting
) -> kit.Floats:
    """Return the squared gradient over the bound of Lemma 14 in k states (k,).

    Inputs are orthogonal. NaN where the loss is rounding, or the bound is 0.
    """
    losses = np.array([curve.at(state.iteration) for state in states])
    members = np.array([setting.S_plus, setting.S_minus])
    masses = np.array([(members @ state.norms**2).min() for state in states])
    shortest = float(np.sum(setting.x**2, axis=1).min())
    bounds = 2.0 * LOSS_FACTOR * losses * shortest * masses / len(setting.y)
    known = (losses > 1e-9 * curve.start) & (bounds > 0)
    return np.asarray(np.divide(gradients**2, bounds, out=np.full(len(bounds), NAN), where=known))


def numbers(e: Evidence) -> dict[str, float]:
    """Return when the ball of Lemma 5 is small enough, and other readings of leaving a saddle."""
    saddles = {"first": e.curve.start, "second": e.saddle_loss}
    left = {
        f"{name} saddle left, loss down by {100 * drop:g} %": e.curve.escape(level, drop)
        for name, level in saddles.items()
        for drop in OTHER_DROPS
    }
    return {
        "log10 of the largest lambda that the proof of Lemma 15 allows": log_lambda(e.setting),
        **{name: at for name, at in left.items() if np.isfinite(at)},
    }


def draw(e: Evidence) -> kit.Drawing:
    curve = e.curve
    predicted = []
    if e.prediction is not None:
        name = "predicted (Section 4.2)"
        predicted = [kit.line(curve.iterations, e.prediction, name, "theory dashed 1.1")]
    levels = (curve.start, e.saddle_loss)
    left = [
        (name, at, level * (1 - DROP))
        for name, at, level in zip(("first", "second"), e.left, levels, strict=True)
        if np.isfinite(at)
    ]
    chart = loss_chart(
        curve,
        *predicted,
        *(kit.line(at, [loss], look="highlight v") for _, at, loss in left),
        name="measured",
        limits=(-0.03 * curve.start, 1.12 * curve.start),
    )
    figure = kit.charts(chart)
    for name, at, loss in left:
        figure.axes[0].annotate(
            f"{name} saddle left\n{time_text(at, curve.flow)}",
            (at, loss),
            xytext=(6, 1),
            textcoords="offset points",
            fontsize=kit.SMALL,
            color=kit.PALETTE.theory,
        )
    return figure


FIGURE = kit.Figure(
    id="boursier2022-fig3",
    caption=(
        "Training loss (mean squared error) over iterations: the saddle at 0, the intermediate"
        " saddle, convergence. Dashed: the two logistic growths of Section 4.2, started from the"
        " initial weights."
    ),
    configs=CONFIGS,
    variants=VARIANTS,
    nulls=NULLS,
    passes={
        **PASSES,
        "data": {
            "first-flat": "The saddle at 0 and the slow escape from it need no orthogonal points.",
            "lemma-14": (
                "The positive cosine of these points adds to the gradient, where a negative one"
                " would take from it."
            ),
        },
        "lazy": {
            "rate zero-loss": "From a large scale the loss falls exponentially from the start.",
            "lemma-14": (
                "It is an inequality for all balanced networks that stay active on their points."
            ),
        },
        "linear": {
            "first-flat": (
                "The saddle at 0 and the slow escape from it are every homogeneous network's."
            ),
            "lemma-14": (
                "Neurons of a linear network hear every point, which only adds to the gradient."
            ),
            "rate zero-loss": (
                "Orthogonal points are fitted by a linear function too; its neurons are active on"
                " both."
            ),
        },
    },
)

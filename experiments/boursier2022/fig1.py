"""Figure 1: the timeline of the phases, measured, beside the predicted multiples of
-ln(lambda)/||D+|| and /||D-||.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np

from dynamics_cli import kit

from .orthogonal import (
    ALIGNED,
    CONFIGS,
    NULLS,
    PASSES,
    VARIANTS,
    Setting,
    assumption_claim,
    least_cosines,
    presupposed,
    read_setting,
)
from .states import LOSS_FACTOR, NAN, LossCurve, NetworkState, clock, horizon, loss_curve, state_at
from .theory.growth import Saddle, fact_1_lambda, intermediate_saddle
from .theory.phases import PhaseTimes, largest_epsilon, phase_times

FLOW = VARIANTS["flow"]
EPSILON = 0.05
"""The epsilon of the predicted times: any up to `largest_epsilon`, 1/8 for these data, is
allowed.
"""
SMALL = (
    "initialization.scale=1.0e-9",
    "record.snapshots={kind: geometric, ratio: 1.05, include: [14002, 17820]}",
)
"""The orthogonal run from a scale that Fact 1 allows; its stretch is from iteration 14 002 to 17
820.
"""
DONE = 0.01
"""Labels count as fitted, and a saddle as left, at this share of the loss."""


@dataclass(frozen=True)
class Evidence:
    """The ends of the phases, measured and predicted.

    `ends` are: the start; alignment of all of `S_{+,1}` and `S_{-,1}`; a loss within 1 % of the
    intermediate saddle, 1 % below it, and at 1 % of it; the end of training. NaN stands for an end
    that is never reached. `leading` are `-ln(lambda) / ||D||` for the labels fitted first and
    second, `lemma_2` is the network at the time of Lemma 2, with `epsilon`, the largest that
    Appendix B.2 allows; `predicted` is with `EPSILON`. `fact_1` and `fact_1_small` are the
    stretches at the intermediate saddle of the run and of the one from a smaller scale. `asked` is
    the least cosine that Lemma 2 asks with `EPSILON`, and when it is reached.
    """

    setting: Setting
    curve: LossCurve
    ends: list[float]
    asked: tuple[float, float]
    fact_1: Stretch
    fact_1_small: Stretch
    predicted: PhaseTimes | None = None
    leading: tuple[float, float] = (NAN, NAN)
    epsilon: float = NAN
    lemma_2: NetworkState | None = None


def evidence(runs: kit.Runs) -> Evidence:
    """Measure the ends of the phases of the orthogonal run, and predict them; all times in
    iterations.
    """
    run = runs["orthogonal"]
    setting = read_setting(run)
    curve = loss_curve(run)
    iterations = clock(run, run.snapshot_iterations)
    cosines = np.array(
        [min(least_cosines(setting, state_at(run, int(i)))) for i in iterations.tolist()]
    )
    asked = 1.0 - 2.0 * min(setting.lambda_, 1.0) ** EPSILON
    aligned = kit.first_at(iterations, cosines > ALIGNED)
    e = Evidence(
        setting,
        curve,
        ends=[0.0, aligned, NAN, NAN, NAN, float(horizon(run))],
        asked=(asked, kit.first_at(iterations, cosines >= asked)),
        fact_1=at_saddle(run),
        fact_1_small=at_saddle(runs["small"]),
    )
    if not setting.usable:
        return e
    saddle = intermediate_saddle(setting.x, setting.y, LOSS_FACTOR).loss
    epsilon = largest_epsilon(setting.x, setting.y)
    limit = _times(setting, 0.0)
    e.ends[2:5] = (
        curve.first_below(saddle * (1 + DONE)),
        curve.escape(saddle, DONE),
        curve.first_below(saddle * DONE),
    )
    return replace(
        e,
        predicted=_times(setting, EPSILON),
        leading=(limit.first_fitted, limit.saddle_left),
        epsilon=epsilon,
        lemma_2=state_at(run, round(_times(setting, epsilon).aligned)),
    )


@dataclass(frozen=True)
class Stretch:
    """The stretch of Fact 1 at the intermediate saddle.

    `far` is the largest distance from the nearest saddle, `bound` the one of Fact 1, `largest` the
    scale up to which the theory's growth keeps the bound; NaN where the theory says nothing.
    """

    far: float
    bound: float
    largest: float

    @property
    def share(self) -> float:
        """The distance over its bound."""
        return self.far / self.bound


def at_saddle(run: kit.Run) -> Stretch:
    """Measure the stretch of Fact 1, with the largest epsilon that Appendix B.2 allows."""
    s = read_setting(run)
    if not s.usable:
        return Stretch(far=NAN, bound=NAN, largest=NAN)
    epsilon = largest_epsilon(s.x, s.y)
    times = _times(s, epsilon)
    saddle = intermediate_saddle(s.x, s.y, LOSS_FACTOR)
    iterations = clock(run, run.snapshot_iterations)
    inside = (iterations >= times.first_fitted) & (iterations <= times.saddle_left)
    distances = [distance(state_at(run, int(i)), saddle) for i in iterations[inside]]
    return Stretch(
        far=max(distances, default=NAN),
        bound=s.lambda_ ** (epsilon / 5),
        largest=fact_1_lambda(s.x, s.y, s.W_0, s.a_0, s.lambda_, epsilon),
    )


def distance(state: NetworkState, saddle: Saddle) -> float:
    """Return the distance of a network from the nearest saddle of Fact 1.

    That is any split of the merged neuron: `(w_j, a_j) = c_j v` with `c_j >= 0`, `sum c_j^2 = 2
    a^2` and `||v|| = 1`.
    """
    theta = np.column_stack([state.W, state.a])  # (m, d + 1)
    v = np.append(saddle.w, saddle.a) / np.hypot(np.linalg.norm(saddle.w), saddle.a)
    along = np.maximum(theta @ v, 0.0)
    c = along * np.sqrt(2) * abs(saddle.a) / np.linalg.norm(along)
    return float(np.linalg.norm(theta - np.outer(c, v)))


def _times(setting: Setting, epsilon: float) -> PhaseTimes:
    """Return the times of Lemmas 2 to 4 and Fact 1 in iterations."""
    return phase_times(
        setting.x, setting.y, setting.lambda_, epsilon, loss_factor=LOSS_FACTOR * setting.lr
    )


def claims(e: Evidence) -> list[kit.Claim]:
    s = e.setting
    eps = e.epsilon
    _, aligned, positive, _, negative, _ = e.ends
    first, second = e.leading
    slower, faster = sorted((float(np.linalg.norm(s.D_plus)), float(np.linalg.norm(s.D_minus))))
    r = faster / slower if slower > 0 else NAN
    c = float(np.linalg.norm(s.W_0, axis=1).max() / s.lambda_)
    cosine = NAN
    norm = NAN
    cosine_bound = 0.0
    norm_bound = NAN
    if e.lemma_2 is not None:
        cosine = min(least_cosines(s, e.lemma_2))
        norm = float(e.lemma_2.norms.max())
        cosine_bound = 1 - 2 * s.lambda_**eps
        norm_bound = 2 * c * s.lambda_ ** (1 - r * eps)
    before = e.curve.losses[e.curve.iterations <= aligned]  # none where alignment never ends
    fall = 1 - float(before[-1] / e.curve.start) if before.size else NAN
    own = fact_claim("fact-1", "", e.fact_1, eps)
    made = [
        assumption_claim(s),
        kit.claim(
            "order",
            "Alignment, fitting positive labels, saddle, fitting negative labels, convergence"
            " follow one another",
            "Section 4.2, Figure 1 (number of phases in this order)",
            kit.exactly(5),
            np.sum(np.diff(e.ends) > 0),
        ),
        kit.claim(
            "alignment-before-growth",
            "Alignment is over before the loss falls (its relative fall when all "
            "cosines exceed 0.99)",
            "Section 4.2, Lemma 2",
            kit.less_than(DONE),
            fall,
        ),
        kit.claim(
            "lemma-2-cosine",
            r"At $-\epsilon \ln(\lambda)/\|D_-\|$ neurons are aligned (least cosine), "
            rf"$\epsilon$ = {eps:.3g}",
            "Lemma 2 (i), (ii): 1 - 2 lambda^eps",
            kit.at_least(cosine_bound),
            cosine,
        ),
        kit.claim(
            "lemma-2-norm",
            "All norms are small at the end of alignment (the largest over its bound), "
            rf"$\epsilon$ = {eps:.3g}",
            "Lemma 2 (iii): 2 c lambda^(1 - r eps)",
            kit.at_most(1.0),
            kit.given(cosine >= cosine_bound, norm / norm_bound),
        ),
        kit.claim(
            "lemma-3",
            r"Positive labels are fitted by $-(1 + 3 \epsilon) \ln(\lambda)/\|D_+\|$, $\epsilon$ = "
            f"{EPSILON:g} (multiple)",
            "Lemma 3, Figure 1",
            kit.at_most(1 + 3 * EPSILON),
            positive / first,
        ),
        kit.claim(
            "lemma-4",
            r"Negative labels are fitted by $-(1 + 3 r \epsilon) \ln(\lambda)/\|D_-\|$, $\epsilon$"
            f" = {EPSILON:g} (multiple)",
            "Lemma 4, Figure 1",
            kit.at_most(1 + 3 * r * EPSILON),
            negative / second,
        ),
        kit.undecided(
            own,
            "Fact 1 is for lambda up to a lambda* that it leaves open: a run outside of the bound"
            f" does not refute it, and this one's lambda is {s.lambda_:.3g}; see the smaller scale",
        ),
        fact_claim("fact-1-small", "From the scale 1e-9: f", e.fact_1_small, eps),
        kit.claim(
            "fact-1-falls",
            "There is a lambda* below which the bound of Fact 1 holds: the distance over its bound"
            " falls with the scale (that from 1e-9 over that from 1e-6)",
            "Fact 1",
            kit.less_than(1),
            e.fact_1_small.share / e.fact_1.share,
        ),
    ]
    return presupposed(made, s)


def fact_claim(id: str, scale: str, stretch: Stretch, epsilon: float) -> kit.Claim:
    """Return Fact 1 for a run."""
    return kit.claim(
        id,
        (scale or "F") + r"rom $-(1 + 3 \epsilon) \ln(\lambda)/\|D_+\|$ to $-(1 - \epsilon) "
        r"\ln(\lambda)/\|D_-\|$ the network stays near an intermediate saddle (largest distance"
        r" from the "
        rf"nearest), $\epsilon$ = {epsilon:.3g}",
        "Fact 1: lambda^(eps/5)",
        kit.at_most(stretch.bound) if np.isfinite(stretch.bound) else kit.near(NAN, 0),
        stretch.far,
    )


def numbers(e: Evidence) -> dict[str, float]:
    """Return when the saddle is left (Fact 1: 1 - eps as lambda goes to 0), lambda* and what
    Lemma 2 asks.
    """
    asked, reached = e.asked
    return {
        "multiple of -ln(lambda)/||D-|| at which the intermediate saddle is left": (
            e.ends[3] / e.leading[1]
        ),
        "lambda": e.setting.lambda_,
        "largest lambda for which the growth of S-,1 keeps the bound of Fact 1": e.fact_1.largest,
        "distance of Fact 1 over its bound": e.fact_1.share,
        "distance of Fact 1 over its bound, from the scale 1e-9": e.fact_1_small.share,
        f"cosine that Lemma 2 asks with epsilon = {EPSILON:g}": asked,
        "iteration at which all cosines are as large": reached,
        "iteration at which Lemma 2 asks it": e.predicted.aligned if e.predicted else NAN,
    }


PHASES = (
    ("early alignment (Lemma 2), here to cosine 0.99", "#4A6FA5"),
    ("fitting positive labels (Lemma 3)", "#5B2A8C"),
    ("intermediate saddle (Fact 1)", "#555555"),
    ("fitting negative labels (Lemma 4)", "#B34700"),
    ("final convergence", "#00614A"),
)
FORMULAS = {
    "aligned": r"$-\varepsilon\,\ln\lambda\,/\,\Vert D_-\Vert$",
    "first_fitted": r"$-(1+3\varepsilon)\,\ln\lambda\,/\,\Vert D_+\Vert$",
    "saddle_left": r"$-(1-\varepsilon)\,\ln\lambda\,/\,\Vert D_-\Vert$",
    "second_fitted": r"$-(1+3r\varepsilon)\,\ln\lambda\,/\,\Vert D_-\Vert$",
}
"""Times of `PhaseTimes`."""


def draw(e: Evidence) -> kit.Drawing:
    figure, (axes,) = kit.new_figure(width=kit.TEXT_WIDTH, aspect=0.42)
    end = float(np.nanmax([*e.ends, 1.0]))

    def flag(time: float, edge: float, height: float, label: str, color: str) -> None:
        """Write a label beside a line from the `edge` of the bar to a height."""
        axes.annotate(
            "",
            (time, edge),
            (time, height),
            arrowprops={"arrowstyle": "-|>", "color": kit.PALETTE.muted},
        )
        side = 1 if time < 0.65 * end else -1
        look: dict[str, Any] = {
            "ha": "left" if side > 0 else "right",
            "va": "center",
            "color": color,
        }
        axes.annotate(label, (time, height), (3 * side, 0), textcoords="offset points", **look)

    _draw_asked(axes, e.asked[1])
    for k, ((name, color), (first, last)) in enumerate(zip(PHASES, pairwise(e.ends), strict=True)):
        if np.isfinite([first, last]).all():
            axes.barh(0, last - first, left=first, height=1.0, color=color, ec="white")
            if k == len(PHASES) - 1:
                axes.text((first + last) / 2, 0, name, ha="center", va="center", color="white")
            else:
                flag((first + last) / 2, 0.5, 4.1 - 0.9 * k, name, color)
    for row, (name, formula) in zip(
        (2, 1, 0, 2), FORMULAS.items() if e.predicted is not None else (), strict=False
    ):
        time = getattr(e.predicted, name)
        end = max(end, time)
        asked = rf": cosine $\geq$ {e.asked[0]:.3f}" if name == "aligned" else ""
        flag(time, -0.5, -1.7 - row, formula + asked, kit.PALETTE.theory)
    kit.set_time_axis(axes, [0.0, end], label=e.curve.xlabel)
    axes.set(ylim=(-4.4, 4.7))
    axes.set_yticks([0, -2.7], labels=["measured", rf"theory, $\varepsilon={EPSILON:g}$"])
    axes.tick_params(axis="y", length=0)
    axes.spines["left"].set_visible(False)
    return figure


def _draw_asked(axes: kit.Axes, reached: float) -> None:
    """Mark on the bar when all cosines are as large as Lemma 2 asks; its arrow has to come
    later.
    """
    if np.isfinite(reached):
        axes.plot(reached, 0, "|", color=kit.PALETTE.highlight, ms=22, mew=2, zorder=4)


FIGURE = kit.Figure(
    id="boursier2022-fig1",
    caption=(
        "The phases of training on two orthogonal points, measured, above the ends of the phases"
        " that Lemmas 2 to 4 and Fact 1 give. The alignment ends here when all cosines exceed 0.99;"
        " the line at its beginning is where they are as large as Lemma 2 asks, and the lemma's"
        " arrow has to come later. Times are halved, since the experiment minimises the mean"
        " squared error."
    ),
    configs={**CONFIGS, "small": kit.Wanted(CONFIGS["orthogonal"], SMALL)},
    variants={
        "flow": kit.Variant(
            FLOW.title,
            FLOW.caption,
            {**FLOW.configs, "small": kit.Wanted(str(FLOW.configs["orthogonal"]), SMALL)},
        )
    },
    nulls=NULLS,
    passes={
        **PASSES,
        "lazy": {
            "lemma-*": "Lambda is 0.39 then, and the bounds of the lemmas are above every value."
        },
        "linear": {
            "lemma-3 lemma-4": (
                "The lemmas bound times from above: a linear network fits both labels at once, and"
                " sooner."
            ),
        },
    },
)

"""Figure 2: the state of training on two orthogonal points; for Figures 1 to 3 the setting."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from dynamics_cli import kit

from .states import (
    LOSS_FACTOR,
    NAN,
    STEP,
    LineState,
    NetworkState,
    bends,
    distinct_kinks,
    draw_states,
    horizon,
    initial_scale,
    line_state,
    on_flow,
    state_at,
    turns,
)
from .theory.alignment import D_minus, D_plus, S_minus_1, S_plus_1, labels_differ, orthogonality
from .theory.growth import linear_norm, minimum_norm_value

CONFIGS = {"orthogonal": "boursier2022/orthogonal.yaml"}
VARIANTS = on_flow("orthogonal", "boursier2022/orthogonal_flow.yaml")
NULLS = {
    "lazy": ("initialization.scale=3.0",),
    "data": ("dataset.x=[[0.5], [2.0]]",),
}
"""A scale at which the networks fit the data too, but neither align first nor pass saddles; and
points that are not orthogonal.
"""
PASSES = {
    "shuffled": {
        "*": (
            "The permutation exchanges the two labels: the points stay orthogonal, and the theory"
            " is for all labels."
        )
    },
    "larger": {"*": "The scale 1e-4 is small too: the same phases follow one another, sooner."},
    "smaller": {"*": "From a smaller scale the same phases follow one another, later."},
}
"""Why claims about two points hold under other labels and scales."""


@dataclass(frozen=True)
class Setting:
    """Data and initial weights of a run, and the vectors and sets that they define.

    `x` (n, d), bias column included, `y` (n,), `W_0` (m, d), `a_0` (m,), `lambda_`, and the step
    `lr`, which turns iterations into times of gradient flow; `S_plus` and `S_minus` (m,) are
    members of `S_{+,1}` and `S_{-,1}`. `slower` is `loss_factor ||D||` of the labels that are
    fitted last: the paper's `||D_-||` in the time of the runs. The run is `usable` where the theory
    of Section 4 says something about its data, its weights and its scale.
    """

    x: kit.Floats
    y: kit.Floats
    W_0: kit.Floats
    a_0: kit.Floats
    lambda_: float
    D_plus: kit.Floats
    D_minus: kit.Floats
    S_plus: kit.Bools
    S_minus: kit.Bools
    lr: float
    slower: float
    usable: bool


def read_setting(run: kit.Run) -> Setting:
    """Return data and initial weights of a run, and the vectors and sets that they define (Section
    4.1, Eqs. 5 and 6).
    """
    dataset = run.dataset()
    start = state_at(run, 0)
    x = dataset.x
    y = dataset.y
    lambda_ = initial_scale(run)
    plus = D_plus(x, y)
    minus = D_minus(x, y)
    S_plus = S_plus_1(x, y, start.W, start.a)
    S_minus = S_minus_1(x, y, start.W, start.a)
    slower = LOSS_FACTOR * float(min(np.linalg.norm(plus), np.linalg.norm(minus)))
    assumed = (
        orthogonality(x) < ORTHOGONAL and labels_differ(x, y) and S_plus.any() and S_minus.any()
    )
    return Setting(
        x,
        y,
        W_0=start.W,
        a_0=start.a,
        lambda_=lambda_,
        D_plus=plus,
        D_minus=minus,
        S_plus=S_plus,
        S_minus=S_minus,
        lr=float(getattr(run.config.optimizer, "lr", STEP)),
        slower=slower,
        usable=bool(assumed and lambda_ < 1 and slower > 0),
    )


def least_cosines(setting: Setting, state: NetworkState) -> tuple[float, float]:
    """Return the least cosine of `S_{+,1}` with `D_+` and of `S_{-,1}` with `-D_-`; NaN for an
    empty set.
    """
    plus = kit.cosines(state.W, setting.D_plus)[setting.S_plus]
    minus = kit.cosines(state.W, -setting.D_minus)[setting.S_minus]
    return float(plus.min()) if plus.size else NAN, float(minus.min()) if minus.size else NAN


ORTHOGONAL = 1e-6
"""Largest |cosine| of inputs that count as orthogonal: rounding of float32."""
THEORY = re.compile(r"Lemma|Theorem|Fact|Proposition")
"""Words in the sources of claims that rest on the assumptions."""


def presupposed(claims: Iterable[kit.Claim], setting: Setting) -> list[kit.Claim]:
    """Return the claims; those of lemmas and theorems with Assumptions 1 and 3 as premises."""
    found = []
    size = min(setting.S_plus.sum(), setting.S_minus.sum())
    for claim in claims:
        one = claim
        if one.kind == "claim" and THEORY.search(one.source):
            first = "Assumption 1, the largest |cosine| of two inputs"
            one = kit.presupposing(one, first, kit.at_most(ORTHOGONAL), orthogonality(setting.x))
            third = "Assumption 3, the smaller number of neurons of S+,1 and S-,1"
            one = kit.presupposing(one, third, kit.at_least(1), size)
        found.append(one)
    return found


def assumption_claim(setting: Setting) -> kit.Claim:
    """Return the check of Assumption 3, on which everything else rests."""
    statement = "Both S+,1 and S-,1 hold neurons at initialisation (size of the smaller one)"
    size = min(setting.S_plus.sum(), setting.S_minus.sum())
    return kit.theory("assumption-3", statement, "Assumption 3", kit.at_least(1), size)


ITERATIONS = (0, 4000, 8000, 15000)
"""Of panels a to d."""
ALIGNED = 0.99
"""Cosine from which on a neuron counts as aligned."""
FITTED = 0.01
"""A label counts as fitted when the output is this close to it: about the size of a dot in the
figure.
"""
SAME_PLACE = 0.01
"""Kinks are at an input when they are this close to it."""


@dataclass(frozen=True)
class Evidence:
    """The states of the orthogonal run."""

    setting: Setting
    states: list[LineState]
    last: LineState


def evidence(runs: kit.Runs) -> Evidence:
    """Read the states of the orthogonal run at `ITERATIONS`: the start, and the ends of phases
    1, 2 and 3.
    """
    run = runs["orthogonal"]
    states = [line_state(run, iteration) for iteration in ITERATIONS]
    return Evidence(setting=read_setting(run), states=states, last=line_state(run, horizon(run)))


def claims(e: Evidence) -> list[kit.Claim]:
    s = e.setting
    start, aligned, fitted, after = e.states
    plus, minus = least_cosines(s, aligned)
    first = (
        s.y > 0 if np.linalg.norm(s.D_plus) > np.linalg.norm(s.D_minus) else s.y < 0
    )  # labels fitted first
    kinks = distinct_kinks(after.W).tolist()
    angles = sorted(
        kit.angle_of(kit.cluster_directions(after.W, signs=after.a).directions).tolist()
    )
    expected = sorted(
        (float(kit.angle_of(D)), name) for name, D in {"D+": s.D_plus, "-D-": -s.D_minus}.items()
    )
    grown = kit.cluster_directions(fitted.W, signs=fitted.a).labels >= 0
    errors = np.abs(fitted.h - s.y)
    last_errors = np.abs(e.last.h - s.y)
    first_fitted = errors[first].max(initial=0.0) < FITTED
    idle = np.abs(fitted.h)[~first].max(initial=0.0)
    norm = float(np.sum(e.last.norms**2) + np.sum(e.last.a**2))
    least = minimum_norm_value(s.x, s.y) if s.usable else NAN
    linear = linear_norm(s.x, s.y)
    made = [
        assumption_claim(s),
        kit.claim(
            "initial-norms",
            "At initialisation all neurons are close to 0 (largest norm over largest final norm)",
            "Section 5, Figure 2(a)",
            kit.less_than(1e-2),
            start.norms.max() / e.last.norms.max(),
        ),
        kit.claim(
            "aligned-plus",
            "After the first phase every neuron of S+,1 is aligned with D+ (least cosine)",
            "Lemma 2 (i), Figure 2(b)",
            kit.more_than(ALIGNED),
            plus,
        ),
        kit.claim(
            "aligned-minus",
            "After the first phase every neuron of S-,1 is aligned with -D- (least cosine)",
            "Lemma 2 (ii), Figure 2(b)",
            kit.more_than(ALIGNED),
            minus,
        ),
        kit.claim(
            "aligned-norms",
            "After the first phase all norms are small (largest)",
            "Lemma 2 (iii), Figure 2(b)",
            kit.less_than(0.05),
            kit.given(min(plus, minus) > ALIGNED, aligned.norms.max()),
        ),
        kit.claim(
            "positive-fitted",
            "After the second phase the positive label is fitted ($|h - y|$)",
            "Lemma 3, Figure 2(c)",
            kit.less_than(FITTED),
            errors[first].max(initial=0.0),
        ),
        kit.claim(
            "negative-idle",
            "After the second phase the network is still 0 on the negative label ($|h|$)",
            "Lemma 3 (iii), Figure 2(c)",
            kit.less_than(FITTED),
            kit.given(first_fitted, idle),
        ),
        kit.claim(
            "one-group",
            "In the second phase a single group of neurons grows (groups of non-negligible norm)",
            "Section 4.2, Appendix A.1, Figure 2(c)",
            kit.exactly(1),
            kit.cluster_directions(fitted.W, signs=fitted.a).count,
        ),
        kit.claim(
            "both-fitted",
            "After the third phase both labels are fitted (largest $|h - y|$)",
            "Lemma 4, Figure 2(d)",
            kit.less_than(FITTED),
            np.abs(after.h - s.y).max(),
        ),
        kit.claim(
            "two-kinks",
            "The estimated function has two kinks",
            "Section 5, Figure 2(d)",
            kit.exactly(2),
            len(kinks),
        ),
        *[
            kit.claim(
                f"kink-{k + 1}",
                f"Kink {k + 1} lies where the active neurons are orthogonal to the other point",
                "Section 4.2, Figure 2(d)",
                kit.near(place, 0.01),
                kinks[k] if len(kinks) == 2 else NAN,
            )
            for k, place in enumerate(sorted(s.x[:, 0].tolist()))
        ],
        *[
            kit.claim(
                f"angle-{k + 1}",
                f"Group {k + 1} of active neurons points along {name} (angle in degrees)",
                "Lemma 4 (i), Figure 2(d)",
                kit.near(angle, 1.0),
                angles[k] if len(angles) == 2 else NAN,
            )
            for k, (angle, name) in enumerate(expected)
        ],
        kit.claim(
            "turned",
            "Neurons do not turn once they have grown (largest angle in degrees after the second "
            "phase)",
            "Section 3.2 (limitations), Lemma 4 (iii)",
            kit.at_most(1.0),
            kit.given(
                first_fitted and idle < FITTED, turns(fitted, e.last)[grown].max(initial=0.0)
            ),
        ),
        kit.claim(
            "below-linear",
            "The learned function has a smaller F1 norm than the linear interpolator (sum of "
            rf"$|a_j| \|w_j\|$; the linear interpolator's is {linear:.4g})",
            "Section 5, Figure 2(d)",
            kit.less_than(linear),
            kit.given(
                bends(e.last, 2 * s.x[:, 0]) and last_errors.max() < FITTED,
                np.sum(np.abs(e.last.a) * e.last.norms),
            ),
        ),
        kit.claim(
            "minimum-norm",
            r"The limit has minimal norm: final $\|\theta\|^2$ over the least of an interpolator",
            "Theorem 1, Proposition 1 (orthogonal inputs of any norm)",
            kit.near(1.0, 1e-3),
            norm / least,
        ),
    ]
    return presupposed(made, s)


def draw(e: Evidence) -> kit.Drawing:
    titles = ["Initialisation", "End of first phase", "End of second phase", "End of third phase"]
    inputs = e.setting.x[:, 0]
    figure = draw_states(e.states, titles, inputs, e.setting.y)
    for axes, state in zip(figure.axes, e.states, strict=False):
        for x in inputs.tolist():
            count = int(np.sum(np.abs(state.kinks - x) < SAME_PLACE))
            axes.text(
                x,
                0.99,
                f"{count} stars" if count else "",
                ha="center",
                va="top",
                fontsize=kit.SMALL,
                color=kit.PALETTE.neurons,
                transform=axes.get_xaxis_transform(),
            )
    return figure


FIGURE = kit.Figure(
    id="boursier2022-fig2",
    caption=(
        "Green dots are the data, the green line is the estimated function. Each blue star is a"
        " neuron w_j: x is -w_j2/w_j1, the kink of its ReLU, and y is s_j ||w_j||, its output"
        " weight (right axis). Numbers at the top: how many stars stand, one above another, at that"
        " input."
    ),
    configs=CONFIGS,
    variants=VARIANTS,
    nulls=NULLS,
    passes={
        **PASSES,
        "lazy": {"*-fitted": "From a large scale the labels are fitted as well."},
        "data": {
            "initial-norms": "The start is the same, and what grows from it as large.",
            "one-group two-kinks angle-2": (
                "Of two groups the one with the larger D still grows first, along it, and each has"
                " a kink; at other angles the other group ends elsewhere."
            ),
        },
        "linear": {
            "initial-norms": "The start is the same, and what grows from it as large.",
            "positive-fitted both-fitted": (
                "Two orthogonal points are fitted by a linear function too, and faster."
            ),
        },
    },
)

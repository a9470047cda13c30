"""Figures 2, 6 and 7: pairs of MNIST digits, how neurons cluster and how many points are outside
the linear regime.

Beside the paper's panels: how the result depends on step, slope of leaky ReLU and initial scale,
which the paper does not print.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from dynamics_cli import kit

from .groups import (
    ALIKE,
    LARGE,
    LINEAR,
    RATIO,
    SHARE,
    SMALL,
    Clustering,
    clustering,
    nearly_zero,
    settled,
)

Evidence = Mapping[str, Clustering]
"""Role -> clustering of its run at every recorded state."""

CONFIG = "sarussi2021/mnist_35.yaml"
PAIRS = {"0-1": "(0, 1)", "3-5": "(3, 5)"}
"""Of Figures 2 and 7."""
SETTINGS = {
    "3-5": "(c) as in b",
    "3-5-slope-0.5": "(c) slope 0.5",
    "3-5-slope-0.8": "(c) slope 0.8",
    "3-5-step-0.01": "(c) step 0.01",
    "3-5-large": "(c) large start",
}
"""Of the pair (3, 5): role -> what differs from the other runs."""
MORE_PAIRS = {f"{i}-{j}": f"({i}, {j})" for i, j in ((1, 7), (2, 3), (4, 9), (5, 8), (6, 0))}
"""Of Figure 6. The captions that say which pairs the paper shows are lost; these cover all ten
digits.
"""
MEASURES = {
    "ratio": (
        r"ratio $2r/\|\bar w - \bar u\|$",
        kit.Interval(None, 0.1, "0, to a tenth of 1, where no point is inside"),
    ),
    "angle": (
        "largest angle within a group, degrees",
        kit.Interval(None, 9.0, "0, to a tenth of a right angle"),
    ),
}
"""The two measures of clustering with the meaning of "zero" for each, whatever they start from."""
ONCE_LEARNT = "once learnt"
"""How statements say that states before the network has learnt the points do not count."""
LEARNT = (
    "Claims count a network once it has learnt: it classifies at least as many training points as"
    " linear least squares."
)
"""The sentence of the captions that says what `ONCE_LEARNT` means."""


def evidence(runs: kit.Runs) -> Evidence:
    """Measure ratio, angle and shares at every recorded state."""
    return {role: clustering(run) for role, run in runs.items()}


def wanted(pair: str) -> kit.Wanted:
    """Return the run of a pair of digits, such as `1-7`."""
    return kit.Wanted(CONFIG, (f"dataset.digits=[{pair.replace('-', ', ')}]",))


def claims_fig2(e: Evidence) -> list[kit.Claim]:
    large = e["3-5-large"]
    learnt = large.learnt[-1]
    return [
        *[
            claim
            for name, title in PAIRS.items()
            for claim in _of_pair(e[name], name, title, "Section 5.1, Figure 2")
        ],
        kit.claim(
            "large-outside",
            "Digits (3, 5), large initialisation: the share of training points outside the linear"
            " regime does not converge to zero (at the end, with the least constant with which"
            r" Theorem 5.1 holds, $(1 - \alpha)/(1 + \alpha)$ for 2: all points of a linear network"
            " are inside)",
            "Section 5.1: for small initialisation",
            kit.more_than(SMALL),
            kit.given(learnt, large.surely_outside),
        ),
        kit.claim(
            "large-differ",
            "Digits (3, 5), large initialisation: the learned classifier is not linear over the"
            " data (points that "
            r"the network and the classifier $\bar w - \bar u$ decide differently)",
            "Section 5.1: for small initialisation",
            kit.more_than(0),
            kit.given(learnt, large.differ),
        ),
    ]


def _of_pair(run: Clustering, name: str, title: str, source: str) -> list[kit.Claim]:
    """Return that the shares of points outside the linear regime converge to zero, that the network
    enters the regime, and that it is effectively linear over the data.
    """
    learnt = run.learnt[-1]
    return [
        *[
            kit.claim(
                f"{name}-{part}",
                f"Digits {title}: the share of {part} points outside the linear regime "
                f"converges to zero (largest of the last third of epochs, {ONCE_LEARNT})",
                source,
                nearly_zero(part, run.sizes[part]),
                kit.given(learnt, settled(run.epochs, share)),
            )
            for part, share in run.outside.items()
        ],
        *[
            kit.claim(
                f"{name}-{part}-enters",
                f"Digits {title}: the network enters the linear regime at some point (least "
                f"share of {part} points outside, {ONCE_LEARNT})",
                "Appendix D.2",
                nearly_zero(part, run.sizes[part]),
                np.min(share[run.learnt], initial=np.inf),
            )
            for part, share in run.outside.items()
        ],
        kit.claim(
            f"{name}-linear",
            f"Digits {title}: the learned classifier is effectively linear over the data "
            f"(of {sum(run.sizes.values())} points, those that the network and the classifier "
            rf"$\bar w - \bar u$ decide differently in the end, {ONCE_LEARNT})",
            "Section 5.1",
            kit.exactly(0),
            kit.given(learnt, run.differ),
        ),
    ]


def claims_fig6(e: Evidence) -> list[kit.Claim]:
    source = "Appendix D.2, Figure 6"
    pairs = MORE_PAIRS.items()
    return [claim for name, title in pairs for claim in _of_pair(e[name], name, title, source)]


def claims_fig7(e: Evidence) -> list[kit.Claim]:
    return [
        kit.claim(
            f"{name}-{key}",
            f"Digits {title}: {text}, converges to zero (largest of the last third of epochs,"
            f" {ONCE_LEARNT})",
            "Appendix D.3, Figure 7",
            zero,
            kit.given(e[name].learnt[-1], settled(e[name].epochs, getattr(e[name], key))),
        )
        for name, title in PAIRS.items()
        for key, (text, zero) in MEASURES.items()
    ]


TITLES = {
    "ratio": ("Clustering ratio", RATIO),
    "angle": ("Largest angle in a group", "largest angle (degrees)"),
}


def clusters(runs: Mapping[str, Clustering], key: str = "ratio", name: str = "") -> kit.Chart:
    """Chart a measure of clustering of runs by title, on logarithmic axes."""
    curves = [kit.line(run.epochs, getattr(run, key), name.format(of)) for of, run in runs.items()]
    return kit.chart(*TITLES[key], curves, log="xy")


def outside(runs: Mapping[str, Clustering]) -> kit.Chart:
    """Chart the shares of training and of held-out points outside the linear regime."""
    return kit.chart(
        "Outside the regime",
        "share outside",
        *(
            [
                kit.line(run.epochs, run.outside[part], f"{title} {part}", look)
                for title, run in runs.items()
            ]
            for part, look in (("training", ""), ("held-out", "dashed"))
        ),
        limits=SHARE,
    )


def draw_fig2(e: Evidence) -> kit.Drawing:
    pairs = {title: e[name] for name, title in PAIRS.items()}
    return kit.charts(
        clusters(pairs),
        outside(pairs),
        kit.chart(
            "(3, 5), by setting",
            "share outside",
            *(
                kit.line(e[role].epochs, e[role].outside["training"], label, f"C{k}")
                for k, (role, label) in enumerate(SETTINGS.items(), 2)
            ),
            limits=SHARE,
        ),
        xlabel="epoch",
        log="x",
    )


def numbers_fig2(e: Evidence) -> dict[str, float]:
    """Return accuracies and shares that the notes quote."""
    roles = {"0-1": "(0, 1)", **{role: f"(3, 5), {label[4:]}" for role, label in SETTINGS.items()}}
    shares = {
        f"digits {title}: largest share of training points outside, last third of epochs": settled(
            e[role].epochs, e[role].outside["training"]
        )
        for role, title in roles.items()
    }
    return {**accuracies({title: e[role] for role, title in roles.items()}), **shares}


def accuracies(runs: Mapping[str, Clustering]) -> dict[str, float]:
    """Return how far each run by title is learnt, and what linear least squares reaches."""
    found: dict[str, float] = {}
    for title, run in runs.items():
        digits = f"digits {title}"
        found[f"{digits}: training accuracy at the end"] = run.accuracy[-1]
        found[f"{digits}: training accuracy of linear least squares"] = run.linear_accuracy
        if run.learnt.any():
            first = run.epochs[run.learnt][0]
            found[f"{digits}: epoch of the first state that has learnt"] = first
    return found


def numbers_fig6(e: Evidence) -> dict[str, float]:
    """Return how far each pair is learnt."""
    return accuracies({title: e[name] for name, title in MORE_PAIRS.items()})


def numbers_fig7(e: Evidence) -> dict[str, float]:
    """Return the last values of both measures."""
    return {
        f"digits {title}: {key} at the end": float(getattr(e[name], key)[-1])
        for name, title in PAIRS.items()
        for key in MEASURES
    }


def draw_fig6(e: Evidence) -> kit.Drawing:
    pairs = {title: e[name] for name, title in MORE_PAIRS.items()}
    return kit.charts(clusters(pairs), outside(pairs), xlabel="epoch", log="x")


def draw_fig7(e: Evidence) -> kit.Drawing:
    pairs = {title: e[name] for name, title in PAIRS.items()}
    return kit.charts(
        clusters(pairs, name="digits {}"),
        clusters(pairs, "angle", "digits {}"),
        xlabel="epoch",
    )


OF_PAIRS = {"0-1": "sarussi2021/mnist_01.yaml", "3-5": CONFIG}

FIGURES = kit.by_id(
    kit.Figure(
        id="sarussi2021-fig2",
        caption=(
            "Clustering ratio 2r/||w_bar - u_bar|| (a) and share of training and held-out points"
            " outside the linear regime of Theorem 5.1 (b) against epochs, for two pairs of digits"
            " and small initialisation; (c), not in the paper: the share of training points for"
            " digits (3, 5), other slopes of leaky ReLU, a larger step and a large initialisation."
            f" {LEARNT}"
        ),
        configs={
            **OF_PAIRS,
            "3-5-slope-0.5": kit.Wanted(CONFIG, ("architecture.slope=0.5",)),
            "3-5-slope-0.8": kit.Wanted(CONFIG, ("architecture.slope=0.8",)),
            "3-5-step-0.01": kit.Wanted(CONFIG, ("optimizer.lr=0.01", "optimizer.epochs=90")),
            "3-5-large": kit.Wanted(CONFIG, LARGE["large"]),
        },
        nulls=LARGE,
        passes={
            "linear": {"*-training *-held-out *-enters": ALIKE, "*-linear": LINEAR},
            "large": {"large-*": "These claims are about the large start already."},
        },
    ),
    kit.Figure(
        id="sarussi2021-fig6",
        caption=(
            "Clustering ratio (a) and share of training and held-out points outside the linear"
            f" regime (b) against epochs, for further pairs of digits. {LEARNT}"
        ),
        configs={pair: wanted(pair) for pair in MORE_PAIRS},
        nulls=LARGE,
        passes={"linear": {"*-training *-held-out *-enters": ALIKE, "*-linear": LINEAR}},
    ),
    kit.Figure(
        id="sarussi2021-fig7",
        caption=(
            "Clustering ratio 2r/||w_bar - u_bar|| (a) and largest angle between two neurons of one"
            f" group (b) against epochs for two pairs of digits. {LEARNT}"
        ),
        configs=OF_PAIRS,
        nulls=LARGE,
        passes={"linear": {"*-ratio *-angle": ALIKE}},
    ),
)

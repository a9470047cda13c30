"""Figures 2, 6 and 7: pairs of MNIST digits, how neurons cluster and how many points are outside
the linear regime.

Beside the paper's panels: how the result depends on step, slope of leaky ReLU and initial scale,
which the paper does not print.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.lines import Line2D

from dynamics_cli import kit

from .groups import (
    ALIKE,
    DASHED,
    LARGE,
    LINEAR,
    RATIO,
    SMALL,
    Clustering,
    EpochCurve,
    clustering,
    draw_over_epochs,
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
            for claim in (
                *_settled(e[name], name, title, "Section 5.1, Figure 2"),
                *_entrance(e[name], name, title),
                _linear(e[name], name, title),
            )
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


def _settled(run: Clustering, name: str, title: str, source: str) -> list[kit.Claim]:
    """Return that the share of points outside the linear regime converges to zero."""
    return [
        kit.claim(
            f"{name}-{part}",
            f"Digits {title}: the share of {part} points outside the linear regime "
            f"converges to zero (largest of the last third of epochs, {ONCE_LEARNT})",
            source,
            nearly_zero(part, run.sizes[part]),
            kit.given(run.learnt[-1], settled(run.epochs, share)),
        )
        for part, share in run.outside.items()
    ]


def _entrance(run: Clustering, name: str, title: str) -> list[kit.Claim]:
    """Return that the network enters the linear regime at some point in the training process."""
    return [
        kit.claim(
            f"{name}-{part}-enters",
            f"Digits {title}: the network enters the linear regime at some point (least "
            f"share of {part} points outside, {ONCE_LEARNT})",
            "Appendix D.2",
            nearly_zero(part, run.sizes[part]),
            np.min(share[run.learnt], initial=np.inf),
        )
        for part, share in run.outside.items()
    ]


def _linear(run: Clustering, name: str, title: str) -> kit.Claim:
    """Return that the learned classifier is effectively linear over the data."""
    return kit.claim(
        f"{name}-linear",
        f"Digits {title}: the learned classifier is effectively linear over the data "
        f"(of {sum(run.sizes.values())} points, those that the network and the classifier "
        rf"$\bar w - \bar u$ decide differently in the end, {ONCE_LEARNT})",
        "Section 5.1",
        kit.exactly(0),
        kit.given(run.learnt[-1], run.differ),
    )


def claims_fig6(e: Evidence) -> list[kit.Claim]:
    return [
        claim
        for name, title in MORE_PAIRS.items()
        for claim in (
            *_entrance(e[name], name, title),
            *_settled(e[name], name, title, "Appendix D.2, Figure 6"),
            _linear(e[name], name, title),
        )
    ]


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


def draw_ratios(axes: Sequence[kit.Axes], shown: Mapping[str, Clustering]) -> list[Line2D]:
    """Draw the clustering ratio of runs by label in panel a."""
    curves = zip(shown.items(), kit.SERIES, strict=False)
    ratios = [EpochCurve(run.epochs, run.ratio, label, color) for (label, run), color in curves]
    return draw_over_epochs(axes, 0, "Clustering ratio", ratios, RATIO, log=True)


def share_curves(shown: Mapping[str, Clustering]) -> list[list[EpochCurve]]:
    """Return for each run by label its share of training and of held-out points outside the
    linear regime.
    """
    return [
        [
            EpochCurve(run.epochs, share, f"{label} {part}", color, style)
            for (part, share), style in zip(run.outside.items(), ("-", DASHED), strict=True)
        ]
        for (label, run), color in zip(shown.items(), kit.SERIES, strict=False)
    ]


def draw_fig2(e: Evidence) -> kit.Drawing:
    figure, axes = kit.new_figure(3, 1, width=7.0, aspect=0.85, extra_height=0.3)
    draw_ratios(axes, {f"digits {title}": e[name] for name, title in PAIRS.items()})
    train, test = zip(*share_curves({title: e[name] for name, title in PAIRS.items()}), strict=True)
    handles = draw_over_epochs(
        axes, 1, "Points outside linear regime", [*train, *test], "share outside", share=True
    )
    shades = ("#440154", "#3B528B", "#21918C", "#5EC962", "#D9B600")
    settings = [
        EpochCurve(e[role].epochs, e[role].outside["training"], label, shade)
        for (role, label), shade in zip(SETTINGS.items(), shades, strict=True)
    ]
    lines = draw_over_epochs(
        axes, 2, "(3, 5) training, by setting", settings, "share outside", share=True
    )
    kit.figure_legend(figure, [*handles, *lines], columns=5)
    return figure


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
    figure, axes = kit.new_figure(2, 1, aspect=0.75, extra_height=0.45)
    shown = {title: e[name] for name, title in MORE_PAIRS.items()}
    draw_ratios(axes, shown)
    curves = [curve for pair in share_curves(shown) for curve in pair]
    lines = draw_over_epochs(
        axes, 1, "Points outside linear regime", curves, "share outside", share=True
    )
    kit.figure_legend(figure, lines, columns=5)
    return figure


def draw_fig7(e: Evidence) -> kit.Drawing:
    figure, axes = kit.new_figure(2, 1, aspect=0.75, extra_height=0.25)
    shown = {f"digits {title}": e[name] for name, title in PAIRS.items()}
    lines = draw_ratios(axes, shown)
    curves = zip(shown.items(), kit.SERIES, strict=False)
    angles = [EpochCurve(run.epochs, run.angle, label, color) for (label, run), color in curves]
    draw_over_epochs(
        axes, 1, "Largest angle in a group", angles, "largest angle (degrees)", log=True
    )
    kit.figure_legend(figure, lines, columns=2)
    return figure


OF_PAIRS = {"0-1": "sarussi2021/mnist_01.yaml", "3-5": CONFIG}

FIGURES = kit.by_id(
    kit.Figure(
        id="sarussi2021-fig2",
        caption=(
            "Clustering ratio 2r/||w_bar - u_bar|| (a) and share of training and held-out points"
            " outside the linear regime of Theorem 5.1 (b) against epochs, for two pairs of digits"
            " and small initialisation; (c), not in the paper: the share of training points for"
            " digits (3, 5), other slopes of leaky ReLU, a larger step and a large initialisation."
            f" The axis of epochs is linear in the gray part. {LEARNT}"
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
            " regime (b) against epochs, for further pairs of digits. The axis of epochs is linear"
            f" in the gray part. {LEARNT}"
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

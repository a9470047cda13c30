"""Figures 8 and 9: neurons in the perfect agreement regime, in many dimensions and beside an
outlier.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from dynamics_cli import kit
from dynamics_cli.measures.least_distance import InfeasibleError
from dynamics_cli.plotting.scene import draw_scene

from .fig1 import share_of_directions
from .groups import (
    ALIKE,
    LINEAR,
    MAX_MARGIN,
    ONE_DIRECTION,
    SHARE,
    SLIPS,
    SMALL,
    SOON,
    Groups,
    Plane,
    draw_neurons,
    plane,
    read_groups,
)
from .theory import agreement
from .theory.clustering import clustering_ratio

DIMENSIONS = (10, 50, 100)


@dataclass(frozen=True)
class Shares:
    """How many neurons of a run are in the PAR."""

    epochs: kit.Floats
    """(K,)"""
    shares: Mapping[str, kit.Floats]
    """(K,) of neurons `w` and `u`."""


def evidence_fig8(runs: kit.Runs) -> Mapping[int, Shares]:
    """Count by dimension the shares of neurons in the PAR."""
    groups = {dim: read_groups(run) for dim, run in kit.by_values(runs, "dim-{}").items()}
    return {dim: Shares(run.epochs, run.par_shares) for dim, run in groups.items()}


def claims_fig8(e: Mapping[int, Shares]) -> list[kit.Claim]:
    return [
        kit.claim(
            f"{kind}-{dim}",
            f"{dim} dimensions: the network enters the PAR and stays there (least share of neurons"
            f" {kind} in it over the second half of training)",
            "Appendix I, Figure 8; Theorem 6.2",
            kit.exactly(1),
            share[run.epochs >= run.epochs[-1] / 2].min(),
        )
        for dim, run in e.items()
        for kind, share in run.shares.items()
    ]


def draw_fig8(e: Mapping[int, Shares]) -> kit.Drawing:
    looks = dict(zip(DIMENSIONS, ("", "dashed", "dotted"), strict=True))
    return kit.charts(
        *(
            kit.chart(
                f"Neurons ${kind}_i$",
                "share in the PAR",
                [
                    kit.line(run.epochs, run.shares[kind], f"{dim} dimensions", looks[dim])
                    for dim, run in e.items()
                ],
            )
            for kind in ("w", "u")
        ),
        xlabel="epoch",
        log="x",
        limits=SHARE,
    )


FIGURE_8 = kit.Figure(
    id="sarussi2021-fig8",
    caption=(
        "Share of neurons w (a) and u (b) in the perfect agreement regime against epochs, for two"
        " separable Gaussians in several dimensions."
    ),
    configs=kit.grid("sarussi2021/gaussians_50d.yaml", {"dataset.dim": DIMENSIONS}, "dim-{}"),
    nulls={"large": ("initialization.scale=10", "optimizer.epochs=500")},
    passes={
        "linear": {"w-* u-*": ONE_DIRECTION},
        "early": {"w-* u-*": SOON},
        "slow": {"w-* u-*": SOON},
    },
)


NAN = float("nan")


@dataclass(frozen=True)
class Outlier:
    """The run beside an outlier, and the NAR that it leads to."""

    plane: Plane
    limit: Groups
    """The same run in rescaled time."""
    patterns: tuple[kit.Floats, kit.Floats]
    """Signs (n,) that the means of the neurons w, and those of u, give the points at the end."""
    predicted: agreement.Directions | None
    """The KKT point of the NAR with these patterns; None where no network has them."""
    disagreements: Mapping[str, kit.Floats]
    """(K,) by `w` and `u`: the most points on which two neurons disagree."""
    shares: Mapping[str, kit.Floats]
    """(K,) by `w` and `u`: neurons in the PAR."""
    least_margin: float
    """The least agreement margin over the second half of training, with these patterns."""
    limit_margin: float
    """The same in rescaled time."""


def evidence_fig9(runs: kit.Runs) -> Outlier:
    """Measure agreement over training, and solve the convex program of the NAR at its end."""
    groups, limit = (read_groups(runs[role]) for role in ("sgd", "limit"))
    x = groups.data.x
    y = groups.data.y
    W, U = groups.last
    patterns = agreement.agreed_pattern(x, W), agreement.agreed_pattern(x, U)
    try:
        predicted = agreement.agreement_directions(x, y, limit.alpha, *patterns)
    except InfeasibleError:
        predicted = None
    return Outlier(
        plane=plane(groups, 0.15),
        limit=limit,
        patterns=patterns,
        predicted=predicted,
        disagreements={
            kind: agreement.most_disagreements(x, H).astype(np.float64)
            for kind, H in (("w", groups.W), ("u", groups.U))
        },
        shares=groups.par_shares,
        least_margin=_least_margin(groups, patterns),
        limit_margin=_least_margin(limit, patterns),
    )


def _least_margin(groups: Groups, patterns: tuple[kit.Floats, kit.Floats]) -> float:
    return min(
        agreement.agreement_margin(groups.data.x, W, U, *patterns)
        for W, U, epoch in zip(groups.W, groups.U, groups.epochs, strict=True)
        if epoch >= groups.epochs[-1] / 2
    )


def claims_fig9(e: Outlier) -> list[kit.Claim]:
    groups = e.plane.groups
    margin = agreement.agreement_margin(groups.data.x, *groups.last, *e.patterns)
    cosine = NAN if e.predicted is None else e.limit.joint_cosine(-1, e.predicted)
    smaller = np.minimum(*e.shares.values())

    def of_theorem(claim: kit.Claim) -> kit.Claim:
        return kit.presupposing(
            claim,
            "Theorem 6.1 asks that the flow stays in an NAR (least agreement margin over its second"
            " half)",
            kit.more_than(0),
            e.limit_margin,
        )

    return [
        kit.claim(
            "accuracy",
            "The network classifies all points",
            "Figure 9(a)",
            kit.exactly(1),
            groups.accuracy,
        ),
        *[
            kit.claim(
                f"agreement-{kind}",
                f"The largest number of points on which neurons {kind} disagree goes to zero",
                "Appendix J, Figure 9(c)",
                kit.exactly(0),
                kit.given(groups.accuracy == 1, values[-1]),
            )
            for kind, values in e.disagreements.items()
        ],
        kit.claim(
            "nar",
            r"The network is in an NAR (agreement margin $\beta$)",
            "Definition 6.2",
            kit.more_than(0),
            kit.given(groups.accuracy == 1, margin),
        ),
        kit.claim(
            "not-par",
            "The share of neurons of one type in the PAR does not increase to 1 (smaller share; its"
            " largest value while all points are classified)",
            "Appendix J, Figure 9(d)",
            kit.less_than(1),
            np.max(smaller[groups.accuracies == 1], initial=-np.inf),
        ),
        kit.claim(
            "ends-outside",
            "The NAR that the network ends in is not a PAR (smaller share at the end)",
            "Appendix J",
            kit.less_than(1),
            kit.given(groups.accuracy == 1, smaller[-1]),
        ),
        of_theorem(
            kit.claim(
                "limit",
                "The limit is the KKT point of the NAR that the network is in (joint cosine,"
                " rescaled time)",
                "Theorem 6.1, Appendix F",
                kit.more_than(0.999),
                cosine,
            )
        ),
        kit.claim(
            "stays",
            r"The network stays in this NAR (least agreement margin $\beta$ over the second half of"
            r" training)",
            "Theorem 6.1",
            kit.more_than(0),
            kit.given(groups.late[-1], e.least_margin),
        ),
        of_theorem(
            kit.claim(
                "clustered",
                r"In the limit the network is perfectly clustered ($2r/\|\bar w - \bar u\|$,"
                r" rescaled time)",
                "Theorem 6.1",
                kit.less_than(SMALL),
                kit.given(e.limit.late[-1], clustering_ratio(*e.limit.last)),
            )
        ),
        of_theorem(
            kit.claim(
                "linear",
                "In the limit the decision boundary is linear (share of directions decided"
                " otherwise, rescaled time)",
                "Corollary 6.2",
                kit.less_than(SMALL),
                kit.given(e.limit.late[-1], share_of_directions(e.limit)),
            )
        ),
    ]


def numbers_fig9(e: Outlier) -> dict[str, float]:
    """Return at how many states all neurons are in the PAR while all points are classified, and
    when.
    """
    groups = e.plane.groups
    inside = (np.minimum(*e.shares.values()) == 1) & (groups.accuracies == 1)
    epochs = groups.epochs[inside]
    when = {"first such epoch": epochs[0], "last such epoch": epochs[-1]} if inside.any() else {}
    return {"states at which all neurons are in the PAR": int(inside.sum()), **when}


def draw_fig9(e: Outlier) -> kit.Drawing:
    figure, axes = kit.new_figure(2, 2, aspect=0.88, extra_height=0.3)
    handles = draw_scene(axes[0], e.plane.regions, 0).handles
    kit.panel_label(axes[0], 0, "Decision regions")
    handles += draw_neurons(
        axes[1], kit.directions(e.plane.groups.network[0]), e.plane.signs, "direction"
    )
    kit.panel_label(axes[1], 1, "Neuron directions")
    looks = {"w": "positive", "u": "negative dashed"}
    for k, (title, shown, ylabel, limits) in enumerate(
        (
            ("Most disagreements", e.disagreements, "points", (-0.1, 200)),
            ("Neurons in the PAR", e.shares, "share in the PAR", SHARE),
        ),
        2,
    ):
        curves = [
            kit.line(e.plane.groups.epochs, values, look=looks[kind])
            for kind, values in shown.items()
        ]
        words = {"xlabel": "epoch", "log": "x", "limits": limits}
        kit.panel(axes[k], k, kit.chart(title, ylabel, curves, **words))
    axes[2].set_yscale("symlog", linthresh=1)
    axes[2].set_yticks([0, 1, 10, 100], labels=["0", "1", "10", "100"])
    kit.figure_legend(figure, handles, columns=4)
    return figure


FIGURE_9 = kit.Figure(
    id="sarussi2021-fig9",
    caption=(
        "Two antipodal Gaussians and one positive outlier: decision regions (a), directions of the"
        " neurons (b), largest number of training points on which two neurons of one type disagree"
        " (c), and share of neurons of each type in the perfect agreement regime (d) against"
        " epochs. With this draw all neurons are in the regime for a while, and leave it."
    ),
    configs={"sgd": "sarussi2021/outlier.yaml", "limit": "sarussi2021/outlier_limit.yaml"},
    nulls={"large": ("initialization.scale=30",), "data": SLIPS},
    passes={
        "linear": {
            "accuracy": ONE_DIRECTION,
            "agreement-* nar stays clustered": ALIKE,
            "limit": MAX_MARGIN,
            "linear": LINEAR,
        },
        "early": {"accuracy agreement-* nar stays linear": SOON},
        "slow": {"accuracy agreement-* nar stays linear": SOON},
    },
)


FIGURES = kit.by_id(FIGURE_8, FIGURE_9)

"""Figure 1: decision regions and neurons for large and small initialisation on the same
separable data.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dynamics_cli import kit
from dynamics_cli.measures.two_layer import outputs
from dynamics_cli.plotting.scene import draw_scene

from .groups import (
    ALIKE,
    LARGE,
    LINEAR,
    SLIPS,
    SMALL,
    Groups,
    Plane,
    boundary_directions,
    draw_neurons,
    plane,
    read_groups,
)
from .theory.clustering import linear_classifier, outside_linear_regime

CONFIG = "sarussi2021/gaussians.yaml"
EPOCHS = "optimizer.epochs=100"


@dataclass(frozen=True)
class Evidence:
    """The networks from a large and from a small start."""

    large: Plane
    small: Plane


def evidence(runs: kit.Runs) -> Evidence:
    """Cut the plane along the boundaries of both networks."""
    return Evidence(
        large=plane(read_groups(runs["large"])), small=plane(read_groups(runs["small"]))
    )


def outside(groups: Groups) -> float:
    """Return the share of training and held-out points outside the linear regime."""
    data = groups.data
    points = data.x if data.x_test is None else np.concatenate([data.x, data.x_test])
    return float(outside_linear_regime(points, *groups.last).mean())


def share_of_directions(groups: Groups) -> float:
    """Return the exact share of directions that the network decides otherwise than the classifier
    `w_bar - u_bar`.

    Between neighbouring boundary rays of either (angles in degrees) both keep their signs.
    """
    (H, a), normal = groups.network, linear_classifier(*groups.last)
    straight = np.degrees(np.arctan2(normal[1], normal[0])) + np.array([90.0, -90.0])
    ends = np.sort(
        np.mod(np.concatenate([boundary_directions(H, a, groups.alpha), straight]), 360.0)
    )
    widths = np.diff(np.append(ends, ends[0] + 360.0))
    middle = np.radians(ends + widths / 2)
    x = np.stack([np.cos(middle), np.sin(middle)], axis=1)
    differ = np.sign(outputs(x, H, a, groups.alpha)) != np.sign(x @ normal)
    return float(widths[differ].sum() / 360)


def claims(e: Evidence) -> list[kit.Claim]:
    """Compare both boundaries with Sections 1 and 5; a network that has not learnt the data yet
    says nothing.

    After a single update from a small start all neurons of a sign lie along one point, which makes
    the boundary nearly linear before anything is learnt: the small network counts once Assumption
    6.1 holds.
    """
    small = e.small.groups
    large = e.large.groups
    clusters = [
        kit.cluster_directions(groups.network[0], signs=groups.network[1]).count
        for groups in (small, large)
    ]
    fitted = min(small.accuracy, large.accuracy)
    of_fitted = 1.0 if fitted == 1 else np.nan
    learnt = bool(small.late[-1])
    return [
        kit.claim(
            "small-linear",
            "Small initialisation: the boundary is very close to linear (share of directions "
            "decided otherwise)",
            "Figure 1(b)",
            kit.less_than(SMALL),
            kit.given(learnt, share_of_directions(small)),
        ),
        kit.claim(
            "small-outside",
            "Small initialisation: no point lies outside the linear regime (share)",
            "Section 5.1",
            kit.less_than(SMALL),
            kit.given(learnt, outside(small)),
        ),
        kit.claim(
            "small-clusters",
            "Small initialisation: neurons form two groups of well-aligned vectors (linked by "
            "5 degrees)",
            "Figure 1(d)",
            kit.exactly(2),
            kit.given(learnt, clusters[0]),
        ),
        kit.claim(
            "large-not-linear",
            "Large initialisation: the boundary is not linear (share of directions decided "
            "otherwise)",
            "Figure 1(a)",
            kit.more_than(SMALL),
            of_fitted * share_of_directions(large),
        ),
        kit.claim(
            "large-clusters",
            "Large initialisation: neurons are not in two groups",
            "Figure 1(c)",
            kit.more_than(2),
            of_fitted * clusters[1],
        ),
        kit.claim(
            "separated",
            "Both separate the training data (accuracy of the worse)",
            "Theorem 4.1: any initialisation scale",
            kit.exactly(1),
            fitted,
        ),
    ]


def draw(e: Evidence) -> kit.Drawing:
    figure, axes = kit.new_figure(2, 2, aspect=0.88, extra_height=0.3)
    handles = []
    for k, (net, name) in enumerate(((e.large, "large"), (e.small, "small"))):
        handles += draw_scene(axes[k], net.regions, 0).handles
        kit.panel_label(axes[k], k, f"{name.capitalize()} initialisation")
        handles += draw_neurons(axes[k + 2], net.groups.network[0], net.signs, "weight")
        kit.panel_label(axes[k + 2], k + 2, f"Neurons, {name}")
    kit.figure_legend(figure, handles, columns=4)
    return figure


FIGURE = kit.Figure(
    id="sarussi2021-fig1",
    caption=(
        "Decision regions of a leaky ReLU network trained on the same linearly separable points"
        " from a large (a) and a small (b) initialisation; neurons of the two networks (c, d) by"
        " the sign of their output weight."
    ),
    configs={
        "small": kit.Wanted(CONFIG, (EPOCHS,)),
        "large": kit.Wanted(CONFIG, (EPOCHS, "initialization.scale=10")),
    },
    nulls={**LARGE, "data": SLIPS},
    passes={
        "linear": {
            "small-linear": LINEAR,
            "small-outside small-clusters": ALIKE,
            "large-clusters": "A large start is kept.",
            "separated": "The data are linearly separable.",
        }
    },
)

"""Figure 1: decision regions and neurons for large and small initialisation on the same separable data.

`dyn reproduce sarussi2021-fig1`. About 2 s.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from matplotlib.figure import Figure as Drawing
from matplotlib.lines import Line2D

from dynamics_cli.measures.arrays import Floats
from dynamics_cli.measures.classification import sign_accuracy
from dynamics_cli.measures.clusters import cluster_directions
from dynamics_cli.measures.groups import outside_linear_regime
from dynamics_cli.measures.linear_pieces import LevelSets, boundary_directions, level_sets, two_layer_pieces
from dynamics_cli.measures.two_layer import outputs
from dynamics_cli.plotting.layout import figure_legend, panel_label
from dynamics_cli.plotting.panels.inputs import Window, data_window, draw_regions
from dynamics_cli.plotting.panels.neurons import draw_rays, sign_handle
from dynamics_cli.plotting.style import new_figure
from dynamics_cli.reproduction.claims import Claim, at_most, claim, exactly, finding, less_than, more_than
from dynamics_cli.reproduction.figure import Figure, Runs, Wanted
from dynamics_cli.runs import Run
from dynamics_cli.theory.clustered import largest_bend, linear_classifier

from .trajectory import ORIGIN, SMALL, output_weights, read_groups

EPOCHS = "optimizer.epochs=100"


@dataclass(frozen=True)
class Learned:
    """The network at the end of a run."""

    H: Floats
    """(m, d) hidden weights, `w` first."""
    signs: Floats
    regions: LevelSets
    rays: int
    """Number of rays from the origin that make up the decision boundary."""
    differs: float
    """Share of all directions in which the network and the linear classifier `w_bar - u_bar` decide differently."""
    allowed: float
    """Largest such share that Theorem 5.1 allows."""
    outside: float
    """Share of training and held-out points outside the linear regime."""
    groups: int
    """Groups of neurons linked by at most 5 degrees."""
    accuracy: float


@dataclass(frozen=True)
class Evidence:
    """Both networks and the data that they share."""

    x: Floats
    y: Floats
    window: Window
    large: Learned
    small: Learned


def evidence(runs: Runs) -> Evidence:
    """Compare the boundaries of both runs with the linear ones."""
    data = runs["small"].dataset()
    window = data_window(data.x)
    return Evidence(data.x, data.y, window, *(learned(runs[role], window) for role in ("large", "small")))


def learned(run: Run, window: Window) -> Learned:
    """Return regions, boundary and clusters of the last state of a run."""
    groups, data = read_groups(run), run.dataset()
    H, a = output_weights(groups)
    W, U = groups.last
    points = data.x if data.x_test is None else np.concatenate([data.x, data.x_test])
    rays = boundary_directions(H, a, groups.alpha)
    return Learned(
        H=H,
        signs=np.sign(a),
        regions=level_sets(two_layer_pieces(H, a), groups.alpha, window),
        rays=len(rays),
        differs=share_of_directions(H, a, groups.alpha, rays, linear_classifier(W, U)),
        allowed=4 * largest_bend(W, U) / 360,
        outside=float(outside_linear_regime(points, W, U).mean()),
        groups=cluster_directions(H, signs=a).count,
        accuracy=float(sign_accuracy(outputs(data.x, H, a, groups.alpha), data.y)),
    )


def share_of_directions(H: Floats, a: Floats, alpha: float, rays: Floats, normal: Floats) -> float:
    """Return the exact share of directions in which the network and `<normal, x>` have different signs.

    Between neighbouring boundary rays of either (angles in degrees) both keep their signs.
    """
    straight = np.degrees(np.arctan2(normal[1], normal[0])) + np.array([90.0, -90.0])
    ends = np.sort(np.mod(np.concatenate([rays, straight]), 360.0))
    widths = np.diff(np.append(ends, ends[0] + 360.0))
    middle = np.radians(ends + widths / 2)
    x = np.stack([np.cos(middle), np.sin(middle)], axis=1)
    differ = np.sign(outputs(x, H, a, alpha)) != np.sign(x @ normal)
    return float(widths[differ].sum() / 360)


def claims(found: Evidence) -> list[Claim]:
    """Compare both boundaries with Sections 1 and 5."""
    small, large = found.small, found.large
    return [
        claim(
            "small-linear",
            "Small initialisation: the boundary is very close to linear (share of directions decided otherwise)",
            "Figure 1(b); range of Theorem 5.1",
            expected=at_most(small.allowed),
            measured=small.differs,
        ),
        claim(
            "small-outside",
            "Small initialisation: no point lies outside the linear regime (share)",
            "Section 5.1",
            expected=less_than(SMALL),
            measured=small.outside,
        ),
        claim(
            "small-clusters",
            "Small initialisation: neurons form two groups of well-aligned vectors (linked by 5 degrees)",
            "Figure 1(d)",
            expected=exactly(2),
            measured=small.groups,
        ),
        claim(
            "large-not-linear",
            "Large initialisation: the boundary is less linear (share of directions decided otherwise)",
            "Figure 1(a)",
            expected=more_than(small.differs),
            measured=large.differs,
        ),
        claim(
            "large-clusters",
            "Large initialisation: neurons are not in two groups",
            "Figure 1(c)",
            expected=more_than(2),
            measured=large.groups,
        ),
        claim(
            "separated",
            "Both separate the training data (accuracy of the worse)",
            "Theorem 4.1: any initialisation scale",
            expected=exactly(1),
            measured=min(small.accuracy, large.accuracy),
        ),
        finding("large-outside", "Large: share of points outside the linear regime", "Eq. 7", measured=large.outside),
        finding("large-rays", "Large: rays that make up the boundary (2 for a bent line)", "none", measured=large.rays),
    ]


def draw(found: Evidence) -> Drawing:
    """Draw regions above, neurons below."""
    figure, axes = new_figure(2, 2, aspect=0.88, extra_height=0.3)
    handles = []
    for k, (one, name) in enumerate(((found.large, "large"), (found.small, "small"))):
        regions = one.regions
        drawn = draw_regions(
            axes[k], regions.polygons, regions.bands, regions.segments[0], found.window, x=found.x, y=found.y
        )
        panel_label(axes[k], k, f"{name} initialisation")
        rays = draw_rays(axes[k + 2], one.H, one.signs, xlabel="weight 1", ylabel="weight 2")
        panel_label(axes[k + 2], k + 2, f"neurons, {name}")
        handles += drawn.handles + [neuron_handle(sign) for sign in rays.rays]
    figure_legend(figure, handles, columns=4)
    return figure


def neuron_handle(sign: int) -> Line2D:
    """Return a legend handle in the paper's names of the two groups."""
    handle = sign_handle(sign)
    handle.set_label("neurons $w_i$" if sign > 0 else "neurons $u_i$")
    return handle


FIGURE = Figure(
    id="sarussi2021-fig1",
    caption=(
        "Decision regions of a leaky ReLU network trained on the same linearly separable points from a large (a) and a "
        "small (b) initialisation; neurons of the two networks (c, d) by the sign of their output weight."
    ),
    configs={
        "small": Wanted("sarussi2021/gaussians.yaml", (EPOCHS,)),
        "large": Wanted("sarussi2021/gaussians.yaml", (EPOCHS, "initialization.scale=10")),
    },
    origin=ORIGIN,
    evidence=evidence,
    claims=claims,
    draw=draw,
)

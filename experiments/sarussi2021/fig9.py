"""Figure 9: antipodal Gaussians and one positive outlier, an NAR that is not a PAR.

`dyn reproduce sarussi2021-fig9`. About 3 s. A second run in rescaled time shows that this is the true limit.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from matplotlib.figure import Figure as Drawing

from dynamics_cli.measures.agreement import agreed_pattern, agreement_margin, most_disagreements
from dynamics_cli.measures.arrays import Floats
from dynamics_cli.measures.classification import sign_accuracy
from dynamics_cli.measures.linear_pieces import LevelSets, level_sets, two_layer_pieces
from dynamics_cli.measures.neurons import directions
from dynamics_cli.measures.two_layer import outputs
from dynamics_cli.plotting.layout import figure_legend, panel_label
from dynamics_cli.plotting.panels.inputs import Window, data_window, draw_regions
from dynamics_cli.plotting.panels.neurons import draw_rays
from dynamics_cli.plotting.style import PALETTE, new_figure
from dynamics_cli.reproduction.claims import Claim, claim, exactly, finding, less_than, more_than
from dynamics_cli.reproduction.figure import Figure, Runs
from dynamics_cli.theory.agreement import agreement_directions, patterns_hold, wrongly_classifiable
from dynamics_cli.theory.least_distance import InfeasibleError

from .curves import DASHED, Curve, draw_over_epochs
from .fig1 import neuron_handle
from .fig8 import par_shares
from .trajectory import ORIGIN, Groups, joint_cosine, output_weights, read_groups


@dataclass(frozen=True)
class Evidence:
    """The network at the end, agreement and PAR shares over time, and the limit."""

    x: Floats
    y: Floats
    window: Window
    regions: LevelSets
    directions: Floats
    """(m, 2) unit vectors of the neurons."""
    signs: Floats
    epochs: Floats
    disagreements: tuple[Floats, Floats]
    """(K,) largest number of points on which two neurons w, two neurons u disagree."""
    shares: tuple[Floats, Floats]
    """(K,) shares of neurons w and u in the PAR."""
    accuracy: float
    margin: float
    """Least agreement margin beta of the final network with its own patterns."""
    misclassified: int
    """Training points that the mean of the neurons u does not classify like -y."""
    outlier: bool
    """Whether the last positive point, the outlier, is among them."""
    limit_cosine: float
    """Joint cosine of (w_bar, u_bar) in rescaled time with the KKT point of that NAR."""
    kkt: float
    consistent: bool
    exposed: int
    """Points that a vector can get wrong which classifies the other class right: 0 under assumption 4."""
    outlier_exposed: bool


def evidence(runs: Runs) -> Evidence:
    """Measure agreement over training and compare the limit with the KKT point of its NAR."""
    data, groups, limit = runs["sgd"].dataset(), read_groups(runs["sgd"]), read_groups(runs["limit"])
    H, a = output_weights(groups)
    W, U = groups.last
    c_w, c_u = agreed_pattern(data.x, W), agreed_pattern(data.x, U)
    window = data_window(data.x, 0.15)
    wrong = np.flatnonzero(c_u != -data.y)
    exposed = wrongly_classifiable(data.x, data.y)
    last = int(np.flatnonzero(data.y > 0)[-1])
    cos, kkt, consistent = kkt_point(data.x, data.y, limit, c_w, c_u)
    return Evidence(
        x=data.x,
        y=data.y,
        window=window,
        regions=level_sets(two_layer_pieces(H, a), groups.alpha, window),
        directions=directions(H),
        signs=np.sign(a),
        epochs=groups.epochs,
        disagreements=(
            most_disagreements(data.x, groups.W).astype(np.float64),
            most_disagreements(data.x, groups.U).astype(np.float64),
        ),
        shares=par_shares(groups, data.x, data.y),
        accuracy=float(sign_accuracy(outputs(data.x, H, a, groups.alpha), data.y)),
        margin=float(agreement_margin(data.x, W, U, c_w, c_u)),
        misclassified=len(wrong),
        outlier=last in wrong,
        limit_cosine=cos,
        kkt=kkt,
        consistent=consistent,
        exposed=int(exposed.sum()),
        outlier_exposed=bool(exposed[last]),
    )


def kkt_point(x: Floats, y: Floats, limit: Groups, c_w: Floats, c_u: Floats) -> tuple[float, float, bool]:
    """Return the joint cosine of the last state with an NAR's KKT point, its residual, and whether it is in the NAR."""
    try:
        predicted = agreement_directions(x, y, limit.alpha, c_w, c_u)
    except InfeasibleError:
        return float("nan"), float("nan"), False
    return joint_cosine(limit, -1, predicted), predicted.solution.kkt_residual, patterns_hold(x, predicted, c_w, c_u)


def claims(found: Evidence) -> list[Claim]:
    """Compare accuracy, agreement and shares with Appendix J."""
    w, u = found.shares
    return [
        claim(
            "accuracy", "The network classifies all points", "Figure 9(a)", expected=exactly(1), measured=found.accuracy
        ),
        *(
            claim(
                f"agreement-{kind}",
                f"The largest number of points on which neurons {kind} disagree goes to zero",
                "Appendix J, Figure 9(c)",
                expected=exactly(0),
                measured=float(found.disagreements[k][-1]),
            )
            for k, kind in enumerate(("w", "u"))
        ),
        claim(
            "nar",
            "The network is in an NAR (agreement margin beta)",
            "Definition 6.2",
            expected=more_than(0),
            measured=found.margin,
        ),
        claim(
            "not-par",
            "The share of neurons of one type in the PAR does not increase to 1 (the smaller share)",
            "Appendix J, Figure 9(d)",
            expected=less_than(1),
            measured=float(min(w[-1], u[-1])),
        ),
        claim(
            "limit",
            "The limit is the KKT point of that NAR (joint cosine, rescaled time)",
            "Theorem 6.1, Appendix F",
            expected=more_than(0.999),
            measured=found.limit_cosine,
        ),
        finding("share-w", "Final share of neurons w in the PAR", "Figure 9(d)", measured=float(w[-1])),
        finding("share-u", "Final share of neurons u in the PAR", "Figure 9(d)", measured=float(u[-1])),
        finding("wrong", "Points that neurons u classify like y", "Figure 9", measured=found.misclassified),
        finding("outlier", "The outlier is one of them (1: yes)", "Figure 9", measured=float(found.outlier)),
        finding("kkt", "KKT residual of the NAR's convex program", "Appendix F", measured=found.kkt),
        finding("consistent", "Its solution lies in the NAR (1: yes)", "Appendix F", measured=float(found.consistent)),
        finding(
            "assumption-4",
            "Assumption 4 asks for 0: points that a vector can get wrong which is right on the other class",
            "Theorem 6.2",
            measured=found.exposed,
        ),
        finding(
            "outlier-exposed",
            "The outlier is one of them (1: yes): neurons u may get it wrong",
            "Theorem 6.2",
            measured=float(found.outlier_exposed),
        ),
    ]


def draw(found: Evidence) -> Drawing:
    """Draw regions, directions, disagreements and shares."""
    figure, axes = new_figure(2, 2, aspect=0.88, extra_height=0.3)
    regions = found.regions
    drawn = draw_regions(
        axes[0], regions.polygons, regions.bands, regions.segments[0], found.window, x=found.x, y=found.y
    )
    panel_label(axes[0], 0, "decision regions")
    rays = draw_rays(axes[1], found.directions, found.signs, xlabel="direction 1", ylabel="direction 2")
    panel_label(axes[1], 1, "neuron directions")
    colors = (PALETTE.positive, PALETTE.negative)
    for k, (pair, label, share) in enumerate(
        ((found.disagreements, "points", False), (found.shares, "share in the PAR", True))
    ):
        curves = [
            Curve(found.epochs, values, f"neurons ${kind}_i$", color, style)
            for values, kind, color, style in zip(pair, "wu", colors, ("-", DASHED), strict=True)
        ]
        draw_over_epochs(axes[2 + k], curves, label, share=share)
    panel_label(axes[2], 2, "most disagreements")
    panel_label(axes[3], 3, "neurons in the PAR")
    figure_legend(figure, [*drawn.handles, *(neuron_handle(sign) for sign in rays.rays)], columns=4)
    return figure


FIGURE = Figure(
    id="sarussi2021-fig9",
    caption=(
        "Two antipodal Gaussians and one positive outlier: decision regions (a), directions of the neurons (b), "
        "largest number of training points on which two neurons of one type disagree (c), and share of neurons of each "
        "type in the perfect agreement regime (d) against epochs."
    ),
    configs={"sgd": "sarussi2021/outlier.yaml", "limit": "sarussi2021/outlier_limit.yaml"},
    origin=ORIGIN | {"rescaled time": "inferred"},
    evidence=evidence,
    claims=claims,
    draw=draw,
)

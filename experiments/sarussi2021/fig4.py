"""Figure 4: decision boundary and weights, learned and predicted by the PAR's convex program, two
Gaussians.

Learned by plain SGD, which nears the limit like 1/log t, and by gradient descent in rescaled time,
which gets there. Panels a and b show a symmetric training set, as in Lemma 6.1: the difference of
its class means is 12 degrees from the prediction, so that agreement says something. On the Gaussian
sample of the config it is 0.4 degrees from it. Beside the paper's panels: the normalised and the
smoothed margin (Eqs. 5 and 6) in Theorem 6.2 and its proof.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

import numpy as np

from dynamics_cli import kit
from dynamics_cli.measures.least_distance import least_distance
from dynamics_cli.measures.two_layer import outputs
from dynamics_cli.plotting.scene import draw_scene

from .groups import (
    ALIKE,
    MAX_MARGIN,
    ONE_DIRECTION,
    SMALL,
    SOON,
    Groups,
    Plane,
    draw_neurons,
    plane,
    read_groups,
)
from .theory import agreement
from .theory.clustering import clustering_ratio, largest_angle, linear_classifier

SGD = "sarussi2021/gaussians.yaml"
LIMIT = "sarussi2021/gaussians_limit.yaml"


@dataclass(frozen=True)
class Margins:
    """The margins of a run at the recorded states."""

    iterations: kit.Ints
    """(K,)"""
    normalised: kit.Floats
    """(K,)"""
    smoothed: kit.Floats
    """(K,)"""
    late: kit.Bools
    """(K,) where Assumption 6.1 holds: the summed loss has been below log 2."""
    largest: float
    """The normalised margin of the convex program's solution."""
    needed: float
    """The smoothed margin that assumption 3 of Theorem 6.2 asks for."""


@dataclass(frozen=True)
class Evidence:
    """Networks of two training sets, in rescaled time and by plain SGD, and both predictions."""

    plane: Plane
    """Of the symmetric set."""
    sgd: Groups
    """The Gaussian sample by plain SGD."""
    limit: Groups
    """The same in rescaled time."""
    predicted: agreement.Directions
    limit_margins: Margins
    plain_margin: float
    """Margin of neurons along the difference of the class means, over the largest."""
    symmetric: Groups
    """The symmetric set in rescaled time."""
    symmetric_sgd: Groups
    """The same by plain SGD."""
    symmetric_predicted: agreement.Directions
    symmetric_margins: Margins
    exposed: tuple[int, int]
    """Points of the symmetric set, and of the sample, that assumption 4 of Theorem 6.2 excludes."""


def evidence(runs: kit.Runs) -> Evidence:
    """Solve the convex program, and follow the margins in rescaled time."""
    groups = {role: read_groups(run) for role, run in runs.items()}
    limit = groups["limit"]
    predicted = perfect_agreement(limit)
    symmetric_predicted = perfect_agreement(groups["symmetric"])
    datas = (groups[role].data for role in ("symmetric", "limit"))
    exposed = (int(agreement.wrongly_classifiable(data.x, data.y).sum()) for data in datas)
    return Evidence(
        plane=plane(groups["symmetric"]),
        sgd=groups["sgd"],
        limit=limit,
        predicted=predicted,
        limit_margins=margins(limit, predicted),
        plain_margin=plain_margin(limit, predicted),
        symmetric=groups["symmetric"],
        symmetric_sgd=groups["symmetric_sgd"],
        symmetric_predicted=symmetric_predicted,
        symmetric_margins=margins(groups["symmetric"], symmetric_predicted),
        exposed=(next(exposed), next(exposed)),
    )


def perfect_agreement(groups: Groups) -> agreement.Directions:
    """Return the directions of the PAR of the data of a run."""
    x = groups.data.x
    y = groups.data.y
    return agreement.agreement_directions(x, y, groups.alpha, y, -y)


def class_means(groups: Groups) -> agreement.Directions:
    """Return the directions `mu` and `-mu` of the difference of the class means, which need no
    training.
    """
    x = groups.data.x
    y = groups.data.y
    mu = x[y > 0].mean(axis=0) - x[y < 0].mean(axis=0)
    return agreement.Directions(mu, -mu, least_distance(mu[None]))


def plain_margin(groups: Groups, predicted: agreement.Directions) -> float:
    """Return the normalised margin of neurons along `class_means` over the largest of the PAR;
    negative for errors.
    """
    x = groups.data.x
    y = groups.data.y
    means = class_means(groups)
    scores = outputs(x, np.stack([means.w, means.u]), np.array([1.0, -1.0]), groups.alpha)
    return float((y * scores).min() / np.linalg.norm(means.joint) * np.linalg.norm(predicted.joint))


def smoothed_margin(loss: kit.Floats) -> kit.Floats:
    """Return `log(1 / (exp(L) - 1))` of summed logistic losses `L`, infinite for a loss of 0
    (Eq. 6).
    """
    with np.errstate(divide="ignore"):
        return -loss - np.log(
            -np.expm1(-loss)
        )  # of exp(L) - 1 = exp(L) (1 - exp(-L)), safe for large L


def margins(groups: Groups, predicted: agreement.Directions) -> Margins:
    """Return the margins of a run, beside those of the prediction."""
    k = groups.W.shape[1]
    of_points = groups.margins
    norm = np.sqrt(np.sum(groups.W**2, axis=(-2, -1)) + np.sum(groups.U**2, axis=(-2, -1)))
    return Margins(
        iterations=groups.iterations,
        normalised=of_points.min(axis=-1) / norm,
        smoothed=smoothed_margin(np.logaddexp(0.0, -of_points).sum(axis=-1)) / norm,
        late=groups.late,
        largest=agreement.largest_margin(predicted, groups.v, k),
        needed=agreement.margin_of_assumption_3(groups.data.x, groups.alpha, groups.v, k),
    )


def symmetric_run(config: str) -> kit.Wanted:
    """Return the run of a config on 25 positive points of the first Gaussian and their mirror
    images.
    """
    positive = np.round(np.random.default_rng(0).normal((2.0, 0.0), 0.5, (25, 2)), 3)
    x = json.dumps(np.concatenate([positive, -positive]).tolist())
    return kit.Wanted(
        config, ("dataset.kind=points", f"dataset.x={x}", f"dataset.y={[1.0] * 25 + [-1.0] * 25}")
    )


def degrees(a: kit.Floats, b: kit.Floats) -> float:
    """Return the angle between two vectors in degrees."""
    return float(np.degrees(np.arccos(kit.cosines(a, b))))


def boundary_angle(groups: Groups, predicted: agreement.Directions) -> float:
    """Return the degrees between the normals of the boundary learned in the end and the
    predicted one.
    """
    return degrees(linear_classifier(*groups.last), predicted.boundary)


def max_margin_angle(groups: Groups, predicted: agreement.Directions) -> float:
    """Return the degrees between the linear max-margin classifier and the predicted boundary."""
    x = groups.data.x
    y = groups.data.y
    return degrees(least_distance(y[:, None] * x).w, predicted.boundary)


def claims(e: Evidence) -> list[kit.Claim]:
    in_par = min(
        np.min(share[groups.late], initial=np.inf)
        for groups in (e.symmetric, e.limit)
        for share in groups.par_shares.values()
    )
    directions, *boundaries = _agreement_claims(
        "", "Symmetric set", e.symmetric, e.symmetric_sgd, e.symmetric_predicted
    )
    return [
        _of_theorem_6_2(directions, e.symmetric_margins, e.exposed[0]),
        *boundaries,
        *_agreement_claims("gaussians-", "Gaussian sample", e.limit, e.sgd, e.predicted),
        *[
            kit.claim(
                f"par-{kind}",
                f"All neurons {kind} are in the PAR and stay there (least share since the summed"
                " loss is below log 2, plain SGD on the Gaussian sample)",
                "Section 6.3",
                kit.exactly(1),
                np.min(share[e.sgd.late], initial=np.inf),
            )
            for kind, share in e.sgd.par_shares.items()
        ],
        kit.presupposing(
            kit.claim(
                "clustered",
                r"In the limit the network is perfectly clustered ($2r/\|\bar w - \bar u\|$, the"
                " larger of both training sets, rescaled time)",
                "Theorem 6.1",
                kit.less_than(SMALL),
                max(clustered(e.symmetric), clustered(e.limit)),
            ),
            "Theorem 6.1 asks that the flow stays in an NAR, here the PAR (least share of neurons"
            " since the summed loss is below log 2)",
            kit.exactly(1),
            in_par,
        ),
        kit.theory(
            "kkt",
            "The convex program is solved exactly (largest relative violation of the KKT"
            " conditions)",
            "Eq. 8",
            kit.at_most(1e-8),
            e.predicted.solution.kkt_residual,
        ),
        kit.theory(
            "consistent",
            "The predicted directions are themselves in the PAR (1: yes)",
            "Theorem 6.2",
            kit.exactly(1),
            agreement.patterns_hold(e.limit.data.x, e.predicted, e.limit.data.y, -e.limit.data.y),
        ),
        *_margin_claims(e),
        kit.theory(
            "lemma-6.1",
            "On a symmetric training set no vector that is right on one class is wrong on a point "
            "of the other (points for which there is one, of 50)",
            "Lemma 6.1",
            kit.exactly(0),
            e.exposed[0],
        ),
        _of_theorem_6_2(
            kit.claim(
                "symmetric-par",
                "A network trained on a symmetric set stays in the PAR (least share of neurons"
                " since the summed loss is below log 2, rescaled time)",
                "Lemma 6.1, Theorem 6.2",
                kit.exactly(1),
                min(
                    np.min(share[e.symmetric.late], initial=np.inf)
                    for share in e.symmetric.par_shares.values()
                ),
            ),
            e.symmetric_margins,
            e.exposed[0],
        ),
    ]


def _of_theorem_6_2(claim: kit.Claim, margins: Margins, exposed: int) -> kit.Claim:
    """Return a claim of Theorem 6.2 with its assumptions 3 and 4, which are sufficient, as numbers;
    `exposed` are the points that the latter rules out.
    """
    claim = kit.presupposing(
        claim,
        "Assumption 3 of Theorem 6.2 is about the largest smoothed margin",
        kit.more_than(margins.needed),
        margins.smoothed[margins.late].max(initial=-np.inf),
    )
    return kit.presupposing(
        claim,
        "Assumption 4 is about points that a vector gets wrong which is right on the other class",
        kit.exactly(0),
        exposed,
    )


def _agreement_claims(
    prefix: str,
    name: str,
    limit: Groups,
    sgd: Groups,
    predicted: agreement.Directions,
) -> list[kit.Claim]:
    """Return that weights and boundary are those of the convex program, in rescaled time and by
    plain SGD.
    """
    means = class_means(limit)
    means_angle = degrees(means.boundary, predicted.boundary)
    bar = kit.less_than(min(1.0, means_angle))
    rescaled_late = bool(limit.late[-1])
    sgd_late = bool(sgd.late[-1])
    return [
        kit.claim(
            f"{prefix}directions",
            f"{name}: the learned directions are the convex program's (joint cosine, rescaled time;"
            " 0.9999, and more than the difference of the class means has)",
            f"{'Section 6.3' if prefix else 'Theorem 6.2'}, Figure 4(b)",
            kit.more_than(max(0.9999, float(kit.cosines(means.joint, predicted.joint)))),
            kit.given(rescaled_late, limit.joint_cosine(-1, predicted)),
        ),
        kit.claim(
            f"{prefix}boundary",
            f"{name}: learned and predicted decision boundary agree (angle in degrees, rescaled"
            f" time; 1, and less than the boundary of the class means has, {means_angle:.3g})",
            "Figure 4(a)",
            bar,
            kit.given(rescaled_late, boundary_angle(limit, predicted)),
        ),
        kit.claim(
            f"{prefix}boundary-sgd",
            f"{name}: the same for plain SGD (angle in degrees)",
            "Figure 4(a)",
            bar,
            kit.given(sgd_late, boundary_angle(sgd, predicted)),
        ),
    ]


def clustered(groups: Groups) -> float:
    """Return the clustering ratio at the end; NaN before the late phase of Assumption 6.1."""
    return kit.given(groups.late[-1], clustering_ratio(*groups.last))


def _margin_claims(e: Evidence) -> list[kit.Claim]:
    """Return what Theorem 6.2 and its proof say about both margins."""
    limit = e.limit_margins
    smoothed = limit.smoothed[limit.late]
    return [
        kit.claim(
            "margin-grows",
            "The smoothed margin never falls once the summed loss is below log 2 "
            "(largest relative fall between recorded states, rescaled time; rounding allowed)",
            "Eq. 6, Appendix G.1 after Lyu and Li (2020), Theorem A.7",
            kit.at_most(1e-12),
            (
                np.max(-np.diff(smoothed) / np.abs(smoothed[:-1]), initial=0.0)
                if len(smoothed)
                else np.nan
            ),
        ),
        _of_theorem_6_2(
            kit.claim(
                "margin-largest",
                r"The normalised margin tends to the largest of the PAR, $v \sqrt k/\|(w, u)\|$ "
                "(share, rescaled time; more than neurons along the class means have)",
                "Eqs. 5 and 8, Theorem 6.2",
                kit.Interval(
                    np.nextafter(e.plain_margin, 1), 1.0 + 1e-9, f"{e.plain_margin:.4g} to 1"
                ),
                float(limit.normalised[-1]) / limit.largest,
            ),
            limit,
            e.exposed[1],
        ),
    ]


def numbers(e: Evidence) -> dict[str, float]:
    """Return how far classifiers that need no training are from the prediction, and how tight
    the clusters end.
    """
    both = {
        "symmetric set": (e.symmetric, e.symmetric_predicted),
        "Gaussian sample": (e.limit, e.predicted),
    }
    found: dict[str, float] = {}
    for name, (groups, predicted) in both.items():
        means = class_means(groups)
        found[f"{name}: degrees of the class means' boundary"] = degrees(
            means.boundary, predicted.boundary
        )
        found[f"{name}: degrees of the linear max-margin classifier"] = max_margin_angle(
            groups, predicted
        )
        found[f"{name}: joint cosine of the class means"] = float(
            kit.cosines(means.joint, predicted.joint)
        )
        found[f"{name}: largest angle in a group at the end, degrees"] = max(
            float(largest_angle(group[-1:])[0]) for group in (groups.W, groups.U)
        )
    return found


def draw(e: Evidence) -> kit.Drawing:
    figure, axes = kit.new_figure(3, 1, width=7.0, aspect=0.9, extra_height=0.3)
    look: dict[str, Any] = {"color": kit.PALETTE.highlight, "ls": (0, (3, 2)), "lw": 1.6}
    plain: dict[str, Any] = {"color": kit.PALETTE.muted, "ls": (0, (1, 1.5)), "lw": 1.2}
    predicted = e.symmetric_predicted
    means = class_means(e.symmetric)
    handles = draw_scene(axes[0], e.plane.regions, 0).handles
    for normal, label, style in (
        (predicted.boundary, "predicted (PAR)", look),
        (means.boundary, "class means", plain),
    ):
        along = (-normal[1], normal[0])
        handles.append(axes[0].axline((0, 0), along, label=label, zorder=2.5, **style))
    kit.panel_label(axes[0], 0, "Boundary")
    H = e.plane.groups.network[0]
    handles += draw_neurons(
        axes[1], H / kit.norms(H).max(), e.plane.signs, "weight / largest norm,", limit=1.0
    )
    for directions, style in ((predicted, look), (means, plain)):
        pair = np.stack([directions.w, directions.u])
        for direction in pair / kit.norms(pair).max():
            axes[1].plot(*np.stack([np.zeros(2), direction]).T, zorder=4, **style)
    kit.panel_label(axes[1], 1, "Weights")
    margins = kit.panel(axes[2], 2, _margins(e.limit_margins))
    kit.place_legend(axes[2], margins, "inside", columns=1)
    kit.figure_legend(figure, handles, columns=4)
    return figure


def _margins(limit: Margins) -> kit.Chart:
    """Chart both margins from where Assumption 6.1 holds, with the largest one and the one of
    assumption 3.
    """
    late = limit.late
    steps = limit.iterations[late]
    return kit.chart(
        "Margins",
        "margin",
        kit.line(steps, limit.normalised[late], "normalised (Eq. 5)"),
        kit.line(steps, limit.smoothed[late], "smoothed (Eq. 6)", "dashed"),
        kit.level(limit.largest, "largest (Eq. 8)", "highlight dashed 1.2"),
        kit.level(limit.needed, "assumption 3", "muted dotted 1.2"),
        xlabel="step",
        log="x",
    )


FIGURE = kit.Figure(
    id="sarussi2021-fig4",
    caption=(
        "Decision boundary (a) and weights (b) learned in rescaled time on a symmetric set of two"
        " classes, with the predictions of the convex program of the perfect agreement regime"
        " (dashed) and, not in the paper, of the class means (dotted), which need no training. (c),"
        " not in the paper: normalised and smoothed margin on a sample of two Gaussians, the"
        " largest of the regime, and the one that assumption 3 of Theorem 6.2 asks for."
    ),
    configs={
        "sgd": SGD,
        "limit": LIMIT,
        "symmetric": symmetric_run(LIMIT),
        "symmetric_sgd": symmetric_run(SGD),
    },
    nulls={"large": ("initialization.scale=100", "optimizer.lr=5.0")},
    passes={
        "linear": {
            "*directions *boundary": MAX_MARGIN,
            "par-* symmetric-par": ONE_DIRECTION,
            "clustered": ALIKE,
            "margin-grows": "It is true of every homogeneous network, and a linear one is.",
        },
        "early": {"par-* clustered margin-* symmetric-*": SOON},
        "slow": {"par-* clustered margin-* symmetric-*": SOON},
    },
)

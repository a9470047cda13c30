"""Figure 4: decision boundary and weights, learned and predicted by the PAR's convex program, two Gaussians.

Learned by plain SGD, which nears the limit like 1/log t, and by gradient descent in rescaled time, which gets there.
Beside the paper's panels: the normalised and the smoothed margin (Eqs. 5 and 6) in Theorem 6.2 and its
proof, and a training set as Lemma 6.1 wants it.
"""

from __future__ import annotations

import json
from typing import Any

import numpy as np

from dynamics_cli import kit
from dynamics_cli.measures.least_distance import least_distance
from dynamics_cli.measures.two_layer import outputs
from dynamics_cli.plotting.scene import draw_scene

from .groups import DASHED, LINEAR, Groups, draw_neurons, plane, read_groups
from .theory import agreement
from .theory.clustering import linear_classifier

LIMIT = "sarussi2021/gaussians_limit.yaml"


def evidence(runs: kit.Runs) -> kit.Evidence:
    """Solve the convex program, and follow the margins in rescaled time.

    `plane` is of plain SGD, `limit` in rescaled time; the `plain_margin` of neurons along the difference of the class
    means is over the largest.
    """
    groups, limit = read_groups(runs["sgd"]), read_groups(runs["limit"])
    predicted = perfect_agreement(groups)
    return kit.Evidence(
        plane=plane(groups),
        limit=limit,
        predicted=predicted,
        limit_margins=margins(limit, predicted),
        plain_margin=plain_margin(groups, predicted),
        symmetric=read_groups(runs["symmetric"]),
    )


def perfect_agreement(groups: Groups) -> agreement.Directions:
    """Return the directions of the PAR of the data of a run."""
    x, y = groups.data.x, groups.data.y
    return agreement.agreement_directions(x, y, groups.alpha, y, -y)


def class_means(groups: Groups) -> agreement.Directions:
    """Return the directions `mu` and `-mu` of the difference of the class means, which need no training."""
    x, y = groups.data.x, groups.data.y
    mu = x[y > 0].mean(axis=0) - x[y < 0].mean(axis=0)
    return agreement.Directions(mu, -mu, least_distance(mu[None]))


def plain_margin(groups: Groups, predicted: agreement.Directions) -> float:
    """Return the normalised margin of neurons along `class_means` over the largest of the PAR; negative for errors."""
    x, y, means = groups.data.x, groups.data.y, class_means(groups)
    scores = outputs(x, np.stack([means.w, means.u]), np.array([1.0, -1.0]), groups.alpha)
    return float((y * scores).min() / np.linalg.norm(means.joint) * np.linalg.norm(predicted.joint))


def smoothed_margin(loss: kit.Floats) -> kit.Floats:
    """Return `log(1 / (exp(L) - 1))` of summed logistic losses `L`, infinite for a loss of 0 (Eq. 6)."""
    with np.errstate(divide="ignore"):
        return -loss - np.log(
            -np.expm1(-loss)
        )  # of exp(L) - 1 = exp(L) (1 - exp(-L)), safe for large L


def margins(groups: Groups, predicted: agreement.Directions) -> kit.Evidence:
    """Return the `normalised` and `smoothed` margins of a run (K,) at the recorded `iterations` (K,).

    From the states `late` (K,) on Assumption 6.1 holds: the summed loss has been below log 2. `largest` is the
    normalised margin of the convex program's solution, `needed` the smoothed margin that assumption 3 of Theorem 6.2
    asks for.
    """
    x, y, k = groups.data.x, groups.data.y, groups.W.shape[1]
    H = np.concatenate([groups.W, groups.U], axis=1)  # (K, m, d)
    h = outputs(x, H, np.broadcast_to(groups.network[1], H.shape[:2]), groups.alpha)  # (K, n)
    loss = np.logaddexp(0.0, -y * h).sum(axis=-1)
    norm = np.sqrt(np.sum(H**2, axis=(-2, -1)))
    return kit.Evidence(
        iterations=groups.iterations,
        normalised=(y * h).min(axis=-1) / norm,
        smoothed=smoothed_margin(loss) / norm,
        late=np.logical_or.accumulate(loss < np.log(2)),
        largest=agreement.largest_margin(predicted, groups.v, k),
        needed=agreement.margin_of_assumption_3(x, groups.alpha, groups.v, k),
    )


def symmetric_run() -> kit.Wanted:
    """Return the run in rescaled time on 25 positive points of the first Gaussian and their mirror images."""
    positive = np.round(np.random.default_rng(0).normal((2.0, 0.0), 0.5, (25, 2)), 3)
    x = json.dumps(np.concatenate([positive, -positive]).tolist())
    return kit.Wanted(
        LIMIT, ("dataset.kind=points", f"dataset.x={x}", f"dataset.y={[1.0] * 25 + [-1.0] * 25}")
    )


def degrees(a: kit.Floats, b: kit.Floats) -> float:
    """Return the angle between two vectors in degrees."""
    return float(np.degrees(np.arccos(kit.cosines(a, b))))


def boundary_angle(groups: Groups, predicted: agreement.Directions) -> float:
    """Return the degrees between the normals of the boundary learned in the end and the predicted one."""
    return degrees(linear_classifier(*groups.last), predicted.boundary)


def claims(e: kit.Evidence) -> list[kit.Claim]:
    sgd, limit, predicted, source = e.plane.groups, e.limit, e.predicted, "Theorem 6.2, Figure 4"
    x, y, shares = sgd.data.x, sgd.data.y, sgd.par_shares
    svm = degrees(least_distance(y[:, None] * x).w, predicted.boundary)
    means = class_means(sgd)
    plain, plain_angle = (
        float(kit.cosines(means.joint, predicted.joint)),
        degrees(means.boundary, predicted.boundary),
    )
    excellent = min(1.0, svm, plain_angle)
    margins, symmetric_run = e.limit_margins, e.symmetric
    smoothed = margins.smoothed[margins.late]
    exposed = int(agreement.wrongly_classifiable(symmetric_run.data.x, symmetric_run.data.y).sum())
    symmetric = perfect_agreement(symmetric_run)
    return [
        kit.claim(
            "directions",
            "The learned directions are the convex program's (joint cosine, rescaled time; "
            "0.9999, and more than the difference of the class means has)",
            source,
            kit.more_than(max(0.9999, plain)),
            limit.joint_cosine(-1, predicted),
        ),
        kit.claim(
            "boundary",
            "Learned and predicted decision boundary agree (angle in degrees, rescaled time; 1, and "
            "less than the boundary of the class means or of the linear max-margin classifier has)",
            "Figure 4(a)",
            kit.less_than(excellent),
            boundary_angle(limit, predicted),
        ),
        kit.claim(
            "boundary-sgd",
            "The same for plain SGD (angle in degrees)",
            "Figure 4(a)",
            kit.less_than(excellent),
            boundary_angle(sgd, predicted),
        ),
        kit.claim(
            "par-w", "All neurons w are in the PAR", "Section 6.3", kit.exactly(1), shares["w"][-1]
        ),
        kit.claim(
            "par-u", "All neurons u are in the PAR", "Section 6.3", kit.exactly(1), shares["u"][-1]
        ),
        kit.theory(
            "kkt",
            "The convex program is solved exactly (largest relative violation of the KKT conditions)",
            "Eq. 8",
            kit.at_most(1e-8),
            predicted.solution.kkt_residual,
        ),
        kit.theory(
            "consistent",
            "The predicted directions are themselves in the PAR (1: yes)",
            "Theorem 6.2",
            kit.exactly(1),
            agreement.patterns_hold(x, predicted, y, -y),
        ),
        kit.claim(
            "margin-grows",
            "The smoothed margin never falls once the summed loss is below log 2 "
            "(largest relative fall between recorded states, rescaled time; rounding allowed)",
            "Eq. 6, Appendix G.1 after Lyu and Li (2020), Theorem A.7",
            kit.at_most(1e-12),
            np.max(-np.diff(smoothed) / np.abs(smoothed[:-1]), initial=0.0)
            if len(smoothed)
            else np.nan,
        ),
        kit.claim(
            "margin-largest",
            r"The normalised margin tends to the largest of the PAR, $v \sqrt k/\|(w, u)\|$ "
            "(share, rescaled time; more than neurons along the class means have)",
            "Eqs. 5 and 8, Theorem 6.2",
            kit.Interval(np.nextafter(e.plain_margin, 1), 1.0 + 1e-9, f"{e.plain_margin:.4g} to 1"),
            float(margins.normalised[-1]) / margins.largest,
        ),
        kit.theory(
            "lemma-6.1",
            "On a symmetric training set no vector that is right on one class is wrong on a point "
            "of the other (points for which there is one, of 50)",
            "Lemma 6.1",
            kit.exactly(0),
            exposed,
        ),
        kit.claim(
            "symmetric-par",
            "A network trained on a symmetric set ends in the PAR (smaller share of neurons)",
            "Lemma 6.1, Theorem 6.2",
            kit.exactly(1),
            min(s[-1] for s in symmetric_run.par_shares.values()),
        ),
        kit.claim(
            "symmetric-directions",
            "Neurons converge to the directions of the convex program (joint cosine, "
            "rescaled time)",
            "Theorem 6.2",
            kit.more_than(0.9999),
            symmetric_run.joint_cosine(-1, symmetric),
        ),
    ]


def draw(e: kit.Evidence) -> kit.Drawing:
    figure, axes = kit.new_figure(3, 1, width=7.0, aspect=0.9, extra_height=0.3)
    look: dict[str, Any] = {"color": kit.PALETTE.highlight, "ls": (0, (3, 2)), "lw": 1.6}
    handles = draw_scene(axes[0], e.plane.regions, 0).handles
    normal, window = e.predicted.boundary, e.plane.regions.window
    along = np.array([-normal[1], normal[0]]) / np.linalg.norm(normal) * 2 * (window[1] - window[0])
    handles += axes[0].plot(
        *np.stack([-along, along]).T, label="predicted (PAR)", zorder=2.5, **look
    )
    kit.panel_label(axes[0], 0, "Boundary, plain SGD")
    H, predicted = e.plane.groups.network[0], np.stack([e.predicted.w, e.predicted.u])
    handles += draw_neurons(
        axes[1], H / kit.norms(H).max(), e.plane.signs, "weight / largest norm,", limit=1.0
    )
    for direction in predicted / kit.norms(predicted).max():
        axes[1].plot(*np.stack([np.zeros(2), direction]).T, zorder=4, **look)
    kit.panel_label(axes[1], 1, "Weights, plain SGD")
    _draw_margins(axes[2], e.limit_margins)
    kit.panel_label(axes[2], 2, "Margins, rescaled time")
    kit.figure_legend(figure, handles, columns=4)
    return figure


def _draw_margins(axes: kit.Axes, limit: kit.Evidence) -> None:
    """Draw both margins from where Assumption 6.1 holds, with the largest one and the one of assumption 3."""
    steps, late = limit.iterations[limit.late], limit.late
    if not late.any():
        return
    shown = np.concatenate([limit.normalised[late], limit.smoothed[late], [limit.largest]])
    kit.set_value_axis(axes, shown, "margin", log=False)
    curves = (
        (limit.normalised, "normalised (Eq. 5)", "-"),
        (limit.smoothed, "smoothed (Eq. 6)", DASHED),
    )
    lines = [
        kit.draw_curve(axes, steps, values[late], log_time=True, color=color, ls=look, label=label)
        for (values, label, look), color in zip(curves, kit.SERIES, strict=False)
    ]
    for value, label, color, look in (
        (limit.largest, "largest (Eq. 8)", kit.PALETTE.highlight, (0, (3, 2))),
        (limit.needed, "assumption 3", kit.PALETTE.muted, (0, (1, 1.5))),
    ):
        lines.append(axes.axhline(value, color=color, ls=look, lw=1.2, label=label))
    kit.set_time_axis(axes, steps, "log", "step")
    kit.place_legend(axes, lines, "inside", columns=1)


FIGURE = kit.Figure(
    id="sarussi2021-fig4",
    caption=(
        "Two Gaussian classes: decision boundary (a) and weights (b) learned by plain SGD, with the predictions of the "
        "convex program of the perfect agreement regime (dashed). (c), not in the paper: normalised and smoothed "
        "margin in rescaled time, the largest of the regime, and the one that assumption 3 of Theorem 6.2 asks for."
    ),
    configs={"sgd": "sarussi2021/gaussians.yaml", "limit": LIMIT, "symmetric": symmetric_run()},
    nulls={"large": ("initialization.scale=100", "optimizer.lr=5.0")},
    passes={"linear": {"directions par-* margin-* symmetric-*": LINEAR}},
)

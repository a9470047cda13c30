"""Figure 4: decision boundary and weights, learned and predicted by the PAR's convex program, two Gaussians.

`dyn reproduce sarussi2021-fig4`. About 5 s: plain SGD, which nears the limit like 1/log t, and gradient descent in
rescaled time, which gets there. Beside the paper's panels: the margins of which Theorem 6.2 and its proof speak.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib.figure import Figure as Drawing

from dynamics_cli.measures.arrays import Floats
from dynamics_cli.measures.linear_pieces import LevelSets, level_sets, two_layer_pieces
from dynamics_cli.measures.neurons import norms
from dynamics_cli.plotting.layout import figure_legend, panel_label
from dynamics_cli.plotting.panels.inputs import Window, data_window, draw_regions
from dynamics_cli.plotting.panels.neurons import draw_rays
from dynamics_cli.plotting.style import PALETTE, new_figure
from dynamics_cli.reproduction.claims import Claim, at_most, claim, exactly, finding, less_than, more_than
from dynamics_cli.reproduction.figure import Figure, Runs
from dynamics_cli.theory.agreement import Directions, hard_margin_svm, patterns_hold, perfect_agreement_directions

from .fig1 import neuron_handle
from .fig8 import par_shares
from .margins import MarginEvidence, draw_margins, margin_claims, margin_evidence, symmetric_run
from .trajectory import ORIGIN, Groups, cosine, joint_cosine, output_weights, read_groups

LIMIT = "sarussi2021/gaussians_limit.yaml"
STEPS = (1000, 10000)
"""Steps of rescaled time at which the cosine is given besides the last."""


@dataclass(frozen=True)
class Evidence:
    """Learned and predicted directions."""

    x: Floats
    y: Floats
    window: Window
    regions: LevelSets
    H: Floats
    """(m, d) neurons of plain SGD over the largest norm, `w` first."""
    signs: Floats
    predicted: Directions
    consistent: bool
    """Whether the predicted directions are in the PAR."""
    cosines: Mapping[str, float]
    """Joint cosines of (w_bar, u_bar) with the prediction: `sgd`, `limit`, and by steps of rescaled time."""
    angles: Mapping[str, float]
    """Degrees between the normals of learned and predicted boundary."""
    svm_angle: float
    """Degrees between the boundaries of the PAR and of the linear max-margin classifier."""
    shares: tuple[float, float]
    """Shares of neurons w and u of plain SGD in the PAR."""
    margins: MarginEvidence


def evidence(runs: Runs) -> Evidence:
    """Solve the convex program and compare both runs with it."""
    data, groups, limit = runs["sgd"].dataset(), read_groups(runs["sgd"]), read_groups(runs["limit"])
    predicted = perfect_agreement_directions(data.x, data.y, groups.alpha)
    H, a = output_weights(groups)
    window = data_window(data.x)
    w, u = par_shares(groups, data.x, data.y)
    cosines = {"sgd": joint_cosine(groups, -1, predicted), "limit": joint_cosine(limit, -1, predicted)}
    cosines |= {str(step): joint_cosine(limit, limit.at(step), predicted) for step in STEPS}
    return Evidence(
        x=data.x,
        y=data.y,
        window=window,
        regions=level_sets(two_layer_pieces(H, a), groups.alpha, window),
        H=H / norms(H).max(),
        signs=np.sign(a),
        predicted=predicted,
        consistent=patterns_hold(data.x, predicted, data.y, -data.y),
        cosines=cosines,
        angles={
            "sgd": boundary_angle(groups, -1, predicted),
            "limit": boundary_angle(limit, -1, predicted),
            "same-loss": boundary_angle(limit, same_loss(runs, limit), predicted),
        },
        svm_angle=degrees(cosine(hard_margin_svm(data.x, data.y).w, predicted.boundary)),
        shares=(float(w[-1]), float(u[-1])),
        margins=margin_evidence(data, groups, limit, predicted, runs["symmetric"]),
    )


def boundary_angle(groups: Groups, i: int, predicted: Directions) -> float:
    """Return the degrees between the normals of the boundary learned at state `i` and the predicted one."""
    return degrees(cosine(groups.W[i].mean(axis=0) - groups.U[i].mean(axis=0), predicted.boundary))


def same_loss(runs: Runs, limit: Groups) -> int:
    """Return the state of the run in rescaled time at which its loss is nearest to the last one of plain SGD."""
    run = runs["limit"]
    losses = np.interp(limit.iterations, np.asarray(run.loss_iterations), np.asarray(run.losses))
    return int(np.argmin(np.abs(np.log(np.maximum(losses, 1e-300)) - np.log(runs["sgd"].final_loss))))


def degrees(cos: float) -> float:
    """Return the angle of a cosine in degrees."""
    return float(np.degrees(np.arccos(np.clip(cos, -1, 1))))


def claims(found: Evidence) -> list[Claim]:
    """Compare learned and predicted directions with Theorem 6.2 and Figure 4."""
    source = "Theorem 6.2, Figure 4"
    return [
        claim(
            "directions",
            "The learned directions are those of the convex program (joint cosine, rescaled time)",
            source,
            expected=more_than(0.999),
            measured=found.cosines["limit"],
        ),
        claim(
            "boundary",
            "Learned and predicted decision boundary agree (angle in degrees, rescaled time)",
            "Figure 4(a)",
            expected=less_than(1),
            measured=found.angles["limit"],
        ),
        claim(
            "boundary-sgd",
            "The same for plain SGD (angle in degrees)",
            "Figure 4(a)",
            expected=less_than(1),
            measured=found.angles["sgd"],
        ),
        claim("par-w", "All neurons w are in the PAR", "Section 6.3", expected=exactly(1), measured=found.shares[0]),
        claim("par-u", "All neurons u are in the PAR", "Section 6.3", expected=exactly(1), measured=found.shares[1]),
        claim(
            "kkt",
            "The convex program is solved exactly (largest relative violation of the KKT conditions)",
            "Eq. 8",
            expected=at_most(1e-8),
            measured=found.predicted.solution.kkt_residual,
        ),
        claim(
            "consistent",
            "The predicted directions are themselves in the PAR (1: yes)",
            "Theorem 6.2",
            expected=exactly(1),
            measured=float(found.consistent),
        ),
        finding(
            "directions-sgd",
            "Joint cosine of plain SGD after all epochs: the limit is neared like 1/log t",
            source,
            measured=found.cosines["sgd"],
        ),
        *(
            finding(f"directions-{step}", f"Joint cosine at {step} steps of rescaled time", source, measured=value)
            for step, value in found.cosines.items()
            if step.isdigit()
        ),
        finding(
            "boundary-same-loss",
            "Boundary angle of the run in rescaled time when its loss is that of plain SGD's end: the same early stop",
            "Figure 4(a)",
            measured=found.angles["same-loss"],
        ),
        finding(
            "svm",
            "Angle between the boundary of the PAR and that of the linear max-margin classifier, in degrees",
            "Section 6.2",
            measured=found.svm_angle,
        ),
        *margin_claims(found.margins),
    ]


def draw(found: Evidence) -> Drawing:
    """Draw boundaries, weights, and the margins against steps of rescaled time."""
    figure, axes = new_figure(3, 1, width=7.0, aspect=0.9, extra_height=0.3)
    regions = found.regions
    drawn = draw_regions(
        axes[0], regions.polygons, regions.bands, regions.segments[0], found.window, x=found.x, y=found.y
    )
    drawn.lines.set_label("learned boundary")
    normal = found.predicted.boundary
    along = np.array([-normal[1], normal[0]]) / np.linalg.norm(normal) * 2 * (found.window[1] - found.window[0])
    look: dict[str, Any] = {"color": PALETTE.highlight, "ls": (0, (3, 2)), "lw": 1.6}
    (line,) = axes[0].plot(*np.stack([-along, along]).T, label="predicted (PAR)", zorder=2.5, **look)
    panel_label(axes[0], 0, "decision boundary")
    rays = draw_rays(axes[1], found.H, found.signs, xlabel="weight 1", ylabel="weight 2", limit=1.0)
    for direction in predicted_rays(found):
        axes[1].plot(*np.stack([np.zeros(2), direction]).T, zorder=4, **look)
    panel_label(axes[1], 1, "weights (largest norm 1)")
    draw_margins(axes[2], found.margins.limit)
    panel_label(axes[2], 2, "margins, rescaled time")
    figure_legend(figure, [*drawn.handles, line, *(neuron_handle(sign) for sign in rays.rays)], columns=4)
    return figure


def predicted_rays(found: Evidence) -> tuple[Floats, Floats]:
    """Return the predicted directions on the scale of the drawn neurons: the longer one has length 1."""
    w, u = found.predicted.w, found.predicted.u
    size = max(float(np.linalg.norm(w)), float(np.linalg.norm(u)))
    return w / size, u / size


FIGURE = Figure(
    id="sarussi2021-fig4",
    caption=(
        "Two Gaussian classes: decision boundary (a) and weights (b) learned by SGD, with the predictions of the "
        "convex program of the perfect agreement regime (dashed). (c), not in the paper: normalised and smoothed "
        "margin in rescaled time, the largest of the regime, and the one that assumption 3 of Theorem 6.2 asks for."
    ),
    configs={"sgd": "sarussi2021/gaussians.yaml", "limit": LIMIT, "symmetric": symmetric_run(LIMIT)},
    origin=ORIGIN | {"rescaled time": "inferred", "symmetric training set": "assumed"},
    evidence=evidence,
    claims=claims,
    draw=draw,
)

"""Figure 6: neurons in 150 dimensions, on the two leading principal components of the final hidden weights.

`dyn reproduce boursier2022-fig6`. About 8 s, nearly all of them training.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from matplotlib.figure import Figure as Drawing

from dynamics_cli.measures.arrays import Bools, Floats
from dynamics_cli.measures.clusters import cluster_directions
from dynamics_cli.measures.neurons import cosines
from dynamics_cli.measures.spectra import leading_directions, project
from dynamics_cli.plotting.layout import figure_legend, panel_label
from dynamics_cli.plotting.panels.polar import draw_polar
from dynamics_cli.plotting.panels.shared import sign_handle
from dynamics_cli.plotting.style import new_figure
from dynamics_cli.reproduction.claims import Claim, at_least, at_most, claim, exactly, finding, less_than, more_than
from dynamics_cli.reproduction.figure import Figure, Runs

from .high_dim import CONFIGS, ORIGIN, SEED_CONFIGS, VARIANTS
from .states import State, loss_curve, states_at
from .theory.alignment import D_minus, D_plus

ITERATIONS = (0, 40000, 80000, 200000)
"""Of panels a to d."""
GROWN = 90000
"""When the second cluster has grown and the loss is near 0; not in the paper."""
SAME = 10.0
"""Angle in degrees within which directions are the same to the eye."""


@dataclass(frozen=True)
class Evidence:
    """Four states seen in the plane, and the two clusters."""

    states: list[State]
    """At `ITERATIONS`."""
    points: list[Floats]
    """(m, 2) neurons of each state on the two leading principal components of the final hidden weights."""
    directions: int
    """Groups of directions in that plane at the end of alignment."""
    directions_space: int
    """The same in all dimensions."""
    alignment_loss: float
    """Loss at the end of alignment over loss at the start."""
    norm: float
    """Largest norm then over largest final norm."""
    share: float
    """Share of the sum of squared norms that the larger cluster holds when it alone has grown."""
    first_sign: int
    """Sign of its output weights."""
    first_turn: float
    """By how many degrees its mean direction in the plane turned while it grew."""
    second_turn: float
    """The same for the other cluster, from the end of alignment to iteration `GROWN`."""
    second_growth: float
    """Sum of squared norms of the second cluster at `GROWN` over the final one."""
    first_turn_space: float
    """The turn of the first cluster in all 150 dimensions."""
    final_groups: int
    """Groups of directions, in all dimensions, at the end."""
    cosines: tuple[float, float]
    """At the end of alignment: median cosine of neurons with D_+ (s = +1) and with -D_- (s = -1)."""
    late_turn: float
    """Median angle, in all dimensions, by which neurons turned from `GROWN` to the end."""


def evidence(runs: Runs) -> Evidence:
    """Measure clusters and turns of the high-dimensional run."""
    run = runs["high_dim"]
    dataset = run.dataset()
    states = states_at(run, ITERATIONS)
    _, aligned, first, last = states
    (grown,) = states_at(run, [GROWN])
    basis = leading_directions(last.W)
    mass = {s: float(np.sum(first.norms[last.signs == s] ** 2)) for s in (1, -1)}
    sign = 1 if mass[1] >= mass[-1] else -1
    one, other = last.signs == sign, last.signs == -sign
    iterations, losses = loss_curve(run)
    loss = float(losses[np.argmin(np.abs(iterations - aligned.iteration))])
    plus, minus = D_plus(dataset.x, dataset.y), D_minus(dataset.x, dataset.y)
    return Evidence(
        states=states,
        points=[project(state.W, basis) for state in states],
        directions=cluster_directions(
            project(aligned.W, basis), signs=aligned.a, angle_tolerance=SAME, relative_norm=0
        ).count,
        directions_space=cluster_directions(aligned.W, signs=aligned.a, angle_tolerance=SAME, relative_norm=0).count,
        alignment_loss=loss / float(losses[0]),
        norm=float(aligned.norms.max() / last.norms.max()),
        share=mass[sign] / (mass[1] + mass[-1]),
        first_sign=sign,
        first_turn=turn(project(aligned.W, basis), project(first.W, basis), one),
        second_turn=turn(project(aligned.W, basis), project(grown.W, basis), other),
        second_growth=float(np.sum(grown.norms[other] ** 2) / np.sum(last.norms[other] ** 2)),
        first_turn_space=turn(aligned.W, first.W, one),
        final_groups=cluster_directions(last.W, signs=last.a, angle_tolerance=SAME, relative_norm=0.05).count,
        cosines=(
            float(np.median(cosines(aligned.W, plus)[aligned.signs > 0])),
            float(np.median(cosines(aligned.W, -minus)[aligned.signs < 0])),
        ),
        late_turn=float(np.median(np.degrees(np.arccos(cosines(grown.W, last.W))))),
    )


def turn(before: Floats, after: Floats, members: Bools) -> float:
    """Return the angle in degrees between the norm-weighted mean directions of `members` (m,) before and after."""
    mean = [weights[members].sum(axis=0, keepdims=True) / np.abs(weights[members]).max() for weights in (before, after)]
    return float(np.degrees(np.arccos(cosines(mean[0], mean[1])[0])))


def claims(found: Evidence) -> list[Claim]:
    """Compare clusters with Appendix A.2."""
    return [*_alignment(found), *_growth(found), *_findings(found)]


def _alignment(found: Evidence) -> list[Claim]:
    """The end of the alignment phase."""
    return [
        claim(
            "two-directions",
            "Early alignment: neurons align towards two key directions (groups in the plane of the figure)",
            "Appendix A.2, Figure 6(b)",
            expected=exactly(2),
            measured=found.directions,
        ),
        claim(
            "alignment-loss",
            "while norms are still negligible (loss over loss at the start)",
            "Appendix A.2, Figures 6(b), 7(a)",
            expected=more_than(0.999),
            measured=found.alignment_loss,
        ),
        claim(
            "alignment-norm",
            "and neurons lie on the circle of norm 0 (largest norm over largest final norm)",
            "Figure 6(b)",
            expected=less_than(0.01),
            measured=found.norm,
        ),
    ]


def _growth(found: Evidence) -> list[Claim]:
    """The two clusters grow, and the final state."""
    return [
        claim(
            "first-cluster",
            "In the second phase a first cluster grows (its share of the sum of squared norms at 80000)",
            "Appendix A.2, Figure 6(c)",
            expected=more_than(0.5),
            measured=found.share,
        ),
        claim(
            "first-direction",
            "while keeping a fixed direction (turn in the plane of the figure, degrees)",
            "Appendix A.2, Figure 6(b), (c)",
            expected=at_most(SAME),
            measured=found.first_turn,
        ),
        claim(
            "second-cluster",
            "In the third phase the other cluster grows (sum of squared norms at 90000 over the final one)",
            "Appendix A.2",
            expected=more_than(0.5),
            measured=found.second_growth,
        ),
        claim(
            "second-direction",
            "in a fixed direction too (turn in the plane of the figure, degrees)",
            "Appendix A.2",
            expected=at_most(SAME),
            measured=found.second_turn,
        ),
        claim(
            "final-spread",
            "In the final state neurons are not exactly aligned with two directions (groups in all dimensions)",
            "Appendix A.2, Figure 6(d)",
            expected=at_least(3),
            measured=found.final_groups,
        ),
    ]


def _findings(found: Evidence) -> list[Claim]:
    """What the paper does not say."""
    return [
        finding(
            "directions-space",
            "Groups of directions at the end of alignment in all dimensions: the plane shows two",
            "Appendix A.2",
            measured=found.directions_space,
        ),
        finding("first-sign", "Sign of the first cluster's output weights", "Figure 6(c)", measured=found.first_sign),
        finding(
            "cosine-plus",
            "Median cosine with D+ of neurons with s = +1 at 40000",
            "Section 4.1",
            measured=found.cosines[0],
        ),
        finding(
            "cosine-minus",
            "Median cosine with -D- of neurons with s = -1 at 40000",
            "Section 4.1",
            measured=found.cosines[1],
        ),
        finding(
            "first-turn-space",
            "Turn of the first cluster's mean in all dimensions while it grows, degrees: more than the plane shows",
            "Appendix A.2",
            measured=found.first_turn_space,
        ),
        finding("late-turn", "Median turn of a neuron after 90000, degrees", "Appendix A.2", measured=found.late_turn),
    ]


def draw(found: Evidence) -> Drawing:
    """Draw panels a to d; the outer ring is the same norm in all of them."""
    titles = ["Initialisation", "End of alignment phase", "Growth of first cluster", "Final state"]
    figure, axes = new_figure(2, 2, aspect=0.9, extra_height=0.25)
    limit = draw_polar(axes[3], found.points[3], found.states[3].signs, legend="none").limit
    for k, (state, points, title) in enumerate(zip(found.states, found.points, titles, strict=True)):
        if k < 3:
            draw_polar(axes[k], points, state.signs, limit=limit, legend="none")
        panel_label(axes[k], k, f"{title} ({state.when})")
    figure_legend(figure, [sign_handle(sign, marker="*") for sign in (-1, 1)])
    return figure


FIGURE = Figure(
    id="boursier2022-fig6",
    caption=(
        "Each star is a neuron, projected on the two leading principal components (uncentred) of the final hidden "
        "weights: red for s_j = -1, purple for s_j = +1. The inner circle is norm 0; the outer ring is the same "
        "norm in all panels."
    ),
    configs=CONFIGS,
    seed_configs=SEED_CONFIGS,
    variants=VARIANTS,
    origin=ORIGIN,
    evidence=evidence,
    claims=claims,
    draw=draw,
)

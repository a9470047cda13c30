"""Figures 6 and 7: a run in 150 dimensions, its neurons, its loss and the spectrum of its
weights.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from dynamics_cli import kit

from .polar import draw_polar
from .states import (
    NAN,
    LossCurve,
    NetworkState,
    horizon,
    loss_chart,
    loss_curve,
    on_flow,
    saddle_of,
    state_at,
)

CONFIGS = {"high_dim": "boursier2022/high_dim.yaml"}
SEED_CONFIGS = {"high_dim": "boursier2022/high_dim_seeds.yaml"}
"""The authors' data with initial weights drawn by us; the first seed takes theirs from a file."""
REDRAWN = (
    "initialization.kind=balanced",
    "initialization.scale=1.0e-20",
    "initialization.divide_by=sqrt_width_times_dim",
)
VARIANTS = on_flow("high_dim", "boursier2022/high_dim_flow.yaml", REDRAWN)

ITERATIONS = (0, 40000, 80000, 200000)
"""Of panels a to d."""
GROWN = 90000
"""When the second cluster has grown and the loss is near 0; not in the paper."""
FITTED = 0.01
"""The share of the first loss that counts as 0: the width of the line in Figure 7."""
PASSES = {
    "shuffled": {
        "*": "Other labels of the same points are fitted by the same phases at other times."
    },
    "larger": {"*": "The scale 1e-18 is as small: all times change by a twentieth."},
    "smaller": {"*": "The scale 1e-22 is as small: all times change by a twentieth."},
}
"""Why claims hold under other labels and scales."""
SAME = 10.0
"""Angle in degrees within which directions are the same to the eye."""
VISIBLE = 0.05
"""Neurons of at least this share of the largest norm can be seen in the figure."""
BARS = 10
"""Principal components whose explained variance is drawn: the first two dark, the rest summed
up.
"""


@dataclass(frozen=True)
class Fig6Evidence:
    """The states of the high-dimensional run.

    `seen` gives the neurons (m, 2) of a state in the plane of the two leading principal components
    of the last state.
    """

    states: list[NetworkState]
    grown: NetworkState
    curve: LossCurve
    seen: Callable[[NetworkState], kit.Floats]


def evidence_fig6(runs: kit.Runs) -> Fig6Evidence:
    """Read the states of the high-dimensional run at `ITERATIONS` and at `GROWN`."""
    run = runs["high_dim"]
    states = [state_at(run, iteration) for iteration in ITERATIONS]
    basis = kit.leading_directions(states[-1].W)
    return Fig6Evidence(
        states=states,
        grown=state_at(run, GROWN),
        curve=loss_curve(run),
        seen=lambda state: kit.project(state.W, basis),
    )


def turn(before: kit.Floats, after: kit.Floats, members: kit.Bools) -> float:
    """Return the angle in degrees between the norm-weighted mean directions of `members` (m,)
    before and after.
    """
    mean = [
        weights[members].sum(axis=0, keepdims=True) / np.abs(weights[members]).max()
        for weights in (before, after)
    ]
    return float(np.degrees(np.arccos(kit.cosines(mean[0], mean[1])[0])))


def directions(W: kit.Floats, state: NetworkState, relative_norm: float = 0.0) -> int:
    """Return the number of groups of directions among neurons of weights W (m, d or 2)."""
    return kit.cluster_directions(
        W, signs=state.a, angle_tolerance=SAME, relative_norm=relative_norm
    ).count


def angles_to_keys(e: Fig6Evidence, state: NetworkState) -> kit.Floats:
    """Return the angles in degrees (k,) in the plane of neurons to the direction that those of
    their sign align with.

    Of the k neurons whose norms can be seen in that state; the directions are the mean ones at the
    end of alignment.
    """
    _, aligned, _, last = e.states
    seen = e.seen(state)
    before = e.seen(aligned)
    visible = kit.significant(state.W, VISIBLE)
    angles = np.full(len(visible), NAN)
    for sign in (1, -1):
        members = last.signs == sign
        key = before[members].sum(axis=0)
        angles[members] = np.degrees(np.arccos(kit.cosines(seen[members], key)))
    return angles[visible]


def claims_fig6(e: Fig6Evidence) -> list[kit.Claim]:
    _, aligned, growing, last = e.states
    mass = {s: float(np.sum(growing.norms[last.signs == s] ** 2)) for s in (1, -1)}
    sign = 1 if mass[1] >= mass[-1] else -1  # of the cluster that grows first
    first = last.signs == sign
    second = last.signs == -sign
    aligned_seen = e.seen(aligned)
    first_gain, second_gain = (
        float(
            np.sum(after.norms[members] ** 2 - before.norms[members] ** 2)
            / np.sum(last.norms[members] ** 2)
        )
        for before, after, members in ((aligned, growing, first), (growing, e.grown, second))
    )
    key_directions = directions(aligned_seen, aligned)
    fitted = e.curve.losses[-1] < FITTED * e.curve.start
    told = key_directions == 2 and second_gain > 0.5 and fitted
    third, final = (angles_to_keys(e, state) for state in (e.grown, last))
    return [
        kit.claim(
            "two-directions",
            "Early alignment: neurons align towards two key directions (groups in the plane of "
            "the figure)",
            "Appendix A.2, Figure 6(b)",
            kit.exactly(2),
            key_directions,
        ),
        kit.claim(
            "alignment-loss",
            "Norms are still negligible when neurons are aligned (loss over loss at the start)",
            "Appendix A.2, Figures 6(b), 7(a)",
            kit.more_than(0.999),
            kit.given(key_directions == 2, e.curve.at(aligned.iteration) / e.curve.start),
        ),
        kit.claim(
            "alignment-norm",
            "Neurons lie on the circle of norm 0 at the start (largest norm over largest final "
            "norm)",
            "Figure 6(b)",
            kit.less_than(0.01),
            aligned.norms.max() / last.norms.max(),
        ),
        kit.claim(
            "first-cluster",
            "In the second phase a first cluster grows, and not yet the other "
            "(its share of the sum of squared norms at 80000)",
            "Appendix A.2, Figure 6(c)",
            kit.at_least(0.9),
            mass[sign] / (mass[1] + mass[-1]),
        ),
        kit.claim(
            "first-direction",
            "The first cluster keeps a fixed direction while it grows (turn in the plane of "
            "the figure, degrees)",
            "Appendix A.2, Figure 6(b), (c)",
            kit.at_most(SAME),
            kit.given(first_gain > 0.5, turn(aligned_seen, e.seen(growing), first)),
        ),
        kit.claim(
            "second-cluster",
            "In the third phase the other cluster grows (gain of its sum of squared norms from "
            "80000 to 90000, over the final sum)",
            "Appendix A.2",
            kit.more_than(0.5),
            second_gain,
        ),
        kit.claim(
            "second-direction",
            "The second cluster keeps a fixed direction while it grows (turn in the plane of "
            "the figure, degrees)",
            "Appendix A.2",
            kit.at_most(SAME),
            kit.given(second_gain > 0.5, turn(aligned_seen, e.seen(e.grown), second)),
        ),
        kit.claim(
            "only-after",
            "Only after the three phases neurons move from the two key directions (median angle to"
            " them in the plane of the figure at 90000, over the final one)",
            "Appendix A.2",
            kit.less_than(0.5),
            kit.given(told, np.median(third) / np.median(final)),
        ),
        kit.claim(
            "final-spread",
            "In the final state neurons are not exactly aligned with two directions (largest angle"
            " to the key directions in the plane of the figure, degrees)",
            "Appendix A.2, Figure 6(d)",
            kit.more_than(SAME),
            kit.given(told, final.max(initial=0.0)),
        ),
    ]


def numbers_fig6(e: Fig6Evidence) -> dict[str, float]:
    """Return the groups of directions in the end, which depend on where they are counted."""
    last = e.states[-1]
    return {
        "groups of directions in the end, in the plane": directions(e.seen(last), last, VISIBLE),
        "the same in all dimensions": directions(last.W, last, VISIBLE),
        "the same in all dimensions at 80000": directions(e.states[2].W, e.states[2], VISIBLE),
    }


def draw_fig6(e: Fig6Evidence) -> kit.Drawing:
    titles = ["Initialisation", "End of alignment phase", "Growth of first cluster", "Final state"]
    figure, axes = kit.new_figure(2, 2, aspect=0.9, extra_height=0.25)
    last = e.states[-1]
    limit = kit.round_up(float(kit.norms(e.seen(last)).max()))
    for k, (state, title) in enumerate(zip(e.states, titles, strict=True)):
        draw_polar(axes[k], e.seen(state), state.signs, limit)
        kit.panel_label(axes[k], k, f"{title} ({state.when})")
    kit.figure_legend(figure, [kit.sign_handle(sign, marker="*") for sign in (-1, 1)])
    return figure


FIGURE_6 = kit.Figure(
    id="boursier2022-fig6",
    caption=(
        "Each star is a neuron, projected on the two leading principal components (uncentred) of"
        " the final hidden weights: red for s_j = -1, purple for s_j = +1. The inner circle is norm"
        " 0; the outer ring is the same norm in all panels."
    ),
    configs=CONFIGS,
    seed_configs=SEED_CONFIGS,
    variants=VARIANTS,
    passes={
        **PASSES,
        "linear": {
            "two-directions": (
                "A linear network aligns with a line, by sign: two directions too, but both grow at"
                " once."
            ),
            "alignment-* first-direction": (
                "The small start, and the line that neurons keep, are a linear one's."
            ),
        },
    },
)


WINDOW = 4000
"""Iterations over which the relative fall of the loss is measured."""
FLAT = 0.1
"""Of all that falls between the two drops, a saddle is where the loss falls by less than this
share over `WINDOW`.
"""


@dataclass(frozen=True)
class Fig7Evidence:
    """The loss of the run, and its final spectrum.

    `saddle` is the iteration between the two drops at which the loss is flattest, NaN if there is
    none, `fall` its relative fall over the `WINDOW` around it, and the plateau is within 5 % of the
    loss there. `ratios` are the explained variance ratios of the uncentred SVD of the final hidden
    weights `W` (m, d).
    """

    curve: LossCurve
    saddle: float
    fall: float
    plateau: kit.Plateau | None
    W: kit.Floats
    ratios: kit.Floats


def evidence_fig7(runs: kit.Runs) -> Fig7Evidence:
    """Measure loss and final spectrum of the high-dimensional run."""
    run = runs["high_dim"]
    curve = loss_curve(run)
    W = state_at(run, horizon(run)).W
    saddle, fall = flattest(curve)
    plateau = curve.plateau(saddle, 0.05 * curve.at(saddle)) if np.isfinite(saddle) else None
    return Fig7Evidence(curve, saddle, fall, plateau, W, ratios=explained_variance(W))


def flattest(curve: LossCurve) -> tuple[float, float]:
    """Return where, between 80 % and 5 % of the first loss, the loss falls least over `WINDOW`, and
    by which share.

    NaN for both when the loss never gets there or passes in less than `WINDOW`.
    """
    iterations = curve.iterations
    losses = curve.losses
    step = (
        max(1, WINDOW // 2 // max(1, int(iterations[1] - iterations[0])))
        if len(iterations) > 1
        else 1
    )
    between = np.flatnonzero((losses < 0.8 * losses[0]) & (losses > 0.05 * losses[0]))
    between = between[(between >= step) & (between < len(losses) - step)]
    if between.size == 0:
        return NAN, NAN
    falls = 1 - losses[between + step] / losses[between - step]
    best = int(np.argmin(falls))
    return float(iterations[between[best]]), float(falls[best])


def claims_fig7(e: Fig7Evidence) -> list[kit.Claim]:
    curve = e.curve
    two = float(e.ratios[:2].sum())
    return [
        kit.claim(
            "saddle",
            "The dynamics goes through an intermediate saddle (share by which the loss falls in"
            " 4000 iterations there)",
            "Appendix A.2, Figure 7(a)",
            kit.less_than(FLAT),
            e.fall,
        ),
        kit.claim(
            "saddle-time",
            "The loss is a saddle's around iteration 75000",
            "Appendix A.2, Figure 7(a)",
            kit.around(75000),
            e.saddle,
        ),
        kit.claim(
            "zero-loss",
            "The training loss converges to 0 (final loss over initial loss; 1 % is the width of "
            "the line)",
            "Appendix A.2, Figure 7(a)",
            kit.less_than(FITTED),
            curve.losses[-1] / curve.start,
        ),
        kit.claim(
            "two-components",
            "Two principal components explain 80 % of the final hidden weights, the others around"
            " 20 %",
            "Appendix A.2, Figure 7(b)",
            kit.around(0.8),
            two,
        ),
    ]


def numbers_fig7(e: Fig7Evidence) -> dict[str, float]:
    """Return what the centred PCA gives; the released notebook does not centre."""
    centred = explained_variance(e.W - e.W.mean(axis=0))
    return {
        "variance that the two leading components of the centred PCA explain": centred[:2].sum()
    }


def explained_variance(W: kit.Floats) -> kit.Floats:
    """Return `s_i^2 / sum_k s_k^2` (min(m, d),) of the singular values of `W` (m, d),
    descending.
    """
    powers = kit.singular_values(W) ** 2
    return np.asarray(powers / powers.sum())


def draw_fig7(e: Fig7Evidence) -> kit.Drawing:
    parts = np.split(e.ratios, [2, BARS])
    first, others, rest = (float(part.sum()) for part in parts)
    return kit.charts(
        loss_chart(e.curve, plateaus=saddle_of(e.plateau)),
        kit.chart(
            "Explained variance",
            "explained variance ratio",
            kit.stairs(np.arange(3) + 0.5, parts[0], f"first 2: {first:.3f}", "measured"),
            kit.stairs(
                np.arange(len(parts[1]) + 1) + 2.5,
                parts[1],
                f"next {len(parts[1])}: {others:.3f}",
                "muted",
            ),
            kit.entry(f"{len(parts[2])} not shown: {rest:.3f}", "ground"),
            xlabel="principal component",
            limits=(0, None),
        ),
        legend="inside",
    )


FIGURE_7 = kit.Figure(
    id="boursier2022-fig7",
    caption=(
        "Training loss of the high-dimensional run with its plateau, and explained variance ratios"
        " of the (uncentred) principal components of its final hidden weights."
    ),
    configs=CONFIGS,
    seed_configs=SEED_CONFIGS,
    variants=VARIANTS,
    passes={
        **PASSES,
        "linear": {
            "zero-loss": "There are fewer points than dimensions: a linear function fits them too."
        },
    },
)


FIGURES = kit.by_id(FIGURE_6, FIGURE_7)

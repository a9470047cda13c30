"""Figures 4 and 5: five points that are not orthogonal, from a small and from a large
initialisation.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from dynamics_cli import kit
from dynamics_cli.theory.ntk import ntk_interpolator
from dynamics_cli.theory.sphere_flow import sphere_flow

from .states import (
    LOSS_FACTOR,
    NAN,
    LineState,
    LossCurve,
    bends,
    distinct_kinks,
    draw_states,
    line_state,
    loss_chart,
    loss_curve,
    on_flow,
    saddle_of,
    turns,
)
from .theory.growth import one_sign_saddle_loss

ITERATIONS = (0, 15000, 94000, 150000, 300000)
"""Of panels a to e."""
VISIBLE = 0.05
"""Neurons of at least this share of the largest norm can be seen in the figure."""
ALIGNED = 5.0
"""Angle in degrees up to which a neuron counts as aligned."""
NEARLY = 0.1
""""All", "approximately" and "not significantly": within 10 %."""
GROUP_ANGLE = 30.0
"""Neurons linked by steps of at most this angle (degrees) are one group of the figure."""
TURN = 1.0
"""A turn of one degree counts; for orthogonal data neurons that have grown turn by less than
1e-6 degrees.
"""


@dataclass(frozen=True)
class Fig4Evidence:
    """The states and the loss of the five-point run.

    `states` are those at `ITERATIONS`, `limits` (m, 2) the directions of the neurons in Eq. 10 in
    the end. The plateau around iteration 94 000 is within 1 % of the loss there, `saddle_loss` the
    least loss of a network of positive output weights alone: no neuron with a negative output
    weight has grown by then. `flipped` counts output weights that changed their sign by the saddle,
    `negative` the neurons of negative sign that are active on some point there.
    """

    x: kit.Floats
    y: kit.Floats
    states: list[LineState]
    limits: kit.Floats
    curve: LossCurve
    plateau: kit.Plateau
    saddle_loss: float
    flipped: int
    negative: int


def evidence_fig4(runs: kit.Runs) -> Fig4Evidence:
    """Read the states and the loss of the five-point run, and follow its neurons along Eq. 10."""
    run = runs["five_points"]
    x = run.dataset().x
    y = run.dataset().y
    states = [line_state(run, iteration) for iteration in ITERATIONS]
    curve = loss_curve(run)
    start = states[0]
    saddle = states[2]
    limits = sphere_flow(x, y, start.W, start.a, [np.inf], loss_factor=LOSS_FACTOR).directions[0]
    return Fig4Evidence(
        x,
        y,
        states,
        limits,
        curve,
        plateau=curve.plateau(saddle.iteration, 0.01 * curve.at(saddle.iteration)),
        saddle_loss=one_sign_saddle_loss(x, y, 1, loss_factor=LOSS_FACTOR),
        flipped=int(np.sum(saddle.signs != start.signs)),
        negative=int(np.sum((saddle.a < 0) & (x @ saddle.W.T > 0).any(axis=0))),
    )


def claims_fig4(e: Fig4Evidence) -> list[kit.Claim]:
    _, early, saddle, leaving, end = e.states
    visible = kit.significant(early.W, VISIBLE)
    to_limit = np.degrees(np.arccos(kit.cosines(early.W[visible], e.limits[visible])))
    turned = turns(early, saddle)[kit.significant(saddle.W, VISIBLE)]
    inputs = e.x[:, 0]
    kinks = distinct_kinks(end.W, within=(float(inputs.min()), float(inputs.max())))
    grew = kit.significant(leaving.W, VISIBLE) & (leaving.norms > saddle.norms)
    share = float(np.mean(to_limit <= ALIGNED))
    aligned = share >= 1 - NEARLY
    fell = (
        e.curve.escape(e.curve.start) < saddle.iteration
    )  # false for NaN: the saddle at 0 was never left
    groups = kit.cluster_directions(
        saddle.W, signs=saddle.a, relative_norm=VISIBLE, angle_tolerance=GROUP_ANGLE
    )
    return [
        kit.claim(
            "alignment",
            "Early alignment by iteration 15000 (share of visible neurons within 5 degrees of their"
            " limit in Eq. 10)",
            "Appendix A.1, Figure 4(b), Eq. 10",
            kit.at_least(1 - NEARLY),
            share,
        ),
        kit.claim(
            "alignment-loss",
            "Norms are still negligible at iteration 15000 (loss over loss at the start)",
            "Appendix A.1, Figure 4(b), (f)",
            kit.more_than(0.999),
            kit.given(aligned, e.curve.at(15000) / e.curve.start),
        ),
        kit.claim(
            "two-groups",
            "Two groups of neurons grow until the intermediate saddle (orthogonal data: one)",
            "Appendix A.1, Figure 4(c)",
            kit.exactly(2),
            kit.given(aligned and bends(saddle, inputs), groups.count),
        ),
        kit.claim(
            "turn-before",
            "Neurons do not keep a fixed direction before the saddle (least turn of a visible "
            "neuron, degrees)",
            "Appendix A.1",
            kit.at_least(TURN),
            kit.given(bends(saddle, inputs), turned.min()),
        ),
        kit.claim(
            "saddle-loss",
            "The loss at 94000 is an intermediate saddle's, where no negative neuron has grown "
            "(loss; the least loss with positive output weights)",
            "Figure 4(c), (f)",
            kit.near(e.saddle_loss, 1e-4),
            e.curve.at(94000),
        ),
        kit.claim(
            "saddle-flat",
            "The loss is flat near the saddle: -dL/dt, the squared gradient, is small (share by "
            "which the loss falls around 94000, within 10 %)",
            "Figure 4(f)",
            kit.at_most(0.01),
            kit.given(
                fell and bends(saddle, inputs),
                1 - e.curve.at(94000 * 1.1) / e.curve.at(94000 * 0.9),
            ),
        ),
        kit.claim(
            "left",
            "At 150000 the saddle is being left (loss over the saddle's)",
            "Appendix A.1, Figure 4(d), (f)",
            kit.less_than(0.99),
            e.curve.at(150000) / e.curve.at(94000),
        ),
        kit.claim(
            "growth",
            "At 150000 norms still grow (sum of squares over that at the saddle)",
            "Appendix A.1, Figure 4(d)",
            kit.more_than(1.01),
            kit.given(fell, np.sum(leaving.norms**2) / np.sum(saddle.norms**2)),
        ),
        kit.claim(
            "turn-after",
            "Neurons that grow change their direction (largest turn since 94000, degrees)",
            "Appendix A.1, Figure 4(d)",
            kit.at_least(TURN),
            kit.given(fell, turns(saddle, leaving)[grew].max(initial=0.0)),
        ),
        kit.claim(
            "zero-loss",
            "In the final state the training loss is zero",
            "Appendix A.1, Figure 4(e)",
            kit.less_than(1e-3),
            e.curve.at(300000),
        ),
        kit.claim(
            "sparse",
            "The final function is sparse in its number of kinks (between the inputs; joining the"
            " dots takes 3)",
            "Appendix A.1, Figure 4(e)",
            kit.at_most(len(inputs) - 2),
            kit.given(bends(end, inputs), len(kinks)),
        ),
    ]


def numbers_fig4(e: Fig4Evidence) -> dict[str, float]:
    """Return whether the saddle can be left: a step that lets output weights change sign may
    leave no neuron for it.
    """
    return {
        "output weights that changed sign by iteration 94000": e.flipped,
        "active neurons with s = -1 at the saddle; without any it is never left": e.negative,
    }


def draw_fig4(e: Fig4Evidence) -> kit.Drawing:
    titles = [
        "Initialisation",
        "End of early alignment",
        "Intermediate saddle",
        "Growth, realignment",
        "Final state",
    ]

    def loss_panel(axes: kit.Axes) -> None:
        after = [state.iteration for state in e.states[1:]]
        at = [kit.value_at(e.curve.iterations, e.curve.iterations, i) for i in after]
        losses = [e.curve.at(i) for i in after]
        dots = kit.line(at, losses, look="theory points")
        kit.panel(axes, 5, loss_chart(e.curve, dots, plateaus=saddle_of(e.plateau)))
        for letter, x, loss in zip("bcde", at, losses, strict=True):
            axes.annotate(
                letter,
                (x, loss),
                xytext=(0, 5 if letter == "e" else -10),
                textcoords="offset points",
                ha="center",
                fontsize=kit.SMALL,
                color=kit.PALETTE.theory,
            )

    return draw_states(e.states, titles, e.x[:, 0], e.y, extra=loss_panel)


FIGURE_4 = kit.Figure(
    id="boursier2022-fig4",
    caption=(
        "As Figure 2, for five points that are not orthogonal: two groups of neurons grow until an"
        " intermediate saddle, and groups turn while they grow. Panel f: training loss, its plateau"
        " and the iterations of panels b to e."
    ),
    configs={"five_points": "boursier2022/five_points.yaml"},
    variants=on_flow("five_points", "boursier2022/five_points_flow.yaml"),
    passes={
        "shuffled": {
            "*": "Other labels of the same points are fitted by the same phases at other times."
        },
        "larger": {
            "*": (
                "From a scale a hundred times as large the network leaves the saddle sooner, and"
                " goes on the same way."
            )
        },
        "smaller": {
            "*": "From a scale a hundred times as small the same phases follow one another, later."
        },
    },
)


FITTED = 1e-3
"""The loss that counts as zero, as in Figure 4."""


@dataclass(frozen=True)
class Fig5Evidence:
    """The run from a large initialisation.

    `interpolator` is the function that it gives, of inputs (k,) without the constant; `small` is
    the loss of Figure 4, `small_last` its last state.
    """

    x: kit.Floats
    y: kit.Floats
    first: LineState
    last: LineState
    curve: LossCurve
    small: LossCurve
    small_last: LineState
    interpolator: Callable[[kit.Floats], kit.Floats]


def evidence_fig5(runs: kit.Runs) -> Fig5Evidence:
    """Read the first and the last state, and solve the kernel regression from the first."""
    run = runs["large"]
    x = run.dataset().x
    y = run.dataset().y
    first = line_state(run, 0)
    last = line_state(run, run.iterations)
    kernel = ntk_interpolator(x, y, first.W, first.a)
    return Fig5Evidence(
        x,
        y,
        first,
        last,
        curve=loss_curve(run),
        small=loss_curve(runs["small"]),
        small_last=line_state(runs["small"], runs["small"].iterations),
        interpolator=lambda inputs: kernel(np.column_stack([inputs, np.ones_like(inputs)])),
    )


def kernel_errors(e: Fig5Evidence) -> tuple[float, float]:
    """Return the distance of the final function from the interpolator, over its size and over its
    change.

    Root mean squares between the outermost inputs; the change is from the first function to the
    last.
    """
    grid = np.linspace(float(e.x[:, 0].min()), float(e.x[:, 0].max()), 2001)
    end = e.last.function(grid)
    parts = (end - e.interpolator(grid), end, end - e.first.function(grid))
    error, size, change = (float(np.sqrt(np.mean(values**2))) for values in parts)
    return error / size, error / change if change > 0 else NAN


def claims_fig5(e: Fig5Evidence) -> list[kit.Claim]:
    first = e.first
    last = e.last
    curve = e.curve
    within = (float(e.x[:, 0].min()), float(e.x[:, 0].max()))
    at_start, at_end, of_small = (
        len(distinct_kinks(state.W, within=within)) for state in (first, last, e.small_last)
    )
    of_size, of_change = kernel_errors(e)
    fitted, fitted_small = (losses.first_below(FITTED) for losses in (curve, e.small))
    done = np.isfinite(fitted)  # before that, nothing can be said of the end of training
    least_small = (
        fitted_small if np.isfinite(fitted_small) else float(e.small.iterations[-1])
    )  # it took longer
    return [
        kit.claim(
            "lazy",
            "Neurons do not move significantly (median relative movement of hidden weights)",
            "Appendix A.1, Figure 5",
            kit.at_most(NEARLY),
            kit.given(done, np.median(kit.norms(last.W - first.W) / first.norms)),
        ),
        kit.claim(
            "kinks",
            "The final function is not as simple as for small initialisation: it has more kinks"
            f" between the inputs than that of Figure 4 ({of_small}; before training: {at_start})",
            "Appendix A.1, Figure 5(b)",
            kit.more_than(of_small),
            kit.given(done, at_end),
        ),
        kit.claim(
            "loss",
            "The loss converges to 0 within 5000 iterations (orders of magnitude fallen)",
            "Appendix A.1, Figure 5(b)",
            kit.at_least(4),
            np.log10(curve.start / curve.losses.min()),
        ),
        kit.claim(
            "no-saddle",
            "The trajectory does not go through saddle points (plateaus of the loss)",
            "Appendix A.1",
            kit.exactly(0),
            kit.given(done, len(kit.find_plateaus(curve.iterations, curve.losses, floor=1e-4))),
        ),
        kit.claim(
            "faster",
            "The loss converges much faster than from a small initialisation (first iteration below"
            " 1e-3, over Figure 4's)",
            "Appendix A.1",
            kit.at_most(0.1),
            fitted / least_small,
        ),
        kernel_claim(of_size if done else NAN, of_change),
    ]


def kernel_claim(of_size: float, of_change: float) -> kit.Claim:
    """Return the comparison with the kernel's interpolator; undecided where the two yardsticks
    give two verdicts.
    """
    made = kit.claim(
        "kernel",
        "The final function is approximately the interpolator of the tangent kernel at"
        " initialisation (root mean square distance between the inputs, over the final function's"
        " size)",
        "Appendix A.1",
        kit.at_most(NEARLY),
        of_size,
    )
    if (of_size <= NEARLY) == (of_change <= NEARLY) or not np.isfinite(of_size):
        return made
    return kit.undecided(
        made,
        f"The paper names no yardstick: the distance is {of_size:.3f} of the final function's size,"
        f" and {of_change:.3f} of what training changed, which is larger.",
    )


def numbers_fig5(e: Fig5Evidence) -> dict[str, float]:
    """Return the distance from the kernel's interpolator on either yardstick."""
    of_size, of_change = kernel_errors(e)
    return {
        "distance from the kernel's interpolator, over the size of the final function": of_size,
        "the same over the size of what training changed": of_change,
    }


def draw_fig5(e: Fig5Evidence) -> kit.Drawing:
    titles = ["Initialisation", "End of training"]
    states = [e.first, e.last]
    return draw_states(
        states, titles, e.x[:, 0], e.y, overlay=e.interpolator, overlay_label="NTK interpolator"
    )


FIGURE_5 = kit.Figure(
    id="boursier2022-fig5",
    caption=(
        "As Figure 4, with initialisation scale 10: between the first and the last state the"
        " neurons hardly move. Dashed: the interpolator of the tangent kernel at initialisation."
    ),
    configs={
        "large": "boursier2022/five_points_large.yaml",
        "small": "boursier2022/five_points.yaml",
    },
    passes={"shuffled": {"*": "Other labels of the same points are fitted as lazily."}},
)


FIGURES = kit.by_id(FIGURE_4, FIGURE_5)

"""Figure 4: five points that are not orthogonal, small initialisation: five states and the loss profile."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from dynamics_cli import kit
from dynamics_cli.theory.sphere_flow import sphere_flow

from .panels import draw_profile, draw_states
from .states import LOSS_FACTOR, ORIGIN, LineState, LossCurve, line_state, loss_curve, on_flow, turns
from .theory.growth import one_sign_saddle_loss

ITERATIONS = (0, 15000, 94000, 150000, 300000)
"""Of panels a to e."""
VISIBLE = 0.05
"""Neurons of at least this share of the largest norm can be seen in the figure."""
ALIGNED = 5.0
"""Angle in degrees up to which a neuron counts as aligned."""
GROUP_ANGLE = 30.0
"""Neurons linked by steps of at most this angle (degrees) are one group of the figure."""
NARROW_ANGLE = 10.0
"""A stricter choice, reported as a finding."""
TURN = 1.0
"""A turn of one degree counts; for orthogonal data neurons that have grown turn by less than 1e-6 degrees."""


@dataclass(frozen=True)
class Evidence:
    """Five states, the loss, and the directions to which alignment leads."""

    x: kit.Floats
    """(n, 2) inputs with the constant."""
    y: kit.Floats
    states: list[LineState]
    """At `ITERATIONS`: start, end of alignment, saddle, growth, end."""
    limits: kit.Floats
    """(m, 2) limits of the directions of the neurons in Eq. 10."""
    curve: LossCurve
    plateau: kit.Plateau
    """Around iteration 94 000, within 1 % of the loss there."""
    saddle_loss: float
    """The least loss of a network of positive output weights alone: none with a negative one has grown by then."""

    @property
    def flipped(self) -> int:
        """Output weights that changed their sign by the saddle."""
        return int(np.sum(self.states[2].signs != self.states[0].signs))

    @property
    def negative(self) -> int:
        """Neurons with a negative output weight that are active on some point at the saddle."""
        saddle = self.states[2]
        return int(np.sum((saddle.a < 0) & (self.x @ saddle.W.T > 0).any(axis=0)))


def evidence(runs: kit.Runs) -> Evidence:
    """Read the states and the loss of the five-point run, and follow its neurons along Eq. 10."""
    run = runs["five_points"]
    x, y = run.dataset().x, run.dataset().y
    states, curve = [line_state(run, iteration) for iteration in ITERATIONS], loss_curve(run)
    start, saddle = states[0], states[2].iteration
    limits = sphere_flow(x, y, start.W, start.a, [np.inf], loss_factor=LOSS_FACTOR).directions[0]
    return Evidence(
        x, y, states, limits, curve, plateau=curve.plateau(saddle, 0.01 * curve.at(saddle)),
        saddle_loss=one_sign_saddle_loss(x, y, 1, loss_factor=LOSS_FACTOR),
    )  # fmt: skip


def groups(state: LineState, angle: float = GROUP_ANGLE) -> kit.Clusters:
    """Return the groups of visible neurons."""
    return kit.cluster_directions(state.W, signs=state.a, relative_norm=VISIBLE, angle_tolerance=angle)


def claims(e: Evidence) -> list[kit.Claim]:
    """Compare the states and the loss with Appendix A.1."""
    return [*_up_to_the_saddle(e), *_after_the_saddle(e), *_findings(e)]


def _up_to_the_saddle(e: Evidence) -> list[kit.Claim]:
    """Alignment, the growth of two groups, the intermediate saddle."""
    _, early, saddle, _, _ = e.states
    visible = kit.significant(early.W, VISIBLE)
    to_limit = np.degrees(np.arccos(kit.cosines(early.W[visible], e.limits[visible])))
    turned = turns(early, saddle)[kit.significant(saddle.W, VISIBLE)]
    return [
        kit.claim("alignment", "Early alignment by iteration 15000 "
                  "(share of visible neurons within 5 degrees of their limit in Eq. 10)",
                  "Appendix A.1, Figure 4(b), Eq. 10", kit.more_than(0.5), float(np.mean(to_limit <= ALIGNED))),
        kit.claim("alignment-loss", "while norms are still negligible (loss over loss at the start)",
                  "Appendix A.1, Figure 4(b), (f)", kit.more_than(0.999), e.curve.at(15000) / e.curve.start),
        kit.claim("two-groups", "Two groups of neurons grow until the intermediate saddle (orthogonal data: one)",
                  "Appendix A.1, Figure 4(c)", kit.exactly(2), groups(saddle).count),
        kit.claim("turn-before",
                  "They do not keep a fixed direction meanwhile (least turn of a visible neuron, degrees)",
                  "Appendix A.1", kit.at_least(TURN), turned.min()),
        kit.claim("saddle-loss", "The loss at 94000 is that of an intermediate saddle, where no negative neuron has "
                  "grown (loss; the least one with positive output weights)",
                  "Figure 4(c), (f)", kit.near(e.saddle_loss, 1e-4), e.curve.at(94000)),
        kit.claim("saddle-flat", "The loss is flat there: -dL/dt, the squared gradient, is small "
                  "(share by which the loss falls around 94000, within 10 %)",
                  "Figure 4(f)", kit.at_most(0.01), 1 - e.curve.at(94000 * 1.1) / e.curve.at(94000 * 0.9)),
    ]  # fmt: skip


def _after_the_saddle(e: Evidence) -> list[kit.Claim]:
    """Growth with realignment, and the final state."""
    _, _, saddle, leaving, end = e.states
    inputs = e.x[:, 0]
    kinks = kit.distinct_kinks(end.W, within=(float(inputs.min()), float(inputs.max())))
    grew = kit.significant(leaving.W, VISIBLE) & (leaving.norms > saddle.norms)
    return [
        kit.claim("left", "At 150000 the saddle is being left (loss over that of the saddle)",
                  "Appendix A.1, Figure 4(d), (f)", kit.less_than(0.99), e.curve.at(150000) / e.curve.at(94000)),
        kit.claim("growth", "while norms still grow (sum of squares over that at the saddle)",
                  "Appendix A.1, Figure 4(d)",
                  kit.more_than(1.01), np.sum(leaving.norms**2) / np.sum(saddle.norms**2)),
        kit.claim("turn-after", "and neurons that grow change their direction (largest turn since 94000, degrees)",
                  "Appendix A.1, Figure 4(d)", kit.at_least(TURN), turns(saddle, leaving)[grew].max(initial=0.0)),
        kit.claim("zero-loss", "In the final state the training loss is zero",
                  "Appendix A.1, Figure 4(e)", kit.less_than(1e-3), e.curve.at(300000)),
        kit.claim("sparse",
                  "The final function is sparse in its number of kinks (between the inputs; joining the dots takes 3)",
                  "Appendix A.1, Figure 4(e)", kit.at_most(len(inputs) - 2), len(kinks)),
    ]  # fmt: skip


def _findings(e: Evidence) -> list[kit.Claim]:
    """What it does not say."""
    _, early, saddle, _, end = e.states
    at_saddle = groups(saddle)
    angles, final = (kit.angle_of(one.directions).tolist()[:2] for one in (at_saddle, groups(end)))
    return [
        kit.finding("narrow-groups",
                    "Groups at the saddle when 10 instead of 30 degrees link neurons: the right-facing ones are two",
                    "Figure 4(c)", groups(saddle, NARROW_ANGLE).count),
        kit.finding("directions", "Directions to which early alignment leads",
                    "Figure 4(b)", groups(early, ALIGNED).count),
        *[kit.finding(f"group-{k + 1}", f"Angle of group {k + 1} at the saddle, degrees ({size} neurons)",
                      "Figure 4(c)", angle)
          for k, (angle, size) in enumerate(zip(angles, at_saddle.sizes.tolist(), strict=False))],
        *[kit.finding(f"final-group-{k + 1}", f"Angle of group {k + 1} at the end, degrees", "Figure 4(e)", angle)
          for k, angle in enumerate(final)],
        kit.finding("plateau", "Iterations around 94000 with a loss within 1 %", "Figure 4(f)", e.plateau.length),
        kit.finding("all-kinks", "Kinks on the whole line at the end", "Figure 4(e)", len(kit.distinct_kinks(end.W))),
        kit.finding("loss-150000", "Loss at 150000", "Figure 4(d), (f)", e.curve.at(150000)),
        kit.finding("loss-300000", "Loss at 300000", "Figure 4(e), (f)", e.curve.at(300000)),
        kit.finding("escape", "Iteration at which the saddle is left (loss down by 1 %)",
                    "Figure 4(f)", e.curve.escape(e.curve.at(saddle.iteration))),
        kit.finding("flipped",
                    "Output weights that changed sign by iteration 94000; gradient flow keeps signs (the step decides)",
                    "Lemma 1", e.flipped),
        kit.finding("negative", "Active neurons with s = -1 at the saddle: without one it is never left",
                    "Figure 4(d)", e.negative),
    ]  # fmt: skip


def remarks(e: Evidence) -> list[str]:
    """Say when the run never leaves the saddle, and why."""
    if e.negative:
        return []
    return [
        f"no active neuron with s = -1 is left at iteration {e.states[2].iteration}, so the saddle is never left: "
        f"{e.flipped} output weights changed sign, which gradient flow forbids (Lemma 1); a smaller step keeps them"
    ]


def draw(e: Evidence) -> kit.Drawing:
    """Draw panels a to e on common axes and the loss as panel f."""
    titles = ["Initialisation", "End of early alignment", "Intermediate saddle", "Growth, realignment", "Final state"]

    def loss_panel(axes: kit.Axes) -> None:
        draw_profile(axes, 5, e.curve, e.plateau)
        for letter, state in zip("bcde", e.states[1:], strict=True):
            at = (kit.value_at(e.curve.iterations, e.curve.iterations, state.iteration), e.curve.at(state.iteration))
            axes.plot(*at, "o", color=kit.PALETTE.theory, ms=3, zorder=4)
            place: dict[str, Any] = {"xytext": (0, 5 if letter == "e" else -10), "textcoords": "offset points"}
            axes.annotate(letter, at, ha="center", fontsize=kit.SMALL, color=kit.PALETTE.theory, **place)

    return draw_states(e.states, titles, e.x[:, 0], e.y, extra=loss_panel)


FIGURE = kit.Figure(
    id="boursier2022-fig4",
    caption=(
        "As Figure 2, for five points that are not orthogonal: two groups of neurons grow until an intermediate "
        "saddle, and groups turn while they grow. Panel f: training loss, with the iterations of panels b to e."
    ),
    configs={"five_points": "boursier2022/five_points.yaml"},
    variants=on_flow("five_points", "boursier2022/five_points_flow.yaml"), origin={**ORIGIN, "data": "released"},
    evidence=evidence, claims=claims, draw=draw, remarks=remarks,
)  # fmt: skip

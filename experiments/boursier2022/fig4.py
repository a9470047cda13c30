"""Figure 4: five points that are not orthogonal, small initialisation: five states and the loss profile.

`dyn reproduce boursier2022-fig4`. About 2 s.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Drawing

from dynamics_cli.measures.neurons import angle_of
from dynamics_cli.plotting.layout import panel_label
from dynamics_cli.plotting.panels.loss import Plateau as DrawnPlateau
from dynamics_cli.plotting.panels.loss import draw_loss
from dynamics_cli.plotting.style import PALETTE, SMALL
from dynamics_cli.reproduction.claims import (
    Claim,
    at_least,
    at_most,
    claim,
    exactly,
    finding,
    less_than,
    more_than,
    near,
)
from dynamics_cli.reproduction.figure import Figure

from .fig4_evidence import TURN, Evidence, evidence
from .five_points import ORIGIN, VARIANTS
from .line_panels import draw_states
from .states import time_label


def claims(found: Evidence) -> list[Claim]:
    """Compare the states and the loss with Appendix A.1."""
    return [*_up_to_the_saddle(found), *_after_the_saddle(found), *_findings(found)]


def _up_to_the_saddle(found: Evidence) -> list[Claim]:
    """Alignment, the growth of two groups, the intermediate saddle."""
    at = {int(i): float(found.losses[np.argmin(np.abs(found.iterations - i))]) for i in (15000, 94000, 150000, 300000)}
    start = float(found.losses[0])
    return [
        claim(
            "alignment",
            "Early alignment by iteration 15000 (share of visible neurons within 5 degrees of their limit in Eq. 10)",
            "Appendix A.1, Figure 4(b), Eq. 10",
            expected=more_than(0.5),
            measured=found.aligned,
        ),
        claim(
            "alignment-loss",
            "while norms are still negligible (loss over loss at the start)",
            "Appendix A.1, Figure 4(b), (f)",
            expected=more_than(0.999),
            measured=at[15000] / start,
        ),
        claim(
            "two-groups",
            "Two groups of neurons grow until the intermediate saddle (orthogonal data: one)",
            "Appendix A.1, Figure 4(c)",
            expected=exactly(2),
            measured=found.groups.count,
        ),
        claim(
            "turn-before",
            "They do not keep a fixed direction meanwhile (least turn of a visible neuron, degrees)",
            "Appendix A.1",
            expected=at_least(TURN),
            measured=found.turn_before,
        ),
        claim(
            "saddle-loss",
            "The loss at the intermediate saddle, iteration 94000",
            "Figure 4(c), (f); independent run of the released loop",
            expected=near(0.0636, 1e-4),
            measured=at[94000],
        ),
        claim(
            "saddle-flat",
            "It is flat from 80000 to 120000 (iterations of these 40000 with a loss within 1 %)",
            "Figure 4(f); independent run of the released loop",
            expected=at_least(40000),
            measured=min(found.plateau.last, 120000) - max(found.plateau.first, 80000),
        ),
    ]


def _after_the_saddle(found: Evidence) -> list[Claim]:
    """Growth with realignment, and the final state."""
    at = {int(i): float(found.losses[np.argmin(np.abs(found.iterations - i))]) for i in (15000, 94000, 150000, 300000)}
    return [
        claim(
            "left",
            "At 150000 the saddle is being left (loss over that of the saddle)",
            "Appendix A.1, Figure 4(d), (f)",
            expected=less_than(0.99),
            measured=at[150000] / at[94000],
        ),
        claim(
            "growth",
            "while norms still grow (sum of squares over that at the saddle)",
            "Appendix A.1, Figure 4(d)",
            expected=more_than(1.01),
            measured=found.growth,
        ),
        claim(
            "turn-after",
            "and neurons that grow change their direction (largest turn since 94000, degrees)",
            "Appendix A.1, Figure 4(d)",
            expected=at_least(TURN),
            measured=found.turn_after,
        ),
        claim(
            "zero-loss",
            "In the final state the training loss is zero",
            "Appendix A.1, Figure 4(e)",
            expected=less_than(1e-3),
            measured=at[300000],
        ),
        claim(
            "sparse",
            "The final function is sparse in its number of kinks (between the inputs; joining the dots takes 3)",
            "Appendix A.1, Figure 4(e)",
            expected=at_most(len(found.x) - 2),
            measured=len(found.kinks),
        ),
    ]


def _findings(found: Evidence) -> list[Claim]:
    """What it does not say."""
    at = {int(i): float(found.losses[np.argmin(np.abs(found.iterations - i))]) for i in (15000, 94000, 150000, 300000)}
    return [
        finding(
            "narrow-groups",
            "Groups at the saddle when 10 instead of 30 degrees link neurons: the right-facing ones are two",
            "Figure 4(c)",
            measured=found.narrow_groups,
        ),
        finding("directions", "Directions to which early alignment leads", "Figure 4(b)", measured=found.early_groups),
        *[
            finding(
                f"group-{k + 1}",
                f"Angle of group {k + 1} at the saddle, degrees ({size} neurons)",
                "Figure 4(c)",
                measured=angle,
            )
            for k, (angle, size) in enumerate(
                zip(angle_of(found.groups.directions).tolist()[:2], found.groups.sizes.tolist(), strict=False)
            )
        ],
        *[
            finding(
                f"final-group-{k + 1}", f"Angle of group {k + 1} at the end, degrees", "Figure 4(e)", measured=angle
            )
            for k, angle in enumerate(found.final_angles)
        ],
        finding("all-kinks", "Kinks on the whole line at the end", "Figure 4(e)", measured=found.all_kinks),
        finding("loss-150000", "Loss at 150000", "Figure 4(d), (f)", measured=at[150000]),
        finding("loss-300000", "Loss at 300000", "Figure 4(e), (f)", measured=at[300000]),
        finding(
            "escape", "Iteration at which the saddle is left (loss down by 1 %)", "Figure 4(f)", measured=found.escape
        ),
        finding(
            "flipped",
            "Output weights that changed sign by iteration 94000; gradient flow keeps signs (the step decides)",
            "Lemma 1",
            measured=found.flipped,
        ),
        finding(
            "negative",
            "Active neurons with s = -1 at the saddle: without one it is never left",
            "Figure 4(d)",
            measured=found.negative,
        ),
    ]


def remarks(found: Evidence) -> list[str]:
    """Say when the run never leaves the saddle, and why."""
    if found.negative:
        return []
    return [
        f"no active neuron with s = -1 is left at iteration {found.states[2].iteration}, so the saddle is never left: "
        f"{found.flipped} output weights changed sign, which gradient flow forbids (Lemma 1); a smaller step keeps them"
    ]


def draw(found: Evidence) -> Drawing:
    """Draw panels a to e on common axes and the loss as panel f."""
    titles = ["Initialisation", "End of early alignment", "Intermediate saddle", "Growth, realignment", "Final state"]

    def loss_panel(axes: Axes) -> None:
        plateau = DrawnPlateau(found.plateau.value, found.plateau.first, found.plateau.last)
        draw_loss(
            axes, found.iterations, found.losses, scale="linear", plateaus=[plateau], xlabel=time_label(found.flow)
        )
        for letter, state in zip("bcde", found.states[1:], strict=True):
            k = np.argmin(np.abs(found.iterations - state.iteration))
            at = (float(found.iterations[k]), float(found.losses[k]))
            axes.plot(*at, "o", color=PALETTE.theory, ms=3, zorder=4)
            place: dict[str, Any] = {"xytext": (0, 5 if letter == "e" else -10), "textcoords": "offset points"}
            axes.annotate(letter, at, ha="center", fontsize=SMALL, color=PALETTE.theory, **place)
        panel_label(axes, 5, "Loss profile")

    return draw_states(found.states, titles, found.x, found.y, extra=loss_panel)


FIGURE = Figure(
    id="boursier2022-fig4",
    caption=(
        "As Figure 2, for five points that are not orthogonal: two groups of neurons grow until an intermediate "
        "saddle, and groups turn while they grow. Panel f: training loss, with the iterations of panels b to e."
    ),
    configs={"five_points": "boursier2022/five_points.yaml"},
    variants=VARIANTS,
    origin=ORIGIN,
    evidence=evidence,
    claims=claims,
    draw=draw,
    remarks=remarks,
)

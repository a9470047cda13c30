"""Figure 3: the training loss on two orthogonal points, from saddle to saddle, beside what Section 4.2 predicts.

`dyn reproduce boursier2022-fig3`. About 2 s.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from matplotlib.figure import Figure as Drawing
from numpy.typing import NDArray

from dynamics_cli.measures.arrays import Floats
from dynamics_cli.measures.curves import Plateau, escape_iteration, first_below, plateau_at
from dynamics_cli.plotting.decimate import decimate
from dynamics_cli.plotting.layout import figure_legend
from dynamics_cli.plotting.panels.loss import draw_loss
from dynamics_cli.plotting.style import PALETTE, SMALL, new_figure
from dynamics_cli.reproduction.claims import Claim, around, at_most, claim, finding, less_than, near
from dynamics_cli.reproduction.figure import Figure, Runs

from .orthogonal import (
    CONFIG,
    ORIGIN,
    VARIANTS,
    Prediction,
    Setting,
    assumption_claim,
    predict,
    read_setting,
    violations,
)
from .states import LOSS_FACTOR, is_flow, loss_curve, time_label, time_text
from .theory.growth import intermediate_saddle

DROP = 0.01
"""A saddle is left when the loss has fallen by this share for good: the width of the line in the figure."""


@dataclass(frozen=True)
class Evidence:
    """The loss curve, its saddles, and the predicted curve."""

    setting: Setting
    iterations: NDArray[np.int64]
    losses: Floats
    flow: bool
    """Whether the run is gradient flow itself."""
    prediction: Prediction | None
    saddle_loss: float
    """Loss of the intermediate saddle according to Fact 1; NaN where the theory does not apply."""
    first_left: float
    """Iteration at which the saddle at 0 is left; NaN if never."""
    saddle: Plateau | None
    """Stretch around iteration 8 000 on which the loss stays within 5e-4."""
    second_left: float
    """Iteration at which the intermediate saddle is left; NaN if never."""
    first_left_5: float
    """The same with a fall of 5 %: the paper does not say when a saddle is left."""
    deviation: float
    """Largest |predicted - measured loss| over the loss at the start."""


def evidence(runs: Runs) -> Evidence:
    """Measure the saddles of the orthogonal run's loss, and predict the curve."""
    run = runs["orthogonal"]
    setting = read_setting(run)
    iterations, losses = loss_curve(run)
    usable = setting.usable
    level = intermediate_saddle(setting.x, setting.y, loss_factor=LOSS_FACTOR).loss if usable else float("nan")
    prediction = predict(setting, iterations)
    deviation = float("nan") if prediction is None else float(np.abs(prediction.loss - losses).max() / losses[0])
    return Evidence(
        setting=setting,
        iterations=iterations,
        losses=losses,
        flow=is_flow(run),
        prediction=prediction,
        saddle_loss=level,
        first_left=_number(escape_iteration(iterations, losses, float(losses[0]), drop=DROP)),
        saddle=plateau_at(iterations, losses, 8000, tolerance=5e-4) if iterations[-1] >= 8000 else None,
        second_left=_number(escape_iteration(iterations, losses, level, drop=DROP)) if usable else float("nan"),
        first_left_5=_number(escape_iteration(iterations, losses, float(losses[0]), drop=0.05)),
        deviation=deviation,
    )


def claims(found: Evidence) -> list[Claim]:
    """Compare the loss curve with Sections 4.2 and 5."""
    start = float(found.losses[0])
    value, span = (found.saddle.value, found.saddle.length) if found.saddle else (float("nan"), float("nan"))
    losses = found.losses
    half = found.prediction.half if found.prediction else (float("nan"), float("nan"))
    halfway = [
        _number(first_below(found.iterations, losses, level))
        for level in ((start + found.saddle_loss) / 2, found.saddle_loss / 2)
    ]
    return [
        assumption_claim(found.setting),
        claim(
            "first-saddle",
            "The saddle at 0 is left after 5000 iterations (loss down by 1 %)",
            "Section 5, Figure 3",
            expected=around(5000),
            measured=found.first_left,
        ),
        claim(
            "first-flat",
            "Until 4000 the loss stays at that of the zero network (largest relative change)",
            "Section 5, Figure 3",
            expected=at_most(DROP),
            measured=float(np.abs(losses[found.iterations <= 4000] / start - 1).max()),
        ),
        claim(
            "saddle-loss",
            "Near iteration 8000 the loss is that of the intermediate saddle",
            "Fact 1, Figure 3",
            expected=near(found.saddle_loss, 5e-4),
            measured=value,
        ),
        claim(
            "second-saddle",
            "The second saddle is only left around iteration 11000 (loss down by 1 %)",
            "Section 5, Figure 3",
            expected=around(11000),
            measured=found.second_left,
        ),
        claim(
            "zero-loss",
            "At the end of training the loss is 0 (final loss over initial loss)",
            "Theorem 1, Section 5, Figure 3",
            expected=less_than(1e-6),
            measured=float(losses[-1]) / start,
        ),
        claim(
            "predicted-curve",
            "Two logistic growths give the loss curve (largest deviation over initial loss)",
            "Section 4.2, equation for u+",
            expected=at_most(0.01),
            measured=found.deviation,
        ),
        finding(
            "first-saddle-5",
            "The same when a saddle is left at a fall of 5 %: the time depends on that choice",
            "Figure 3",
            measured=found.first_left_5,
        ),
        finding("saddle-length", "Iterations within 5e-4 of the plateau at 8000", "Figure 3", measured=span),
        *[
            finding(
                f"half-{name}",
                f"Iteration of half the {name} fall of the loss; predicted: {'-' if np.isnan(t) else format(t, '.0f')}",
                "Section 4.2",
                measured=at,
            )
            for name, at, t in zip(("first", "second"), halfway, _half_loss_times(found, half), strict=True)
        ],
    ]


def _half_loss_times(found: Evidence, half: tuple[float, float]) -> tuple[float, float]:
    """Return when the predicted curve has fallen half the way to, and from, the intermediate saddle."""
    if found.prediction is None:
        return half
    start = float(found.losses[0])
    levels = ((start + found.saddle_loss) / 2, found.saddle_loss / 2)
    first, second = (_number(first_below(found.iterations, found.prediction.loss, level)) for level in levels)
    return first, second


def draw(found: Evidence) -> Drawing:
    """Draw measured and predicted loss, with the iterations at which the saddles are left."""
    figure, (axes,) = new_figure(extra_height=0.25)
    panel = draw_loss(
        axes, found.iterations, found.losses, scale="linear", label="measured", xlabel=time_label(found.flow)
    )
    handles = [panel.line]
    if found.prediction is not None:
        x, y = decimate(found.iterations, found.prediction.loss)
        handles += axes.plot(x, y, color=PALETTE.theory, lw=1.1, ls=(0, (4, 2)), label="predicted (Section 4.2)")
    axes.set_ylim(-0.03 * float(found.losses[0]), 1.12 * float(found.losses[0]))
    for at, level, name in (
        (found.first_left, float(found.losses[0]), "first saddle left"),
        (found.second_left, found.saddle_loss, "second saddle left"),
    ):
        if np.isfinite(at):
            axes.plot([at], [level * (1 - DROP)], "v", color=PALETTE.negative, ms=5, mec="white", mew=0.4, zorder=4)
            axes.annotate(
                f"{name}\n{time_text(at, found.flow)}",
                (at, level * (1 - DROP)),
                xytext=(6, 1),
                textcoords="offset points",
                fontsize=SMALL,
                color=PALETTE.theory,
            )
    figure_legend(figure, handles)
    return figure


def _number(iteration: int | None) -> float:
    return float("nan") if iteration is None else float(iteration)


FIGURE = Figure(
    id="boursier2022-fig3",
    caption=(
        "Training loss (mean squared error) over iterations: the saddle at 0, the intermediate saddle, convergence. "
        "Dashed: the two logistic growths of Section 4.2, started from the initial weights."
    ),
    configs={"orthogonal": CONFIG},
    variants=VARIANTS,
    origin=ORIGIN,
    evidence=evidence,
    claims=claims,
    draw=draw,
    remarks=lambda found: violations(found.setting),
)

"""Figure 7: loss profile, and explained variance of the principal components of the final hidden weights.

`dyn reproduce boursier2022-fig7`. About 8 s, nearly all of them training; the run is that of Figure 6.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from matplotlib.figure import Figure as Drawing
from numpy.typing import NDArray

from dynamics_cli.measures.arrays import Floats
from dynamics_cli.measures.curves import Plateau, escape_iteration, plateau_at
from dynamics_cli.measures.spectra import explained_variance, stable_rank
from dynamics_cli.plotting.layout import panel_label
from dynamics_cli.plotting.panels.explained_variance import draw_explained_variance
from dynamics_cli.plotting.panels.loss import Plateau as DrawnPlateau
from dynamics_cli.plotting.panels.loss import draw_loss
from dynamics_cli.plotting.style import new_figure
from dynamics_cli.reproduction.claims import Claim, around, claim, finding, less_than
from dynamics_cli.reproduction.figure import Figure, Runs
from dynamics_cli.runs import Run

from .high_dim import CONFIGS, ORIGIN, SEED_CONFIGS, VARIANTS
from .states import LOSS_FACTOR, horizon, initial_scale, is_flow, learning_rate, loss_curve, state_at, time_label
from .theory.phases import leading_time

WINDOW = 4000
"""Iterations over which the relative fall of the loss is measured."""
FLAT = 0.1
"""Of all that falls between the two drops, a saddle is where the loss falls by less than this share over `WINDOW`."""


@dataclass(frozen=True)
class Evidence:
    """The loss curve, its saddle, and the spectrum of the final hidden weights."""

    iterations: NDArray[np.int64]
    losses: Floats
    flow: bool
    """Whether the run is gradient flow itself."""
    saddle: float
    """Iteration between the two drops at which the loss is flattest; NaN if there is none."""
    fall: float
    """Relative fall of the loss over the 4000 iterations around it."""
    plateau: Plateau | None
    """Around it, within 5 % of the loss there."""
    ratios: Floats
    """Explained variance ratios of the uncentred SVD."""
    stable_rank: float
    first_left: float
    """Iteration at which the saddle at 0 is left (loss down by 1 %); NaN if never."""
    leading: tuple[float, float]
    """`-ln(lambda) / ||D_+||` and `.. / ||D_-||`, in iterations."""
    late_fall: float
    """Relative fall of the loss over the last tenth of training."""


def evidence(runs: Runs) -> Evidence:
    """Measure loss and final spectrum of the high-dimensional run."""
    run = runs["high_dim"]
    iterations, losses = loss_curve(run)
    W = state_at(run, horizon(run)).W
    saddle, fall = flattest(iterations, losses)
    found = np.isfinite(saddle)
    level = float(losses[np.argmin(np.abs(iterations - saddle))]) if found else float("nan")
    left = escape_iteration(iterations, losses, float(losses[0]), drop=0.01)
    late = int(0.9 * (len(losses) - 1))
    return Evidence(
        iterations=iterations,
        losses=losses,
        flow=is_flow(run),
        saddle=saddle,
        fall=fall,
        plateau=plateau_at(iterations, losses, int(saddle), tolerance=0.05 * level) if found else None,
        ratios=explained_variance(W),
        stable_rank=float(stable_rank(W)),
        first_left=float("nan") if left is None else float(left),
        leading=_leading(run),
        late_fall=float(1 - losses[-1] / losses[late]),
    )


def _leading(run: Run) -> tuple[float, float]:
    dataset, scale, lr = run.dataset(), initial_scale(run), learning_rate(run)
    plus, minus = (leading_time(dataset.x, dataset.y, scale, s, loss_factor=LOSS_FACTOR) / lr for s in (1, -1))
    return plus, minus


def flattest(iterations: NDArray[np.int64], losses: Floats) -> tuple[float, float]:
    """Return where, between 80 % and 5 % of the first loss, the loss falls least over `WINDOW`, and by which share.

    NaN for both when the loss never gets there or passes in less than `WINDOW`.
    """
    step = max(1, WINDOW // 2 // max(1, int(iterations[1] - iterations[0]))) if len(iterations) > 1 else 1
    between = np.flatnonzero((losses < 0.8 * losses[0]) & (losses > 0.05 * losses[0]))
    between = between[(between >= step) & (between < len(losses) - step)]
    if between.size == 0:
        return float("nan"), float("nan")
    falls = 1 - losses[between + step] / losses[between - step]
    best = int(np.argmin(falls))
    return float(iterations[between[best]]), float(falls[best])


def claims(found: Evidence) -> list[Claim]:
    """Compare loss and spectrum with Appendix A.2."""
    two = float(found.ratios[:2].sum())
    level = found.plateau.value if found.plateau else float("nan")
    at = {i: float(found.losses[np.argmin(np.abs(found.iterations - i))]) for i in (90000, 200000)}
    return [
        claim(
            "saddle",
            "The dynamics goes through an intermediate saddle (share by which the loss falls in 4000 iterations there)",
            "Appendix A.2, Figure 7(a)",
            expected=less_than(FLAT),
            measured=found.fall,
        ),
        claim(
            "saddle-time",
            "around iteration 75000",
            "Appendix A.2, Figure 7(a)",
            expected=around(75000),
            measured=found.saddle,
        ),
        claim(
            "zero-loss",
            "The training loss converges to 0 (final loss over initial loss; 1 % is the width of the line)",
            "Appendix A.2, Figure 7(a)",
            expected=less_than(0.01),
            measured=float(found.losses[-1] / found.losses[0]),
        ),
        claim(
            "two-components",
            "Two principal components explain 80 % of the final hidden weights",
            "Appendix A.2, Figure 7(b)",
            expected=around(0.8),
            measured=two,
        ),
        finding("rest", "The remaining components; the paper says around 20 %", "Appendix A.2", measured=1 - two),
        finding("third", "Ratio of the third component", "Figure 7(b)", measured=float(found.ratios[2])),
        finding("stable-rank", "Stable rank of the final hidden weights", "Figure 7(b)", measured=found.stable_rank),
        finding("saddle-loss", "Loss at the intermediate saddle", "Figure 7(a)", measured=level),
        finding("loss-90000", "Loss at 90000", "Figure 7(a)", measured=at[90000]),
        finding("loss-200000", "Loss at 200000", "Figure 7(a)", measured=at[200000]),
        finding(
            "late-fall",
            "Share by which the loss falls over the last tenth of training: next to none at a further saddle",
            "Figure 7(a)",
            measured=found.late_fall,
        ),
        finding(
            "first-left",
            f"Iteration at which the saddle at 0 is left; -ln(lambda)/||D+|| is {found.leading[0]:.0f}",
            "Section 4.2",
            measured=found.first_left,
        ),
    ]


def draw(found: Evidence) -> Drawing:
    """Draw the loss and the bars of explained variance."""
    figure, axes = new_figure(2, 1, aspect=0.72)
    plateaus = [DrawnPlateau(found.plateau.value, found.plateau.first, found.plateau.last)] if found.plateau else []
    draw_loss(axes[0], found.iterations, found.losses, scale="linear", plateaus=plateaus, xlabel=time_label(found.flow))
    panel_label(axes[0], 0, "Loss profile")
    draw_explained_variance(axes[1], found.ratios)
    panel_label(axes[1], 1, "Explained variance")
    return figure


FIGURE = Figure(
    id="boursier2022-fig7",
    caption=(
        "Training loss of the high-dimensional run, and explained variance ratios of the (uncentred) principal "
        "components of its final hidden weights."
    ),
    configs=CONFIGS,
    seed_configs=SEED_CONFIGS,
    variants=VARIANTS,
    origin=ORIGIN,
    evidence=evidence,
    claims=claims,
    draw=draw,
)

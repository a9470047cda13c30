"""Figure 7: loss profile, and explained variance of the final hidden weights; the run is that of Figure 6."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dynamics_cli import kit
from dynamics_cli.plotting.panels.spectrum import draw_explained_variance

from .fig6 import CONFIGS, ORIGIN, SEED_CONFIGS, VARIANTS
from .panels import draw_profile
from .states import LOSS_FACTOR, NAN, LossCurve, horizon, initial_scale, learning_rate, loss_curve, state_at
from .theory.phases import leading_time

WINDOW = 4000
"""Iterations over which the relative fall of the loss is measured."""
FLAT = 0.1
"""Of all that falls between the two drops, a saddle is where the loss falls by less than this share over `WINDOW`."""


@dataclass(frozen=True)
class Evidence:
    """The loss curve, its saddle, and the final hidden weights."""

    curve: LossCurve
    saddle: float
    """Iteration between the two drops at which the loss is flattest; NaN if there is none."""
    fall: float
    """Relative fall of the loss over the 4000 iterations around it."""
    plateau: kit.Plateau | None
    """Around it, within 5 % of the loss there."""
    W: kit.Floats
    """(m, d) final hidden weights."""
    ratios: kit.Floats
    """Explained variance ratios of their uncentred SVD."""
    leading: float
    """`-ln(lambda) / ||D_+||` in iterations."""


def evidence(runs: kit.Runs) -> Evidence:
    """Measure loss and final spectrum of the high-dimensional run."""
    run = runs["high_dim"]
    dataset, curve, W = run.dataset(), loss_curve(run), state_at(run, horizon(run)).W
    saddle, fall = flattest(curve)
    plateau = curve.plateau(saddle, 0.05 * curve.at(saddle)) if np.isfinite(saddle) else None
    lambda_, leading = initial_scale(run), NAN
    if lambda_ < 1:
        leading = leading_time(dataset.x, dataset.y, lambda_, 1, loss_factor=LOSS_FACTOR) / learning_rate(run)
    return Evidence(curve, saddle, fall, plateau, W, kit.explained_variance(W), leading)


def flattest(curve: LossCurve) -> tuple[float, float]:
    """Return where, between 80 % and 5 % of the first loss, the loss falls least over `WINDOW`, and by which share.

    NaN for both when the loss never gets there or passes in less than `WINDOW`.
    """
    iterations, losses = curve.iterations, curve.losses
    step = max(1, WINDOW // 2 // max(1, int(iterations[1] - iterations[0]))) if len(iterations) > 1 else 1
    between = np.flatnonzero((losses < 0.8 * losses[0]) & (losses > 0.05 * losses[0]))
    between = between[(between >= step) & (between < len(losses) - step)]
    if between.size == 0:
        return NAN, NAN
    falls = 1 - losses[between + step] / losses[between - step]
    best = int(np.argmin(falls))
    return float(iterations[between[best]]), float(falls[best])


def claims(e: Evidence) -> list[kit.Claim]:
    """Compare loss and spectrum with Appendix A.2."""
    curve, two = e.curve, float(e.ratios[:2].sum())
    late_fall = 1 - curve.losses[-1] / curve.losses[int(0.9 * (len(curve.losses) - 1))]
    return [
        kit.claim("saddle", "The dynamics goes through an intermediate saddle "
                  "(share by which the loss falls in 4000 iterations there)",
                  "Appendix A.2, Figure 7(a)", kit.less_than(FLAT), e.fall),
        kit.claim("saddle-time", "around iteration 75000", "Appendix A.2, Figure 7(a)", kit.around(75000), e.saddle),
        kit.claim("zero-loss",
                  "The training loss converges to 0 (final loss over initial loss; 1 % is the width of the line)",
                  "Appendix A.2, Figure 7(a)", kit.less_than(0.01), curve.losses[-1] / curve.start),
        kit.claim("two-components", "Two principal components explain 80 % of the final hidden weights",
                  "Appendix A.2, Figure 7(b)", kit.around(0.8), two),
        kit.finding("rest", "The remaining components; the paper says around 20 %", "Appendix A.2", 1 - two),
        kit.finding("centred", "The two components of the centred PCA instead; the released notebook does not centre",
                    "Figure 7(b)", kit.explained_variance(e.W - e.W.mean(axis=0))[:2].sum()),
        kit.finding("third", "Ratio of the third component", "Figure 7(b)", e.ratios[2]),
        kit.finding("stable-rank", "Stable rank of the final hidden weights",
                    "Figure 7(b)", float(kit.stable_rank(e.W))),
        kit.finding("saddle-loss", "Loss at the intermediate saddle",
                    "Figure 7(a)", e.plateau.value if e.plateau else NAN),
        kit.finding("loss-90000", "Loss at 90000", "Figure 7(a)", curve.at(90000)),
        kit.finding("loss-200000", "Loss at 200000", "Figure 7(a)", curve.at(200000)),
        kit.finding("late-fall",
                    "Share by which the loss falls over the last tenth of training: next to none at a further saddle",
                    "Figure 7(a)", late_fall),
        kit.finding("first-left", f"Iteration at which the saddle at 0 is left; -ln(lambda)/||D+|| is {e.leading:.0f}",
                    "Section 4.2", curve.escape(curve.start)),
    ]  # fmt: skip


def draw(e: Evidence) -> kit.Drawing:
    """Draw the loss and the bars of explained variance."""
    figure, axes = kit.new_figure(2, 1, aspect=0.72)
    draw_profile(axes[0], 0, e.curve, e.plateau)
    draw_explained_variance(axes[1], e.ratios)
    kit.panel_label(axes[1], 1, "Explained variance")
    return figure


FIGURE = kit.Figure(
    id="boursier2022-fig7",
    caption=(
        "Training loss of the high-dimensional run, and explained variance ratios of the (uncentred) principal "
        "components of its final hidden weights."
    ),
    configs=CONFIGS, seed_configs=SEED_CONFIGS, variants=VARIANTS, origin=ORIGIN, evidence=evidence, claims=claims,
    draw=draw,
)  # fmt: skip

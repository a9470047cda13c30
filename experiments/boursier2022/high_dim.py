"""Figures 6 and 7: a run in 150 dimensions, its neurons, its loss and the spectrum of its weights."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dynamics_cli import kit
from dynamics_cli.plotting.panels.neurons import polar_scene
from dynamics_cli.plotting.panels.spectrum import draw_explained_variance
from dynamics_cli.plotting.scene import draw_scene

from .states import (
    LOSS_FACTOR,
    NAN,
    LossCurve,
    State,
    draw_profile,
    horizon,
    initial_scale,
    learning_rate,
    loss_curve,
    on_flow,
    state_at,
)
from .states import ORIGIN as STATED
from .theory.alignment import D_minus, D_plus
from .theory.phases import leading_time

CONFIGS = {"high_dim": "boursier2022/high_dim.yaml"}
SEED_CONFIGS = {"high_dim": "boursier2022/high_dim_seeds.yaml"}
"""The authors' data with initial weights drawn by us; the first seed takes theirs from a file."""
REDRAWN = (
    "initialization.kind=balanced",
    "initialization.scale=1.0e-20",
    "initialization.divide_by=sqrt_width_times_dim",
)
VARIANTS = on_flow("high_dim", "boursier2022/high_dim_flow.yaml", REDRAWN)
ORIGIN: dict[str, kit.Origin] = {**STATED, "data": "released", "initialisation": "released", "seed": "released"}

ITERATIONS = (0, 40000, 80000, 200000)
"""Of panels a to d."""
GROWN = 90000
"""When the second cluster has grown and the loss is near 0; not in the paper."""
SAME = 10.0
"""Angle in degrees within which directions are the same to the eye."""


@dataclass(frozen=True)
class Neurons:
    """Four states seen in the plane."""

    states: list[State]
    """At `ITERATIONS`: start, end of alignment, growth of the first cluster, end."""
    grown: State
    """At `GROWN`."""
    curve: LossCurve
    basis: kit.Floats
    """(2, d) the two leading principal components of the final hidden weights."""
    D_plus: kit.Floats
    D_minus: kit.Floats

    def seen(self, state: State) -> kit.Floats:
        """Return the neurons of a state in the plane of the figure (m, 2)."""
        return kit.project(state.W, self.basis)


def neurons(runs: kit.Runs) -> Neurons:
    """Read the states of the high-dimensional run."""
    run = runs["high_dim"]
    x, y = run.dataset().x, run.dataset().y
    states = [state_at(run, iteration) for iteration in ITERATIONS]
    basis = kit.leading_directions(states[-1].W)
    return Neurons(states, state_at(run, GROWN), loss_curve(run), basis, D_plus(x, y), D_minus(x, y))


def turn(before: kit.Floats, after: kit.Floats, members: kit.Bools) -> float:
    """Return the angle in degrees between the norm-weighted mean directions of `members` (m,) before and after."""
    mean = [weights[members].sum(axis=0, keepdims=True) / np.abs(weights[members]).max() for weights in (before, after)]
    return float(np.degrees(np.arccos(kit.cosines(mean[0], mean[1])[0])))


def directions(W: kit.Floats, state: State, relative_norm: float = 0.0) -> int:
    """Return the number of groups of directions among neurons of weights W (m, d or 2)."""
    return kit.cluster_directions(W, signs=state.a, angle_tolerance=SAME, relative_norm=relative_norm).count


def claims_of_6(e: Neurons) -> list[kit.Claim]:
    """Compare clusters with Appendix A.2."""
    _, aligned, growing, last = e.states
    mass = {s: float(np.sum(growing.norms[last.signs == s] ** 2)) for s in (1, -1)}
    sign = 1 if mass[1] >= mass[-1] else -1  # of the cluster that grows first
    first, second = last.signs == sign, last.signs == -sign
    aligned_seen = e.seen(aligned)
    second_growth = float(np.sum(e.grown.norms[second] ** 2) / np.sum(last.norms[second] ** 2))
    to_plus = np.median(kit.cosines(aligned.W, e.D_plus)[aligned.signs > 0])
    to_minus = np.median(kit.cosines(aligned.W, -e.D_minus)[aligned.signs < 0])
    late = np.median(np.degrees(np.arccos(kit.cosines(e.grown.W, last.W))))
    return [
        kit.claim("two-directions",
                  "Early alignment: neurons align towards two key directions (groups in the plane of the figure)",
                  "Appendix A.2, Figure 6(b)", kit.exactly(2), directions(aligned_seen, aligned)),
        kit.claim("alignment-loss", "while norms are still negligible (loss over loss at the start)",
                  "Appendix A.2, Figures 6(b), 7(a)",
                  kit.more_than(0.999), e.curve.at(aligned.iteration) / e.curve.start),
        kit.claim("alignment-norm", "and neurons lie on the circle of norm 0 (largest norm over largest final norm)",
                  "Figure 6(b)", kit.less_than(0.01), aligned.norms.max() / last.norms.max()),
        kit.claim("first-cluster", "In the second phase a first cluster grows, and not yet the other "
                  "(its share of the sum of squared norms at 80000)",
                  "Appendix A.2, Figure 6(c)", kit.at_least(0.9), mass[sign] / (mass[1] + mass[-1])),
        kit.claim("first-direction", "while keeping a fixed direction (turn in the plane of the figure, degrees)",
                  "Appendix A.2, Figure 6(b), (c)", kit.at_most(SAME), turn(aligned_seen, e.seen(growing), first)),
        kit.claim("second-cluster",
                  "In the third phase the other cluster grows (sum of squared norms at 90000 over the final one)",
                  "Appendix A.2", kit.more_than(0.5), second_growth),
        kit.claim("second-direction", "in a fixed direction too (turn in the plane of the figure, degrees)",
                  "Appendix A.2", kit.at_most(SAME), turn(aligned_seen, e.seen(e.grown), second)),
        kit.claim("final-spread",
                  "In the final state neurons are not exactly aligned with two directions (groups in all dimensions)",
                  "Appendix A.2, Figure 6(d)", kit.at_least(3), directions(last.W, last, relative_norm=0.05)),
        kit.finding("directions-space",
                    "Groups of directions at the end of alignment in all dimensions: the plane shows two",
                    "Appendix A.2", directions(aligned.W, aligned)),
        kit.finding("first-sign", "Sign of the first cluster's output weights", "Figure 6(c)", sign),
        kit.finding("cosine-plus", "Median cosine with D+ of neurons with s = +1 at 40000", "Section 4.1", to_plus),
        kit.finding("cosine-minus", "Median cosine with -D- of neurons with s = -1 at 40000", "Section 4.1", to_minus),
        kit.finding("first-turn-space", "Turn of the first cluster's mean in all dimensions while it grows, degrees: "
                    "more than the plane shows", "Appendix A.2", turn(aligned.W, growing.W, first)),
        kit.finding("late-turn", "Median turn of a neuron after 90000, degrees", "Appendix A.2", late),
    ]  # fmt: skip


def draw_6(e: Neurons) -> kit.Drawing:
    """Draw panels a to d; the outer ring is the same norm in all of them."""
    titles = ["Initialisation", "End of alignment phase", "Growth of first cluster", "Final state"]
    figure, axes = kit.new_figure(2, 2, aspect=0.9, extra_height=0.25)
    last = e.states[-1]
    limit = kit.round_up(float(kit.norms(e.seen(last)).max()))
    scene = polar_scene(lambda k: e.seen(e.states[k]), lambda k: e.states[k].signs, limit, states=range(len(e.states)))
    for k, (state, title) in enumerate(zip(e.states, titles, strict=True)):
        draw_scene(axes[k], scene, k)
        kit.panel_label(axes[k], k, f"{title} ({state.when})")
    kit.figure_legend(figure, [kit.sign_handle(sign, marker="*") for sign in (-1, 1)])
    return figure


FIGURE_6 = kit.Figure(
    id="boursier2022-fig6",
    caption=(
        "Each star is a neuron, projected on the two leading principal components (uncentred) of the final hidden "
        "weights: red for s_j = -1, purple for s_j = +1. The inner circle is norm 0; the outer ring is the same "
        "norm in all panels."
    ),
    configs=CONFIGS, seed_configs=SEED_CONFIGS, variants=VARIANTS, origin=ORIGIN, evidence=neurons, claims=claims_of_6,
    draw=draw_6,
)  # fmt: skip


WINDOW = 4000
"""Iterations over which the relative fall of the loss is measured."""
FLAT = 0.1
"""Of all that falls between the two drops, a saddle is where the loss falls by less than this share over `WINDOW`."""


@dataclass(frozen=True)
class Profile:
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


def profile(runs: kit.Runs) -> Profile:
    """Measure loss and final spectrum of the high-dimensional run."""
    run = runs["high_dim"]
    dataset, curve, W = run.dataset(), loss_curve(run), state_at(run, horizon(run)).W
    saddle, fall = flattest(curve)
    plateau = curve.plateau(saddle, 0.05 * curve.at(saddle)) if np.isfinite(saddle) else None
    lambda_, leading = initial_scale(run), NAN
    if lambda_ < 1:
        leading = leading_time(dataset.x, dataset.y, lambda_, 1, loss_factor=LOSS_FACTOR) / learning_rate(run)
    return Profile(curve, saddle, fall, plateau, W, kit.explained_variance(W), leading)


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


def claims_of_7(e: Profile) -> list[kit.Claim]:
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


def draw_7(e: Profile) -> kit.Drawing:
    """Draw the loss and the bars of explained variance."""
    figure, axes = kit.new_figure(2, 1, aspect=0.72)
    draw_profile(axes[0], 0, e.curve, e.plateau)
    draw_explained_variance(axes[1], e.ratios)
    kit.panel_label(axes[1], 1, "Explained variance")
    return figure


FIGURE_7 = kit.Figure(
    id="boursier2022-fig7",
    caption=(
        "Training loss of the high-dimensional run, and explained variance ratios of the (uncentred) principal "
        "components of its final hidden weights."
    ),
    configs=CONFIGS, seed_configs=SEED_CONFIGS, variants=VARIANTS, origin=ORIGIN, evidence=profile, claims=claims_of_7,
    draw=draw_7,
)  # fmt: skip


FIGURES = kit.by_id(FIGURE_6, FIGURE_7)

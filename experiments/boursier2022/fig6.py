"""Figure 6: neurons in 150 dimensions, on the two leading principal components of the final hidden weights."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dynamics_cli import kit
from dynamics_cli.plotting.panels.neurons import draw_polar

from .states import ORIGIN as STATED
from .states import LossCurve, State, loss_curve, on_flow, state_at
from .theory.alignment import D_minus, D_plus

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
class Evidence:
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


def evidence(runs: kit.Runs) -> Evidence:
    """Read the states of the high-dimensional run."""
    run = runs["high_dim"]
    x, y = run.dataset().x, run.dataset().y
    states = [state_at(run, iteration) for iteration in ITERATIONS]
    basis = kit.leading_directions(states[-1].W)
    return Evidence(states, state_at(run, GROWN), loss_curve(run), basis, D_plus(x, y), D_minus(x, y))


def turn(before: kit.Floats, after: kit.Floats, members: kit.Bools) -> float:
    """Return the angle in degrees between the norm-weighted mean directions of `members` (m,) before and after."""
    mean = [weights[members].sum(axis=0, keepdims=True) / np.abs(weights[members]).max() for weights in (before, after)]
    return float(np.degrees(np.arccos(kit.cosines(mean[0], mean[1])[0])))


def directions(W: kit.Floats, state: State, relative_norm: float = 0.0) -> int:
    """Return the number of groups of directions among neurons of weights W (m, d or 2)."""
    return kit.cluster_directions(W, signs=state.a, angle_tolerance=SAME, relative_norm=relative_norm).count


def claims(e: Evidence) -> list[kit.Claim]:
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


def draw(e: Evidence) -> kit.Drawing:
    """Draw panels a to d; the outer ring is the same norm in all of them."""
    titles = ["Initialisation", "End of alignment phase", "Growth of first cluster", "Final state"]
    figure, axes = kit.new_figure(2, 2, aspect=0.9, extra_height=0.25)
    last = e.states[-1]
    limit = draw_polar(axes[-1], e.seen(last), last.signs).limit
    for k, (state, title) in enumerate(zip(e.states, titles, strict=True)):
        if state is not last:
            draw_polar(axes[k], e.seen(state), state.signs, limit=limit)
        kit.panel_label(axes[k], k, f"{title} ({state.when})")
    kit.figure_legend(figure, [kit.sign_handle(sign, marker="*") for sign in (-1, 1)])
    return figure


FIGURE = kit.Figure(
    id="boursier2022-fig6",
    caption=(
        "Each star is a neuron, projected on the two leading principal components (uncentred) of the final hidden "
        "weights: red for s_j = -1, purple for s_j = +1. The inner circle is norm 0; the outer ring is the same "
        "norm in all panels."
    ),
    configs=CONFIGS, seed_configs=SEED_CONFIGS, variants=VARIANTS, origin=ORIGIN, evidence=evidence, claims=claims,
    draw=draw,
)  # fmt: skip

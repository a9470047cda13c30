"""Alignment time against mu over three decades, with the bound of Theorem 1 and the law of the two points."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dynamics_cli import kit
from dynamics_cli.theory.sphere_flow import sphere_flow

from .plane import at_angle, points
from .shared import TRAINED, read_states
from .theory.cones import DEAD, PLUS, misplaced, regions
from .theory.early_alignment import alignment_constants, largest_log_scale, two_point_time

ANGLES = (0.0005, 0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0)
"""mu = sin a; three decades."""
STARTS = 720
"""Initial directions, evenly spread."""
TINY = 1e-150
"""A scale that meets the hypothesis of Theorem 1 at the largest mu; no other angle here allows one in float64."""
EDGE = 1e-9
"""The slowest starts are those at the boundary of S_dead, at this angle to it."""


@dataclass(frozen=True)
class Evidence:
    """Times of gradient flow on the sum of the losses, each (A,) over the angles."""

    mu: kit.Floats
    flow: kit.Floats
    """Largest time to S_+ of the directional flow (Eq. 4)."""
    law: kit.Floats
    """log cot(a / 2)."""
    bound: kit.Floats
    """t_1."""
    trained: kit.Floats
    """Time by which all live V_+ neurons of the trained network are in S_+; NaN where some never are."""
    log10_scale: kit.Floats
    """log10 of the largest scale of initialisation that Eq. 28 allows."""
    met: float
    """As `trained`, at the last angle for a balanced start of scale `TINY`, which meets all hypotheses."""


def evidence(runs: kit.Runs) -> Evidence:
    """Measure the directional flow and the trained networks at every angle."""
    data = [points(angle) for angle in ANGLES]
    constants = [alignment_constants(x, np.ones(2)) for x in data]
    return Evidence(
        mu=np.array([one.mu for one in constants]),
        flow=np.array([_slowest(x, np.ones(2)) for x in data]),
        law=two_point_time(ANGLES),
        bound=np.array([one.t1 for one in constants]),
        trained=np.array([_trained(runs[f"a{k}"]) for k in range(len(ANGLES))]),
        log10_scale=np.array([largest_log_scale(one, 50, 4.0) for one in constants]) / np.log(10.0),
        met=_trained(runs["met"]),
    )


def _slowest(x: kit.Floats, y: kit.Floats) -> float:
    """Return the largest time to S_+ over initial directions with some activation."""
    turns = np.linspace(-np.pi, np.pi, STARTS, endpoint=False) + 1e-3
    edges = [-np.pi / 2 + EDGE, np.arctan2(*x[1][::-1]) + np.pi / 2 - EDGE]
    starts = np.stack([np.cos([*turns, *edges]), np.sin([*turns, *edges])], axis=1)
    reached = regions(x, y, starts)
    away = starts[(reached != DEAD) & (reached != PLUS)]
    away = away if len(away) else starts[:1]
    path = sphere_flow(x, y, away, np.ones(len(away)), [0.0], loss_factor=len(x))
    # on two positive points a neuron changes its activation once: when it enters S_+
    return max((float(times[0]) for times in path.switches if len(times)), default=0.0)


def _trained(run: kit.Run) -> float:
    """Return the time by which live V_+ neurons are in S_+ for good; NaN when some are not at the end."""
    states = read_states(run)
    strays = misplaced(regions(states.x, states.y, states.W), states.v) & (np.asarray(states.v) > 0)
    late = np.flatnonzero(strays.any(axis=1))
    if late.size and late[-1] + 1 >= len(strays):
        return float("nan")
    first = states.iterations[late[-1] + 1] if late.size else 0
    return float(first * states.lr / len(states.x))


def claims(e: Evidence) -> list[kit.Claim]:
    """Compare with Theorem 1 and Appendix A.2."""
    return [
        kit.theory("bound", "Alignment times of the directional flow never exceed t1 (largest share of the bound)",
                   "Theorem 1, Appendix C.2", kit.at_most(1.0), (e.flow / e.bound).max()),
        kit.theory("grows",
                   "As mu falls the time needed for alignment increases (least growth from one mu to the next smaller)",
                   "Appendix A.2", kit.more_than(0.0), np.diff(e.flow[::-1]).min()),
        kit.theory("law", "The slowest neuron takes log cot(a/2) (largest relative deviation)",
                   "Eq. 4 on the points of Appendix A.2", kit.near(0.0, 1e-3), (np.abs(e.flow - e.law) / e.law).max()),
        kit.theory("hypothesis", f"The scale {TINY:g} meets Eq. 28 at mu = sin 1 (log10 of the largest that does)",
                   "Theorem 1, Eq. 28", kit.more_than(np.log10(TINY)), e.log10_scale[-1]),
        kit.claim("trained", "and the live V+ neurons of a trained network are in S+ by t1 (share of the bound)",
                  "Theorem 1", kit.at_most(1.0), e.met / e.bound[-1]),
        kit.finding("trained-time", "Time by which they are", "Theorem 1", e.met),
        *[kit.finding(f"ratio-{k}", f"Bound over measured time at mu = {mu:.3g}", "Theorem 1", ratio)
          for k, (mu, ratio) in enumerate(zip(e.mu, e.bound / e.flow, strict=True))],
        kit.finding("scale",
                    "log10 of the scale that Eq. 28 asks for at mu = sin 0.1; training as in Figure 7 starts at 1e-6",
                    "Eq. 28", e.log10_scale[ANGLES.index(0.1)]),
        kit.finding("stuck", "Trained networks with live V+ neurons outside S+",
                    "", np.count_nonzero(np.isnan(e.trained))),
    ]  # fmt: skip


@kit.styled
def draw(e: Evidence) -> kit.Drawing:
    """Draw bound, flow, law and trained networks over mu."""
    figure, (axes,) = kit.new_figure(1, width=4.2, aspect=0.7)
    dense = np.geomspace(ANGLES[0], ANGLES[-1], 200)
    bounds = [alignment_constants(points(angle), np.ones(2)).t1 for angle in dense]
    axes.loglog(np.sin(dense), bounds, color=kit.PALETTE.theory, ls="--", label="bound $t_1$ (Theorem 1)")
    axes.loglog(
        np.sin(dense), two_point_time(dense), color=kit.PALETTE.function, label=r"$\log\,\cot(a/2)$, $\mu=\sin a$"
    )
    axes.loglog(e.mu, e.flow, ls="none", marker="o", color=kit.PALETTE.measured, label="directional flow, slowest")
    axes.loglog(e.mu, e.trained, ls="none", marker="x", color=kit.PALETTE.rank, label="trained, scale $10^{-6}$")
    label = rf"trained, scale $10^{{{np.log10(TINY):.0f}}}$"
    axes.loglog(e.mu[-1:], [e.met], ls="none", marker="D", mfc="none", ms=8, color=kit.PALETTE.theory, label=label)
    axes.set_xlabel(r"data separability $\mu$")
    axes.set_ylabel("time to $S_+$ (flow on the summed loss)")
    axes.legend(loc="upper right")
    needed = [f"10^{{{e.log10_scale[ANGLES.index(angle)]:.0f}}}" for angle in (0.1, 1.0)]
    text = (
        rf"$t_1$ needs a scale below ${needed[0]}$ at $\mu=\sin 0.1$, ${needed[1]}$ at $\sin 1$:"
        "\nonly the diamond meets its hypothesis"
    )
    axes.text(0.02, 0.03, text, transform=axes.transAxes, fontsize=kit.SMALL, color=kit.PALETTE.unsigned)
    axes.set_ylim(bottom=min(0.05, 0.5 * float(np.nanmin(e.flow))))
    return figure


FIGURE = kit.Figure(
    id="min2024-extra-mu",
    caption=(
        "Two positive unit points of correlation mu = sin a. The slowest neuron of the directional flow (Eq. 4) takes "
        "log cot(a/2); the bound is 16 log 2 mu^(-5/2). Crosses: networks trained as in Figure 7; none where a neuron "
        "is still outside S+ at the end. Diamond: a balanced start that meets the hypothesis of Theorem 1."
    ),
    configs={
        **{f"a{k}": at_angle(angle) for k, angle in enumerate(ANGLES)},
        "met": at_angle(ANGLES[-1], f"initialization={{kind: balanced, scale: {TINY!r}}}", "optimizer.iterations=2000"),
    },
    origin={**TRAINED, "data": "stated", "mu": "assumed"}, evidence=evidence, claims=claims, draw=draw,
)  # fmt: skip

"""Beyond the figures: alignment times against mu and n, Lemma 1 against the scale, random initialisation (1 - 2^-m)."""

from __future__ import annotations

import numpy as np

from dynamics_cli import kit
from dynamics_cli.theory.sphere_flow import sphere_flow

from .plane import SEEDS, at_angle, moments_of, points
from .shared import TRAINED, read_states
from .theory.cones import DEAD, PLUS, misplaced, regions, x_a
from .theory.early_alignment import (
    alignment_constants,
    largest_log_scale,
    lemma_1,
    maximal_path,
    travel_time,
    two_point_time,
)

ANGLES = (0.0005, 0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0)
"""mu = sin a; three decades."""
STARTS_MU = 720
"""Initial directions, evenly spread."""
TINY = 1e-150
"""A scale that meets the hypothesis of Theorem 1 at the largest mu; no other angle here allows one in float64."""
EDGE = 1e-9
"""The slowest starts lie at the boundary of S_dead, at this angle to it."""


def evidence_extra_mu(runs: kit.Runs) -> kit.Evidence:
    """Measure the directional flow and the trained networks at every angle, each (A,), for the sum of the losses.

    `flow` is the largest time to S_+ of the directional flow (Eq. 4), `law` log cot(a / 2), `bound` t_1; `trained` the
    time by which all live V_+ neurons of the trained network are in S_+, NaN where some never are, and `met` the same
    at the last angle for a balanced start of scale `TINY`, which meets all hypotheses. `log10_scale` is log10 of the
    largest scale of initialisation that Eq. 28 allows.
    """
    data = [points(angle) for angle in ANGLES]
    constants = [alignment_constants(x, np.ones(2)) for x in data]
    return kit.Evidence(
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
    turns = np.linspace(-np.pi, np.pi, STARTS_MU, endpoint=False) + 1e-3
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


def claims_extra_mu(e: kit.Evidence) -> list[kit.Claim]:
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
        kit.finding("scale",
                    "log10 of the scale that Eq. 28 asks for at mu = sin 0.1; training as in Figure 7 starts at 1e-6",
                    "Eq. 28", e.log10_scale[ANGLES.index(0.1)]),
    ]  # fmt: skip


@kit.styled
def draw_extra_mu(e: kit.Evidence) -> kit.Drawing:
    """Draw bound, flow, law and trained networks over mu."""
    figure, (axes,) = kit.new_figure(1, width=4.2, aspect=0.7)
    dense = np.geomspace(ANGLES[0], ANGLES[-1], 200)
    bounds = [alignment_constants(points(angle), np.ones(2)).t1 for angle in dense]
    axes.loglog(np.sin(dense), bounds, color=kit.PALETTE.theory, ls="--", label="bound $t_1$ (Theorem 1)")
    axes.loglog(
        np.sin(dense), two_point_time(dense), color=kit.PALETTE.function, label=r"$\log\,\cot(a/2)$, $\mu=\sin a$"
    )
    axes.loglog(
        e.mu, e.flow, ls="none", marker=kit.MARKER, color=kit.PALETTE.measured, label="directional flow, slowest"
    )
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


EXTRA_MU = kit.Figure(
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
    origin={**TRAINED, "data": "printed", "mu": "chosen"},
)  # fmt: skip


SCALES = (1e-2, 1e-3, 1e-4, 1e-5, 1e-6)
COUNTS = (4, 8, 16, 32, 64)
"""Numbers of points in panel b."""
ARC = 1.0
"""Angle in which the points y_i x_i lie there: mu = cos 1 for every n."""
STARTS = 90
WIDTH = 6
"""Of the networks of panel c."""
SETTLED = 4000
"""Iterations of step 2e-3 after which they are looked at."""
FLOW = (
    "optimizer={kind: gradient_flow, until: 1.0, points: 40, rtol: 1.0e-7}",
    "record={snapshots: {kind: every, interval: 1}, measures: []}",
)
"""Gradient flow itself up to T of the smallest scale: steps of 1e-4 would have errors of their own of 1e-3."""
SMALL = (
    f"architecture.width={WIDTH}",
    "initialization={kind: balanced, scale: 1.0e-6}",
    f"optimizer.iterations={SETTLED}",
    f"record.snapshots.interval={SETTLED}",
    f"record.loss_every={SETTLED}",
)


def evidence_extra_bounds(runs: kit.Runs) -> kit.Evidence:
    """Measure the networks at every scale (S,), the directional flow for every n (C,), and the small networks (R,).

    `error` is the largest `||d/dt w_j/||w_j|| - sign(v_j(0)) P x_a(w_j)||` up to T, NaN for a run that ends before, and
    `power` the fitted power of epsilon in it; `bound` is the right side of Lemma 1. `time` is the largest time to S_+
    or S_dead of the directional flow, `longest` T(P_max). `members` are m, the neurons of V_+ of each network,
    `reached` how many of them are in S_+.
    """
    error, bound = np.array([_error(runs[f"e{k}"]) for k in range(len(SCALES))]).T  # (S,)
    time, longest, t1 = np.array([_times(n) for n in COUNTS]).T  # (C,)
    networks = moments_of(runs["small"], SETTLED)
    known = np.isfinite(error).all()
    return kit.Evidence(
        error=error, power=np.polyfit(np.log(SCALES), np.log(error), 1)[0] if known else np.nan, bound=bound,
        time=time, longest=longest, t1=t1,
        members=np.array([np.count_nonzero(now.plus) for now in networks]),
        reached=np.array([np.count_nonzero(now.plus & (now.reached == PLUS)) for now in networks]),
    )  # fmt: skip


def _error(run: kit.Run) -> tuple[float, float]:
    """Return the largest error of Eq. 4 up to T, and the bound, for gradient flow on the summed loss."""
    states = read_states(run)
    x, y = states.x, states.y
    W, v = np.asarray(states.W, dtype=np.float64), np.asarray(states.v, dtype=np.float64)
    epsilon = float(getattr(run.config.initialization, "scale", 1.0))
    until, bound = lemma_1(x, W[0], epsilon)
    passed = states.iterations * states.lr if run.times is None else np.asarray(run.times)[states.iterations]
    times = passed / len(x)  # of the flow on the summed loss
    worst, early = 0.0 if times[-1] >= until else np.nan, times <= until
    for weights, output in zip(W[early], v[early], strict=True):
        active = x @ weights.T > 0  # (n, m)
        pulls = y * np.exp(-y * (np.maximum(x @ weights.T, 0.0) @ output))  # -l'(f_i), (n,)
        lengths = np.linalg.norm(weights, axis=1)
        true = (output / lengths)[:, None] * ((pulls[:, None] * active).T @ x)  # (m, d) w_j' / ||w_j||
        limit = np.sign(v[0])[:, None] * np.stack([x_a(x, y, w) for w in weights])
        gap, units = true - limit, weights / lengths[:, None]
        worst = max(worst, float(kit.norms(gap - (gap * units).sum(axis=1, keepdims=True) * units).max()))
    return worst, bound


def _times(n: int) -> tuple[float, float, float]:
    """Return the slowest alignment of the directional flow on n points, T(P_max) and t_1."""
    angles = np.linspace(-ARC / 2, ARC / 2, n)
    y = np.where(np.arange(n) % 2 == 0, 1.0, -1.0)
    x = y[:, None] * np.stack([np.cos(angles), np.sin(angles)], axis=1)
    constants = alignment_constants(x, y)
    bends = np.arctan2(x[:, 1], x[:, 0])[:, None] + np.array([-1, 1]) * (np.pi / 2 - EDGE)  # just inside each boundary
    turns = np.concatenate([np.linspace(-np.pi, np.pi, STARTS, endpoint=False) + 1e-3, bends.ravel()])
    W = np.stack([np.cos(turns), np.sin(turns)], axis=1)
    at = regions(x, y, W)
    W = W[(at != DEAD) & (at != PLUS)]
    path = sphere_flow(x, y, W, np.ones(len(W)), [0.0], loss_factor=n)
    slowest = max(float(times[-1]) for times in path.switches if len(times))
    return slowest, travel_time(maximal_path(n // 2, n // 2), constants.rate), constants.t1


def claims_extra_bounds(e: kit.Evidence) -> list[kit.Claim]:
    """Compare with Lemma 1, Theorem 1 and the remark on random initialisation."""
    merits = "Section 3.2, Merits of random initialization"
    none = np.count_nonzero(e.reached == 0)
    return [
        kit.claim("lemma-1", "Up to T the error of Eq. 4 is at most 4 eps n sqrt(h) Xmax^3 Wmax^2 (largest share)",
                  "Lemma 1 (Appendix B)", kit.at_most(1.0), (e.error / e.bound).max()),
        kit.claim("order", "It is O(eps): the error falls at least as eps (fitted power)",
                  "Lemma 1, Eq. 6", kit.at_least(1.0), e.power),
        kit.theory("log-n", "Along the maximal path alignment takes O(log n) (largest T(Pmax) over t1 at fixed mu)",
                   "Theorem 1, Appendix C.2", kit.at_most(1.0), (e.longest / e.t1).max()),
        kit.theory("within", "No neuron of the directional flow takes longer (largest time over T(Pmax))",
                   "Theorem 1, Appendix C.2", kit.at_most(1.0), (e.time / e.longest).max()),
        kit.claim("half", "A neuron of V+ reaches S+ with a probability of at least 1/2 (share of all)",
                  merits, kit.at_least(0.5), e.reached.sum() / max(e.members.sum(), 1)),
        kit.claim("power-of-two", "With m of them none does with at most 2^-m (networks without one, over expected)",
                  merits, kit.at_most(1.0), none / np.sum(0.5**e.members)),
        kit.finding("time-first", f"Slowest time of the directional flow for n = {COUNTS[0]}", "Theorem 1", e.time[0]),
        kit.finding("time-last", f"and for n = {COUNTS[-1]}: it falls, the bound grows as log n",
                    "Theorem 1", e.time[-1]),
    ]  # fmt: skip


@kit.styled
def draw_extra_bounds(e: kit.Evidence) -> kit.Drawing:
    """Draw errors over epsilon, times over n, and the networks without a neuron in S_+ over m."""
    figure, axes = kit.new_figure(3, width=7.2, aspect=0.92)
    axes[0].loglog(SCALES, e.bound, color=kit.PALETTE.theory, ls="--", label="bound of Lemma 1")
    axes[0].loglog(SCALES, e.error, kit.MARKER, color=kit.PALETTE.measured, label="trained networks")
    axes[0].set(xlabel=r"scale of initialisation $\epsilon$", ylabel="largest error up to $T$", ylim=(None, 1e6))
    for values, style, label in ((e.t1, "--", "$t_1$"), (e.longest, ":", r"$T(P_{\max})$")):
        axes[1].loglog(COUNTS, values, color=kit.PALETTE.theory, ls=style, label=label)
    axes[1].loglog(COUNTS, e.time, kit.MARKER, color=kit.PALETTE.measured, label="directional flow")
    axes[1].set_xticks(COUNTS, labels=[str(n) for n in COUNTS], minor=False)
    axes[1].minorticks_off()
    axes[1].set(xlabel="number of points $n$", ylabel="alignment time")
    members = np.arange(WIDTH + 1)
    of_size = np.array([np.count_nonzero(e.members == m) for m in members])
    share = np.array([np.mean(e.reached[e.members == m] == 0) if of_size[m] else np.nan for m in members])
    error = np.sqrt(share * (1 - share) / np.maximum(of_size, 1))
    axes[2].plot(members, 0.5**members, color=kit.PALETTE.theory, ls="--", label="$2^{-m}$")
    axes[2].errorbar(members, share, error, fmt=kit.MARKER, color=kit.PALETTE.measured, label="networks")
    axes[2].set(xlabel="neurons of $V_+$ ($m$)", ylabel="share without one in $S_+$", xticks=members)
    for k, title in enumerate(("Lemma 1", "Dependence on $n$", "Random initialisation")):
        axes[k].legend(loc=("upper left", "center right", "upper right")[k])
        kit.panel_label(axes[k], k, title)
    return figure


EXTRA_BOUNDS = kit.Figure(
    id="min2024-extra-bounds",
    caption=(
        "(a) Largest error of the approximation of directions (Eq. 4) up to the time T of Lemma 1, for balanced "
        "networks on the data of Figure 6. (b) Slowest alignment of the directional flow on n points of both labels "
        "with mu = cos 1, the travel time of the maximal path and t1 (gradient flow on the summed loss). (c) Share of "
        f"networks of width {WIDTH} in which no neuron of V+ reaches S+, by their number m of such neurons."
    ),
    configs={
        **{
            f"e{k}": kit.Wanted("min2024/two_drops_flow.yaml", (f"initialization.scale={scale!r}", *FLOW))
            for k, scale in enumerate(SCALES)
        },
        "small": kit.Wanted("min2024/two_drops.yaml", SMALL, replicas=SEEDS),
    },
    origin={**TRAINED, "data": "chosen", "scales": "chosen"},
)  # fmt: skip


FIGURES = kit.by_id(EXTRA_MU, EXTRA_BOUNDS)

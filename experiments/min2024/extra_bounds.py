"""Lemma 1 against epsilon, alignment times against n, and the remark on random initialisation (1 - 2^-m)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dynamics_cli import kit
from dynamics_cli.theory.sphere_flow import sphere_flow

from .plane import SEEDS, moments_of
from .shared import TRAINED, read_states
from .theory.cones import DEAD, PLUS, regions, x_a
from .theory.early_alignment import alignment_constants, lemma_1, maximal_path, travel_time

SCALES = (1e-2, 1e-3, 1e-4, 1e-5, 1e-6)
COUNTS = (4, 8, 16, 32, 64)
"""Numbers of points in panel b."""
ARC = 1.0
"""Angle in which the points y_i x_i lie there: mu = cos 1 for every n."""
STARTS, EDGE = 90, 1e-9
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


@dataclass(frozen=True)
class Evidence:
    """Errors (S,) over `SCALES`, times (C,) over `COUNTS` and networks (R,)."""

    error: kit.Floats
    """Largest `||d/dt w_j/||w_j|| - sign(v_j(0)) P x_a(w_j)||` up to T."""
    bound: kit.Floats
    """The right side of Lemma 1."""
    time: kit.Floats
    """Largest time to S_+ or S_dead of the directional flow."""
    longest: kit.Floats
    """T(P_max)."""
    t1: kit.Floats
    members: kit.Ints
    """m, the neurons of V_+ of each network."""
    reached: kit.Ints
    """Those in S_+."""

    @property
    def power(self) -> float:
        """Fitted power of epsilon in the error."""
        return float(np.polyfit(np.log(SCALES), np.log(self.error), 1)[0])


def evidence(runs: kit.Runs) -> Evidence:
    """Measure the networks at every scale, the directional flow for every n, and the small networks."""
    error, bound = np.array([_error(runs[f"e{k}"]) for k in range(len(SCALES))]).T  # (S,)
    time, longest, t1 = np.array([_times(n) for n in COUNTS]).T  # (C,)
    networks = moments_of(runs["small"], SETTLED)
    return Evidence(
        error=error, bound=bound, time=time, longest=longest, t1=t1,
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
    worst, early = 0.0, times <= until
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


def claims(e: Evidence) -> list[kit.Claim]:
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
        kit.finding("growth", f"t1 for n = {COUNTS[-1]} over that for {COUNTS[0]}", "Theorem 1", e.t1[-1] / e.t1[0]),
        kit.finding("networks", "Networks without a neuron in S+", merits, none),
    ]  # fmt: skip


@kit.styled
def draw(e: Evidence) -> kit.Drawing:
    """Draw errors over epsilon, times over n, and the networks without a neuron in S_+ over m."""
    figure, axes = kit.new_figure(3, width=7.2, aspect=0.92)
    axes[0].loglog(SCALES, e.bound, color=kit.PALETTE.theory, ls="--", label="bound of Lemma 1")
    axes[0].loglog(SCALES, e.error, "o", color=kit.PALETTE.measured, label="trained networks")
    axes[0].set(xlabel=r"scale of initialisation $\epsilon$", ylabel="largest error up to $T$", ylim=(None, 1e6))
    for values, style, label in ((e.t1, "--", "$t_1$"), (e.longest, ":", r"$T(P_{\max})$")):
        axes[1].loglog(COUNTS, values, color=kit.PALETTE.theory, ls=style, label=label)
    axes[1].loglog(COUNTS, e.time, "o", color=kit.PALETTE.measured, label="directional flow")
    axes[1].set_xticks(COUNTS, labels=[str(n) for n in COUNTS], minor=False)
    axes[1].minorticks_off()
    axes[1].set(xlabel="number of points $n$", ylabel="alignment time")
    members = np.arange(WIDTH + 1)
    of_size = np.array([np.count_nonzero(e.members == m) for m in members])
    share = np.array([np.mean(e.reached[e.members == m] == 0) if of_size[m] else np.nan for m in members])
    error = np.sqrt(share * (1 - share) / np.maximum(of_size, 1))
    axes[2].plot(members, 0.5**members, color=kit.PALETTE.theory, ls="--", label="$2^{-m}$")
    axes[2].errorbar(members, share, error, fmt="o", color=kit.PALETTE.measured, label="networks")
    axes[2].set(xlabel="neurons of $V_+$ ($m$)", ylabel="share without one in $S_+$", xticks=members)
    for k, title in enumerate(("Lemma 1", "Dependence on $n$", "Random initialisation")):
        axes[k].legend(loc=("upper left", "center right", "upper right")[k])
        kit.panel_label(axes[k], k, title)
    return figure


FIGURE = kit.Figure(
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
    origin={**TRAINED, "data": "assumed", "scales": "assumed"}, evidence=evidence, claims=claims, draw=draw,
)  # fmt: skip

"""Figures 6 to 9: neurons in the plane with the data, at a few iterations."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from dynamics_cli import kit

from .shared import ANOTHER_SIDE, Premise, States, read_premise, read_states
from .theory.cones import MINUS, PLUS, centres, least_correlation, misplaced, regions

SEEDS = 200
FEWER = 50
"""Networks that claims on numbers of neurons are decided by: these depend on the seed. Fewer do
for a mean.
"""


@dataclass(frozen=True)
class Moment:
    """The neurons at one iteration."""

    iteration: int
    W: kit.Floats
    """(m, 2)"""
    v: kit.Floats
    reached: kit.Ints
    """(m,) regions."""

    @property
    def plus(self) -> kit.Bools:
        """V_+ now."""
        return self.v > 0

    @property
    def outside(self) -> kit.Bools:
        """(m,) neurons that are not dead, and not in the region of their sign."""
        return misplaced(self.reached, self.v)

    @property
    def strays(self) -> kit.Bools:
        """(m,) neurons of V_+ among them."""
        return self.outside & self.plus

    @property
    def largest(self) -> float:
        """Largest norm of a neuron."""
        return float(np.linalg.norm(self.W, axis=1).max())


def moments_at(run: kit.Run, iteration: int) -> list[Moment]:
    """Return the neurons of each network of a run, several where it has replicas, at the state
    nearest an iteration.

    Raises InputError outside the plane.
    """
    data = run.dataset()
    k = run.index_of(iteration)
    if data.d != 2:
        raise kit.InputError(
            f"this figure shows neurons in the plane, the data have {data.d} dimensions"
        )
    W, v = (
        np.asarray(run.parameters[name][k], np.float64)
        for name in ("hidden_weight", "output_weight")
    )
    networks = zip(W.reshape(-1, *W.shape[-2:]), v.reshape(-1, v.shape[-1]), strict=True)
    return [
        Moment(int(run.snapshot_iterations[k]), W, v, regions(data.x, data.y, W))
        for W, v in networks
    ]


def least_cosine(now: Moment, members: kit.Bools, target: kit.Floats) -> float:
    """Return the least cosine of some neurons (m,) with a vector (2,); NaN when there are none."""
    return float(kit.cosines(now.W[members], target).min()) if members.any() else np.nan


def draw_moments(
    states: States,
    moments: Sequence[Moment],
    titles: Sequence[str],
    *,
    count_strays: bool = False,
    losses: bool = False,
) -> kit.Drawing:
    """Draw a panel for every moment: dots to its scale, thin rays for directions, the data to one
    scale.

    With `losses` the loss has a panel behind them.
    """
    panels = len(moments) + losses
    figure, axes = kit.new_figure(
        panels, width=5.5 if panels == 3 else 6.8, aspect=1.16, extra_height=0.25
    )
    for k, (now, title) in enumerate(zip(moments, titles, strict=True)):
        _panel(axes[k], states.x, states.y, now)
        kit.panel_label(axes[k], k, f"{title}\niteration {kit.format_number(now.iteration)}")
        if count_strays:
            ends = 1.05 * np.linalg.norm(states.x, axis=1).max() * kit.directions(now.W[now.strays])
            axes[k].plot(
                *ends.T,
                kit.MARKER,
                ms=3,
                mfc="white",
                mec=kit.PALETTE.positive,
                zorder=5,
            )
            text = f"{np.count_nonzero(now.strays)} outside $S_+$"
            axes[k].text(0.02, 0.1, text, transform=axes[k].transAxes, fontsize=kit.SMALL)
    if losses:
        chart = losses_of(states, [now.iteration for now in moments])
        kit.panel(axes[-1], len(moments), chart)
        axes[-1].set_box_aspect(1.0)
    handles: list[kit.Artist] = []
    for marker, label in (("^", "+1"), ("v", "-1")):
        if marker == "^" or (states.y < 0).any():
            handles += axes[0].plot(
                [], [], marker, ms=6, color=kit.PALETTE.function, label=f"$x_i$, $y_i={label}$"
            )
    for sign, relation in ((1, ">"), (-1, "<")):
        handle = kit.sign_handle(sign, marker=kit.MARKER, size=4.5)
        handle.set_label(f"$v_j{relation}0$")  # the paper's symbol
        handles.append(handle)
    if count_strays:
        handles += axes[0].plot(
            [], [], kit.MARKER, ms=4, mfc="white", mec=kit.PALETTE.positive, label="outside $S_+$"
        )
    kit.figure_legend(figure, handles, columns=4)
    return figure


def losses_of(states: States, moments: Sequence[int]) -> kit.Chart:
    """Return the loss with rings at the moments of the other panels and lines where it falls
    fastest.
    """
    drops = _drops(states)
    rings = [kit.value_at(states.loss_iterations, states.losses, at) for at in moments]
    return kit.chart(
        "Loss\n",
        "",
        kit.line(states.loss_iterations, states.losses, look="measured"),
        kit.line(moments, rings, look="measured hollow"),
        *(kit.upright(at, look="theory dotted 0.8") for at in drops),
        limits=(0.0, 1.05 * float(states.losses[0])),
        limits_x=(0, 2 * drops[-1]),
    )


def _panel(axes: kit.Axes, x: kit.Floats, y: kit.Floats, now: Moment) -> None:
    reach = float(np.linalg.norm(x, axis=1).max())
    lengths = kit.norms(now.W)
    largest = kit.round_up(now.largest)
    tips = now.W / largest * reach  # (m, 2)
    axes.set_aspect("equal")
    axes.set(xlim=(-1.12 * reach, 1.12 * reach), ylim=(-1.62 * reach, 1.12 * reach))
    axes.set_axis_off()
    ends = np.array([-1.12, 1.12]) * reach  # above the text
    axes.plot(ends, [0, 0], color=kit.PALETTE.faint, lw=0.7, zorder=0)
    axes.plot([0, 0], ends, color=kit.PALETTE.faint, lw=0.7, zorder=0)
    rim = 1.05 * reach * now.W / np.where(lengths > 0, lengths, 1.0)[:, None]
    for sign in (1, -1):
        color = kit.PALETTE.sign(sign)
        members = np.sign(now.v) == sign
        rays = np.stack([np.zeros_like(rim), rim, tips])[:, members]  # (3, m', 2)
        axes.plot(rays[:2, :, 0], rays[:2, :, 1], color=color, lw=0.5, alpha=0.35, zorder=1)
        axes.plot(rays[::2, :, 0], rays[::2, :, 1], color=color, lw=0.8, alpha=0.5, zorder=2)
        axes.plot(
            *tips[members].T,
            kit.MARKER,
            ms=3.2,
            mfc=color,
            mec="white",
            mew=0.3,
            zorder=3,
        )
    for label, marker in ((1, "^"), (-1, "v")):
        axes.plot(
            *x[np.sign(y) == label].T,
            marker,
            ms=6,
            color=kit.PALETTE.function,
            mec="white",
            zorder=4,
        )
    power = int(np.floor(np.log10(largest) + 1e-9))
    number = (
        f"{largest:g}" if -2 <= power <= 2 else rf"{largest / 10.0**power:g}\cdot 10^{{{power}}}"
    )
    axes.text(0.02, 0.01, rf"rim: $\|w_j\|={number}$", transform=axes.transAxes, fontsize=kit.SMALL)


ALIGNED = 3300
END = 30000
"""Iterations of panels b and c; not in the paper."""
MANY_6 = (
    f"optimizer.iterations={ALIGNED}",
    f"record.snapshots.interval={ALIGNED}",
    f"record.loss_every={ALIGNED}",
)


@dataclass(frozen=True)
class Fig6Evidence:
    """The run by gradient descent, its twin along the flow, and networks of other seeds.

    `flow_reached` (K, m) are regions of the neurons of the twin, `networks` moments of `SEEDS`
    seeds at `ALIGNED`.
    """

    states: States
    flow: States
    stable_rank: kit.Floats
    flow_reached: kit.Ints
    premise: Premise
    moments: list[Moment]
    networks: list[Moment]


def evidence_fig6(runs: kit.Runs) -> Fig6Evidence:
    """Measure the run by gradient descent, and its balanced twin that follows gradient flow."""
    states = read_states(runs["descent"])
    flow = read_states(runs["flow"])
    return Fig6Evidence(
        states,
        flow,
        stable_rank=kit.stable_rank(states.W),
        flow_reached=regions(flow.x, flow.y, flow.W),
        premise=read_premise(runs["flow"], flow),
        moments=[moments_at(runs["descent"], iteration)[0] for iteration in (0, ALIGNED, END)],
        networks=moments_at(runs["seeds"], ALIGNED),
    )


def _drops(states: States) -> list[int]:
    """Return when the loss falls fastest above, and below, 0.45 of its first value."""
    times = states.loss_iterations
    rates = -np.gradient(states.losses, times)
    split = kit.first_below(times, states.losses, 0.45 * float(states.losses[0]))
    parts = [times < split, times >= split] if split is not None else [times >= 0]
    return [int(times[part][np.argmax(rates[part])]) for part in parts if part.any()]


def _lull(states: States) -> float:
    """Return the least speed of the loss between its two decreases over the speed of the slower;
    NaN without two.
    """
    drops = _drops(states)
    times = states.loss_iterations
    if len(drops) < 2:
        return np.nan
    rates = -np.gradient(states.losses, times)
    between = rates[(times >= drops[0]) & (times <= drops[1])]
    slower = min(between[0], between[-1])
    return float(between.min() / slower) if slower > 0 else np.nan


def _rate(states: States) -> float:
    """Return the power of t with which the loss falls over the last 30 % of a run; NaN for fewer
    than 3 points.
    """
    late = (states.loss_iterations >= 0.7 * states.loss_iterations[-1]) & (states.losses > 0)
    if np.count_nonzero(late) < 3:
        return np.nan
    return float(
        np.polyfit(np.log(states.loss_iterations[late]), np.log(states.losses[late]), 1)[0]
    )


def claims_fig6(e: Fig6Evidence) -> list[kit.Claim]:
    source = "Appendix A.1, Figure 6"
    x = e.states.x
    y = e.states.y
    x_plus, x_minus = centres(x, y)
    first, _, last = e.moments
    rank = e.stable_rank[len(e.stable_rank) // 2 :].max()
    outside = np.array([np.count_nonzero(now.outside) for now in e.networks])
    sides = ((PLUS, x_plus), (MINUS, x_minus))
    cosines = np.array(
        [
            [
                least_cosine(now, ~now.outside & (now.reached == region), target)
                for region, target in sides
            ]
            for now in e.networks
        ]
    )
    cosines = np.nan_to_num(cosines, nan=-1.0)  # no neuron there: none is aligned
    placed = [np.isin(now.reached[~now.outside], (PLUS, MINUS)).sum() for now in e.networks]
    cosines[outside > placed] = -1.0  # most live ones are elsewhere: alignment has not ended
    flow_wrong = np.count_nonzero(misplaced(e.flow_reached[-1], e.flow.v[-1]))
    inside = ~misplaced(e.flow_reached, e.flow.v)
    departures = np.count_nonzero(inside[:-1] & (e.flow_reached[1:] != e.flow_reached[:-1]))
    return [
        kit.theory(
            "assumption-1",
            r"The data satisfy Assumption 1 ($\mu$)",
            "Appendix A.1",
            kit.more_than(0.0),
            least_correlation(x, y),
        ),
        kit.claim(
            "small",
            "At initialisation all neurons have small norm (largest over the largest at the end)",
            f"{source} (a)",
            kit.less_than(0.01),
            first.largest / last.largest,
        ),
        kit.claim(
            "cosine-plus",
            "After alignment neurons in S+ are well aligned with x+ (least cosine, median of "
            "networks)",
            f"{source} (b); 0.9 is our reading",
            kit.at_least(0.9),
            np.median(cosines[:, 0]),
        ),
        kit.claim(
            "cosine-minus",
            "Neurons in S- align with x- (least cosine, median of networks)",
            f"{source} (b); 0.9 is our reading",
            kit.at_least(0.9),
            np.median(cosines[:, 1]),
        ),
        kit.claim(
            "all-placed",
            "Around the end of alignment all neurons are in S+, S- or Sdead (share of networks "
            "without live ones elsewhere)",
            f"{source} (b); more than half is our reading",
            kit.most(),
            np.mean(outside == 0),
        ),
        kit.claim(
            "two-drops",
            "The loss experiences two sharp decreases (its least speed between them over that of "
            "the slower)",
            "Appendix A.1; half is our reading of two",
            kit.less_than(0.5),
            _lull(e.states),
        ),
        kit.claim(
            "to-zero",
            "The loss gets close to zero in the end (loss at the end)",
            source,
            kit.at_most(0.05),
            e.states.losses[-1],
        ),
        kit.theory(
            "rank",
            "The first layer is approximately low-rank: stable rank at most 2, as of any weights in"
            " the plane (largest of the last half)",
            "Theorem 1, Figure 6 (c)",
            kit.at_most(2.0),
            rank,
        ),
        e.premise.of_theorem(
            kit.claim(
                "flow-ends",
                "Balanced gradient flow: V+ ends in S+ or Sdead, V- in S- or Sdead (neurons"
                " elsewhere)",
                "Theorem 1",
                kit.exactly(0),
                flow_wrong,
            )
        ),
        kit.presupposing(
            kit.claim(
                "flow-stays",
                "Balanced gradient flow: no neuron ever leaves S+, S- and Sdead (departures)",
                "Lemma 12, of a start of any scale",
                kit.exactly(0),
                kit.given(flow_wrong == 0, departures),
            ),
            "Assumption 1 asks for a positive mu",
            kit.more_than(0.0),
            e.premise.constants.mu,
        ),
        e.premise.of_theorem(
            kit.claim(
                "flow-rate",
                "The loss falls at least as 1/t after t2 (fitted power of t over the last 30 % of"
                " the flow)",
                "Theorem 1",
                kit.at_most(-1.0),
                _rate(e.flow),
            )
        ),
    ]


def draw_fig6(e: Fig6Evidence) -> kit.Drawing:
    titles = ("Initialisation", "End of alignment", "End of training")
    return draw_moments(e.states, e.moments, titles, losses=True)


FIGURE_6 = kit.Figure(
    id="min2024-fig6",
    caption=(
        "Triangles are the data, dots with rays the neurons, each panel to its own scale of norms."
        " (a) Small norms, all directions. (b) Live neurons are aligned with x+ or x-. (c) They"
        " have grown; the rest stayed small. (d) The loss with the moments of panels a and b"
        " (rings) and its two sharp decreases (dotted)."
    ),
    configs={
        "descent": "min2024/two_drops.yaml",
        "flow": "min2024/two_drops_flow.yaml",
        "seeds": kit.Wanted("min2024/two_drops.yaml", MANY_6, replicas=SEEDS),
    },
    nulls={"data": ANOTHER_SIDE},
    passes={
        "linear": {
            "small": "The start is the same.",
            "cosine-plus all-placed": (
                "Linear neurons turn to one direction, which separates the points as x+ does."
            ),
            "to-zero": "The points are linearly separable.",
        },
        "data": {
            "small": "The start is the same.",
            "two-drops": "Each class is fitted in a drop of its own, as before.",
            "to-zero": "A line still separates the points.",
        },
    },
)


ITERATIONS = (0, 7000, 21000)
"""Of the three panels (printed)."""
FITTED = 0.1
"""The loss below which training has converged."""
MANY = ("record.snapshots.interval=7000", "record.loss_every=1000")
LAST = ("record.snapshots.interval=21000", "record.loss_every=21000")


def at_angle(angle: float, *changes: str) -> kit.Wanted:
    """Return the run on x_1 = (1, 0), x_2 = (sin a, cos a), with further changes."""
    return kit.Wanted("min2024/two_points.yaml", (f"dataset.x={points(angle).tolist()}", *changes))


def points(angle: float) -> kit.Floats:
    """Return the points (2, 2) of Appendix A.2, of correlation `sin angle`."""
    return np.array([[1.0, 0.0], [np.sin(angle), np.cos(angle)]])


@dataclass(frozen=True)
class Evidence:
    """A run on two points, and networks of other seeds.

    `outside` (3,) counts live neurons of V_+ outside S_+ at the moments, `others` (3, R) the same
    in networks of many seeds, and `converged` (R,) says which of these fit the points at the end;
    both are (0,) without any.
    """

    states: States
    moments: list[Moment]
    outside: list[int]
    others: kit.Ints
    converged: kit.Bools
    inside: list[float] = field(default_factory=list)


def evidence(runs: kit.Runs) -> Evidence:
    """Look at the three moments of a run on two points, and count neurons in the networks of other
    seeds.
    """
    moments = [moments_at(runs["descent"], iteration)[0] for iteration in ITERATIONS]
    many = [runs["seeds"]] if "seeds" in runs else []
    return Evidence(
        states=read_states(runs["descent"]),
        moments=moments,
        outside=[int(now.strays.sum()) for now in moments],
        others=np.array(
            [
                [np.count_nonzero(now.strays) for now in moments_at(run, at)]
                for run in many
                for at in ITERATIONS
            ]
        ),
        converged=np.concatenate(
            [np.empty(0, bool), *(np.asarray(run.losses[-1]) < FITTED for run in many)]
        ),
    )


def evidence_fig9(runs: kit.Runs) -> Evidence:
    """Look at a run on orthogonal points, and count the neurons of V_+ in S_+ at the end for other
    seeds.

    `inside` are their means over networks on orthogonal points and on points of correlation sin
    0.1.
    """
    inside = [
        float(np.mean([_inside(now) for now in moments_at(runs[role], ITERATIONS[-1])]))
        for role in ("orthogonal", "separated")
    ]
    return replace(evidence({"descent": runs["descent"]}), inside=inside)


def _inside(now: Moment) -> int:
    return int(np.count_nonzero(now.plus & (now.reached == PLUS)))


def _common(e: Evidence, source: str, angle: float) -> list[kit.Claim]:
    """Compare the statements of all three: positive neurons in S+ at iteration 7000, and the
    loss at the end.
    """
    now = e.moments[1]
    least = least_cosine(now, now.plus & (now.reached == PLUS), centres(e.states.x, e.states.y)[0])
    mu = least_correlation(e.states.x, e.states.y)
    return [
        kit.theory(
            "mu",
            "The correlation of the two points",
            source,
            kit.near(float(np.sin(angle)), 1e-9),
            mu,
        ),
        kit.claim(
            "cosine",
            f"Positive neurons in S+ are aligned with x+ (least cosine at {now.iteration})",
            source,
            kit.more_than(0.95),
            least,
        ),
        kit.claim(
            "converges",
            "After alignment neurons grow for final convergence (loss at iteration 21000)",
            source,
            kit.less_than(FITTED),
            e.states.losses[-1],
        ),
    ]


def numbers_fig8(e: Evidence) -> dict[str, float]:
    """Return the least cosine with x_+ of positive neurons in S_+ after the alignment phase."""
    late = e.moments[2]
    x_plus, _ = centres(e.states.x, e.states.y)
    inside = late.plus & (late.reached == PLUS)
    return {f"least cosine in S+ at {late.iteration}": least_cosine(late, inside, x_plus)}


def numbers_fig9(e: Evidence) -> dict[str, float]:
    """Return how many neurons are in S_+ at the end, in the mean over networks."""
    orthogonal, separated = e.inside
    return {
        "neurons in S+, mu = 0": orthogonal,
        "neurons in S+, mu = sin 0.1": separated,
    }


def claims_fig7(e: Evidence) -> list[kit.Claim]:
    source = "Appendix A.2, Figure 7"
    middle = e.moments[1]
    return [
        *_common(e, source, 0.1),
        kit.claim(
            "all-inside",
            "At iteration 7000 all live positive neurons have reached S+ (those outside)",
            source,
            kit.exactly(0),
            kit.given((middle.plus & (middle.reached == PLUS)).any(), e.outside[1]),
        ),
    ]


def claims_fig8(e: Evidence) -> list[kit.Claim]:
    source = "Appendix A.2, Figure 8"
    middle, late = np.where(e.converged, e.others[1:], 0)
    return [
        *_common(e, source, 0.001),
        kit.claim(
            "some-outside",
            "At iteration 7000 there are still live positive neurons outside S+ (share of "
            "networks with some that converge later)",
            source,
            kit.most(),
            np.mean(middle > 0),
        ),
        kit.claim(
            "one-outside",
            "In the paper's instance one neuron remains outside S+ at 21000: networks that converge"
            " and keep at least one are no rarity (share; 5 % is our reading)",
            source,
            kit.more_than(0.05),
            np.mean(late > 0),
        ),
    ]


def claims_fig9(e: Evidence) -> list[kit.Claim]:
    source = "Appendix A.3, Figure 9"
    last = e.moments[2]
    converged = e.states.losses[-1] < FITTED
    strays = last.W[last.strays]
    inside = last.W[last.plus & (last.reached == PLUS)]
    each = np.stack([kit.cosines(strays, point) for point in e.states.x])  # (2, strays)
    stayed, grown = (np.linalg.norm(W, axis=1).max(initial=0.0) for W in (strays, inside))
    return [
        *_common(e, source, 0.0),
        kit.claim(
            "stay-outside",
            "Live positive neurons stay outside S+ (at iteration 21000)",
            source,
            kit.at_least(1),
            kit.given(converged, e.outside[2]),
        ),
        kit.claim(
            "for-ever",
            "No neuron outside S+ enters between iterations 7000 and 21000 (change of their"
            " number)",
            source,
            kit.exactly(0),
            kit.given(converged and e.outside[1] > 0, e.outside[2] - e.outside[1]),
        ),
        kit.claim(
            "with-one",
            "Neurons that stay outside S+ are aligned with x1 or x2 alone (least cosine with the "
            "nearer)",
            source,
            kit.at_least(0.99),
            each.max(axis=0).min() if len(strays) else np.nan,
        ),
        kit.claim(
            "no-growth",
            "Only neurons in S+ grow (largest norm outside over largest inside)",
            source,
            kit.less_than(0.1),
            stayed / grown if grown > 0 and len(strays) else np.nan,
        ),
        kit.claim(
            "fewer",
            "Clearly fewer neurons end in S+ than for mu > 0 (mean number over that at mu = sin"
            " 0.1)",
            f"{source}; half is our reading of clearly",
            kit.less_than(0.5),
            kit.given(converged and e.inside[1] > 0, e.inside[0] / max(e.inside[1], 1e-9)),
        ),
    ]


def draw(e: Evidence) -> kit.Drawing:
    return draw_moments(
        e.states, e.moments, ("Initialisation", "Alignment", "Late"), count_strays=True
    )


def _figure(number: int, runs: dict[str, kit.Wanted], caption: str) -> kit.Figure:
    separated = at_angle(0.1).overrides
    return kit.Figure(
        id=f"min2024-fig{number}",
        caption=(
            "Triangles are the data, dots with rays the neurons, each panel to its own scale of"
            " norms. " + caption
        ),
        configs=runs,
        nulls={} if runs["descent"].overrides == separated else {"separated": separated},
        passes={
            "linear": {
                "cosine converges": (
                    "Neurons in S+ are active on both points, where a ReLU is linear."
                ),
                "all-inside": (
                    "Both points move a linear neuron wherever it is, so that all turn to x+, which"
                    " lies in S+."
                ),
            }
        },
    )


FIGURES = kit.by_id(
    FIGURE_6,
    _figure(
        7,
        {"descent": at_angle(0.1)},
        "Positive neurons that are not dead enter S+ and align with x+.",
    ),
    _figure(
        8,
        {
            "descent": at_angle(0.001, "seed=6"),
            "seeds": replace(at_angle(0.001, *MANY), replicas=SEEDS),
        },
        "Alignment is slower: some neurons are still aligned with x1 or x2 alone. The seed is one"
        " that keeps one neuron outside, as the paper's instance does; the counts are claimed of"
        f" {SEEDS} networks.",
    ),
    _figure(
        9,
        {
            "descent": at_angle(0.0),
            "orthogonal": replace(at_angle(0.0, *LAST), replicas=FEWER),
            "separated": replace(at_angle(0.1, *LAST), replicas=FEWER),
        },
        "Orthogonal data: neurons end along x1, x2 or x+, and only the last grow.",
    ),
)

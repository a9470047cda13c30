"""Statements of the paper without a figure: the limit and the scale, Assumption 3, and lemmas
along the way.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dynamics_cli import kit

from .fig3 import gradient_norms, sides_of_eq_31
from .orthogonal import CONFIGS as ORTHOGONAL
from .orthogonal import PASSES, SAME_PLACE, Setting, presupposed, read_setting
from .states import LOSS_FACTOR, NAN, LossCurve, NetworkState, clock, loss_curve, state_at
from .theory.alignment import D_norms
from .theory.growth import intermediate_saddle, limit_of_flow, minimum_norm_value
from .theory.phases import largest_epsilon

SCALES = {1e-9: 37000, 1e-7: 32000, 1e-5: 27000, 1e-3: 23000, 1e-1: 18000}
"""Scale of the initial weights of two orthogonal points -> iterations, until rounding stops the
loss.
"""
LARGER = [*SCALES][1:]
FITTED = 1e-6
"""The loss counts as 0 below this share of the first."""
DONE = 0.01
"""Labels count as fitted at this share of the loss, as in Figure 1."""
FLOOR = 1e-4
"""Losses below this share of the first are the end of training, not a saddle, as in Figure 5."""
MINIMAL = 1e-3
"""How near to the least norm the limit of Theorem 1 has to be, as in Figure 2."""
NEAR = 0.1
"""A norm within this share of the least counts as minimal where the paper says so in words."""
HALF = "half step"
"""The role of the run from the scale 1e-3 with half the step and twice the updates."""
SAME = 1.0
"""Angle in degrees up to which neurons point in one direction."""


def role(scale: float) -> str:
    """Return the role of the run of a scale."""
    return f"scale {scale:g}"


@dataclass(frozen=True)
class Evidence:
    """Limits from all scales, the orthonormal runs, and descent at a step and half of it.

    `distances` (4,) are those of the limits from the larger scales to the limit from the least;
    `to_theory` is the distance of the latter from the limit that Lemma 12 gives, over its norm;
    from the least scale `phases` are `others`, and `resting` neurons of `S_{+,1}` and `S_{-,1}`.
    """

    curves: dict[float, LossCurve]
    ends: dict[float, End]
    distances: kit.Floats
    to_theory: float
    phases: tuple[float, float]
    wide: Along
    narrow: list[Along]
    steps: tuple[Along, Along]
    resting: tuple[Resting, Resting]


def evidence(runs: kit.Runs) -> Evidence:
    """Measure the limits of two orthogonal points from all scales, the orthonormal runs, and two
    steps.
    """
    small = [runs[role(scale)] for scale in SCALES]
    limits = [parameters(state_at(run, run.iterations)) for run in small]
    theory = limit_of_flow(*arrays(runs[role(1e-9)]))
    return Evidence(
        curves=dict(zip(SCALES, map(loss_curve, small), strict=True)),
        ends=dict(zip(SCALES, map(end_of, small), strict=True)),
        distances=np.array([np.linalg.norm(limit - limits[0]) for limit in limits[1:]]),
        to_theory=(
            float(np.linalg.norm(limits[0] - theory) / np.linalg.norm(theory))
            if theory is not None
            else NAN
        ),
        phases=others(runs[role(1e-9)]),
        wide=along(runs["wide"]),
        narrow=[along(runs[f"narrow {seed}"]) for seed in NARROW],
        steps=(along(runs[role(1e-3)]), along(runs[HALF])),
        resting=(resting(runs[role(1e-9)], 1), resting(runs[role(1e-9)], -1)),
    )


def parameters(state: NetworkState) -> kit.Floats:
    """Return hidden and output weights side by side, (m, d + 1)."""
    return np.column_stack([state.W, state.a])


def arrays(run: kit.Run) -> tuple[kit.Floats, kit.Floats, kit.Floats, kit.Floats]:
    """Return data and initial weights of a run."""
    s = read_setting(run)
    return s.x, s.y, s.W_0, s.a_0


@dataclass(frozen=True)
class End:
    """How a run ends."""

    fitted: bool
    norm: float
    value: float


def end_of(run: kit.Run) -> End:
    """Return whether the labels are `fitted`, and the final squared `norm` over the least of an
    interpolator.
    """
    s = read_setting(run)
    curve = loss_curve(run)
    last = state_at(run, run.iterations)
    return End(
        fitted=bool(curve.losses[-1] < FITTED * curve.start),
        norm=float(np.sum(parameters(last) ** 2) / minimum_norm_value(s.x, s.y)),
        value=float(np.sum(parameters(last) ** 2)),
    )


@dataclass(frozen=True)
class Along:
    """A run over its k states.

    `balance` is the largest `|a^2 - ||w||^2|` over the largest squared norm, `flipped` counts
    output weights that ever change their sign, `awoken` the pairs of neuron and point that are
    active after they were not. `norms` (k,) are squared norms over the least of an interpolator,
    `ratios` (k,) both sides of Eq. 31, `groups` the directions of the neurons that can be seen in
    the end.
    """

    setting: Setting
    end: End
    iterations: kit.Ints
    norms: kit.Floats
    ratios: kit.Floats
    balance: float
    flipped: int
    awoken: int
    groups: int


def along(run: kit.Run) -> Along:
    """Follow a run over its k states: what Lemmas 1, 6 and 14 speak of."""
    s = read_setting(run)
    curve = loss_curve(run)
    end = end_of(run)
    iterations = clock(run, run.snapshot_iterations)
    states = [state_at(run, int(i)) for i in iterations]
    inactive = np.array([s.x @ state.W.T < 0 for state in states])  # (k, n, m)
    awoken = (np.logical_or.accumulate(inactive) & ~inactive).any(axis=0)
    last = states[-1]
    return Along(
        setting=s,
        end=end,
        iterations=iterations,
        norms=np.array([np.sum(parameters(state) ** 2) for state in states])
        / minimum_norm_value(s.x, s.y),
        ratios=sides_of_eq_31(states, gradient_norms(states, s), curve, s),
        balance=max(float(np.abs(q.a**2 - q.norms**2).max()) for q in states)
        / float(last.norms.max() ** 2),
        flipped=int(np.any([q.signs != states[0].signs for q in states], axis=0).sum()),
        awoken=int(awoken.sum()),
        groups=kit.cluster_directions(last.W, signs=last.a, angle_tolerance=SAME).count,
    )


def others(run: kit.Run) -> tuple[float, float]:
    """Return the largest norms of other neurons over the bounds of Lemmas 3 (iii) and 4 (iv),
    NaN if never fitted.
    """
    s = read_setting(run)
    curve = loss_curve(run)
    if not s.usable:
        return NAN, NAN
    bound = float(np.linalg.norm(s.W_0, axis=1).max() / s.lambda_)
    bound *= s.lambda_ ** largest_epsilon(s.x, s.y)
    saddle = intermediate_saddle(s.x, s.y, LOSS_FACTOR).loss

    def largest(level: float, members: kit.Bools) -> float:
        time = curve.first_below(level)
        return float(state_at(run, int(time)).norms[~members].max()) if np.isfinite(time) else NAN

    second = largest(saddle * (1 + DONE), s.S_plus) / (2 * bound)
    return second, largest(saddle * DONE, s.S_plus | s.S_minus) / (3 * bound)


@dataclass(frozen=True)
class Resting:
    """Neurons of `S_{+,1}` (`S_{-,1}`) that start active on negative (positive) labels.

    `count` are the pairs of a neuron and a point at the start, `cosine` the largest |cosine| of
    theirs at the first recorded state after that time.
    """

    count: int
    cosine: float


def resting(run: kit.Run, sign: int) -> Resting:
    """Return where neurons of `S_{+,1}` (`S_{-,1}` for sign -1) that start active on labels of the
    other sign stand at the time `t_{+1}` of Lemma 7 (`t_{-1}` of Lemma 8).
    """
    s = read_setting(run)
    if not s.usable:
        return Resting(count=0, cosine=NAN)
    epsilon = largest_epsilon(s.x, s.y)
    length = D_norms(s.x, s.y)[sign < 0]
    time = -epsilon * np.log(s.lambda_) / (LOSS_FACTOR * s.lr * length)
    iterations = clock(run, run.snapshot_iterations)
    later = iterations[iterations >= time]
    state = state_at(run, int(later[0] if later.size else iterations[-1]))
    points = s.x[sign * s.y < 0]
    pairs = (points @ s.W_0.T > 0) & (s.S_plus if sign > 0 else s.S_minus)
    lengths = np.outer(np.linalg.norm(points, axis=1), state.norms)
    cosines = np.abs(points @ state.W.T) / lengths
    return Resting(count=int(pairs.sum()), cosine=float(cosines[pairs].max(initial=0.0)))


def claims(e: Evidence) -> list[kit.Claim]:
    least = e.ends[1e-9]
    large = e.ends[1e-1]
    plateaus, small_plateaus = (
        kit.find_plateaus(e.curves[scale].iterations, e.curves[scale].losses, floor=FLOOR)
        for scale in (1e-1, 1e-7)
    )
    all_fitted = all(end.fitted for end in e.ends.values())
    violated = all(not min(n.setting.S_plus.sum(), n.setting.S_minus.sum()) for n in e.narrow)
    narrow = violated and abs(e.wide.end.norm - 1) <= NEAR
    narrow_fitted = all(n.end.fitted for n in e.narrow)
    D = sum(float(np.linalg.norm(D)) for D in (e.wide.setting.D_plus, e.wide.setting.D_minus))
    least_value = 2 * len(e.wide.setting.y) * D
    whole, half = e.steps
    plus, minus = e.resting
    both_fitted = whole.end.fitted and half.end.fitted
    made = [
        kit.claim(
            "limit",
            "The limit does not depend on the scale as the scale goes to 0 (distances from the"
            " limit at the scale 1e-9: the largest ratio of one to that at a scale a hundred times"
            " as large)",
            "Theorem 1",
            kit.less_than(1),
            kit.given(all_fitted, (e.distances[:-1] / e.distances[1:]).max()),
        ),
        kit.claim(
            "limit-theory",
            r"At the scale 1e-9 the limit is the $\theta^*$ of Lemma 12, with the norm of every"
            r" neuron (distance over $\|\theta^*\|$)",
            "Proof of Lemma 12; limit of small steps",
            kit.at_most(1e-3),
            kit.given(least.fitted, e.to_theory),
        ),
        kit.claim(
            "larger-norm",
            r"From a larger scale, 0.1, parameters converge to minimal norm too ($\|\theta\|^2$"
            r" over the least)",
            "Section 3.2, Scale of initialisation",
            kit.around(1),
            kit.given(large.fitted, large.norm),
        ),
        kit.claim(
            "larger-saddle",
            "From the scale 0.1 there is no intermediate saddle, as there is from 1e-7 (plateaus of"
            " the loss)",
            "Section 3.2, Scale of initialisation",
            kit.exactly(0),
            kit.given(large.fitted and len(small_plateaus) > 1, len(plateaus)),
        ),
        kit.claim(
            "proposition-1",
            r"For eight orthonormal inputs the limit has the least norm (final $\|\theta\|^2$)",
            r"Theorem 1, Proposition 1: 2 n (||D+|| + ||D-||)",
            kit.near(least_value, MINIMAL * least_value),
            e.wide.end.value,
        ),
        kit.claim(
            "narrow-loss",
            "Without Assumption 3 (16 neurons) the loss still converges to 0 (networks of two)",
            "Section 3.2, The overparameterisation regime",
            kit.exactly(2),
            kit.given(violated, sum(n.end.fitted for n in e.narrow)),
        ),
        kit.claim(
            "narrow-norm",
            "Without Assumption 3 the norm is not minimal, as it is with it (least of two final"
            " squared norms over the least of an interpolator; within 10 % it counts as minimal, as"
            " from the larger scale)",
            "Section 3.2, The overparameterisation regime",
            kit.more_than(1 + NEAR),
            kit.given(narrow and narrow_fitted, min(n.end.norm for n in e.narrow)),
        ),
        kit.claim(
            "narrow-groups",
            "Without Assumption 3 the function has more than two kinks (fewest directions of"
            " neurons, of two networks)",
            "Section 3.2, The overparameterisation regime",
            kit.more_than(2),
            kit.given(narrow and narrow_fitted, min(n.groups for n in e.narrow)),
        ),
        kit.claim(
            "lemma-1",
            "$a_j^2 - \\|w_j\\|^2$ is conserved in the limit of small steps: its largest value on"
            " descent is of first order in the step (at the step 1e-3 over that at 5e-4, scale"
            " 1e-3)",
            "Lemma 1; an update adds $\\eta^2 (\\langle D_j, w_j \\rangle^2 - \\|D_j\\|^2 a_j^2)$",
            kit.around(2),
            kit.given(both_fitted, whole.balance / half.balance),
        ),
        kit.claim(
            "lemma-1-signs",
            "Output weights keep their signs (those that do not on descent, at both steps)",
            "Lemma 1",
            kit.exactly(0),
            kit.given(both_fitted, whole.flipped + half.flipped),
        ),
        kit.claim(
            "lemma-6",
            "A neuron that is not active on a point never becomes so (pairs that do, eight inputs"
            " and two)",
            "Lemma 6",
            kit.exactly(0),
            kit.given(
                e.wide.end.fitted and both_fitted, e.wide.awoken + whole.awoken + half.awoken
            ),
        ),
        kit.claim(
            "lemma-7",
            "Neurons of S+,1 rest on the boundary of negative points at the time of Lemma 7"
            f" (largest |cosine| with a point of {plus.count} pairs that start active; the"
            " width of a kink in Figure 2)",
            "Lemma 7 (iii)",
            kit.at_most(SAME_PLACE),
            kit.given(least.fitted and plus.count > 0, plus.cosine),
        ),
        kit.claim(
            "lemma-8",
            "Neurons of S-,1 rest on the boundary of positive points at the time of Lemma 8"
            f" (the same, {minus.count} pairs)",
            "Lemma 8 (iii)",
            kit.at_most(SAME_PLACE),
            kit.given(least.fitted and minus.count > 0, minus.cosine),
        ),
        kit.claim(
            "lemma-14",
            r"$\|\nabla L\|^2 \ge 2 L \min(u_-, u_+)/n$ in every state, eight orthonormal inputs"
            r" (least ratio)",
            "Lemma 14, Eq. 31",
            kit.at_least(1),
            kit.given(e.wide.end.fitted, np.nanmin([*e.wide.ratios, np.inf])),
        ),
        kit.claim(
            "lemma-3-iii",
            "When positive labels are fitted, neurons outside S+,1 are small (largest norm over its"
            " bound, scale 1e-9)",
            "Lemma 3 (iii): 2 c lambda^eps",
            kit.at_most(1),
            e.phases[0],
        ),
        kit.claim(
            "lemma-4-iv",
            "When negative labels are fitted too, neurons outside S+,1 and S-,1 are small (the"
            " same)",
            "Lemma 4 (iv): 3 c lambda^eps",
            kit.at_most(1),
            e.phases[1],
        ),
    ]
    of_eight = [claim for claim in made if claim.id in OF_EIGHT]
    others = [claim for claim in made if claim.id not in (*OF_EIGHT, *OF_ALL_DATA)]
    premised = presupposed(of_eight, e.wide.setting) + presupposed(others, whole.setting)
    by_id = {claim.id: claim for claim in premised}
    return [by_id.get(claim.id, claim) for claim in made]


def numbers(e: Evidence) -> dict[str, float]:
    """Return the distances of the limits, the stays at the saddle and the norms without
    Assumption 3.
    """
    at = {
        scale: int(np.sum(np.abs(curve.losses - 0.5) < 5e-3)) for scale, curve in e.curves.items()
    }
    return {
        **{
            f"distance of the limit at the scale {scale:g} from that at 1e-9": float(distance)
            for scale, distance in zip(LARGER, e.distances, strict=True)
        },
        **{
            f"iterations within 1 % of the intermediate saddle's loss, scale {scale:g}": at[scale]
            for scale in (1e-7, 1e-1)
        },
        **{
            f"norm without Assumption 3 over the least, seed {seed}": n.end.norm
            for seed, n in zip(NARROW, e.narrow, strict=True)
        },
        "distance of the limit at the scale 1e-9 from theta*, over its norm": e.to_theory,
        "norm at the scale 0.1 over the least": e.ends[1e-1].norm,
    }


def draw(e: Evidence) -> kit.Drawing:
    narrow = zip(NARROW, e.narrow, strict=True)
    runs = {"400 neurons": e.wide, **{f"16, seed {seed}": run for seed, run in narrow}}
    return kit.charts(
        kit.chart(
            "Loss, two points",
            r"training loss $L(\theta^t)$",
            [
                kit.line(curve.iterations, curve.losses, f"scale {scale:g}", "1.1")
                for scale, curve in e.curves.items()
            ],
            limits_x=(0, max(SCALES.values())),
            limits=(-0.03, 1.12),
        ),
        kit.chart(
            "Limits",
            "distance from the limit at 1e-9",
            kit.line(LARGER, e.distances, look="measured points"),
            xlabel="scale of the initial weights",
            log="xy",
        ),
        kit.chart(
            "Norm, eight points",
            r"$\Vert\theta\Vert^2$ over the least",
            [kit.line(run.iterations, run.norms, name, "1.1") for name, run in runs.items()],
            kit.level(1),
        ),
        kit.chart(
            "Lemma 14",
            "both sides of Eq. 31, ratio",
            kit.line(e.wide.iterations, e.wide.ratios, look="measured 1.1"),
            kit.level(1),
            log="y",
        ),
        legend="inside",
    )


OF_EIGHT = ("proposition-1", "lemma-14")
"""Claims whose premises are those of the eight points."""
OF_ALL_DATA = ("lemma-1", "lemma-1-signs")
"""Claims without a premise about data."""
NARROW = (0, 2)
"""Seeds of networks of 16 neurons for which both sets of Assumption 3 are empty: the first two."""


def _of_scale(scale: float, iterations: int) -> kit.Wanted:
    changes = (
        "dtype=float64",
        f"initialization.scale={scale!r}",
        f"optimizer.iterations={iterations}",
    )
    return kit.Wanted(ORTHOGONAL["orthogonal"], changes)


STEPS = _of_scale(1e-3, 2 * SCALES[1e-3])
ORTHONORMAL = "boursier2022/orthonormal.yaml"
NOT_ORTHOGONAL = {
    "boursier2022-orthogonal": ("dataset.x=[[0.5], [2.0]]",),
    "boursier2022-orthonormal": ("dataset.append_bias=true",),
}
"""Data without Assumption 1: the two points have the cosine 0.8, and the eight, with a constant as
a further input, 0.5.
"""
FIGURE = kit.Figure(
    id="boursier2022-statements",
    caption=(
        "(a) Loss of two orthogonal points from several scales of the initial weights. (b) Distance"
        " of the limits from the limit at the least scale. (c) Squared norm over the least of an"
        " interpolator of eight orthonormal points, with Assumption 3 (400 neurons) and without it"
        " (16). (d) The squared gradient over the bound of Lemma 14, in every recorded state of the"
        " 400 neurons."
    ),
    configs={
        **{role(scale): _of_scale(scale, iterations) for scale, iterations in SCALES.items()},
        HALF: kit.Wanted(STEPS.config, (*STEPS.overrides, "optimizer.lr=5.0e-4")),
        "wide": ORTHONORMAL,
        **{
            f"narrow {seed}": kit.Wanted(ORTHONORMAL, ("architecture.width=16", f"seed={seed}"))
            for seed in NARROW
        },
    },
    nulls={"data": NOT_ORTHOGONAL},
    passes={
        **PASSES,
        "shuffled": {"*": "The statements are for all labels, of eight points too."},
        "data": {
            "limit": "The limit does not depend on a small scale for other points either.",
            "larger-saddle": "From a larger scale both points are fitted at once, at any angle.",
            "lemma-1*": "Lemma 1 is for all data.",
            "lemma-14": (
                "Positive cosines add to the gradient, where negative ones would take from it."
            ),
        },
        "linear": {
            "limit": (
                "The limit of a linear network from a small start does not depend on the scale"
                " either."
            ),
            "narrow-loss": "Eight orthonormal points are fitted by a linear function too.",
            "lemma-1*": "Every homogeneous network is as balanced as it starts.",
            "lemma-14": (
                "Neurons of a linear network hear every point, which only adds to the gradient."
            ),
            "lemma-3-iii lemma-4-iv": (
                "The bounds are loose: sixty neurons that share the growth all keep below them."
            ),
        },
    },
)

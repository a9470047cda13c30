"""Theorem 1 and its lemmas: balanced gradient flow from near zero, followed in rescaled time to
its limit.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import NamedTuple

import numpy as np

from dynamics_cli import kit
from dynamics_cli.kinds import Samples, Streams
from dynamics_cli.measures.least_distance import least_distance

from .datasets.orthogonally_separable import OrthogonallySeparable
from .max_margin import Directions, max_margin
from .panels import from_zero, ray_lines
from .theory import sectors

CONFIG = "phuong2021/balanced.yaml"
NOT_SEPARABLE = (
    "[[1.0, 0.2], [0.3, 0.9], [2.5, 0.4], [2.0, 0.2], [3.0, 0.5],"
    " [-0.8, 0.9], [-0.2, -1.1], [-0.4, -2.5], [-0.3, -2.0], [-0.2, -3.0]]"
)
"""The points with one negative moved, so that Eq. 1 fails in both ways; a line still separates the
classes.
"""
ZERO = 0.01
"""Share of the norm below which a residual counts as zero."""
TIMES = (1e1, 1e4, 1e10, 1e16)
"""At which the residual is told."""
ENTERED = 0.9
"""Share of the neurons in their sector from which on it is asked whether any has left it."""
LATE = 1e20
"""From this time on the growth of the norm is fitted."""
WIDTH = 2
NETWORKS = 256
"""Of the networks that tell how often all neurons die."""
STARTS = 400
"""Directions that climb G, of each sign."""
DIMENSIONS = (5, 20)


@dataclass(frozen=True)
class Evidence:
    """Both runs, and what needs no run."""

    followed: dict[str, Followed]
    flow: Followed
    climbs: list[Climb]
    lemma_c1: float
    unlearnt: float


def evidence(runs: kit.Runs) -> Evidence:
    """Follow both runs to their limit, climb G from random starts, and count networks that learn
    nothing.
    """
    followed = {role: follow(runs[role]) for role in ("flow", "larger_start")}
    losses = np.asarray(runs["narrow"].losses)
    nothing = len(runs["narrow"].dataset().y) * np.log(2)
    return Evidence(
        followed=followed,
        flow=followed["flow"],
        climbs=[climb_from_starts(dim) for dim in DIMENSIONS],
        lemma_c1=max(kkt_of_limit(seed) for seed in range(5)),
        unlearnt=float(np.mean(losses[-1] > 0.99 * nothing)),
    )


@dataclass(frozen=True)
class Followed:
    """All states (K,) of a run of `balanced.yaml`."""

    data: Samples
    directions: Directions
    W: kit.Floats
    signs: kit.Floats
    times: kit.Floats
    weights: kit.Floats
    outputs: float
    function: float
    of_means: float
    squares: kit.Floats
    imbalance: float
    turned: int
    settled: float
    left: int
    lost: int
    closer: float
    share_live: float


def follow(run: kit.Run) -> Followed:
    """Measure all states (K,) of a run of `balanced.yaml`; `times` are those of gradient flow."""
    directions = max_margin(run)
    data = run.dataset()
    rays = directions.rays
    W, a = kit.recorded(run, "hidden_weight", "output_weight")  # (K, m, d), (K, m)
    assert run.times is not None
    places = np.searchsorted(run.loss_iterations, run.snapshot_iterations)
    points = np.random.default_rng(0).standard_normal((1000, data.x.shape[1]))
    signs = np.sign(a[-1])
    sector = sectors.sectors(W, data.x)
    wanted = np.stack([sectors.extremal_sector(data.x, data.y, int(sign)) for sign in signs])
    absorbed = (sector == wanted).all(axis=-1)  # (K, m)
    own = data.y == signs[:, None]  # (m, n) points of the neuron's class
    lengths = np.linalg.norm(W, axis=-1)
    live = (sector[-1] > 0).any(axis=-1)
    toward = np.where(signs > 0, *(kit.cosines(W[-1], ray) for ray in rays))
    to_means = np.where(signs > 0, *(kit.cosines(W[-1], mean) for mean in directions.means))
    return Followed(
        data,
        directions,
        W=W[-1],
        signs=signs,
        times=np.asarray(run.times)[places],
        weights=np.array([sectors.weight_residual(w, b, rays) for w, b in zip(W, a, strict=True)]),
        outputs=sectors.output_residual(W[-1], a[-1], rays),
        function=sectors.function_residual(W[-1], a[-1], rays, points),
        of_means=sectors.weight_residual(W[-1], a[-1], directions.means),
        squares=np.sum(W**2, axis=(-2, -1)),
        imbalance=float(np.max(np.abs(np.abs(a) - lengths) / lengths)),
        turned=int(np.count_nonzero(np.sign(a) != signs)),
        settled=float(np.mean(absorbed[-1] | ~live)),
        left=sectors.left_after(absorbed),
        lost=sectors.left_after((sector > 0) & own),
        closer=float(np.mean((toward > to_means)[live])) if live.any() else np.nan,
        share_live=float(np.mean(live)),
    )


class Climb(NamedTuple):
    """Where `STARTS` directions of each sign end that climb G."""

    missed: int
    """Those in another sector than Eqs. 13, 14 say."""
    apart: float
    """The largest distance of one from the direction of the gradient g there."""


@cache
def climb_from_starts(dim: int) -> Climb:
    """Climb G on points of a dimension."""
    x, y = separable_points(dim, 0)
    starts = np.random.default_rng(dim).standard_normal((STARTS, dim))
    missed = 0
    apart = 0.0
    for sign in (1, -1):
        ends = sectors.climb(starts, x, sign * y)
        ends = ends[(ends @ x.T > 0).any(axis=1)]
        reached = sectors.sectors(ends, x) == sectors.extremal_sector(x, y, sign)
        missed += int(np.count_nonzero(~reached.all(axis=1)))
        uphill = kit.directions(sectors.gradient(ends, x, sign * y))
        apart = max(apart, float(kit.norms(uphill - ends).max()))
    return Climb(missed, apart)


def separable_points(dim: int, seed: int) -> tuple[kit.Floats, kit.Floats]:
    """Return 100 points drawn as in Section 5.1, and their labels."""
    data = OrthogonallySeparable(kind="orthogonally_separable", n=100, dim=dim).load(Streams(seed))
    return data.x, data.y


@cache
def kkt_of_limit(seed: int) -> float:
    """Return the largest KKT violation of a network of ten neurons that Lemma C.1 describes,
    with random u and z.
    """
    x, y = separable_points(6, seed)
    solutions = [least_distance(x[y == sign]) for sign in (1, -1)]
    sizes = np.random.default_rng(seed).uniform(0.1, 1.0, 10)
    first = np.arange(10) < 5
    return sectors.kkt_residual(
        x,
        y,
        np.stack([solution.w for solution in solutions]),
        (solutions[0].multipliers, solutions[1].multipliers),
        np.where(first, sizes, 0.0),
        np.where(first, 0.0, sizes),
    )


def growth(run: Followed) -> float:
    """Return the slope of `||W||_F^2` in log t from `LATE` on; NaN for a run that ends before."""
    late = run.times >= LATE
    if np.count_nonzero(late) < 2:
        return np.nan
    return float(np.polyfit(np.log(run.times[late]), run.squares[late], 1)[0])


def claims(e: Evidence) -> list[kit.Claim]:
    flow = e.flow
    both = list(e.followed.values())
    zero = kit.Interval(None, ZERO, f"0, to {ZERO:g}")
    limit = float(np.linalg.norm(flow.directions.rays, axis=1).sum())
    entered = min(run.settled for run in both) > ENTERED  # else there is nothing to stay in
    return [
        kit.claim(
            "weights",
            r"$W/\|W\|_F$ tends to $u w_+^\top + z w_-^\top$ (norm of the difference at the end,"
            " the larger of two initial scales)",
            "Theorem 1, Eq. 8",
            zero,
            max(run.weights[-1] for run in both),
        ),
        kit.claim(
            "outputs",
            r"$a/\|a\|$ tends to $u \|w_+\| - z \|w_-\|$ (norm of the difference at the end, the"
            r" larger of two)",
            "Theorem 1, Eq. 9",
            zero,
            max(run.outputs for run in both),
        ),
        kit.claim(
            "function",
            r"$f(x)/\|\theta\|^2$ tends to $u \rho(w_+^\top x) - z \rho(w_-^\top x)$ (norm of the"
            " difference over that of f at 1000 Gaussian points, the larger of two)",
            "Corollary 1",
            zero,
            max(run.function for run in both),
        ),
        kit.claim(
            "closer",
            "Live neurons end closer to their max-margin direction than to the mean of its class"
            " (share, the smaller of two)",
            "Theorem 1",
            kit.exactly(1),
            min(run.closer for run in both),
        ),
        kit.claim(
            "norm",
            r"$\|W\|_F^2 / \log t$ tends to $\|w_+\| + \|w_-\|$ (slope from t = 1e20 on)",
            "Section 4.3, Eq. 22; the limit is derived from the margins of Theorem 1",
            kit.around(limit),
            growth(flow),
        ),
        kit.claim(
            "balance",
            r"$|a_j| = \|w_j\|$ throughout (largest difference over $\|w_j\|$)",
            "Lemma A.4",
            kit.Interval(None, 1e-3, "0, to 0.001"),
            max(run.imbalance for run in both),
            always=(
                "Gradient flow conserves the difference of both squares, and small steps nearly do."
            ),
        ),
        kit.claim(
            "signs",
            "No output weight crosses zero (states and neurons with another sign than at the end)",
            "Lemma A.4, Eq. 57",
            kit.exactly(0),
            sum(run.turned for run in both),
            always=(
                "A balanced neuron cannot change its sign in finite time, whatever the data are."
            ),
        ),
        kit.claim(
            "sectors",
            "Each neuron dies or ends in the extremal sector of its sign (share of neurons, the"
            " smaller of two)",
            "Lemma 1",
            kit.exactly(1),
            min(run.settled for run in both),
        ),
        kit.claim(
            "absorbing",
            "A neuron that is in its extremal sector stays there (states and neurons that have"
            " left it)",
            "Lemma 3",
            kit.exactly(0),
            kit.given(entered, sum(run.left for run in both)),
        ),
        kit.claim(
            "stays-active",
            "A neuron that is active for a point of its own class stays so (points, states and"
            " neurons at which it is not)",
            "Lemma B.1",
            kit.exactly(0),
            kit.given(entered, sum(run.lost for run in both)),
        ),
        kit.claim(
            "alive",
            f"All neurons die with probability $2^{{-p}}$ at most (share of {NETWORKS} networks of"
            f" width {WIDTH} that learn nothing)",
            "Theorem 1, Section 4.3",
            kit.at_most(0.5**WIDTH),
            e.unlearnt,
        ),
        *[
            kit.theory(
                f"one-sector-{dim}",
                f"{dim} dimensions: there is one positive and one negative extremal sector, that of"
                f" Eqs. 13 and 14 (of {2 * STARTS} directions that climb G, those that end in"
                " another)",
                "Lemma 2",
                kit.exactly(0),
                climb.missed,
            )
            for dim, climb in zip(DIMENSIONS, e.climbs, strict=True)
        ],
        kit.theory(
            "extremal",
            "At an extremal direction g is along it (largest distance of the unit vectors)",
            "Lemma A.1",
            kit.at_most(1e-9),
            max(climb.apart for climb in e.climbs),
        ),
        kit.theory(
            "kkt",
            "The limit is a KKT point of the non-linear max-margin problem (largest violation, five"
            " data sets)",
            "Lemma C.1",
            kit.at_most(1e-8),
            e.lemma_c1,
        ),
    ]


def numbers(e: Evidence) -> dict[str, float]:
    """Return the residual at some times, that of neurons along the class means, and the share of
    live neurons.
    """
    flow = e.flow
    reached = {
        f"residual at t = {time:g}": float(flow.weights[np.argmax(flow.times >= time)])
        for time in TIMES
        if (flow.times >= time).any()
    }
    return {
        **reached,
        "time of the last state": float(flow.times[-1]),
        "residual of neurons along the class means": flow.of_means,
        "share of neurons that stay alive": flow.share_live,
    }


def draw(e: Evidence) -> kit.Drawing:
    names = {"flow": "scale 1e-3", "larger_start": "scale 1e-2"}
    runs = [(f"$W$, {name}", e.followed[role]) for role, name in names.items()]
    late = [(name, run, run.times >= 1) for name, run in runs]
    end = np.log10(max(float(e.flow.times[-1]), 10.0))
    slope = np.linalg.norm(e.flow.directions.rays, axis=1).sum() * np.log(10)
    figure = kit.charts(
        _neurons(e.flow),
        kit.chart(
            "Distance to limit",
            "residual of Eq. 8",
            [kit.line(run.times[at], run.weights[at], name) for name, run, at in late],
            kit.level(e.flow.of_means, "along class means", "muted dotted 1.2"),
            xlabel="time $t$",
            log="xy",
        ),
        kit.chart(
            "Growth",
            r"$\|W\|_F^2$",
            [kit.line(np.log10(run.times[at]), run.squares[at]) for _, run, at in late],
            kit.line([0, end], [0, slope * end], r"$(\|w_+\| + \|w_-\|) \log t$", "theory dashed"),
            xlabel=r"$\log_{10} t$",
        ),
    )
    figure.axes[0].set_aspect("equal", adjustable="box")
    return figure


def _neurons(flow: Followed) -> kit.Chart:
    """Chart data, w+ and w-, class means and the neurons at the end, scaled to the data."""
    x, y = flow.data.x.T
    reach = 1.1 * float(np.abs(flow.data.x).max())
    neurons = flow.W / kit.norms(flow.W).max() * reach
    classes = ((1, "positive", "o", "$y = +1$"), (-1, "negative", "s", "$y = -1$"))
    return kit.chart(
        "Neurons at the end",
        "$x_2$",
        *(from_zero(neurons[flow.signs == sign], f"{role} 1.2") for sign, role, _, _ in classes),
        from_zero(2 * reach * kit.directions(flow.directions.means), "muted dotted 1.2"),
        ray_lines(flow.directions.rays, 2 * reach),
        *(
            kit.line(x[on], y[on], name, f"{role} {marker}")
            for sign, role, marker, name in classes
            for on in [flow.data.y == sign]
        ),
        xlabel="$x_1$",
        limits=(-reach, reach),
        limits_x=(-reach, reach),
    )


FIGURE = kit.Figure(
    id="phuong2021-theorem1",
    caption=(
        "Not a figure of the paper: Theorem 1 on ten points of the plane, by balanced gradient flow"
        " in rescaled time. (a) Neurons at the end, with the max-margin directions (dashed) and the"
        " class means (dotted). (b) Distance of the normalised first-layer weights to the closest"
        " limit of Theorem 1 against time, for two initial scales. (c) Squared norm of the weights"
        " against the logarithm of time, with the predicted slope."
    ),
    configs={
        "flow": CONFIG,
        "larger_start": kit.Wanted(CONFIG, ("initialization.scale=1e-2",)),
        "narrow": kit.Wanted(
            CONFIG,
            (
                f"architecture.width={WIDTH}",
                "initialization.scale=1e-2",
                "optimizer.loss_scaled=false",
                "optimizer.lr=5e-3",
                "optimizer.iterations=4000",
                "optimizer.stop_below=null",
                "record.snapshots.interval=4000",
            ),
            replicas=NETWORKS,
        ),
    },
    nulls={"data": (f"dataset.x={NOT_SEPARABLE}",)},
    passes={
        "data": {"alive": "The bound is from above, and hardly a network dies on these data."},
        "linear": {
            "sectors absorbing stays-active": (
                "Its neurons end along one separating direction or its opposite, which are in the"
                " two sectors."
            ),
            "outputs": "Equation 9 compares lengths, which an angle changes to second order only.",
            "alive": "A linear network cannot die.",
        },
    },
)

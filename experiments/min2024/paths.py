"""Figures 14 to 17: paths of activation counts (k_+, k_-) of real neurons along the directional
flow (Eq. 4).
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise, product

import numpy as np

from dynamics_cli import kit
from dynamics_cli.kinds import stream
from dynamics_cli.theory.sphere_flow import sphere_flow

from .theory.cones import DEAD, PLUS, activation_counts, regions, x_a
from .theory.early_alignment import (
    AlignmentConstants,
    alignment_constants,
    correspondence,
    edge_times,
    is_path,
    longest_times,
    maximal_path,
)

POSITIVE = 6
NEGATIVE = 5
DIM = 12
NEURONS = 400
SPREAD = 0.16
"""The data of the illustrations: unit vectors y_i x_i around a common direction."""
ON_BOUNDARY = 1e-9
LARGEST: kit.Ints = maximal_path(POSITIVE, NEGATIVE)
"""P_max."""
SHOWN = 10
"""Length of the paths of Figure 14, as of the paper's; 11 edges are the most."""
STEP = 1e-4
MOST = 20_000
"""Of the integration by small steps that the times of the flow are compared with."""
FEW = 5
"""Up to so many points of either label all paths are compared with the maximal one."""


@dataclass(frozen=True)
class CountPath:
    """One neuron on its way to S_+."""

    start: kit.Floats
    """(d,) the neuron at first."""
    counts: kit.Ints
    """(L + 1, 2) values of (k_+, k_-)."""
    times: kit.Floats
    """(L,) when they changed."""

    @property
    def time(self) -> float:
        """When S_+ was reached."""
        return float(self.times[-1])

    @property
    def edges(self) -> kit.Ints:
        """(L,) edges of P_max that bound its own."""
        return correspondence(self.counts, NEGATIVE)

    def bound(self, rate: float) -> float:
        """T(P)."""
        return float(edge_times(self.counts, rate).sum())

    def kind(self, loses: bool) -> kit.Bools:
        """Return which edges (L,) lose a negative point (or, if not `loses`, only gain positive
        points).
        """
        down = np.diff(self.counts[:, 1]) < 0
        return down if loses else ~down


@dataclass(frozen=True)
class Evidence:
    """Positive neurons on their way to S_+ or S_dead.

    `lost` counts live starts that did not reach S_+ or S_dead, or broke the definition of a path,
    `died_active` the neurons that died although they were active on a positive point at first.
    `maximal_time` is T(P_max), `marched` the time of the slowest neuron by small steps.
    """

    constants: AlignmentConstants
    slowest: float
    marched: float
    maximal_time: float
    paths: list[CountPath]
    lost: int
    died_active: int


def evidence(_: kit.Runs) -> Evidence:
    """Follow positive neurons of all kinds of starts to S_+ or S_dead; `paths` has the longest
    first.
    """
    rng = stream(0, "data")
    common = np.zeros(DIM)
    common[0] = 1.0
    u = common + SPREAD * rng.standard_normal((POSITIVE + NEGATIVE, DIM))
    y = np.array([1.0] * POSITIVE + [-1.0] * NEGATIVE)
    x = y[:, None] * u / np.linalg.norm(u, axis=1, keepdims=True)
    # starts that lean towards the negative data have long ways to go
    W = rng.standard_normal((NEURONS, DIM)) - 2.5 * common * (np.arange(NEURONS)[:, None] % 2)
    W = W[regions(x, y, W) != DEAD]
    constants = alignment_constants(x, y, W, np.ones(len(W)))
    flow = sphere_flow(x, y, W, np.ones(len(W)), [0.0, np.inf], loss_factor=len(x))
    ends = regions(x, y, flow.directions[-1])
    ends[(x @ flow.directions[-1].T).max(axis=0) <= ON_BOUNDARY] = (
        DEAD  # the last activation ends at its boundary
    )
    followed = [_path(x, y, W[j], flow.switches[j]) for j in np.flatnonzero(ends == PLUS)]
    paths = [path for path in followed if is_path(path.counts, POSITIVE, NEGATIVE)]
    dead = ends == DEAD
    started = activation_counts(x, y, W)[:, 0] > 0
    slowest = max(paths, key=lambda path: path.time if len(path.times) else 0.0)
    return Evidence(
        constants=constants,
        slowest=slowest.time,
        marched=march(x, y, slowest.start),
        maximal_time=float(edge_times(LARGEST, constants.rate).sum()),
        paths=sorted(
            (path for path in paths if len(path.times)), key=lambda path: -len(path.times)
        ),
        lost=len(ends) - len(paths) - int(dead.sum()),
        died_active=int((dead & started).sum()),
    )


def _path(x: kit.Floats, y: kit.Floats, w: kit.Floats, switches: kit.Floats) -> CountPath:
    """Return the path of one neuron: the counts between its changes of activation."""
    moments = np.concatenate([[0.0], switches])
    middles = np.concatenate([(moments[1:] + moments[:-1]) / 2, [moments[-1] + 1e-6]])
    followed = sphere_flow(x, y, w[None], [1.0], middles, loss_factor=len(x)).directions[:, 0]
    counts = activation_counts(x, y, followed)  # (L + 1, 2)
    moved = np.concatenate([[True], (np.diff(counts, axis=0) != 0).any(axis=1)])
    return CountPath(w, counts[moved], moments[moved][1:])


def march(x: kit.Floats, y: kit.Floats, w: kit.Floats) -> float:
    """Return when a neuron `w` (d,) reaches S_+ by small steps towards x_a(w) (Eq. 4); NaN after
    `MOST` steps.
    """
    direction = w / np.linalg.norm(w)
    for k in range(MOST):
        if ((x @ direction > 0) == (y > 0)).all():
            return k * STEP
        direction = direction + STEP * x_a(x, y, direction)
        direction = direction / np.linalg.norm(direction)
    return np.nan


def claims_fig14(e: Evidence) -> list[kit.Claim]:
    source = "Appendix C.2, Figure 14"
    return [
        kit.theory(
            "paths",
            "Every live positive neuron follows a path or dies (neurons that do neither)",
            source,
            kit.exactly(0),
            e.lost,
        ),
        kit.theory(
            "some",
            "There are real neurons on paths of length 10, as in the figure (neurons)",
            source,
            kit.at_least(1),
            sum(len(path.times) == SHOWN for path in e.paths),
        ),
        kit.theory(
            "bounded",
            "No neuron takes longer than T(P) of its own path (largest share)",
            "Appendix C.2",
            kit.at_most(1.0),
            max(path.time / path.bound(e.constants.rate) for path in e.paths),
        ),
        kit.theory(
            "active-live",
            "A neuron that starts active on a positive point does not die (those that did)",
            "Theorem 1",
            kit.exactly(0),
            e.died_active,
        ),
    ]


def claims_fig15(e: Evidence) -> list[kit.Claim]:
    source = "Appendix C.2, Figure 15"
    t1 = e.constants.t1
    sizes = [*product(range(1, FEW + 1), repeat=2)]
    exact = [
        longest_times(plus, minus).max() / edge_times(maximal_path(plus, minus), 4.0).sum()
        for plus, minus in sizes
    ]
    return [
        kit.theory(
            "length",
            "The maximal path has n+ + n- edges",
            source,
            kit.exactly(POSITIVE + NEGATIVE),
            len(LARGEST) - 1,
        ),
        kit.theory(
            "largest",
            "Any path has at most the travel time of the maximal one (largest T(P) / T(Pmax))",
            source,
            kit.at_most(1.0),
            max(path.bound(e.constants.rate) for path in e.paths) / e.maximal_time,
        ),
        kit.theory(
            "all-paths",
            "Of all paths the maximal one has the largest travel time, for n+ and n- up to 5"
            " (largest T(P) / T(Pmax))",
            source,
            kit.near(1.0, 1e-12),
            max(exact),
        ),
        kit.theory(
            "below-t1",
            "T(Pmax) is at most t1 (ratio)",
            "Appendix C.2",
            kit.at_most(1.0),
            e.maximal_time / t1,
        ),
        kit.theory(
            "measured",
            "No neuron takes longer than t1 to reach S+ (largest time over t1)",
            "Theorem 1",
            kit.at_most(1.0),
            e.slowest / t1,
        ),
        kit.theory(
            "speed",
            "Directions move at the speed of Eq. 4, neither faster nor slower (largest time over"
            " that of small steps)",
            "Eq. 4; 1 % for the steps",
            kit.near(1.0, 0.01),
            e.slowest / e.marched,
        ),
    ]


def _partners(e: Evidence, source: str, *, loses: bool) -> list[kit.Claim]:
    """Check for all measured paths that partners take at least as long and are used once
    (Figures 16 and 17).
    """
    longest = edge_times(LARGEST, e.constants.rate)
    shares = [0.0]
    twice = 0
    for path in e.paths:
        ratios = edge_times(path.counts, e.constants.rate) / longest[path.edges]
        shares += ratios[path.kind(loses)].tolist()
        twice += len(path.edges) - len(set(path.edges.tolist()))
    return [
        kit.theory(
            "shorter",
            "The travel time of an edge is at most its partner's in the maximal path (largest"
            " ratio)",
            source,
            kit.at_most(1.0),
            max(shares),
        ),
        kit.theory(
            "once",
            "The correspondence is one to one (edges of the maximal path that are used again)",
            source,
            kit.exactly(0),
            twice,
        ),
    ]


def _grid(height: float) -> tuple[kit.Drawing, kit.Axes]:
    """Return a figure with the grid of counts and some more height for its legend."""
    figure, (axes,) = kit.new_figure(1, width=3.6, aspect=0.95, extra_height=height)
    for plus in range(POSITIVE + 1):
        for minus in range(NEGATIVE + 1):
            if plus or minus:
                axes.plot(plus, minus, kit.MARKER, ms=2.5, color=kit.PALETTE.faint, zorder=1)
    axes.set(
        xlabel="$k_+$", ylabel="$k_-$", xlim=(-0.5, POSITIVE + 0.5), ylim=(-0.5, NEGATIVE + 0.5)
    )
    axes.set_aspect("equal")
    return figure, axes


def _draw_path(
    axes: kit.Axes, counts: kit.Ints, color: str, label: str, *, style: str, shift: float
) -> None:
    """Draw a path (L + 1, 2) as arrows."""
    points = counts + shift
    axes.plot(*points.T, color=color, ls=style, marker=kit.MARKER, ms=3.5, label=label, zorder=3)
    for start, end in pairwise(points):
        middle = (start + end) / 2
        step = 0.12 * (end - start) / np.linalg.norm(end - start)
        axes.annotate(
            "",
            middle + step,
            middle - step,
            arrowprops={"arrowstyle": "-|>", "color": color, "lw": 0.8},
        )


def _draw_both(axes: kit.Axes, e: Evidence, measured: str, largest: str) -> None:
    """Draw the longest measured path and the maximal one."""
    _draw_path(axes, e.paths[0].counts, kit.PALETTE.measured, measured, style="-", shift=0.06)
    _draw_path(axes, LARGEST, kit.PALETTE.theory, largest, style="--", shift=-0.06)


def _shown(paths: list[CountPath]) -> list[CountPath]:
    """Return three different paths of the length of the figure, or as many as there are."""
    different = {path.counts.tobytes(): path for path in paths if len(path.times) == SHOWN}
    found = sorted(different.values(), key=lambda path: path.time)
    return found[:: max(1, (len(found) - 1) // 2)][:3]


def draw_fig14(e: Evidence) -> kit.Drawing:
    figure, axes = _grid(0.35)
    for k, path in enumerate(_shown(e.paths)):
        label = (
            f"reaches $S_+$ at {path.time:.2f}, $T(P)$ ="
            f" {kit.format_number(round(path.bound(e.constants.rate)))}"
        )
        _draw_path(
            axes,
            path.counts,
            f"C{k}",
            label,
            style=("-", "--", "-.")[k],
            shift=0.09 * (k - 1),
        )
    kit.figure_legend(figure, kit.labelled(axes), columns=1)
    return figure


def draw_fig15(e: Evidence) -> kit.Drawing:
    figure, axes = _grid(0.3)
    path = e.paths[0]
    measured = (
        f"measured: {path.time:.2f}, $T(P)$ ="
        f" {kit.format_number(round(path.bound(e.constants.rate)))}"
    )
    _draw_both(
        axes, e, measured, rf"$P_{{\max}}$: $T$ = {kit.format_number(round(e.maximal_time))}"
    )
    kit.figure_legend(figure, kit.labelled(axes), columns=1)
    return figure


def _draw_partners(e: Evidence, *, loses: bool) -> kit.Drawing:
    """Draw the longest measured path, the maximal one, and arrows between partners."""
    figure, axes = _grid(0.3)
    _draw_both(axes, e, "measured path", r"$P_{\max}$")
    path = e.paths[0]
    middles = (path.counts[1:] + path.counts[:-1]) / 2 + 0.06
    upper = (LARGEST[1:] + LARGEST[:-1])[path.edges] / 2 - 0.06
    for start, end, kept in zip(middles, upper, path.kind(loses), strict=True):
        if kept and np.linalg.norm(end - start) > 0.3:
            look = {
                "arrowstyle": "->",
                "color": kit.PALETTE.rank,
                "lw": 0.9,
                "connectionstyle": "arc3,rad=0.15",
            }
            axes.annotate("", end, start, arrowprops=look, zorder=4)
    axes.plot([], [], color=kit.PALETTE.rank, lw=0.9, label="takes at least as long")
    kit.figure_legend(figure, kit.labelled(axes), columns=3)
    return figure


def _figure(number: int, caption: str, *, loses: bool | None = None) -> kit.Figure:
    """Return a figure; with `loses` of the partners of edges that lose a negative, or gain a
    positive point.
    """
    if loses is None:
        return kit.Figure(id=f"min2024-fig{number}", caption=caption)
    return kit.Figure(
        id=f"min2024-fig{number}",
        caption=caption,
        claims=lambda e: _partners(e, f"Appendix C.2, Figure {number}", loses=loses),
        draw=lambda e: _draw_partners(e, loses=loses),
    )


PARTNERS = (
    "Arrows join every edge that {} point to the edge of the maximal path that takes at least as"
    " long; no edge of the maximal path is used twice."
)
FIGURES = kit.by_id(
    _figure(
        14,
        "Three different paths of length 10: the counts (k+, k-) of positive and negative points on"
        " which a neuron is active, along the directional flow: k+ never falls, k- never rises, the"
        " end is (n+, 0).",
    ),
    _figure(
        15,
        "The longest measured path beside the maximal path of n+ + n- edges, whose travel time"
        " bounds every path's and is itself below t1.",
    ),
    _figure(16, PARTNERS.format("loses a negative"), loses=True),
    _figure(17, PARTNERS.format("gains a positive"), loses=False),
)

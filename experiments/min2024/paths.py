"""Figures 14 to 17: paths of activation counts (k_+, k_-) of real neurons along the directional flow (Eq. 4)."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from matplotlib.axes import Axes

from dynamics_cli.datasets.streams import stream
from dynamics_cli.measures.arrays import Floats, Ints
from dynamics_cli.measures.regions import DEAD, PLUS, activation_counts, regions
from dynamics_cli.plotting.style import PALETTE
from dynamics_cli.reproduction.figure import Origin, Runs
from dynamics_cli.theory.early_alignment import (
    AlignmentConstants,
    alignment_constants,
    check_path,
    correspondence,
    maximal_path,
    travel_time,
)
from dynamics_cli.theory.sphere_flow import sphere_flow

POSITIVE, NEGATIVE, DIM, NEURONS, SPREAD = 6, 5, 12, 400, 0.16
"""The data of the illustrations: unit vectors y_i x_i around a common direction."""
ON_BOUNDARY = 1e-9
ORIGIN: dict[str, Origin] = {"data": "assumed", "neurons": "assumed"}


@dataclass(frozen=True)
class Path:
    """One neuron on its way to S_+."""

    counts: Ints
    """(L + 1, 2) values of (k_+, k_-)."""
    times: Floats
    """(L,) when they changed."""
    bound: float
    """T(P)."""
    edges: Ints
    """(L,) edges of P_max that bound its own."""

    @property
    def time(self) -> float:
        """When S_+ was reached."""
        return float(self.times[-1])


@dataclass(frozen=True)
class Evidence:
    """Paths of the positive neurons, the longest first."""

    constants: AlignmentConstants
    paths: list[Path]
    longest_possible: Ints
    """P_max."""
    maximal_time: float
    """T(P_max)."""
    lost: int
    """Live starts that did not reach S_+ or S_dead, or broke the definition of a path."""
    died: int
    died_active: int
    """Of those that died, the ones that were active on a positive point at first."""


def evidence(_: Runs) -> Evidence:
    """Follow positive neurons of all kinds of starts to S_+ or S_dead."""
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
    ends[(x @ flow.directions[-1].T).max(axis=0) <= ON_BOUNDARY] = DEAD  # the last activation ends at its boundary
    found, lost = list[Path](), 0
    for j in np.flatnonzero(ends == PLUS):
        try:
            found.append(_path(x, y, W[j], constants, flow.switches[j]))
        except ValueError:
            lost += 1
    found = sorted((path for path in found if len(path.times)), key=lambda path: -len(path.times))
    dead = ends == DEAD
    started = activation_counts(x, y, W)[:, 0] > 0
    largest = maximal_path(POSITIVE, NEGATIVE)
    return Evidence(
        constants=constants,
        paths=found,
        longest_possible=largest,
        maximal_time=travel_time(largest, constants.rate),
        lost=lost + int(np.count_nonzero(~dead & (ends != PLUS))),
        died=int(dead.sum()),
        died_active=int(np.count_nonzero(dead & started)),
    )


def _path(x: Floats, y: Floats, w: Floats, constants: AlignmentConstants, switches: Floats) -> Path:
    """Return the path of one neuron: the counts between its changes of activation."""
    moments = np.concatenate([[0.0], switches])
    middles = np.concatenate([(moments[1:] + moments[:-1]) / 2, [moments[-1] + 1e-6]])
    followed = sphere_flow(x, y, w[None], [1.0], middles, loss_factor=len(x)).directions[:, 0]
    counts = activation_counts(x, y, followed)  # (L + 1, 2)
    moved = np.concatenate([[True], (np.diff(counts, axis=0) != 0).any(axis=1)])
    counts, times = counts[moved], moments[moved][1:]
    check_path(counts, POSITIVE, NEGATIVE)
    edges = correspondence(counts, POSITIVE, NEGATIVE)
    return Path(counts, times, travel_time(counts, constants.rate), edges)


def draw_grid(axes: Axes) -> None:
    """Draw the grid of counts."""
    for plus in range(POSITIVE + 1):
        for minus in range(NEGATIVE + 1):
            if plus or minus:
                axes.plot(plus, minus, "o", ms=2.5, color=PALETTE.faint, zorder=1)
    axes.set(xlabel="$k_+$", ylabel="$k_-$", xlim=(-0.5, POSITIVE + 0.5), ylim=(-0.5, NEGATIVE + 0.5))
    axes.set_aspect("equal")


def draw_path(axes: Axes, counts: Ints, color: str, label: str, *, style: str = "-", shift: float = 0.0) -> None:
    """Draw a path (L + 1, 2) as arrows."""
    points = counts + shift
    axes.plot(*points.T, color=color, ls=style, marker="o", ms=3.5, label=label, zorder=3)
    for start, end in pairwise(points):
        middle = (start + end) / 2
        step = 0.12 * (end - start) / np.linalg.norm(end - start)
        axes.annotate("", middle + step, middle - step, arrowprops={"arrowstyle": "-|>", "color": color, "lw": 0.8})

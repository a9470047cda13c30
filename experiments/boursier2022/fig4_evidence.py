"""What Figure 4 is made of: five states of the five-point run, its loss, and how groups of neurons grew and turned."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dynamics_cli.measures.arrays import Floats
from dynamics_cli.measures.clusters import Clusters, cluster_directions, distinct_kinks, significant
from dynamics_cli.measures.curves import Plateau, escape_iteration, plateau_at
from dynamics_cli.measures.neurons import angle_of
from dynamics_cli.reproduction.figure import Runs

from .five_points import VISIBLE, aligned_share, turns
from .states import LineState, is_flow, line_state, loss_curve

ITERATIONS = (0, 15000, 94000, 150000, 300000)
"""Of panels a to e."""

GROUP_ANGLE = 30.0
"""Neurons linked by steps of at most this angle (degrees) are one group of the figure."""
NARROW_ANGLE = 10.0
"""A stricter choice, reported as a finding."""
TURN = 1.0
"""A turn of one degree counts; for orthogonal data neurons that have grown turn by less than 1e-6 degrees."""


@dataclass(frozen=True)
class Evidence:
    """Five states, the loss, and how groups of neurons grew and turned."""

    x: Floats
    """(n,) inputs without the constant."""
    y: Floats
    states: list[LineState]
    """At `ITERATIONS`."""
    iterations: NDArray[np.int64]
    losses: Floats
    flow: bool
    """Whether the run is gradient flow itself."""
    aligned: float
    """Share of the visible neurons that at the end of early alignment lie within 5 degrees of the limit of Eq. 10."""
    early_groups: int
    """Number of directions of visible neurons then."""
    plateau: Plateau
    """Around iteration 94 000, within 1 % of the loss there."""
    escape: float
    """Iteration at which it is left (loss down by 1 %); NaN if never."""
    groups: Clusters
    """Groups of visible neurons at the saddle."""
    narrow_groups: int
    """The same when steps of at most 10 degrees link neurons."""
    turn_before: float
    """Least angle by which a visible neuron turned between the end of alignment and the saddle."""
    turn_after: float
    """Largest angle by which a neuron that grew since the saddle had turned at iteration 150 000."""
    growth: float
    """Sum of squared norms at 150 000 over that at the saddle."""
    kinks: list[float]
    """Kinks of non-negligible neurons at the end, within the range of the inputs."""
    all_kinks: int
    flipped: int
    """Output weights that changed their sign by the saddle."""
    negative: int
    """Neurons with a negative output weight that are active on some point at the saddle."""
    final_angles: list[float]
    """Directions of the two heaviest groups at the end."""


def evidence(runs: Runs) -> Evidence:
    """Measure states, groups and turns of the five-point run."""
    run = runs["five_points"]
    dataset = run.dataset()
    x = dataset.x[:, 0]
    states = [line_state(run, iteration) for iteration in ITERATIONS]
    start, early, saddle, leaving, end = states
    iterations, losses = loss_curve(run)
    at_saddle = float(losses[np.argmin(np.abs(iterations - saddle.iteration))])
    escape = escape_iteration(iterations, losses, at_saddle, drop=0.01)
    aligned, count = aligned_share(dataset.x, dataset.y, start, early)
    grew = significant(leaving.W, VISIBLE) & (leaving.norms > saddle.norms)
    return Evidence(
        x=x,
        y=dataset.y,
        states=states,
        iterations=iterations,
        losses=losses,
        flow=is_flow(run),
        aligned=aligned,
        early_groups=count,
        plateau=plateau_at(iterations, losses, saddle.iteration, tolerance=0.01 * at_saddle),
        escape=float("nan") if escape is None else float(escape),
        groups=cluster_directions(saddle.W, signs=saddle.a, relative_norm=VISIBLE, angle_tolerance=GROUP_ANGLE),
        narrow_groups=cluster_directions(
            saddle.W, signs=saddle.a, relative_norm=VISIBLE, angle_tolerance=NARROW_ANGLE
        ).count,
        turn_before=float(turns(early, saddle)[significant(saddle.W, VISIBLE)].min()),
        turn_after=float(turns(saddle, leaving)[grew].max(initial=0.0)),
        growth=float(np.sum(leaving.norms**2) / np.sum(saddle.norms**2)),
        kinks=distinct_kinks(end.W, within=(float(x.min()), float(x.max()))).tolist(),
        all_kinks=len(distinct_kinks(end.W)),
        flipped=int(np.sum(saddle.signs != start.signs)),
        negative=int(np.sum((saddle.a < 0) & (dataset.x @ saddle.W.T > 0).any(axis=0))),
        final_angles=angle_of(
            cluster_directions(end.W, signs=end.a, relative_norm=VISIBLE, angle_tolerance=GROUP_ANGLE).directions
        ).tolist()[:2],
    )

"""When parameters, measures and losses are recorded; known before a run starts."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dynamics_cli.config.record import GeometricSnapshots, RegularSnapshots, Snapshots

Iterations = NDArray[np.int64]


def snapshot_iterations(snapshots: Snapshots, total: int) -> Iterations:
    """Return the states that are recorded, ascending, always with states 0 and `total`.

    Args:
        snapshots: the schedule of the config.
        total: number of updates of the run.

    """
    chosen = {0, total, *(i for i in snapshots.include if i <= total)}
    if isinstance(snapshots, GeometricSnapshots):
        last = 0
        while last < total:
            chosen.add(last)
            last = int(snapshots.ratio * last) + 1
    elif isinstance(snapshots, RegularSnapshots):
        return np.union1d(np.arange(0, total, snapshots.interval), sorted(chosen)).astype(np.int64)
    return np.array(sorted(chosen), dtype=np.int64)


def next_after(schedule: Iterations, iteration: int) -> int:
    """Return the first scheduled iteration after `iteration`, or the last one of the schedule."""
    k = int(np.searchsorted(schedule, iteration, side="right"))
    return int(schedule[min(k, len(schedule) - 1)])

"""When parameters, measures and losses are recorded; known before a run starts."""

from __future__ import annotations

from array import array

import numpy as np
from numpy.typing import NDArray

from dynamics_cli.config.record import GeometricSnapshots, RegularSnapshots, Snapshots
from dynamics_cli.errors import InputError

Iterations = NDArray[np.int64]

MAX_SNAPSHOTS = 10**7
"""More states than this are not recorded; listing them would take longer than many a run."""
_TOO_MANY = "states would be recorded, too many to list; take"


def snapshot_iterations(snapshots: Snapshots, total: int) -> Iterations:
    """Return the states that are recorded, ascending, always with states 0 and `total`.

    Args:
        snapshots: the schedule of the config.
        total: number of updates of the run.

    Raises:
        InputError: these would be too many to be recorded.

    """
    if isinstance(snapshots, RegularSnapshots) and total // snapshots.interval > MAX_SNAPSHOTS:
        raise InputError(f"record.snapshots: {total // snapshots.interval:.3g} {_TOO_MANY} a larger interval")
    chosen = {0, total, *(i for i in snapshots.include if i <= total)}
    if isinstance(snapshots, GeometricSnapshots):
        last, regular = 0, array("q")  # eight bytes a state, where a set of integers takes a hundred
        # the first states follow each other one by one, as long as (ratio - 1) last < 1
        too_many = min(total, 1 / (snapshots.ratio - 1)) > MAX_SNAPSHOTS
        while last < total and not too_many:
            regular.append(last)
            last = int(snapshots.ratio * last) + 1
            too_many = len(regular) > MAX_SNAPSHOTS
        if too_many:
            raise InputError(f"record.snapshots: more than {MAX_SNAPSHOTS:.3g} {_TOO_MANY} a larger ratio")
        return np.union1d(np.array(regular), sorted(chosen)).astype(np.int64)
    if isinstance(snapshots, RegularSnapshots):
        return np.union1d(np.arange(0, total, snapshots.interval), sorted(chosen)).astype(np.int64)
    return np.array(sorted(chosen), dtype=np.int64)


def next_after(schedule: Iterations, iteration: int) -> int:
    """Return the first scheduled iteration after `iteration`, or the last one of the schedule."""
    k = int(np.searchsorted(schedule, iteration, side="right"))
    return int(schedule[min(k, len(schedule) - 1)])

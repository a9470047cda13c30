"""When parameters, measures and losses are recorded; known before a run starts."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dynamics_cli.config.bases import Snapshots
from dynamics_cli.errors import InputError

Iterations = NDArray[np.int64]

MAX_SNAPSHOTS = 10**7
"""More states than this are not recorded; listing them would take longer than many a run."""


def snapshot_iterations(snapshots: Snapshots, total: int) -> Iterations:
    """Return the states that are recorded, ascending, always with states 0 and `total`.

    Args:
        snapshots: the schedule of the config.
        total: number of updates of the run.

    Raises:
        InputError: these would be too many to be recorded.

    """
    states = snapshots.regular(total, MAX_SNAPSHOTS + 1)  # state 0 is one more than the limit counts
    if len(states) > MAX_SNAPSHOTS + 1:
        raise InputError(
            f"record.snapshots: more than {MAX_SNAPSHOTS:.0e} states would be recorded, too many to list; "
            f"take {snapshots.fewer}"
        )
    chosen = {0, total, *(i for i in snapshots.include if i <= total)}
    return np.union1d(np.array(states), sorted(chosen)).astype(np.int64)


def next_after(schedule: Iterations, iteration: int) -> int:
    """Return the first scheduled iteration after `iteration`, or the last one of the schedule."""
    k = int(np.searchsorted(schedule, iteration, side="right"))
    return int(schedule[min(k, len(schedule) - 1)])

"""When the states of a run are recorded."""

from __future__ import annotations

from typing import Annotated

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from dynamics_cli.errors import InputError
from dynamics_cli.kinds import PositiveInt, Snapshots


class Geometric(Snapshots, kind="geometric"):
    """`next = int(ratio * last) + 1`, as the code released with Boursier et al. 2022 does."""

    ratio: Annotated[float, Field(gt=1)] = 1.05
    """Growth from one recorded iteration to the next."""

    def next_after(self, iteration: int) -> int:
        """Return `int(ratio * iteration) + 1`."""
        return int(self.ratio * iteration) + 1


class Every(Snapshots, kind="every"):
    """Every `interval` iterations."""

    example = "{kind: every, interval: 100}"
    interval: PositiveInt
    """Iterations between two snapshots."""

    def next_after(self, iteration: int) -> int:
        """Return `iteration + interval`."""
        return iteration + self.interval


class Listed(Snapshots, kind="list"):
    """Only the iterations listed under `include`, besides the first and the last state."""

    example = "{kind: list, include: [10, 100]}"

    def next_after(self, iteration: int) -> None:
        """Return None: there is no schedule."""
        return None


Iterations = NDArray[np.int64]

MAX_SNAPSHOTS = 10**6
"""More states than this are not recorded; listing them would take longer than many a run."""


def snapshot_iterations(snapshots: Snapshots, total: int) -> Iterations:
    """Return the states that are recorded, ascending, always with states 0 and `total`.

    Args:
        snapshots: the schedule of the config.
        total: number of updates of the run.

    Raises:
        InputError: these would be too many to be recorded.

    """
    states: list[int] = []
    following: int | None = 0
    while following is not None and following <= total:
        if len(states) > MAX_SNAPSHOTS:  # state 0 does not count
            raise InputError(
                f"record.snapshots: more than {MAX_SNAPSHOTS:.0e} states would be recorded, too"
                " many to list; take a larger ratio or interval"
            )
        states.append(following)
        following = snapshots.next_after(following)
    included = [i for i in snapshots.include if i <= total]
    return np.unique(np.array([0, total, *included, *states], np.int64))


def next_after(schedule: Iterations, iteration: int) -> int:
    """Return the first scheduled iteration after `iteration`, or the last of the schedule."""
    k = int(np.searchsorted(schedule, iteration, side="right"))
    return int(schedule[min(k, len(schedule) - 1)])

"""The base class of schedules by which states are recorded, and the states that they record."""

from __future__ import annotations

from abc import abstractmethod
from typing import Annotated, ClassVar

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from dynamics_cli.errors import InputError
from dynamics_cli.kinds.base import Kind

Iterations = NDArray[np.int64]
MAX_SNAPSHOTS = 10**6
"""More states than this are not recorded; listing them would take longer than many a run."""


class Snapshots(Kind):
    """When weights and measures are recorded; states 0 and N always are."""

    section: ClassVar[str] = "snapshots"
    include: list[Annotated[int, Field(ge=0, lt=2**63)]] = Field(default_factory=list)
    """Iterations kept besides the schedule; iterations after the end of the run are not
    reached.
    """

    @abstractmethod
    def next_after(self, iteration: int) -> int | None:
        """Return the state of the schedule after a given state; None after the last."""


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


def between(schedule: Iterations, first: int, last: int) -> Iterations:
    """Return the scheduled iterations after `first`, up to `last`."""
    ends = np.searchsorted(schedule, [first, last], side="right").tolist()
    return schedule[slice(*ends)]

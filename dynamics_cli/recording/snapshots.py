"""When the states of a run are recorded."""

from __future__ import annotations

from array import array
from typing import Annotated

from pydantic import Field

from dynamics_cli.config.base import PositiveInt
from dynamics_cli.config.bases import Snapshots


class Geometric(Snapshots, kind="geometric"):
    """`next = int(ratio * last) + 1`, as the code released with Boursier et al. 2022 does."""

    fewer = "a larger ratio"
    ratio: Annotated[float, Field(gt=1)] = 1.05
    """Growth from one recorded iteration to the next."""

    def next_after(self, iteration: int) -> int:
        """Return `int(ratio * iteration) + 1`."""
        return int(self.ratio * iteration) + 1

    def regular(self, total: int, most: int) -> array[int]:
        """Return the states of the schedule; without a loop where the first ones alone are too many."""
        one_by_one = min(total, 1 / (self.ratio - 1))  # as long as (ratio - 1) last < 1
        return array("q", range(most + 1)) if one_by_one > most else super().regular(total, most)


class Every(Snapshots, kind="every"):
    """Every `interval` iterations."""

    example = "{kind: every, interval: 100}"
    fewer = "a larger interval"
    interval: PositiveInt
    """Iterations between two snapshots."""

    def next_after(self, iteration: int) -> int:
        """Return `iteration + interval`."""
        return iteration + self.interval

    def regular(self, total: int, most: int) -> array[int]:
        """Return the states of the schedule."""
        return array("q", range(0, min(total + 1, self.interval * (most + 1)), self.interval))


class Listed(Snapshots, kind="list"):
    """Only the iterations listed under `include`, besides the first and the last state."""

    example = "{kind: list, include: [10, 100]}"

    def next_after(self, iteration: int) -> None:
        """Return None: there is no schedule."""
        return None

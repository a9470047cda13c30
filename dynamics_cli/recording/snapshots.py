"""Schedules by which the states of a run are recorded."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

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

"""What a run keeps, and when."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Literal

from pydantic import Field, model_validator

from dynamics_cli.config.base import PositiveInt, Section

Iteration = Annotated[int, Field(ge=0, lt=2**63)]


class SnapshotSection(Section):
    """What all snapshot schedules share; states 0 and N are always kept."""

    include: list[Iteration] = Field(default_factory=list)
    """Iterations kept besides those of the schedule; those after the end of the run are not reached."""


class GeometricSnapshots(SnapshotSection):
    """`next = int(ratio * last) + 1`, as the code released with Boursier et al. 2022 does."""

    kind: Literal["geometric"] = "geometric"
    ratio: Annotated[float, Field(gt=1)] = 1.05
    """Growth from one recorded iteration to the next."""


class RegularSnapshots(SnapshotSection):
    """Every `interval` iterations."""

    kind: Literal["every"]
    interval: PositiveInt
    """Iterations between two snapshots."""


class ListedSnapshots(SnapshotSection):
    """Only the iterations listed under `include`, besides the first and the last state."""

    kind: Literal["list"]


Snapshots = Annotated[GeometricSnapshots | RegularSnapshots | ListedSnapshots, Field(discriminator="kind")]


class Record(Section):
    """What is written into the run directory."""

    snapshots: Snapshots = Field(default_factory=GeometricSnapshots)
    """When parameters and measures are recorded."""
    parameters: Literal["all", "none"] | list[str] = "all"
    """Which parameters are recorded: all, none, or a list of names."""
    measures: list[str] | None = None
    """Which measures are recorded (default: those that the loss and the data set offer, e.g. accuracies)."""
    loss_every: PositiveInt | None = None
    """Iterations between two recorded losses (default: 1 for full batch, an epoch otherwise)."""
    limit_gib: Annotated[float, Field(gt=0)] = 4.0
    """Refuse a run whose recording is estimated above this size, in GiB."""

    @model_validator(mode="before")
    @classmethod
    def _geometric_unless_said(cls, data: object) -> object:
        """Let `snapshots: {ratio: 1.1}` mean the default kind."""
        if isinstance(data, Mapping) and isinstance(snapshots := data.get("snapshots"), Mapping):
            return {**data, "snapshots": {"kind": "geometric", **snapshots}}
        return data

"""The whole config of one run."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field

from dynamics_cli.config.base import PositiveInt, Section
from dynamics_cli.config.bases import Architecture, Dataset, Initialization, Loss, Measure, Optimizer, Snapshots
from dynamics_cli.config.registry import OneOf, get_kind

Name = Annotated[str, Field(min_length=1, max_length=80, pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$")]
Seed = Annotated[int, Field(ge=0, lt=2**63)]


def _geometric() -> Snapshots:
    return get_kind("snapshots", "geometric")()  # type: ignore[return-value]


class Record(Section):
    """What is written into the run directory."""

    example = "record: {snapshots: {kind: every, interval: 100}, measures: [weight_norm, sharpness], loss_every: 10}\n"
    snapshots: Annotated[Snapshots, OneOf("snapshots", default="geometric")] = Field(default_factory=_geometric)
    """When parameters and measures are recorded."""
    parameters: Literal["all", "none"] | list[str] = "all"
    """Which parameters are recorded: all, none, or a list of names."""
    measures: list[Annotated[Measure, OneOf("measure", word=True)]] | None = None
    """Which measures are recorded (default: those that the loss and the data set offer, e.g. accuracies)."""
    loss_every: PositiveInt | None = None
    """Iterations between two recorded losses (default: 1 for full batch, an epoch otherwise)."""
    limit_gib: Annotated[float, Field(gt=0)] = 4.0
    """Refuse a run whose recording is estimated above this size, in GiB."""


class RunConfig(Section):
    """Everything that determines a run; the same config is the same run."""

    name: Name
    """Opens the name of the run directory."""
    seed: Seed = 0
    """Root of three independent random streams: data, initialisation, batches."""
    device: Literal["auto", "cpu", "cuda"] = "auto"
    """Where to compute; `auto` takes the device that the cost model finds faster."""
    backend: Literal["auto", "torch", "compiled", "flow"] = "auto"
    """What trains; `auto` asks a static cost model, `torch` is the reference."""
    dtype: Literal["float32", "float64"] = "float32"
    """Precision of weights and data."""
    dataset: Annotated[Dataset, OneOf("dataset")]
    architecture: Annotated[Architecture, OneOf("architecture")]
    initialization: Annotated[Initialization, OneOf("initialization")]
    loss: Annotated[Loss, OneOf("loss")]
    optimizer: Annotated[Optimizer, OneOf("optimizer")]
    record: Record = Field(default_factory=Record)


class SweepSection(Section):
    """What `dyn sweep` varies: a section of a config file that is no part of any of its runs."""

    example = """\
sweep:
  grid: {optimizer.lr: "1e-3:1e-2:log:3", architecture.width: [20, 60]}
  let: {initialization.scale: 0.06 / architecture.width}
  seeds: 2
"""
    grid: dict[str, Any] = Field(default_factory=dict)
    """Settings, each with its values: every combination is trained.

    Values are a list, or a text: `1e-6:10:log:25` (first, last, count), `1:5:5`, `8:512:logint:7` (whole numbers)."""
    zip: list[dict[str, Any]] = Field(default_factory=list)
    """Settings that run together, value by value, each with as many values."""
    let: dict[str, Any] = Field(default_factory=dict)
    """Settings that are computed: `optimizer.lr: min(10, 0.1 / initialization.scale**2)`."""
    seeds: PositiveInt = 1
    """Seeds per point of the grid: that of the config and those after it."""
    record: Literal["light", "ends", "config"] | None = None
    """Kept of each job: its ends and about a thousand losses; its ends; what `record` says.

    By default what `record` says, as long as that is estimated below `record.limit_gib` for all jobs together."""

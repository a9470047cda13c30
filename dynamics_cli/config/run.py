"""The whole config of one run."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from dynamics_cli.config.architecture import Architecture
from dynamics_cli.config.base import Section
from dynamics_cli.config.dataset import Dataset
from dynamics_cli.config.initialization import Initialization
from dynamics_cli.config.loss import Loss
from dynamics_cli.config.optimizer import Optimizer
from dynamics_cli.config.record import Record

Name = Annotated[str, Field(min_length=1, max_length=80, pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$")]
Seed = Annotated[int, Field(ge=0, lt=2**63)]


class RunConfig(Section):
    """Everything that determines a run; the same config is the same run."""

    name: Name
    """Opens the name of the run directory."""
    seed: Seed = 0
    """Root of three independent random streams: data, initialisation, batches."""
    device: Literal["auto", "cpu", "cuda"] = "auto"
    """Where to compute; `auto` takes the device that the cost model finds faster."""
    backend: Literal["auto", "autograd", "matrix", "compiled", "gram", "wide", "flow"] = "auto"
    """Which stepper to use; `auto` asks a static cost model, `autograd` is the reference."""
    dtype: Literal["float32", "float64"] = "float32"
    """Precision of weights and data."""
    dataset: Dataset
    architecture: Architecture
    initialization: Initialization
    loss: Loss
    optimizer: Optimizer
    record: Record = Field(default_factory=Record)

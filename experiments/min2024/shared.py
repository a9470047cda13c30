"""What the figures of this paper share: where settings come from, and states of a run as arrays."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dynamics_cli.errors import InputError
from dynamics_cli.measures.arrays import Bools, Floats, Ints
from dynamics_cli.reproduction.figure import Origin
from dynamics_cli.runs import Run

TRAINED: dict[str, Origin] = {
    "width": "stated",
    "initialisation": "stated",
    "step": "stated",
    "loss": "inferred",
    "precision": "assumed",
    "seed": "assumed",
}
"""Settings of every trained network."""


@dataclass(frozen=True)
class States:
    """All recorded states of a two-layer run; the weights may be memory maps."""

    x: Floats
    y: Floats
    iterations: Ints
    """(K,)"""
    W: Floats
    """(K, m, d)"""
    v: Floats
    """(K, m)"""
    loss_iterations: Ints
    losses: Floats
    lr: float

    def index(self, iteration: int) -> int:
        """Return the state recorded nearest to an iteration."""
        return int(np.argmin(np.abs(self.iterations - iteration)))

    def loss_at(self, iteration: int) -> float:
        """Return the loss recorded nearest to an iteration."""
        return float(self.losses[np.argmin(np.abs(self.loss_iterations - iteration))])


def read_states(run: Run) -> States:
    """Return the states of a run; raises InputError when the network is not a two-layer one."""
    parameters = run.parameters
    if not {"hidden_weight", "output_weight"} <= set(parameters):
        raise InputError(f"{run.path}: the figures of min2024 need architecture.kind two_layer")
    dataset = run.dataset()
    return States(
        x=dataset.x,
        y=dataset.y,
        iterations=np.array(run.snapshot_iterations),
        W=parameters["hidden_weight"],
        v=parameters["output_weight"],
        loss_iterations=np.array(run.loss_iterations),
        losses=np.array(run.losses, dtype=np.float64),
        lr=float(getattr(run.config.optimizer, "lr", 1.0)),
    )


def first_at(iterations: Ints, holds: Bools) -> float:
    """Return the first iteration (K,) at which a condition (K,) holds; NaN when it never does."""
    found = np.flatnonzero(holds)
    return float(iterations[found[0]]) if found.size else float("nan")


def slope(iterations: Ints, losses: Floats, *, first: float) -> float:
    """Return the power of t with which the loss falls from iteration `first` on; NaN for fewer than 3 points."""
    late = (iterations >= first) & (losses > 0) & (iterations > 0)
    if np.count_nonzero(late) < 3:
        return float("nan")
    return float(np.polyfit(np.log(iterations[late]), np.log(losses[late]), 1)[0])

"""Shared by the figures: where settings come from, and states of a run as arrays."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dynamics_cli import kit


@dataclass(frozen=True)
class States:
    """All recorded states of a two-layer run; the weights may be memory maps."""

    x: kit.Floats
    y: kit.Floats
    iterations: kit.Ints
    """(K,)"""
    W: kit.Floats
    """(K, m, d)"""
    v: kit.Floats
    """(K, m)"""
    loss_iterations: kit.Ints
    losses: kit.Floats
    lr: float

    def index(self, iteration: int) -> int:
        """Return the state recorded nearest to an iteration."""
        return int(np.argmin(np.abs(self.iterations - iteration)))


def read_states(run: kit.Run) -> States:
    """Return the states of a run; raises InputError when the network is not a two-layer one."""
    parameters = run.parameters
    if not {"hidden_weight", "output_weight"} <= set(parameters):
        raise kit.InputError(f"{run.path}: the figures of min2024 need architecture.kind two_layer")
    dataset = run.dataset()
    return States(
        x=dataset.x, y=dataset.y, iterations=np.array(run.snapshot_iterations), W=parameters["hidden_weight"],
        v=parameters["output_weight"], loss_iterations=np.array(run.loss_iterations),
        losses=np.array(run.losses, dtype=np.float64), lr=float(getattr(run.config.optimizer, "lr", 1.0)),
    )  # fmt: skip


def first_at(iterations: kit.Ints, holds: kit.Bools) -> float:
    """Return the first iteration (K,) at which a condition (K,) holds; NaN when it never does."""
    places = np.flatnonzero(holds)
    return float(iterations[places[0]]) if places.size else float("nan")


def slope(states: States, first: float) -> float:
    """Return the power of t with which the loss falls from iteration `first` on; NaN for fewer than 3 points."""
    iterations, losses = states.loss_iterations, states.losses
    late = (iterations >= first) & (losses > 0) & (iterations > 0)
    if np.count_nonzero(late) < 3:
        return float("nan")
    return float(np.polyfit(np.log(iterations[late]), np.log(losses[late]), 1)[0])

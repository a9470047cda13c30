"""Shared by the figures: states of a run as arrays, and when a condition first holds."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dynamics_cli import kit


@dataclass(frozen=True)
class States:
    """All K recorded states of a two-layer run."""

    x: kit.Floats
    y: kit.Floats
    iterations: kit.Ints
    W: kit.Floats
    v: kit.Floats
    loss_iterations: kit.Ints
    losses: kit.Floats


def read_states(run: kit.Run) -> States:
    """Return all K recorded states of a two-layer run; the weights may be memory maps.

    Data `x` (n, d), `y` (n,), weights `W` (K, m, d) and `v` (K, m) at `iterations` (K,), and
    `losses` at `loss_iterations`. Raises InputError for another network.
    """
    parameters = run.parameters
    dataset = run.dataset()
    if not {"hidden_weight", "output_weight"} <= set(parameters):
        raise kit.InputError(f"{run.path}: the figures of min2024 need architecture.kind two_layer")
    return States(
        x=dataset.x,
        y=dataset.y,
        iterations=np.array(run.snapshot_iterations),
        W=parameters["hidden_weight"],
        v=parameters["output_weight"],
        loss_iterations=np.array(run.loss_iterations),
        losses=np.array(run.losses),
    )

"""Shared by the figures: states of a run as arrays, and when a condition first holds."""

from __future__ import annotations

import numpy as np

from dynamics_cli import kit


def read_states(run: kit.Run) -> kit.Evidence:
    """Return all K recorded states of a two-layer run; the weights may be memory maps.

    Data `x` (n, d), `y` (n,), weights `W` (K, m, d) and `v` (K, m) at `iterations` (K,), and
    `losses` at `loss_iterations`. Raises InputError for another network.
    """
    parameters = run.parameters
    dataset = run.dataset()
    if not {"hidden_weight", "output_weight"} <= set(parameters):
        raise kit.InputError(f"{run.path}: the figures of min2024 need architecture.kind two_layer")
    return kit.Evidence(
        x=dataset.x,
        y=dataset.y,
        iterations=np.array(run.snapshot_iterations),
        W=parameters["hidden_weight"],
        v=parameters["output_weight"],
        loss_iterations=np.array(run.loss_iterations),
        losses=np.array(run.losses),
    )


def first_at(iterations: kit.Ints, holds: kit.Bools) -> float:
    """Return the first iteration (K,) at which a condition (K,) holds; NaN when it never does."""
    places = np.flatnonzero(holds)
    return float(iterations[places[0]]) if places.size else float("nan")

"""Random two-layer problems for the steppers' tests."""

from __future__ import annotations

from typing import Any

import numpy as np

from dynamics_cli.config import load_config
from dynamics_cli.kinds import Problem
from dynamics_cli.training.problem import build_problem

MARGIN_LOSSES = ("logistic", "exponential", "hinge")
LOSSES = ("mse", "half_mse", *MARGIN_LOSSES)
ACTIVATIONS: tuple[dict[str, Any], ...] = (
    {"activation": "relu"},
    {"activation": "leaky_relu", "slope": 0.3},
    {"activation": "linear"},
)


def random_problem(
    *,
    n: int = 6,
    d: int = 3,
    width: int = 7,
    loss: str = "mse",
    activation: dict[str, Any] | None = None,
    seed: int = 0,
    optimizer: dict[str, Any] | None = None,
    **settings: Any,
) -> Problem:
    """Return a problem on random data with weights of order 1."""
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((n, d))
    x[:, -1] = 1.0
    if d > 4:
        x[:, 1] = 0.0  # a column that is 0 everywhere
        x[rng.random((n, d)) < 0.3] = 0.0  # and entries that are
    y = rng.choice([-1.0, 1.0], n) if loss in MARGIN_LOSSES else rng.standard_normal(n)
    architecture = {"kind": "two_layer", "width": width, **(activation or {"activation": "relu"})}
    changed = settings.pop("architecture", {})
    architecture = changed if "kind" in changed else architecture | changed
    return build_problem(
        load_config(
            {
                "name": "random",
                "seed": seed,
                "dtype": "float64",
                "dataset": {"kind": "points", "x": x.tolist(), "y": y.tolist()},
                "architecture": architecture,
                "initialization": settings.pop("initialization", {"kind": "unbalanced", "scale": 0.7}),
                "loss": {"kind": loss, **settings.pop("loss_settings", {})},
                "optimizer": optimizer or {"kind": "gd", "lr": 0.02, "iterations": 50},
                **settings,
            }
        )
    )

"""A small config, and the problem made of it, for tests of kinds: each changes the sections that
it is about.
"""

from __future__ import annotations

from typing import Any

from dynamics_cli.config import load_config
from dynamics_cli.kinds import Problem
from dynamics_cli.training.problem import build_problem

X = [[0.3, 1.0], [-1.0, 0.4], [0.5, -0.2]]
POINTS: dict[str, Any] = {"kind": "points", "x": X, "y": [1.0, -1.0, 1.0]}
CONFIG: dict[str, Any] = {
    "name": "small",
    "dtype": "float64",
    "dataset": POINTS,
    "architecture": {"kind": "two_layer", "width": 4},
    "initialization": {"kind": "unbalanced", "scale": 0.7},
    "loss": {"kind": "mse"},
    "optimizer": {"kind": "gd", "lr": 0.1, "iterations": 5},
}


def config_of(**changes: Any) -> dict[str, Any]:
    """Return the config with other sections; an optimizer keeps the step and the iterations that
    it does not name.
    """
    optimizer = changes.get("optimizer", {})
    usual = {"lr": 0.1, "iterations": 5} if "until" not in optimizer else {}
    if "epochs" in optimizer:
        del usual["iterations"]
    return {**CONFIG, **changes, "optimizer": {"kind": "gd", **usual, **optimizer}}


def problem_of(**changes: Any) -> Problem:
    """Return the problem of the config with other sections."""
    return build_problem(load_config(config_of(**changes)))

"""Runs of the loop released with Boursier et al. 2022: the same initial weights give the same
losses everywhere.
"""

from pathlib import Path

import numpy as np
import pytest

from dynamics_cli.config import load_config
from dynamics_cli.training.backends import build_stepper, choose
from dynamics_cli.training.problem import build_problem

REFERENCE = Path(__file__).parents[1] / "reference"
WIDTHS = {"orthogonal": 60, "five_points": 60, "five_points_large": 60, "high_dim": 200}
TOLERANCE = {"float32": 1e-4, "float64": 1e-3}
"""max |loss - reference| / loss(0); in float64 the five points leave their second saddle along
other neurons.
"""


def reference_config(name, **settings):
    """Return the config that trains a reference file's initial weights as the released loop
    does.
    """
    path = str(REFERENCE / f"boursier2022_{name}.npz")
    with np.load(path) as archive:
        iterations = int(archive["iteration"][-1])
    return {
        "name": f"reference-{name}",
        "dataset": {"kind": "file", "path": path, "append_bias": name != "high_dim"},
        "architecture": {"kind": "two_layer", "width": WIDTHS[name]},
        "initialization": {"kind": "file", "path": path, "suffix": "_0"},
        "loss": {"kind": "mse"},
        "optimizer": {"kind": "gd", "lr": 1e-3, "iterations": iterations},
        **settings,
    }


def deviation(name, part=1, **settings):
    """Return max |loss - reference| / loss(0) over what the reference records, or the first half
    of it (`part` 2).
    """
    problem = build_problem(load_config(reference_config(name, **settings)))
    stepper = build_stepper([problem], choose([problem]))
    losses = np.append(stepper.advance(problem.iterations // part), stepper.loss())
    with np.load(REFERENCE / f"boursier2022_{name}.npz") as archive:
        seen = archive["iteration"] < len(losses)
        return float(
            np.max(np.abs(losses[archive["iteration"][seen]] - archive["loss"][seen]))
            / archive["loss"][0]
        )


CASES = [
    *(
        (name, 1, {"dtype": dtype}, most)
        for name in WIDTHS
        if name != "high_dim"
        for dtype, most in TOLERANCE.items()
    ),
    (
        "high_dim",
        2,
        {"dtype": "float32"},
        TOLERANCE["float32"],
    ),  # half-way the loss is a 500th of the first
    ("five_points_large", 1, {"backend": "torch"}, 1e-6),
    pytest.param("orthogonal", 1, {"backend": "torch"}, 1e-6, marks=pytest.mark.long),
    *(
        pytest.param(name, 1, {"backend": backend, "dtype": dtype}, most, marks=pytest.mark.long)
        for name in ("five_points", "high_dim")
        for backend in ("torch", "compiled")
        for dtype, most in TOLERANCE.items()
    ),
]


@pytest.mark.parametrize(("name", "part", "settings", "most"), CASES)
def test_losses_agree_with_the_released_loop(name, part, settings, most):
    assert deviation(name, part, **settings) <= most

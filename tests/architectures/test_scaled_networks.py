"""Scaled, centred and partly frozen networks, step sizes by layer, models linear in inputs."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from dynamics_cli.config import load_config
from dynamics_cli.training.backends import build_stepper, choose
from dynamics_cli.training.problem import build_problem
from dynamics_cli.training.session import obtain_run, plan_run
from tests import cases

X = cases.POINTS["x"]


def config_of(**changes):
    points = {"kind": "points", "x": X, "y": [1.0, -1.0, 0.5]}
    sections = {"dataset": points, "loss": {"kind": "half_mse"}, "optimizer": {"iterations": 30}}
    return load_config(cases.config_of(**{**sections, **changes}))


def trained(problem, iterations):
    stepper = build_stepper([problem], choose([problem]))
    stepper.advance(iterations)
    return stepper.parameters()


def test_a_scaled_centred_network_begins_at_zero_and_is_what_its_run_says(tmp_path):
    architecture = {"kind": "two_layer", "width": 4, "output_scale": 3.0, "centered": True}
    run = obtain_run(plan_run(config_of(architecture=architecture), tmp_path / "run")).run
    x = np.array(X)
    y = run.dataset().y
    assert run.losses[0] == pytest.approx(np.mean(y**2) / 2)
    assert_array_equal(run.network(0)(x), 0.0)

    def f(parameters):
        return np.maximum(x @ parameters["hidden_weight"].T, 0) @ parameters["output_weight"]

    h = 3 * (f(run.state(-1)) - f(run.state(0)))
    assert_allclose(run.network(-1)(x), h)
    assert run.final_loss == pytest.approx(np.mean((h - y) ** 2) / 2)
    assert run.final_loss < run.losses[0]


def test_steps_by_layer_and_frozen_weights():
    problem = build_problem(
        config_of(
            optimizer={"kind": "gd", "lr": 0.1, "iterations": 1, "layer_lr": {"output_weight": 0.2}}
        )
    )
    start = problem.initial_parameters()
    now = trained(problem, 1)
    W = start["hidden_weight"]
    a = start["output_weight"]
    x = np.array(X)
    y = problem.dataset.y
    z = x @ W.T
    r = (np.maximum(z, 0) @ a - y) / 3
    assert_allclose(now["output_weight"], a - 0.02 * np.maximum(z, 0).T @ r)
    assert_allclose(now["hidden_weight"], W - 0.1 * ((z > 0) * r[:, None] * a).T @ x)
    features = build_problem(
        config_of(architecture={"kind": "two_layer", "width": 4, "train": ["output_weight"]})
    )
    now = trained(features, 5)
    assert_array_equal(now["hidden_weight"], features.initial_parameters()["hidden_weight"])
    assert (now["output_weight"] != features.initial_parameters()["output_weight"]).all()

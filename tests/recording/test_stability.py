"""Effective and critical sharpness against dense matrices, and losses by automatic differentiation."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from dynamics_cli import api
from dynamics_cli.kinds import State
from dynamics_cli.recording.derivatives import derivatives_of
from dynamics_cli.training.problem import build_problem
from tests.kinds import cases
from tests.recording.test_instruments import CASES, Reference, instrument, moved, problem_of
from tests.training.problems import random_problem, stepper_of

OPTIMIZERS: dict[str, dict[str, Any]] = {
    "adam": {"kind": "adam", "lr": 0.01, "beta2": 0.9},
    "adam, decay": {"kind": "adam", "lr": 0.01, "weight_decay": 0.1, "eps": 1e-3},
    "adamw": {"kind": "adamw", "lr": 0.01, "weight_decay": 0.1},
    "rmsprop": {"kind": "rmsprop", "lr": 0.01, "momentum": 0.5, "weight_decay": 0.05, "layer_lr": {"bias_1": 0.5}},
}
NETWORK = {"kind": "fully_connected", "widths": [4, 3], "outputs": 3, "activation": "tanh"}
EVERY = {"snapshots": {"kind": "every", "interval": 1}, "measures": ["effective_sharpness"]}


def by_hand(run: Any, optimizer: dict[str, Any]) -> list[float]:
    """Return the eigenvalues of `P^-1 (H + decay)` at all states of a full-batch run, v from its gradients."""
    problem, found = build_problem(run.config), []
    adam, decay = optimizer["kind"] != "rmsprop", optimizer.get("weight_decay", 0.0) * (optimizer["kind"] != "adamw")
    beta, eps = optimizer.get("beta2", 0.999) if adam else 0.99, optimizer.get("eps", 1e-8)
    v: Any = 0.0
    for i in range(len(run.snapshot_iterations)):
        weights = {name: np.asarray(values[i]) for name, values in run.parameters.items()}
        reference = Reference(State(problem, weights, problem.initial_parameters, i), list(weights))
        g = torch.func.grad(reference.loss)(reference.theta).numpy() + decay * reference.theta.numpy()
        H = torch.func.hessian(reference.loss)(reference.theta).numpy() + decay * np.eye(len(g))
        v = beta * v + (1 - beta) * g**2
        P = (1 - 0.9 ** (i + 1)) * (np.sqrt(v / (1 - beta ** (i + 1))) + eps) if adam else np.sqrt(v) + eps
        root = 1 / np.sqrt(P)
        found.append(float(np.linalg.eigvalsh(root[:, None] * H * root)[-1]))
    return found


@pytest.mark.parametrize("backend", ["torch", "compiled"])
@pytest.mark.parametrize("name", OPTIMIZERS)
def test_effective_sharpness_is_that_of_the_dense_preconditioned_hessian(
    name: str, backend: str, tmp_path: Path
) -> None:
    data = {"kind": "linear_map", "inputs": 5, "outputs": 3, "singular_values": [2.0, 1.0], "n": 9, "noise": 0.5}
    config = cases.config_of(dataset=data, architecture=NETWORK, initialization={"kind": "default_scaled"},
                             loss={"kind": "mse"}, dtype="float64", backend=backend, record=EVERY,
                             optimizer={**OPTIMIZERS[name], "iterations": 8})  # fmt: skip
    run = api.train(config, out=tmp_path / "run")
    np.testing.assert_allclose(run.measures["effective_sharpness"], by_hand(run, OPTIMIZERS[name]), rtol=1e-5)


@pytest.mark.parametrize("way", ["torch", "engine"])
def test_replicas_have_the_moments_of_networks_alone(way: str) -> None:
    settings: dict[str, Any] = {
        "architecture": {"kind": "fully_connected", "widths": [4], "activation": "tanh"},
        "initialization": {"kind": "default_scaled"},
        "optimizer": OPTIMIZERS["rmsprop"] | {"iterations": 9},
    }
    problems = [random_problem(seed=seed, **settings) for seed in (0, 1)]
    together = stepper_of(problems, way)
    together.advance(5)
    found = together.moments()
    assert {"square", "momentum"} <= found.keys()
    for r, problem in enumerate(problems):
        alone = stepper_of(problem, way)
        alone.advance(5)
        for label, own in alone.moments().items():
            assert {name: one.shape for name, one in own.items()} == dict(problem.shapes)
            for name, one in own.items():
                np.testing.assert_allclose(found[label][name][r], one, rtol=1e-9, atol=1e-15)


@pytest.mark.parametrize("case", CASES)
def test_the_critical_step_is_where_the_loss_is_back(case: str) -> None:
    state = moved(problem_of(case))
    measure = instrument("critical_sharpness", tolerance=1e-6)
    found = measure.measure(state)
    derivatives = derivatives_of(state)
    reference, g = Reference(state, derivatives.names), torch.from_numpy(derivatives.gradient().copy())

    def loss(step: float) -> float:
        return float(reference.loss(reference.theta - step * g))

    if case == "residual":  # along the gradient its neurons die, and the loss stays
        assert found == 0
        assert all(loss(step) < loss(0) for step in np.geomspace(1e-3, 1e3, 60))
        return
    losses = [loss(2 / found * share) for share in (0.0, 0.999, 1.001)]
    assert losses[1] < losses[0] < losses[2]
    assert measure.measure(state) == pytest.approx(found, rel=3e-6)  # from the step that is remembered
    coarse = instrument("critical_sharpness").measure(moved(problem_of(case)))
    assert coarse == pytest.approx(found, rel=1e-3) or case == "deep ReLU"


def test_where_no_step_raises_the_loss_it_is_0_and_without_a_gradient_nothing() -> None:
    linear = {"architecture": {"kind": "fully_connected", "widths": [], "bias": False},
              "initialization": {"kind": "default_scaled"}}  # fmt: skip
    problem = cases.problem_of(
        dataset={"kind": "points", "x": [[1.0]], "y": [1.0]}, loss={"kind": "logistic"}, **linear
    )
    assert instrument("critical_sharpness").measure(moved(problem)) == 0
    still = State(problem_of("diagonal"), {"u": np.zeros(3), "v": np.zeros(3)}, dict, 0)
    assert np.isnan(instrument("critical_sharpness").measure(still))

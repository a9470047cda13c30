"""Losses and gradients summed over blocks of samples."""

from dataclasses import fields, replace
from functools import partial

import numpy as np
import pytest
import torch

from dynamics_cli import memory as blocks
from dynamics_cli.gradients.derivatives import derivatives_of
from dynamics_cli.gradients.objective import objective_of
from dynamics_cli.gradients.totals import total, total_and_gradients
from dynamics_cli.kinds import State, all_kinds
from tests.training.problems import (
    assert_chunks_are_invisible,
    assert_same_path,
    random_problem,
    stepper_of,
)

OPTIMIZERS = [
    {"kind": "gd", "lr": 0.02, "iterations": 50},
    {"kind": "gd", "lr": 0.02, "iterations": 50, "loss_scaled": True},
    {"kind": "sgd", "lr": 0.02, "iterations": 50, "batch_size": 7},
    {"kind": "adam", "lr": 0.02, "iterations": 50, "batch_size": None},
    {"kind": "gradient_flow", "until": 1.0, "points": 50},
]


def in_blocks(monkeypatch, problem):
    """Let blocks of what is made from now on have 3 samples of a problem."""
    monkeypatch.setattr(blocks, "MULTIPLY_ADDS", 3 * problem.multiply_adds)


@pytest.mark.parametrize("reduction", ["mean", "sum"])
@pytest.mark.parametrize("cls", all_kinds("loss").values())
def test_blocks_add_up(cls, reduction):
    torch.manual_seed(0)
    loss = cls(reduction=reduction)
    outputs = 3 if loss.labels == "classes" else 1
    linear = torch.nn.Linear(4, outputs, dtype=torch.float64)
    model = linear if outputs == 3 else torch.nn.Sequential(linear, torch.nn.Flatten(0))
    x = torch.randn(10, 4, dtype=torch.float64)
    y = (
        torch.randint(0, 3, (10,))
        if outputs == 3
        else torch.sign(torch.randn(10, dtype=torch.float64))
    )
    trained = list(model.parameters())
    whole, gradients = total_and_gradients(model, loss, x, y, trained, 10)
    assert whole == loss.total(model(x), y)
    for block in (1, 3, 5):
        value, parts = total_and_gradients(model, loss, x, y, trained, block)
        torch.testing.assert_close(value, whole)
        torch.testing.assert_close(total(model, loss, x, y, block).detach(), whole)
        for part, gradient in zip(parts, gradients, strict=True):
            torch.testing.assert_close(part, gradient)


@pytest.mark.parametrize("optimizer", OPTIMIZERS, ids=lambda o: "-".join(map(str, o.values())))
def test_a_network_trained_in_blocks_is_the_same(optimizer, monkeypatch):
    problem = random_problem(n=10, optimizer=optimizer)
    whole = stepper_of(problem, "torch")
    in_blocks(monkeypatch, problem)
    assert_same_path(stepper_of(problem, "torch"), whole, 30, 1e-9)
    assert_chunks_are_invisible(partial(stepper_of, problem, "torch"), 20)


@pytest.mark.parametrize("reduction", ["mean", "sum"])
@pytest.mark.parametrize("loss", ["half_mse", "logistic"])
def test_the_engine_and_torch_give_one_objective(loss, reduction):
    problem = random_problem(loss=loss, loss_settings={"reduction": reduction})
    start = problem.initial_parameters()
    theta = np.concatenate([start[name].ravel() for name in start])
    value, gradient = objective_of(problem, start, "compiled")(0.9 * theta)
    by_torch, slopes = objective_of(problem, start, "torch")(0.9 * theta)
    assert value == pytest.approx(by_torch, rel=1e-12)
    np.testing.assert_allclose(gradient, slopes, rtol=1e-10, atol=1e-14)


def test_a_problem_keeps_what_its_states_share_in_one_place():
    problem = random_problem()
    start = problem.initial_parameters()
    derivatives_of(State(problem, start, lambda: start, 0)).largest(np.ones(28))
    assert set(problem.shared) == {"engine", "spectrum"}
    own = {field.name for field in fields(problem)} | {"multiply_adds", "layer_sizes"}
    assert set(vars(problem)) <= own
    assert replace(problem).shared == {}  # other samples have other derivatives

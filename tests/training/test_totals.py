"""Losses and gradients summed over blocks of samples."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

from dynamics_cli import memory as blocks
from dynamics_cli.config import load_config
from dynamics_cli.kinds import Loss, Problem, all_kinds
from dynamics_cli.training.backends import Choice, build_stepper
from dynamics_cli.training.estimate import estimate
from dynamics_cli.training.problem import build_problem
from dynamics_cli.training.steppers.base import Stepper
from dynamics_cli.training.totals import total, total_and_gradients
from tests.training.problems import random_problem

AUTOGRAD = Choice("cpu", "torch", 1e-4)
OPTIMIZERS: list[dict[str, Any]] = [
    {"kind": "gd", "lr": 0.02, "iterations": 50},
    {"kind": "gd", "lr": 0.02, "iterations": 50, "loss_scaled": True},
    {"kind": "sgd", "lr": 0.02, "iterations": 50, "batch_size": 7},
    {"kind": "adam", "lr": 0.02, "iterations": 50, "batch_size": None},
    {"kind": "gradient_flow", "until": 1.0, "points": 50},
]


@contextmanager
def at_most(monkeypatch: pytest.MonkeyPatch, samples: int, problem: Problem) -> Iterator[None]:
    """Let blocks have `samples` samples of a problem."""
    with monkeypatch.context() as patched:
        patched.setattr(blocks, "MULTIPLY_ADDS", samples * problem.multiply_adds)
        yield


def stepper(problem: Problem, way: str = "torch") -> Stepper:
    return build_stepper([problem], Choice("cpu", "torch" if way == "torch" else "compiled", 1e-4, way))


@pytest.mark.parametrize("reduction", ["mean", "sum"])
@pytest.mark.parametrize("cls", all_kinds("loss").values())
def test_blocks_add_up(cls: type[Loss], reduction: Any) -> None:
    torch.manual_seed(0)
    loss = cls(reduction=reduction)
    outputs = 3 if loss.labels == "classes" else 1
    linear = torch.nn.Linear(4, outputs, dtype=torch.float64)
    model = linear if outputs == 3 else torch.nn.Sequential(linear, torch.nn.Flatten(0))
    x = torch.randn(10, 4, dtype=torch.float64)
    y = torch.randint(0, 3, (10,)) if outputs == 3 else torch.sign(torch.randn(10, dtype=torch.float64))
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
def test_a_network_trained_in_blocks_is_the_same(optimizer: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    problem = random_problem(n=10, optimizer=optimizer)
    whole = stepper(problem)
    with at_most(monkeypatch, 3, problem):
        parts = stepper(problem)
    np.testing.assert_allclose(parts.advance(30), whole.advance(30), rtol=1e-10)
    np.testing.assert_allclose(parts.loss(), whole.loss(), rtol=1e-10)
    for name, weights in whole.parameters().items():
        np.testing.assert_allclose(parts.parameters()[name], weights, rtol=1e-9, atol=1e-12)


def test_the_loss_after_compiled_batches_too(monkeypatch: pytest.MonkeyPatch) -> None:
    problem = random_problem(n=10, optimizer=OPTIMIZERS[2])
    whole = stepper(problem, "sparse")
    whole.advance(5)
    expected = whole.loss()
    with at_most(monkeypatch, 3, problem):
        assert whole.loss() == pytest.approx(expected, rel=1e-14)
    reference = stepper(problem)
    reference.advance(5)
    assert reference.loss() == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("optimizer", OPTIMIZERS[:4], ids=lambda o: "-".join(map(str, o.values())))
def test_chunks_of_a_run_in_blocks_are_invisible(optimizer: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    problem = random_problem(n=10, optimizer=optimizer)
    with at_most(monkeypatch, 3, problem):
        one, other = stepper(problem), stepper(problem)
    one.advance(20)
    for n in (1, 7, 12):
        other.advance(n)
    for name, weights in one.parameters().items():
        np.testing.assert_array_equal(other.parameters()[name], weights)


def test_memory_does_not_grow_with_the_samples_of_a_large_network() -> None:
    """Sixty thousand images, all in each update: their activations would take 30 GB at once."""
    needs = []
    for n in (2000, 60_000):
        config = load_config(
            {
                "name": "images",
                "seed": 0,
                "dataset": {"kind": "points", "x": [[0.0] * 784] * 2, "y": [-1.0, 1.0], "append_bias": False},
                "architecture": {"kind": "convolutional", "image": [1, 28, 28], "convolutions": [[64, 5, 1, 2]]},
                "initialization": {"kind": "default_scaled", "factor": 1.0},
                "loss": {"kind": "logistic"},
                "optimizer": {"kind": "gd", "lr": 0.1, "iterations": 10},
            }
        )
        problem = build_problem(config)
        problem = replace(problem, dataset=replace(problem.dataset, x=np.broadcast_to(0.0, (n, 784)), y=np.ones(n)))
        needs.append(estimate(problem, AUTOGRAD).memory_bytes - 2 * n * 784 * 4)
    assert needs[0] == needs[1] < 2**30

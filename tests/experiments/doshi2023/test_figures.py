"""Draws of the released code, pruning by hand, the letters of phases, and the figures on runs
that are trained.
"""

import random

import numpy as np
import pytest
import torch
from dynamics_cli._bundled.experiments.doshi2023.corruption import mean_ipr
from dynamics_cli._bundled.experiments.doshi2023.pruning import BLOCK, pruned
from dynamics_cli._bundled.experiments.gromov2023.grokking import layers
from numpy.testing import assert_array_equal

from dynamics_cli.training.problem import build_problem
from tests.experiments.helpers import one_run

CONFIG = "doshi2023/coexistence.yaml"
SMALL = (
    "dataset.p=11",
    "architecture.outputs=11",
    "architecture.width=40",
    "optimizer.iterations=30",
)


def test_draws_are_those_of_python_and_torch(outputs):
    problem = build_problem(one_run(CONFIG, *SMALL).config)
    order = list(range(121))
    random.Random(420).shuffle(order)
    pairs = problem.dataset.x.reshape(-1, 2, 11).argmax(-1)
    assert_array_equal(pairs @ [11, 1], order[:60])
    assert problem.dataset.replaced is not None
    assert_array_equal(np.flatnonzero(problem.dataset.replaced), np.arange(21))
    state = torch.get_rng_state()
    try:
        torch.manual_seed(0)
        labels = torch.randint(0, 11, (21,))
        layers = [torch.nn.Linear(22, 40, bias=False), torch.nn.Linear(40, 11, bias=False)]
        weights = [torch.nn.init.normal_(one.weight, 0.0, 0.05).detach().numpy() for one in layers]
    finally:
        torch.set_rng_state(state)
    assert_array_equal(problem.dataset.y[:21].argmax(1), labels)
    for own, one in zip(problem.initial_parameters().values(), weights, strict=True):
        assert_array_equal(own, one)


def test_pruning_sets_weights_to_zero(outputs):
    run = one_run(CONFIG, *SMALL)
    U, V, W = layers(run, -1)
    order = np.argsort(mean_ipr(U, V, W))
    data = run.dataset()
    curves = pruned(run, order)
    left = order[3 * BLOCK :]
    output = (data.x @ np.concatenate([U, V], 1)[left].T) ** 2 @ W[:, left].T
    right = output.argmax(1) == data.y.argmax(1)
    assert data.replaced is not None
    assert curves["train"][3] == right.mean()
    assert curves["replaced"][3] == right[data.replaced].mean()
    assert curves["test"][0] == pytest.approx(run.measures["test_accuracy"][-1])

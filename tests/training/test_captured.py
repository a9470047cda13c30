"""Updates whose numbers all live on the device, called plainly: the losses, chunks and resumption
of torch's stepper. That a device records them is in `test_gpu.py`.
"""

from __future__ import annotations

from functools import partial

import pytest

from dynamics_cli.errors import UsageError
from dynamics_cli.training.backends import choose
from dynamics_cli.training.steppers.captured import CapturedStepper, obstacle
from tests.training.problems import (
    assert_chunks_are_invisible,
    assert_same_path,
    random_problem,
    stepper_of,
)
from tests.training.test_adversarial import problem as gan_problem
from tests.training.test_stacked import CASES, problem_of

RECORDABLE = [
    "convolutional, momentum",
    "convolutional, Adam",
    "transformer",
    "residual",
    "scaled",
    "whole batches",
]
CLIPPED = {"kind": "adam", "lr": 0.01, "iterations": 30, "clip": 0.5}


def problems_of(case, replicas):
    return [problem_of(*CASES[case], seed=seed) for seed in range(replicas)]


@pytest.mark.parametrize("replicas", [1, 3])
@pytest.mark.parametrize("case", RECORDABLE)
def test_updates_are_those_of_torch(case, replicas):
    problems = problems_of(case, replicas)
    captured = CapturedStepper(problems, "cpu")
    assert_same_path(captured, stepper_of(problems, "torch"), 20, 1e-12)


@pytest.mark.parametrize("case", RECORDABLE)
def test_chunks_and_resumption_are_invisible(case):
    assert_chunks_are_invisible(partial(CapturedStepper, problems_of(case, 2), "cpu"), 30)


def test_gradients_are_clipped_and_step_sizes_scheduled():
    optimizer = {**CLIPPED, "schedule": {"kind": "cosine"}}
    problem = random_problem(optimizer=optimizer)
    assert_same_path(CapturedStepper([problem], "cpu"), stepper_of(problem, "torch"), 30, 1e-12)


def test_batches_of_one_size_are_recorded():
    optimizer = {"kind": "sgd", "batch_size": 3, "momentum": 0.5}
    problem = problem_of(CASES["residual"][0], optimizer)
    assert_same_path(CapturedStepper([problem], "cpu"), stepper_of(problem, "torch"), 30, 1e-12)
    make = partial(CapturedStepper, [problem], "cpu")
    assert_chunks_are_invisible(make, 30)


@pytest.mark.parametrize(
    ("problem", "reason"),
    [
        (lambda: problem_of(*CASES["fresh samples"]), "drawn on the host"),
        (lambda: problem_of(*CASES["a step per layer"]), "several sizes"),
        (lambda: gan_problem("hinge"), "another one"),
        (
            lambda: random_problem(optimizer={"kind": "gradient_flow", "until": 1.0, "points": 5}),
            "another one",
        ),
        (
            lambda: random_problem(optimizer={"kind": "torch", "name": "RMSprop", "iterations": 5}),
            "on the host",
        ),
    ],
)
def test_what_cannot_be_recorded_says_why(problem, reason):
    assert reason in obstacle(problem())


def test_a_cpu_records_nothing():
    with pytest.raises(UsageError, match="backend: captured"):
        choose([random_problem(backend="captured", device="cpu")])

"""Networks train on a CUDA device as on the CPU; skipped without one.

What needs no device is in `test_torch_form.py`: torch's form of updates, and that no update waits
for the device.
"""

from functools import partial

import pytest
import torch
from numpy.testing import assert_allclose

from dynamics_cli.training.backends import choose
from dynamics_cli.training.many.replicas import batch_key
from tests.training.problems import (
    assert_chunks_are_invisible,
    assert_same_path,
    random_problem,
    stepper_of,
)
from tests.training.test_adversarial import problem as gan_problem
from tests.training.test_stacked import CASES, problem_of

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no CUDA device"),
]
DEEP = {"kind": "fully_connected", "widths": [8, 8], "activation": "tanh"}
NORMED = {"kind": "group_rmsprop", "lr": 0.01, "iterations": 50}
FLOW = {"kind": "gradient_flow", "until": 1.0, "points": 50}
PROBLEMS = {
    "two layers": lambda: random_problem(loss="logistic"),
    "two layers, a norm": lambda: random_problem(optimizer=NORMED),
    "deep": lambda: random_problem(architecture=DEEP, initialization={"kind": "lecun"}),
    "flow": lambda: random_problem(
        architecture=DEEP, initialization={"kind": "lecun"}, optimizer=FLOW
    ),
    "gan": lambda: gan_problem("hinge", dtype="float64"),
}
NAMES = [*PROBLEMS, *CASES, *(f"{case}, replicas" for case in CASES)]


def problems_of(name):
    """Return the problem of a name, or three of different seeds for replicas."""
    if name in PROBLEMS:
        return [PROBLEMS[name]()]
    case = name.removesuffix(", replicas")
    seeds = range(1 if case == name else 3)
    return [problem_of(*CASES[case], seed=seed) for seed in seeds]


@pytest.mark.parametrize("case", NAMES)
def test_every_kind_of_network_trains_as_on_the_cpu(case):
    gpu, cpu = (stepper_of(problems_of(case), "torch", device) for device in ("cuda", "cpu"))
    assert_same_path(gpu, cpu, 20, 1e-8)


@pytest.mark.parametrize("case", NAMES)
def test_chunks_and_resumption_are_invisible(case):
    assert_chunks_are_invisible(partial(stepper_of, problems_of(case), "torch", "cuda"), 30)


def test_halts_are_those_of_the_cpu():
    optimizers = [
        {"kind": "gd", "lr": 0.05, "stop_below": 1.0},
        {"kind": "gd", "lr": 1e9},
        {"kind": "gd", "lr": 0.05},
    ]
    problems = [problem_of(CASES["convolutional, Adam"][0], optimizer) for optimizer in optimizers]
    gpu, cpu = (stepper_of(problems, "torch", device) for device in ("cuda", "cpu"))
    assert_allclose(gpu.advance(25), cpu.advance(25), rtol=1e-8)
    assert gpu.halted_at == cpu.halted_at


def test_auto_looks_for_the_gpu_only_where_there_is_work():
    assert choose([random_problem()]).device == "cpu"
    assert choose([random_problem(n=40, width=400_000)]).device == "cuda"


def test_replicas_of_a_sweep_on_cuda_are_trained_together():
    problems = [random_problem(device="cuda", seed=seed) for seed in range(3)]
    assert len({batch_key(problem) for problem in problems} - {None}) == 1
    assert (choose(problems).device, choose(problems).backend) == ("cuda", "torch")

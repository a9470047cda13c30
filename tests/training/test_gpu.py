"""Networks train on a CUDA device as on the CPU; skipped without one.

What needs no device is in `test_torch_form.py`: torch's form of updates, and that no update waits
for the device.
"""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
import torch

from dynamics_cli.kinds import Problem
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
FLOW = {"kind": "gradient_flow", "until": 1.0, "points": 50}
PROBLEMS: dict[str, list[Problem]] = {
    "two layers": [random_problem(loss="logistic")],
    "two layers, a norm": [
        random_problem(optimizer={"kind": "group_rmsprop", "lr": 0.01, "iterations": 50})
    ],
    "deep": [random_problem(architecture=DEEP, initialization={"kind": "lecun"})],
    "flow": [random_problem(architecture=DEEP, initialization={"kind": "lecun"}, optimizer=FLOW)],
    "gan": [gan_problem("hinge", dtype="float64")],
    **{case: [problem_of(*CASES[case])] for case in CASES},
    **{
        f"{case}, replicas": [problem_of(*CASES[case], seed=seed) for seed in range(3)]
        for case in CASES
    },
}


@pytest.mark.parametrize("case", PROBLEMS)
def test_every_kind_of_network_trains_as_on_the_cpu(case: str) -> None:
    gpu, cpu = (stepper_of(PROBLEMS[case], "torch", device) for device in ("cuda", "cpu"))
    assert_same_path(gpu, cpu, 20, 1e-8)


@pytest.mark.parametrize("case", [case for case in PROBLEMS if "convolutional" not in case])
def test_chunks_and_resumption_are_invisible(case: str) -> None:
    """Of convolutions cuDNN gives other bits from call to call."""
    assert_chunks_are_invisible(partial(stepper_of, PROBLEMS[case], "torch", "cuda"), 30)


def test_halts_are_those_of_the_cpu() -> None:
    optimizers = [
        {"kind": "gd", "lr": 0.05, "stop_below": 1.0},
        {"kind": "gd", "lr": 1e9},
        {"kind": "gd", "lr": 0.05},
    ]
    problems = [problem_of(CASES["convolutional, Adam"][0], optimizer) for optimizer in optimizers]
    gpu, cpu = (stepper_of(problems, "torch", device) for device in ("cuda", "cpu"))
    np.testing.assert_allclose(gpu.advance(25), cpu.advance(25), rtol=1e-8)
    assert gpu.halted_at == cpu.halted_at


def test_auto_looks_for_the_gpu_only_where_there_is_work() -> None:
    assert choose([random_problem()]).device == "cpu"
    assert choose([random_problem(n=40, width=400_000)]).device == "cuda"


def test_replicas_of_a_sweep_on_cuda_are_trained_together() -> None:
    problems = [random_problem(device="cuda", seed=seed) for seed in range(3)]
    assert len({batch_key(problem) for problem in problems} - {None}) == 1
    assert (choose(problems).device, choose(problems).backend) == ("cuda", "torch")

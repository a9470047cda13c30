"""Steppers on a CUDA device agree with the reference on the CPU; skipped without one."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from dynamics_cli.training.backends import Choice, build_stepper, possible
from dynamics_cli.training.steppers.compiled import CompiledStepper
from dynamics_cli.training.steppers.matrix import MatrixStepper
from dynamics_cli.training.steppers.replay import LENGTHS, Replay
from tests.training.problems import ACTIVATIONS, LOSSES, random_problem

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no CUDA device"),
]


@pytest.mark.parametrize("backend", ["torch", "matrix"])
@pytest.mark.parametrize("activation", ACTIVATIONS, ids=lambda a: a["activation"])
@pytest.mark.parametrize("loss", LOSSES)
def test_one_step_is_that_of_the_cpu(backend, loss, activation):
    problem = random_problem(loss=loss, activation=activation, optimizer={"kind": "gd", "lr": 1.0, "iterations": 1})
    gpu = build_stepper([problem], Choice("cuda", backend, 0.0))
    cpu = build_stepper([problem], Choice("cpu", "torch", 0.0))
    np.testing.assert_allclose(gpu.advance(1), cpu.advance(1), rtol=1e-12)
    for name, value in cpu.parameters().items():
        np.testing.assert_allclose(gpu.parameters()[name], value, rtol=1e-12, atol=1e-12 * np.abs(value).max())


@pytest.mark.parametrize("backend", ["torch", "matrix"])
def test_chunks_and_resumption_are_invisible(backend):
    problem = random_problem(dtype="float32")

    def make():
        return build_stepper([problem], Choice("cuda", backend, 0.0))

    whole = make()
    losses = whole.advance(50)
    parts, chunks = make(), []
    for n in (1, 7, 30, 12):
        chunks.append(parts.advance(n))
        state, parts = parts.state_dict(), make()
        parts.load_state_dict(state)
    np.testing.assert_array_equal(np.concatenate(chunks), losses)
    for name, value in whole.parameters().items():
        np.testing.assert_array_equal(parts.parameters()[name], value)


def test_replicas_are_those_of_the_cpu():
    problems = [random_problem(seed=seed) for seed in range(5)]
    gpu = MatrixStepper(problems, device="cuda")
    cpu = CompiledStepper(problems)
    np.testing.assert_allclose(gpu.advance(40), cpu.advance(40), rtol=1e-9)


@pytest.mark.parametrize("replicas", [1, 4])
@pytest.mark.parametrize("loss", LOSSES)
def test_graphs_do_what_single_launches_do(loss, replicas):
    problems = [random_problem(loss=loss, seed=seed, dtype="float32") for seed in range(replicas)]
    graphs, plain = (MatrixStepper(problems, device="cuda") for _ in range(2))
    plain._replay = None
    np.testing.assert_array_equal(graphs.advance(150), plain.advance(150))
    assert graphs._replay is not None
    assert set(graphs._replay._graphs or ()) == set(LENGTHS)  # recorded, not fallen back
    for name, value in plain.parameters().items():
        np.testing.assert_array_equal(graphs.parameters()[name], value)


def test_a_loaded_state_is_recorded_anew():
    problem = random_problem()
    graphs, plain = (MatrixStepper([problem], device="cuda") for _ in range(2))
    plain._replay = None
    losses = plain.advance(30)
    graphs.advance(20)
    state = graphs.state_dict()
    graphs.advance(80)
    graphs.load_state_dict(state)
    np.testing.assert_array_equal(graphs.advance(10), losses[20:])


def test_a_body_that_waits_for_the_device_is_not_recorded_and_leaves_the_device_usable():
    weight = torch.zeros(1, device="cuda")

    def update():
        weight.add_(1)
        weight.item()
        return weight.clone()

    replay, losses = Replay(update, [weight]), torch.empty(10, 1, device="cuda")
    with pytest.warns(UserWarning, match="updates are launched one by one"):
        replay.run(losses)
    np.testing.assert_array_equal(losses[:, 0].cpu().numpy(), np.arange(1.0, 11.0))


def test_auto_looks_for_the_gpu_only_where_there_is_work():
    assert {c.device for c in possible(random_problem())} == {"cpu"}
    assert "cuda" in {c.device for c in possible(random_problem(device="cuda"))}

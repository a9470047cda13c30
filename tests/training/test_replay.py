"""Recorded updates: what a GPU replays as a CUDA graph, replayed here operation by operation on the CPU.

The stand-in for a graph keeps the tensor operations of the recorded updates with the memory that they worked on, and
does them again without any Python of ours, as a graph does. What only a device can show is in `test_gpu.py`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from dynamics_cli.kinds import Problem
from dynamics_cli.training.steppers.matrix import MatrixStepper
from dynamics_cli.training.steppers.replay import LENGTHS, Replay
from tests.training.problems import ACTIVATIONS, LOSSES, random_problem

HOST_READS = {torch.ops.aten._local_scalar_dense.default, torch.ops.aten.nonzero.default}
"""Operations whose result decides what Python does next: a graph cannot hold them."""


class Operations(TorchDispatchMode):
    """Keeps every operation with its arguments and results."""

    def __init__(self) -> None:
        super().__init__()
        self.done: list[tuple[Any, tuple[Any, ...], dict[str, Any], Any]] = []

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        assert func not in HOST_READS, f"{func} waits for the device"
        result = func(*args, **(kwargs or {}))
        self.done.append((func, args, kwargs or {}, result))
        return result


def record_operations(body: Callable[[], None]) -> Callable[[], None]:
    """Stand in for `record_cuda_graph`."""
    body()  # a warm-up, as a graph needs
    with Operations() as operations:
        body()

    def replay() -> None:
        for func, args, kwargs, result in operations.done:
            writes = any(a.alias_info is not None and a.alias_info.is_write for a in func._schema.arguments)
            is_view = not writes and any(r.alias_info is not None for r in func._schema.returns)
            if is_view:
                continue  # it still looks at the same memory
            again = func(*args, **kwargs)
            if not writes:
                result.copy_(again)

    return replay


def recorded(problems: list[Problem], **options: Any) -> MatrixStepper:
    return MatrixStepper(problems, record=record_operations, **options)


def assert_same(first: MatrixStepper, second: MatrixStepper) -> None:
    assert first.iteration == second.iteration
    for name, value in first.parameters().items():
        np.testing.assert_array_equal(second.parameters()[name], value)


@pytest.mark.parametrize("activation", ACTIVATIONS, ids=lambda a: a["activation"])
@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_replayed_updates_are_the_updates(loss, activation, dtype):
    problem = random_problem(loss=loss, activation=activation, dtype=dtype, d=6)
    plain, again = MatrixStepper([problem]), recorded([problem])
    for n in (1, 2 * LENGTHS[0] + LENGTHS[1] + 3, 5):
        np.testing.assert_array_equal(again.advance(n), plain.advance(n))
    assert_same(plain, again)


@pytest.mark.parametrize(
    "settings",
    [
        {"architecture": {"train_output": False}},
        {"loss": "logistic", "optimizer": {"kind": "gd", "lr": 0.02, "iterations": 50, "loss_scaled": True}},
        {"n": 1},
    ],
    ids=["fixed output", "loss scaled", "one sample"],
)
@pytest.mark.parametrize("replicas", [1, 3])
def test_settings_and_replicas(settings, replicas):
    problems = [random_problem(seed=seed, **settings) for seed in range(replicas)]
    plain = MatrixStepper(problems)
    again = recorded(problems)
    np.testing.assert_array_equal(again.advance(100), plain.advance(100))
    assert_same(plain, again)


def test_blocks_of_samples_are_recorded_too(monkeypatch):
    monkeypatch.setattr("dynamics_cli.training.steppers.matrix._BLOCK_BYTES", 8 * 3 * 4)
    problem = random_problem(n=10)
    plain, again = MatrixStepper([problem]), recorded([problem])
    assert len(again._blocks) == 3
    np.testing.assert_array_equal(again.advance(70), plain.advance(70))
    assert_same(plain, again)


def test_updates_are_not_asked_for_again_and_weights_stay_in_place(monkeypatch):
    again = recorded([random_problem()])
    again.advance(1)
    places = [again._W.data_ptr(), again._a.data_ptr()]
    monkeypatch.setattr(again, "_update", lambda *arguments: pytest.fail("an update was launched by Python"))
    losses = again.advance(150)
    assert [again._W.data_ptr(), again._a.data_ptr()] == places
    assert (np.diff(losses) < 0).all()


@pytest.mark.parametrize("loss_scaled", [False, True])
@pytest.mark.parametrize("activation", ACTIVATIONS, ids=lambda a: a["activation"])
@pytest.mark.parametrize("loss", LOSSES)
def test_an_update_never_looks_at_a_number(loss, activation, loss_scaled):
    """Tensors on the device `meta` have shapes and no numbers: whatever needs one fails."""
    optimizer = {"kind": "gd", "lr": 0.1, "iterations": 1, "loss_scaled": loss_scaled and loss == "logistic"}
    problem = random_problem(loss=loss, activation=activation, optimizer=optimizer)
    stepper = MatrixStepper([problem], device="meta")
    assert stepper._full_update(None).shape == (1,)


def test_a_new_state_is_recorded_anew():
    problem = random_problem()
    plain, again = MatrixStepper([problem]), recorded([problem])
    plain.advance(30)
    again.advance(20)
    state = again.state_dict()
    again.advance(80)
    again.load_state_dict(state)
    again.advance(10)
    assert_same(plain, again)


def test_a_halt_is_that_of_plain_updates():
    optimizer = {"kind": "gd", "lr": 0.01, "iterations": 300}
    losses = MatrixStepper([random_problem(optimizer=optimizer)]).advance(200)
    limited = random_problem(optimizer={**optimizer, "stop_below": float(losses[150])})
    plain, again = MatrixStepper([limited]), recorded([limited])
    np.testing.assert_array_equal(again.advance(200), plain.advance(200))
    assert (again.halted, again.iteration) == ("stopped", 150)
    assert_same(plain, again)


@pytest.mark.parametrize("chunk", [150, 151, 300])
def test_the_state_at_a_halt_does_not_depend_on_the_chunks(chunk):
    """Up to a halt the updates are done a second time: the same operations, hence the same bits."""
    optimizer = {"kind": "gd", "lr": 0.013, "iterations": 300}
    settings = {"n": 9, "d": 7, "width": 23, "dtype": "float32"}
    free = MatrixStepper([random_problem(optimizer=optimizer, **settings)])
    losses = free.advance(150)
    level = float(losses[-1]) * (1 - 1e-7)
    limited = MatrixStepper([random_problem(optimizer={**optimizer, "stop_below": level}, **settings)])
    while limited.halted is None:
        limited.advance(chunk)
    stop = limited.iteration
    assert stop >= 150
    free.advance(stop - 150)
    assert_same(free, limited)


def test_without_graphs_updates_are_done_one_by_one_and_it_is_said():
    problem = random_problem()

    def refuse(body: Callable[[], None]) -> Callable[[], None]:
        body()  # a warm-up changes the weights before the recording fails
        raise RuntimeError("no graphs here")

    plain, again = MatrixStepper([problem]), MatrixStepper([problem], record=refuse)
    with pytest.warns(UserWarning, match="updates are launched one by one: no graphs here"):
        first = again.advance(20)
    np.testing.assert_array_equal(first, plain.advance(20))
    np.testing.assert_array_equal(again.advance(20), plain.advance(20))  # without a second warning
    assert_same(plain, again)


def test_every_number_of_updates_takes_few_launches():
    launches: list[int] = []
    weight = torch.zeros(1)

    def count(body: Callable[[], None]) -> Callable[[], None]:
        before = float(weight)
        body()
        length = int(float(weight) - before)
        return lambda: (launches.append(length), weight.add_(length))[0]

    replay = Replay(lambda: weight.add_(1).clone(), [weight], count)
    for n, expected in [(64, [64]), (200, [64] * 3 + [8]), (15, [8] + [1] * 7), (0, [])]:
        start = float(weight)
        launches.clear()
        replay.run(torch.empty(n, 1))
        assert launches == expected
        assert float(weight) == start + n

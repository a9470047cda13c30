"""Steppers: every fast one against autograd, chunks, state, halts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dynamics_cli.errors import UsageError
from dynamics_cli.kinds import Problem
from dynamics_cli.training.backends import Choice, build_stepper, choose, possible
from dynamics_cli.training.steppers.base import Stepper
from dynamics_cli.training.steppers.compiled import WideStepper
from tests.training.problems import ACTIVATIONS, LOSSES, MARGIN_LOSSES, random_problem

BACKENDS = ("autograd", "compiled", "gram", "wide")


def stepper(problem: Problem, backend: str) -> Stepper:
    """Return a stepper of the kind asked for, wherever it can train the problem at all."""
    if backend == "wide":
        return WideStepper([problem])
    return build_stepper([problem], Choice("cpu", backend, 0.0))


def shape_for(backend: str) -> dict[str, Any]:
    wide = {"n": 3, "d": 2, "width": 2500, "initialization": {"kind": "unbalanced", "scale": 0.05}}
    return {"gram": {"n": 4, "d": 9}, "wide": wide}.get(backend, {"n": 6, "d": 3})


def assert_same_path(fast: Stepper, reference: Stepper, n: int, rtol: float) -> None:
    np.testing.assert_allclose(fast.advance(n), reference.advance(n), rtol=rtol)
    for name, value in reference.parameters().items():
        np.testing.assert_allclose(fast.parameters()[name], value, rtol=rtol, atol=rtol * np.abs(value).max())
    assert fast.loss() == pytest.approx(reference.loss(), rel=rtol)
    assert fast.iteration == reference.iteration


@pytest.mark.parametrize("backend", BACKENDS[1:])
@pytest.mark.parametrize("activation", ACTIVATIONS, ids=lambda a: a["activation"])
@pytest.mark.parametrize("loss", LOSSES)
def test_one_step_is_that_of_autograd(backend, loss, activation):
    """With step 1 the change of the weights is the gradient."""
    problem = random_problem(
        loss=loss, activation=activation, optimizer={"kind": "gd", "lr": 1.0, "iterations": 1}, **shape_for(backend)
    )
    assert_same_path(stepper(problem, backend), stepper(problem, "autograd"), 1, 1e-12)


@pytest.mark.parametrize("backend", BACKENDS[1:])
@pytest.mark.parametrize(
    "settings_",
    [
        {"architecture": {"train_output": False}},
        {"loss_settings": {"reduction": "sum"}, "optimizer": {"kind": "gd", "lr": 0.002, "iterations": 50}},
        {"loss": "logistic", "optimizer": {"kind": "gd", "lr": 0.02, "iterations": 50, "loss_scaled": True}},
    ],
    ids=["fixed output", "sum", "loss scaled"],
)
def test_settings_agree_with_autograd(backend, settings_):
    problem = random_problem(**shape_for(backend), **settings_)
    assert_same_path(stepper(problem, backend), stepper(problem, "autograd"), 50, 1e-10)


@settings(max_examples=40, deadline=None)
@given(
    st.sampled_from(("compiled", "gram")),
    st.sampled_from(LOSSES),
    st.sampled_from(ACTIVATIONS),
    st.integers(1, 9),
    st.integers(1, 12),
    st.integers(1, 40),
    st.integers(0, 100),
)
def test_gradients_on_random_problems(backend, loss, activation, n, d, width, seed):
    problem = random_problem(
        n=n, d=d, width=width, loss=loss, activation=activation, seed=seed,
        optimizer={"kind": "gd", "lr": 1.0, "iterations": 1},
    )  # fmt: skip
    before = problem.initial_parameters()
    fast, reference = stepper(problem, backend), stepper(problem, "autograd")
    fast.advance(1)
    reference.advance(1)
    for name, start in before.items():
        gradient = start - reference.parameters()[name]
        scale = max(1.0, float(np.abs(gradient).max()))
        assert np.abs(start - fast.parameters()[name] - gradient).max() <= 1e-12 * scale


@pytest.mark.parametrize("backend", ["compiled", "layers"])
@pytest.mark.parametrize("replacement", [False, True])
@pytest.mark.parametrize("batch_size", [1, 4])
@pytest.mark.parametrize("d", [3, 9])
def test_batches_agree_with_autograd(backend, batch_size, replacement, d):
    optimizer = {"kind": "sgd", "lr": 0.01, "batch_size": batch_size, "epochs": 4, "replacement": replacement}
    problem = random_problem(n=10, d=d, loss="logistic", optimizer=optimizer)
    fast, reference = stepper(problem, backend), stepper(problem, "autograd")
    for n in (1, 3, 6):
        assert len(fast.advance(n)) == len(reference.advance(n)) == 0
    np.testing.assert_allclose(
        fast.parameters()["hidden_weight"], reference.parameters()["hidden_weight"], rtol=1e-11, atol=1e-12
    )
    assert fast.loss() == pytest.approx(reference.loss(), rel=1e-11)


OPTIMIZERS = {
    "gd": {"kind": "gd", "lr": 0.02, "iterations": 60},
    "sgd": {"kind": "sgd", "lr": 0.02, "iterations": 60, "batch_size": 4},
    "adam": {"kind": "adam", "lr": 0.02, "iterations": 60},
    "adam in batches": {"kind": "adam", "lr": 0.02, "iterations": 60, "batch_size": 4},
}


def path_of(make: Callable[[], Stepper], chunks: list[int], *, through_state: bool) -> tuple[list[bytes], bytes]:
    current, losses = make(), []
    for n in chunks:
        losses.append(current.advance(n))
        if through_state:
            state = current.state_dict()
            current = make()
            current.load_state_dict(state)
    weights = b"".join(value.tobytes() for value in current.parameters().values())
    return [np.concatenate(losses).tobytes(), np.float64(current.loss()).tobytes()], weights


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("optimizer", OPTIMIZERS)
@pytest.mark.parametrize("backend", BACKENDS)
def test_chunks_and_resumption_are_invisible(backend, optimizer, dtype):
    shape = {**shape_for(backend), "n": 5}
    problem = random_problem(dtype=dtype, optimizer=OPTIMIZERS[optimizer], **shape)
    if backend not in {c.backend for c in possible(problem)} | ({"wide"} if optimizer == "gd" else set()):
        pytest.skip("this stepper has no such optimizer")

    def make() -> Stepper:
        return stepper(problem, backend)

    whole = path_of(make, [60], through_state=False)
    assert path_of(make, [1, 2, 30, 27], through_state=False) == whole
    assert path_of(make, [7, 13, 40], through_state=True) == whole


@pytest.mark.parametrize("backend", BACKENDS)
def test_stops_before_the_update_of_the_first_small_loss(backend):
    optimizer = {"kind": "gd", "lr": 0.01, "iterations": 200}
    free = stepper(random_problem(optimizer=optimizer, **shape_for(backend)), backend)
    losses = free.advance(120)
    level = float(losses[100])
    expected = int(np.argmax(losses <= level))
    limited = stepper(random_problem(optimizer={**optimizer, "stop_below": level}, **shape_for(backend)), backend)
    np.testing.assert_array_equal(limited.advance(200), losses[: expected + 1])
    assert (limited.iteration, limited.halted) == (expected, "stopped")
    assert limited.loss() == pytest.approx(losses[expected], rel=1e-12)
    assert len(limited.advance(5)) == 0


@pytest.mark.parametrize("backend", BACKENDS)
def test_stops_at_the_first_loss_that_is_not_finite(backend):
    optimizer = {"kind": "gd", "lr": 50.0, "iterations": 500}
    linear = {"activation": "linear"}  # relus would die first
    problem = random_problem(dtype="float32", optimizer=optimizer, activation=linear, **shape_for(backend))
    diverging = stepper(problem, backend)
    losses = diverging.advance(500)
    assert diverging.halted == "diverged"
    assert np.isfinite(losses[:-1]).all()
    assert not np.isfinite(losses[-1])
    assert diverging.iteration == len(losses) - 1


@pytest.mark.parametrize("loss", MARGIN_LOSSES)
def test_float32_stays_float32(loss):
    problem = random_problem(loss=loss, dtype="float32")
    for backend in ("autograd", "compiled"):
        current = stepper(problem, backend)
        current.advance(3)
        assert {value.dtype for value in current.parameters().values()} == {np.dtype("float32")}


def test_the_cost_model_prefers_what_the_benchmarks_show():
    assert choose([random_problem(n=2, d=2, width=60)]).backend == "compiled"
    assert choose([random_problem(n=75, d=150, width=200)]).backend == "gram"
    assert choose([random_problem(n=3, d=2, width=200_000)]).backend == "wide"
    assert choose([random_problem(optimizer=OPTIMIZERS["adam"])]).backend == "layers"
    sgd = {"kind": "sgd", "lr": 0.1, "batch_size": 1, "epochs": 1}
    assert choose([random_problem(n=50, d=784, width=100, optimizer=sgd)]).backend == "compiled"


def test_a_backend_that_cannot_is_refused_with_those_that_can():
    with pytest.raises(UsageError, match="gram cannot train this problem; autograd, compiled, layers can"):
        choose([random_problem(backend="gram")])
    assert choose([random_problem(backend="matrix")]) == choose([random_problem()])  # which is gone


@pytest.mark.parametrize("backend", ["gram", "wide"])
def test_a_stepper_without_replicas_says_so(backend: str) -> None:
    problems = [random_problem(**shape_for(backend), seed=seed) for seed in range(2)]
    with pytest.raises(ValueError, match=f"{backend} trains one network at a time, not 2"):
        build_stepper(problems, Choice("cpu", backend, 0.0))

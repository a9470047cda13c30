"""Steppers of two-layer networks: every fast one against autograd, chunks, state, halts; the
choice among them.
"""

import numpy as np
import pytest
import torch
from numpy.testing import assert_array_equal
from torch.utils.data import DataLoader, TensorDataset

from dynamics_cli.config.identity import run_hash
from dynamics_cli.errors import UsageError
from dynamics_cli.kinds import stream
from dynamics_cli.training import backends
from dynamics_cli.training.backends import BACKENDS, choose
from dynamics_cli.training.many.replicas import batch_key
from tests.training.problems import (
    ACTIVATIONS,
    LOSSES,
    assert_chunks_are_invisible,
    assert_same_path,
    assert_weights,
    random_problem,
    stepper_of,
)

WAYS = ("torch", "engine", "kernel")
GD = {"kind": "gd", "lr": 0.02, "iterations": 60}
STEP_OF_ONE = {
    "kind": "gd",
    "lr": 1.0,
    "iterations": 1,
}  # the change of the weights is the gradient
FLOW = {"kind": "gradient_flow", "until": 6.0, "points": 120}
SGD = {"kind": "sgd", "lr": 0.1, "batch_size": 1, "epochs": 1}
ADAM = {**GD, "kind": "adam"}
TRANSFORMER = {"kind": "transformer", "tokens": 3, "width": 2}
LECUN = {"initialization": {"kind": "lecun"}}


def shape_for(way):
    """Return sizes that the way is for: of few samples, the engine takes the inputs in their
    span.
    """
    return {"n": 4, "d": 9} if way == "engine" else {"n": 6, "d": 3}


CASES = [(loss, activation) for loss in LOSSES for activation in ACTIVATIONS]


@pytest.mark.parametrize("seed", range(len(CASES)), ids=lambda k: "-".join(map(str, CASES[k])))
def test_gradients_are_those_of_autograd(seed):
    """Of all losses and activations, each in two shapes; those of the engine in `test_layers`."""
    loss, activation = CASES[seed]
    given = {"loss": loss, "activation": activation, "seed": seed, "optimizer": STEP_OF_ONE}
    for n, d, width in np.random.default_rng(seed).integers(1, (10, 5, 41), (2, 3)).tolist():
        problem = random_problem(n=n, d=d, width=width, **given)
        assert_same_path(stepper_of(problem, "kernel"), stepper_of(problem, "torch"), 1, 1e-12)


@pytest.mark.parametrize("way", WAYS[1:])
@pytest.mark.parametrize(
    "settings_",
    [
        {"architecture": {"train_output": False}},
        {"loss_settings": {"reduction": "sum"}, "optimizer": {**GD, "lr": 0.002}},
        {"loss": "logistic", "optimizer": {**GD, "loss_scaled": True}},
    ],
    ids=["fixed output", "sum", "loss scaled"],
)
def test_settings_agree_with_autograd(way, settings_):
    problem = random_problem(**shape_for(way), **settings_)
    assert_same_path(stepper_of(problem, way), stepper_of(problem, "torch"), 50, 1e-10)


@pytest.mark.parametrize(("way", "batch_size"), [("engine", 1), ("engine", 4), ("kernel", 1)])
@pytest.mark.parametrize("drawn", [{}, {"replacement": True}, {"drop_last": True}], ids=str)
@pytest.mark.parametrize("d", [3, 9])
def test_batches_agree_with_autograd(way, batch_size, drawn, d):
    optimizer = {
        "kind": "sgd",
        "lr": 0.01,
        "batch_size": batch_size,
        "epochs": 4,
        **drawn,
    }
    problem = random_problem(n=10, d=d, loss="logistic", optimizer=optimizer)
    fast = stepper_of(problem, way)
    reference = stepper_of(problem, "torch")
    for n in (1, 3, 6):
        assert_same_path(fast, reference, n, 1e-11)
    assert len(fast.advance(1)) == 0


@pytest.mark.parametrize("way", ["engine", "torch"])
@pytest.mark.parametrize("drop_last", [False, True])
def test_epochs_train_as_a_loop_of_torch_over_a_data_loader(way, drop_last):
    optimizer = {"kind": "sgd", "lr": 0.05, "batch_size": 4, "epochs": 3, "drop_last": drop_last}
    problem = random_problem(n=10, optimizer=optimizer)
    data = problem.dataset
    start = problem.initial_parameters()
    W, a = (torch.tensor(start[name], requires_grad=True) for name in problem.shapes)
    sgd = torch.optim.SGD([W, a], lr=0.05)
    pairs = TensorDataset(torch.from_numpy(data.x), torch.from_numpy(data.y))
    for epoch in range(3):
        order = stream(problem.config.seed, "batches", epoch).permutation(10)
        loader = DataLoader(pairs, batch_size=4, sampler=order.tolist(), drop_last=drop_last)
        for x, y in loader:
            sgd.zero_grad()
            loss = ((torch.relu(x @ W.T) @ a - y) ** 2).mean()
            loss.backward()
            sgd.step()

    stepper = stepper_of(problem, way)
    stepper.advance(problem.iterations)
    expected = {name: w.detach() for name, w in zip(problem.shapes, (W, a), strict=True)}
    assert_weights(stepper.parameters(), expected, rtol=1e-12)


@pytest.mark.parametrize(
    ("way", "optimizer", "rtol"),
    [
        *((way, {**GD, "lr": 0.01}, 1e-12) for way in WAYS),
        ("compiled", FLOW, 0.0),
        pytest.param("torch", FLOW, 0.0, marks=pytest.mark.long),
    ],
)
def test_stops_before_the_update_of_the_first_small_loss(way, optimizer, rtol):
    losses = stepper_of(random_problem(optimizer=optimizer, **shape_for(way)), way).advance(120)
    level = float(losses[100])
    expected = int(np.argmax(losses <= level))
    limited = stepper_of(
        random_problem(optimizer={**optimizer, "stop_below": level}, **shape_for(way)), way
    )
    assert_array_equal(limited.advance(200), losses[: expected + 1])
    assert (limited.iteration, limited.halted) == (expected, "stopped")
    assert limited.loss() == pytest.approx(losses[expected], rel=rtol, abs=0.0)
    assert len(limited.advance(5)) == 0


@pytest.mark.parametrize("way", WAYS)
def test_stops_at_the_first_loss_that_is_not_finite(way):
    linear = {"activation": "linear"}  # relus would die first
    problem = random_problem(
        dtype="float32", optimizer={**GD, "lr": 50.0}, activation=linear, **shape_for(way)
    )
    diverging = stepper_of(problem, way)
    losses = diverging.advance(500)
    assert (diverging.halted, diverging.iteration) == ("diverged", len(losses) - 1)
    assert np.isfinite(losses[:-1]).all()
    assert not np.isfinite(losses[-1])


@pytest.mark.parametrize(
    ("stepper", "settings_"),
    [
        ("CompiledStepper", {"n": 2, "d": 2, "width": 60}),
        ("LayersStepper", {"n": 6, "d": 5}),
        (
            "LayersStepper",
            {"n": 300, "d": 4, "width": 60_000},
        ),  # more activations than the kernel holds
        ("LayersStepper", {"optimizer": ADAM}),
        ("LayersStepper", {"architecture": {"kind": "fully_connected", "widths": []}}),
        ("LayersStepper", {"d": 9, "optimizer": {**ADAM, "batch_size": 1}}),
        ("LayersStepper", {"optimizer": {**SGD, "batch_size": 2}}),
        ("CompiledStepper", {"d": 9, "optimizer": SGD}),
        (
            "LayersStepper",
            {"architecture": {"kind": "residual", "width": 3}, "initialization": {"kind": "lecun"}},
        ),
        ("AutogradStepper", {"architecture": TRANSFORMER, "initialization": {"kind": "lecun"}}),
        ("AutogradStepper", {"backend": "torch"}),
        ("AutogradStepper", {"n": 514, "d": 514, "width": 513}),
        ("LayersStepper", {"n": 514, "d": 514, "width": 512}),
        ("LayersStepper", {"n": 512, "d": 514, "width": 513}),  # in 512 coordinates
        ("LayersStepper", {"n": 514, "d": 514, "width": 513, "backend": "compiled"}),
        ("FlowStepper", {"optimizer": FLOW}),
    ],
)
def test_auto_follows_its_rule(stepper, settings_):
    problem = random_problem(**settings_)
    choice = choose([problem])
    assert (choice.device, choice.backend) == (
        "cpu",
        "torch" if stepper == "AutogradStepper" else "compiled",
    )
    assert type(backends.build_stepper([problem], choice)).__name__ == stepper


def test_auto_takes_a_gpu_above_a_number_of_multiply_adds(monkeypatch):
    large = {"n": 40, "d": 3, "width": 400_000}
    assert backends.multiply_adds(random_problem(**large)) == 2 * 40 * 400_000 * 4
    monkeypatch.setattr(backends, "cuda_available", lambda: True)
    assert choose([random_problem(**large)]) == backends.Choice("cuda", "torch")
    assert choose([random_problem(**large)] * 2).device == "cpu"
    assert choose([random_problem(**large, backend="compiled")]).device == "cpu"
    monkeypatch.setattr(backends, "cuda_available", lambda: pytest.fail("nobody asks for a device"))
    assert choose([random_problem(**{**large, "n": 30})]).device == "cpu"


def test_a_backend_that_cannot_is_refused_with_those_that_can():
    problem = random_problem(architecture=TRANSFORMER, backend="compiled", **LECUN)
    with pytest.raises(
        UsageError, match="compiled cannot train this problem on device cpu; torch, torch_compile"
    ):
        choose([problem])
    dropout = {"kind": "gpt", "tokens": 3, "width": 2, "dropout": 0.1}
    problem = random_problem(architecture=dropout, backend="torch_compile", **LECUN)
    with pytest.raises(UsageError, match="torch_compile cannot train this .*; torch can"):
        choose([problem])


def test_a_network_that_torch_compiles_is_trained_alone_and_has_a_name_of_its_own():
    problems = [random_problem(seed=seed, backend="torch_compile") for seed in (0, 1)]
    assert choose(problems[:1]) == backends.Choice("cpu", "torch_compile")
    assert batch_key(problems[0]) is None
    names = {run_hash(problems[0].config, device="cpu", backend=way) for way in BACKENDS}
    assert len(names) == len(BACKENDS)


@pytest.mark.long
@pytest.mark.filterwarnings("ignore:.*torch.jit:DeprecationWarning")
@pytest.mark.parametrize("optimizer", [GD, {**SGD, "batch_size": 4}], ids=["gd", "sgd"])
def test_a_network_that_torch_compiles_takes_the_path_of_autograd(optimizer):
    problem = random_problem(optimizer=optimizer, architecture=TRANSFORMER, **LECUN)
    assert_same_path(stepper_of(problem, "torch_compile"), stepper_of(problem, "torch"), 2, 1e-12)
    assert_chunks_are_invisible(lambda: stepper_of(problem, "torch_compile"), 24)


def test_of_few_samples_weights_outside_their_span_stay():
    """Weights are those of autograd; what is orthogonal to all inputs keeps the bits of its
    rounding.
    """
    problem = random_problem(n=4, d=200, width=5, optimizer=GD)
    fast = stepper_of(problem, "engine")
    before = problem.initial_parameters()["hidden_weight"]
    assert fast.x.shape == (1, 4, 4)
    assert fast.parameters()["hidden_weight"].tobytes() == before.tobytes()
    fast.advance(60)
    moved = fast.parameters()["hidden_weight"] - before
    basis = np.linalg.qr(problem.dataset.x.T)[0]
    assert np.abs(moved - moved @ basis @ basis.T).max() < 1e-14 < np.abs(moved).max()

"""The compiled stepper of networks of layers against autograd, and that chunks, threads and replicas change no bit."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from dynamics_cli.config import load_config
from dynamics_cli.errors import InputError
from dynamics_cli.kinds import Problem, Samples
from dynamics_cli.training.backends import Choice, build_stepper, choose, possible
from dynamics_cli.training.problem import build_problem
from dynamics_cli.training.replicas import batch_key
from dynamics_cli.training.steppers import layers
from dynamics_cli.training.steppers.base import Stepper

ACTIVATIONS: tuple[Any, ...] = (
    "relu", "linear", "tanh", "sigmoid", "softplus", "gelu", "silu", "quadratic", "cubic", {"kind": "erf", "beta": 0.7},
    {"kind": "leaky_relu", "slope": 0.3},
)  # fmt: skip
LOSSES = ("mse", "half_mse", "logistic", "exponential", "hinge", "cross_entropy")
COSINE = {"kind": "cosine", "warm_up": 3}
OPTIMIZERS: dict[str, dict[str, Any]] = {
    "gd": {"kind": "gd"},
    "momentum": {"kind": "gd", "momentum": 0.9, "weight_decay": 0.01},
    "nesterov": {"kind": "sgd", "momentum": 0.5, "nesterov": True, "batch_size": 3, "schedule": COSINE},
    "loss scaled": {"kind": "gd", "loss_scaled": True},
    "sgd": {"kind": "sgd", "batch_size": 4, "replacement": True, "weight_decay": 0.1},
    "adam": {"kind": "adam", "weight_decay": 0.1, "schedule": COSINE},
    "adam in batches": {"kind": "adam", "batch_size": 3, "beta1": 0.8},
    "adamw": {"kind": "adamw", "weight_decay": 0.3, "beta2": 0.9},
    "rmsprop": {"kind": "rmsprop", "weight_decay": 0.1},
    "rmsprop with momentum": {"kind": "rmsprop", "momentum": 0.7, "decay": 0.9},
    "group rmsprop": {"kind": "group_rmsprop"},
    "group rmsprop by tensor": {"kind": "group_rmsprop", "per": "tensor"},
    "sign": {"kind": "sign_gd", "momentum": 0.6},
    "normalized": {"kind": "normalized_gd", "batch_size": 2},
}
PARAMETRIZATIONS = (None, None, "ntk", "mup", "mean_field")


def drawn(rng: np.random.Generator, optimizer: dict[str, Any], **settings: Any) -> Problem:
    """Return a problem with everything at random that is not given."""
    loss = rng.choice(LOSSES)
    many = loss == "cross_entropy" or (loss in ("mse", "half_mse") and rng.random() < 0.4)
    C, n, d = int(rng.integers(2, 5)) if many else 1, int(rng.integers(5, 9)), int(rng.integers(1, 6))
    x = rng.standard_normal((n, d))
    y = rng.standard_normal((n, C) if C > 1 else n)
    if loss == "cross_entropy":
        y = rng.integers(0, C, n)
    elif loss in ("logistic", "exponential", "hinge"):
        y = rng.choice([-1.0, 1.0], n)
    activation = ACTIVATIONS[rng.integers(len(ACTIVATIONS))]
    if C == 1 and rng.random() < 0.1:
        architecture: dict[str, Any] = {"kind": "diagonal_linear", "depth": int(rng.integers(1, 5))}
    elif rng.random() < 0.2:
        several = {"outputs": C} if C > 1 else {}
        architecture = {"kind": "two_layer", "width": int(rng.integers(1, 7)), "activation": activation, **several}
    else:
        way = PARAMETRIZATIONS[rng.integers(len(PARAMETRIZATIONS))]
        widths = [int(m) for m in rng.integers(1, 7, 1 if way == "mean_field" else rng.integers(way == "mup", 4))]
        architecture = {
            "kind": "fully_connected", "widths": widths, "activation": activation, "outputs": C,
            "bias": bool(rng.integers(2)), "parametrization": way,
        }  # fmt: skip
    if rng.random() < 0.3:
        architecture |= {"output_scale": float(rng.uniform(0.3, 3)), "centered": bool(rng.integers(2))}
    config = {
        "name": "drawn", "seed": int(rng.integers(100)), "dtype": "float64",
        "dataset": {"kind": "points", "x": [[0.0]], "y": [1]},  # a place holder
        "architecture": architecture,
        "initialization": {"kind": "unbalanced", "scale": 0.7},
        "loss": {"kind": str(loss), "reduction": str(rng.choice(["mean", "sum"]))},
        "optimizer": {"lr": 0.01, "iterations": 40, **optimizer},
    }  # fmt: skip
    names = list(load_config(config).architecture.shapes(d))
    if rng.random() < 0.3:
        config["architecture"]["train"] = [str(w) for w in rng.choice(names, rng.integers(1, len(names) + 1), False)]
    if rng.random() < 0.3 and optimizer["kind"] not in ("group_rmsprop", "normalized_gd"):
        config["optimizer"]["layer_lr"] = {str(rng.choice(names)): float(rng.uniform(0, 2))}
    return build_problem(load_config({**config, **settings}), dataset=Samples(x, np.asarray(y, np.float64)))


def stepper(problems: Problem | list[Problem], backend: str = "compiled") -> Stepper:
    problems = problems if isinstance(problems, list) else [problems]
    return build_stepper(problems, Choice("cpu", backend, 0.0, "engine"))


def compare(problem: Problem, n: int, rtol: float) -> None:
    fast, reference = stepper(problem), stepper(problem, "torch")
    np.testing.assert_allclose(fast.advance(n), reference.advance(n), rtol=rtol, atol=rtol)
    found, expected = fast.parameters(), reference.parameters()
    assert {name: one.shape for name, one in found.items()} == {name: one.shape for name, one in expected.items()}
    for name, value in expected.items():
        scale = max(1.0, float(np.abs(value).max()))
        np.testing.assert_allclose(found[name], value, rtol=0, atol=rtol * scale, err_msg=name)
    if n > 1:
        assert fast.loss() == pytest.approx(reference.loss(), rel=rtol, abs=rtol)


def draws(count: int) -> list[int]:
    return list(range(count))


def gradients_agree(seed: int) -> None:
    """With step 1 the change of the weights is the gradient."""
    rng = np.random.default_rng(seed)
    problem = drawn(rng, {"kind": "gd", "lr": 1.0, "iterations": 1})
    if "engine" in {c.variant for c in possible(problem)}:
        compare(problem, 1, 1e-12)


def paths_agree(name: str, seed: int) -> None:
    problem = drawn(np.random.default_rng(seed), OPTIMIZERS[name])
    if "engine" in {c.variant for c in possible(problem)}:
        compare(problem, 5, 1e-9)


@pytest.mark.parametrize("seed", draws(150))
def test_gradients_on_random_problems(seed: int) -> None:
    gradients_agree(seed)


@pytest.mark.parametrize("name", OPTIMIZERS)
@pytest.mark.parametrize("seed", draws(4))
def test_paths_on_random_problems(name: str, seed: int) -> None:
    paths_agree(name, 1000 + seed)


@pytest.mark.parametrize("depth", [1, 2, 4])
def test_matrix_completion_is_that_of_autograd(depth: int) -> None:
    config = {
        "name": "completion", "dtype": "float64",
        "dataset": {"kind": "matrix_completion", "rows": 6, "columns": 4, "rank": 2, "observed": 15},
        "architecture": {"kind": "matrix_product", "rows": 6, "columns": 4, "depth": depth, "width": 5},
        "initialization": {"kind": "unbalanced", "scale": 0.5}, "loss": {"kind": "mse"},
        "optimizer": {"kind": "group_rmsprop", "lr": 0.01, "iterations": 40},
    }  # fmt: skip
    problem = build_problem(load_config(config))
    assert choose([problem]).variant == "engine"
    compare(problem, 40, 1e-9)
    twice = Samples(problem.dataset.x[[0, 0]], problem.dataset.y[[0, 0]])
    assert choose([build_problem(problem.config, twice)]).backend == "torch"  # an entry that is seen twice


SHAPES: dict[str, dict[str, Any]] = {
    "small": {"widths": [5, 4], "n": 6},
    "in chunks": {"widths": [200, 160], "n": 300},
}


def deep(optimizer: dict[str, Any], shape: str = "small", seed: int = 0, **settings: Any) -> Problem:
    rng = np.random.default_rng(0)
    n = SHAPES[shape]["n"]
    config = {
        "name": "deep", "seed": seed, "dtype": "float64",
        "dataset": {"kind": "points", "x": [[0.0]], "y": [1]},
        "architecture": {"kind": "fully_connected", "widths": SHAPES[shape]["widths"], "activation": "tanh"},
        "initialization": {"kind": "default_scaled"}, "loss": {"kind": "mse"},
        "optimizer": {"lr": 0.02, "iterations": 60, **optimizer},
    }  # fmt: skip
    return build_problem(
        load_config({**config, **settings}), dataset=Samples(rng.normal(size=(n, 90)), rng.normal(size=n))
    )


def path(problems: Problem | list[Problem], chunks: list[int], *, through_state: bool = False) -> list[bytes]:
    """Return the bytes of losses and weights of a run in chunks, each by a stepper of its own where that is asked."""
    current, losses = stepper(problems), []
    for n in chunks:
        losses.append(current.advance(n))
        if through_state:
            state, current = current.state_dict(), stepper(problems)
            current.load_state_dict(state)
    weights = [value.tobytes() for value in current.parameters().values()]
    return [np.concatenate(losses).tobytes(), np.float64(current.loss()).tobytes(), *weights]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", OPTIMIZERS)
def test_chunks_and_resumption_are_invisible(name: str, dtype: str) -> None:
    problem = deep(OPTIMIZERS[name], dtype=dtype)
    whole = path(problem, [60])
    assert path(problem, [1, 2, 30, 27]) == whole
    assert path(problem, [7, 13, 40], through_state=True) == whole


@pytest.mark.parametrize("optimizer", [{"kind": "gd", "momentum": 0.9}, {"kind": "sgd", "batch_size": 250}])
def test_threads_change_no_bit(optimizer: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    """Chunks of samples and replicas on 1, 2 and 3 threads, together and alone."""
    problems = [deep(optimizer, "in chunks", seed=k) for k in range(3)]
    assert stepper(problems[0])._batch_rows < 250
    paths, alone = [], []
    for threads in (1, 2, 3):
        monkeypatch.setattr(layers.numba.config, "NUMBA_NUM_THREADS", threads)
        paths.append(path(problems, [3, 1]))
        alone.append([path(problem, [4]) for problem in problems])
    assert paths[0] == paths[1] == paths[2]
    assert alone[0] == alone[1] == alone[2]
    together = stepper(problems)
    together.advance(4)
    for r, weights in enumerate(zip(*together.parameters().values(), strict=True)):
        assert [one.tobytes() for one in weights] == alone[0][r][2:]


def test_replicas_are_the_networks_alone() -> None:
    """They differ in seed, step, activation and level; one of them halts before the others, one diverges."""
    changes = [
        {"seed": 1}, {"seed": 2, "activation": "gelu"}, {"lr": 0.2, "stop_below": 0.5},
        {"activation": {"kind": "erf", "beta": 2.0}}, {"activation": "cubic", "lr": 1e9},
    ]  # fmt: skip
    problems = []
    for change in changes:
        optimizer = {"kind": "gd", "momentum": 0.5} | {k: v for k, v in change.items() if k in ("lr", "stop_below")}
        architecture = {"kind": "fully_connected", "widths": [5, 4], "activation": change.get("activation", "tanh")}
        problems.append(deep(optimizer, seed=change.get("seed", 0), architecture=architecture))
    assert len({batch_key(problem) for problem in problems}) == 1
    assert choose(problems).variant == "engine"
    together = stepper(problems)
    losses = together.advance(30)
    assert losses.shape == (30, 5)
    numbers = together.numbers()
    assert numbers["replica_statuses"] == ["complete"] * 4 + ["diverged"]
    assert numbers["replica_iterations"][2] < 30
    for r, problem in enumerate(problems):
        alone = stepper(problem)
        own = alone.advance(30)
        assert losses[: len(own), r].tobytes() == own.tobytes()
        assert alone.iteration == numbers["replica_iterations"][r]
        for name, value in alone.parameters().items():
            assert together.parameters()[name][r].tobytes() == value.tobytes()


def test_centred_networks_begin_at_zero_exactly() -> None:
    architecture = {"kind": "fully_connected", "widths": [5, 4], "centered": True, "output_scale": 100.0}
    problem = deep({"kind": "gd"}, architecture=architecture, dtype="float32")
    assert stepper(problem).loss() == pytest.approx(float(np.mean(problem.dataset.y.astype(np.float32) ** 2)), rel=1e-6)


@pytest.mark.parametrize("name", ["adam in batches", "momentum"])
def test_memory_of_dead_units_ends_at_zero(name: str) -> None:
    """Otherwise it would be stuck at denormal numbers, on which an update takes twice as long."""
    architecture = {"kind": "fully_connected", "widths": [5, 4], "activation": "relu"}
    optimizer = {**OPTIMIZERS[name], "weight_decay": None, "iterations": 1000}
    current = stepper(deep(optimizer, architecture=architecture, dtype="float32"))
    state = current.state_dict()
    state["parameter/bias_2"] = np.full_like(state["parameter/bias_2"], -1e3)  # no unit of the second layer is active
    (key,) = [key for key in state if key.endswith(("mean/weight_1", "momentum/weight_1"))]
    state[key] = np.full_like(state[key], 1e-30)
    current.load_state_dict(state)
    current.advance(50)
    assert np.all(current.state_dict()[key] > 1e-35)
    current.advance(150)
    assert np.all(current.state_dict()[key] == 0)


def test_what_it_does_not_know_trains_by_autograd() -> None:
    for optimizer in ({"kind": "gd", "label_noise": 0.1}, {"kind": "normalized_gd", "layer_lr": {"weight_1": 2.0}}):
        assert [c.backend for c in possible(deep(optimizer))] == ["torch"]


def test_weights_that_do_not_exist_are_refused() -> None:
    architecture = {"kind": "fully_connected", "widths": [5, 4], "train": ["weight_9"]}
    with pytest.raises(InputError, match=r"architecture\.train: the network has no weight 'weight_9'; it has weight_1"):
        stepper(deep({"kind": "gd"}, architecture=architecture))
    with pytest.raises(InputError, match=r"optimizer\.layer_lr: no weight 'weight_9'; there are weight_1"):
        choose([deep({"kind": "gd", "layer_lr": {"weight_9": 2.0}})])


def test_auto_leaves_two_layer_networks_to_their_own_kernels() -> None:
    architecture = {"kind": "two_layer", "width": 5}
    sgd = {"kind": "sgd", "batch_size": 1}
    assert choose([deep(sgd, architecture=architecture)]).variant == "sparse"
    assert choose([deep({"kind": "adam"}, architecture=architecture)]).variant == "engine"
    linear = {"kind": "fully_connected", "widths": []}
    assert choose([deep({"kind": "gd"}, architecture=linear)]).variant == "engine"

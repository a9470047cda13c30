"""The compiled stepper of networks of layers against autograd, and that chunks, threads and
replicas change no bit.
"""

from functools import partial

import numba
import numpy as np
import pytest

from dynamics_cli.config import load_config
from dynamics_cli.errors import InputError
from dynamics_cli.kinds import Samples
from dynamics_cli.training.backends import by_compiled, by_engine, by_kernel, choose
from dynamics_cli.training.many.replicas import batch_key
from dynamics_cli.training.problem import build_problem
from tests.cases import read
from tests.training.problems import (
    assert_chunks_are_invisible,
    assert_replicas_are_the_networks_alone,
    assert_same_path,
    path_of,
    stepper_of,
)

ACTIVATIONS = (
    "relu",
    "linear",
    "tanh",
    "sigmoid",
    "softplus",
    "gelu",
    "silu",
    "quadratic",
    "cubic",
    {"kind": "erf", "beta": 0.7},
    {"kind": "leaky_relu", "slope": 0.3},
)
LOSSES = ("mse", "half_mse", "logistic", "exponential", "hinge", "cross_entropy")
OPTIMIZERS = read("""
gd: {kind: gd}
momentum: {kind: gd, momentum: 0.9, weight_decay: 0.01}
nesterov:
  kind: sgd
  momentum: 0.5
  nesterov: true
  batch_size: 3
  schedule: {kind: cosine, warm_up: 3}
loss scaled: {kind: gd, loss_scaled: true}
sgd: {kind: sgd, batch_size: 4, replacement: true, weight_decay: 0.1}
adam: {kind: adam, weight_decay: 0.1, schedule: {kind: cosine, warm_up: 3}}
adam in batches: {kind: adam, batch_size: 3, beta1: 0.8}
sgd in whole batches: {kind: sgd, batch_size: 4, drop_last: true}
adamw: {kind: adamw, weight_decay: 0.3, beta2: 0.9}
rmsprop: {kind: rmsprop, weight_decay: 0.1}
rmsprop with momentum: {kind: rmsprop, momentum: 0.7, decay: 0.9}
group rmsprop: {kind: group_rmsprop}
""")


def drawn(rng, optimizer, **settings):
    """Return a problem with everything at random that is not given."""
    loss = rng.choice(LOSSES)
    many = loss == "cross_entropy" or (loss in ("mse", "half_mse") and rng.random() < 0.4)
    C = int(rng.integers(2, 5)) if many else 1
    n = int(rng.integers(5, 9))
    d = int(rng.integers(1, 6))
    x = rng.standard_normal((n, d))
    y = rng.standard_normal((n, C) if C > 1 else n)
    if loss == "cross_entropy":
        y = rng.integers(0, C, n)
    elif loss in ("logistic", "exponential", "hinge"):
        y = rng.choice([-1.0, 1.0], n)
    activation = ACTIVATIONS[rng.integers(len(ACTIVATIONS))]
    if C == 1 and rng.random() < 0.1:
        architecture = {"kind": "diagonal_linear", "depth": int(rng.integers(1, 5))}
    elif rng.random() < 0.2:
        several = {"outputs": C} if C > 1 else {}
        architecture = {
            "kind": "two_layer",
            "width": int(rng.integers(1, 7)),
            "activation": activation,
            **several,
        }
    elif C == 1 and rng.random() < 0.3:
        architecture = {
            "kind": "residual",
            "width": int(rng.integers(1, 7)),
            "depth": int(rng.integers(2, 6)),
            "activation": activation,
        }
    else:
        widths = [int(m) for m in rng.integers(1, 7, rng.integers(4))]
        architecture = {
            "kind": "fully_connected",
            "widths": widths,
            "activation": activation,
            "outputs": C,
            "bias": bool(rng.integers(2)),
        }
    if rng.random() < 0.3:
        architecture |= {
            "output_scale": float(rng.uniform(0.3, 3)),
            "centered": bool(rng.integers(2)),
        }
    config = {
        "name": "drawn",
        "seed": int(rng.integers(100)),
        "dtype": "float64",
        "dataset": {"kind": "points", "x": [[0.0]], "y": [1]},  # a place holder
        "architecture": architecture,
        "initialization": {"kind": "unbalanced", "scale": 0.7},
        "loss": {"kind": str(loss), "reduction": str(rng.choice(["mean", "sum"]))},
        "optimizer": {"lr": 0.01, "iterations": 40, **optimizer},
    }
    names = list(load_config(config).architecture.shapes(d))
    if rng.random() < 0.3:
        config["architecture"]["train"] = [
            str(w) for w in rng.choice(names, rng.integers(1, len(names) + 1), False)
        ]
    if rng.random() < 0.3 and optimizer["kind"] != "group_rmsprop":
        config["optimizer"]["layer_lr"] = {str(rng.choice(names)): float(rng.uniform(0, 2))}
    return build_problem(
        load_config({**config, **settings}), dataset=Samples(x, np.asarray(y, np.float64))
    )


def compare(problem, n, rtol):
    if by_engine(problem):
        assert_same_path(stepper_of(problem, "engine"), stepper_of(problem, "torch"), n, rtol)


@pytest.mark.parametrize("seed", range(40))
def test_gradients_on_random_problems(seed):
    """With step 1 the change of the weights is the gradient."""
    compare(
        drawn(np.random.default_rng(seed), {"kind": "gd", "lr": 1.0, "iterations": 1}), 1, 1e-12
    )


@pytest.mark.parametrize("name", OPTIMIZERS)
@pytest.mark.parametrize("seed", range(2))
def test_paths_on_random_problems(name, seed):
    compare(drawn(np.random.default_rng(1000 + seed), OPTIMIZERS[name]), 5, 1e-9)


@pytest.mark.parametrize("depth", [1, 2, 4])
def test_matrix_completion_is_that_of_autograd(depth):
    config = {
        "name": "completion",
        "dtype": "float64",
        "dataset": {
            "kind": "matrix_completion",
            "rows": 6,
            "columns": 4,
            "rank": 2,
            "observed": 15,
        },
        "architecture": {
            "kind": "matrix_product",
            "rows": 6,
            "columns": 4,
            "depth": depth,
            "width": 5,
        },
        "initialization": {"kind": "unbalanced", "scale": 0.5},
        "loss": {"kind": "mse"},
        "optimizer": {"kind": "group_rmsprop", "lr": 0.01, "iterations": 40},
    }
    problem = build_problem(load_config(config))
    assert by_engine(problem)
    assert not by_kernel(problem)
    compare(problem, 40, 1e-9)
    twice = Samples(problem.dataset.x[[0, 0]], problem.dataset.y[[0, 0]])
    assert (
        choose([build_problem(problem.config, twice)]).backend == "torch"
    )  # an entry that is seen twice


SHAPES = read("""
small: {widths: [5, 4], n: 6}
in chunks: {widths: [200, 160], n: 300}
""")


def deep(optimizer, shape="small", seed=0, **settings):
    rng = np.random.default_rng(0)
    n = SHAPES[shape]["n"]
    config = {
        "name": "deep",
        "seed": seed,
        "dtype": "float64",
        "dataset": {"kind": "points", "x": [[0.0]], "y": [1]},
        "architecture": {
            "kind": "fully_connected",
            "widths": SHAPES[shape]["widths"],
            "activation": "tanh",
        },
        "initialization": {"kind": "default_scaled"},
        "loss": {"kind": "mse"},
        "optimizer": {"lr": 0.02, "iterations": 60, **optimizer},
    }
    return build_problem(
        load_config({**config, **settings}),
        dataset=Samples(rng.normal(size=(n, 90)), rng.normal(size=n)),
    )


@pytest.mark.parametrize(
    "optimizer", [{"kind": "gd", "momentum": 0.9}, {"kind": "sgd", "batch_size": 250}]
)
def test_threads_change_no_bit(optimizer, monkeypatch):
    """Chunks of samples and replicas on 1, 2 and 3 threads, together and alone."""
    problems = [deep(optimizer, "in chunks", seed=k) for k in range(3)]
    assert stepper_of(problems[0], "engine")._batch_rows < 250
    paths = []
    for threads in (1, 2, 3):
        cores = "dynamics_cli.training.steppers.side_by_side.cores"
        monkeypatch.setattr(cores, lambda count=threads: count)
        monkeypatch.setattr(numba.config, "NUMBA_NUM_THREADS", threads)
        paths.append(
            [path_of(partial(stepper_of, some, "engine"), [3, 1]) for some in (problems, *problems)]
        )
        assert_replicas_are_the_networks_alone(problems, partial(stepper_of, way="engine"), 4)
    assert paths[0] == paths[1] == paths[2]


@pytest.mark.parametrize(
    "network",
    [{"kind": "fully_connected", "widths": [5, 4]}, {"kind": "residual", "width": 5}],
    ids=["fully connected", "residual"],
)
def test_replicas_are_the_networks_alone(network):
    """They differ in seed, step, activation and level; one of them halts before the others, one
    diverges.
    """
    changes = [
        {"seed": 1},
        {"seed": 2, "activation": "gelu"},
        {"lr": 0.2, "stop_below": 0.5},
        {"activation": {"kind": "erf", "beta": 2.0}},
        {"activation": "cubic", "lr": 1e9},
    ]
    problems = []
    for change in changes:
        optimizer = {"kind": "gd", "momentum": 0.5} | {
            k: v for k, v in change.items() if k in ("lr", "stop_below")
        }
        architecture = {**network, "activation": change.get("activation", "tanh")}
        problems.append(deep(optimizer, seed=change.get("seed", 0), architecture=architecture))
    assert len({batch_key(problem) for problem in problems}) == 1
    assert by_engine(problems[0])
    numbers = assert_replicas_are_the_networks_alone(
        problems, partial(stepper_of, way="engine"), 30
    ).numbers()
    assert numbers["replica_statuses"] == ["complete"] * 4 + ["diverged"]
    assert numbers["replica_iterations"][2] < 30
    assert_chunks_are_invisible(partial(stepper_of, problems, "engine"), 30)


def test_centred_networks_begin_at_zero_exactly():
    architecture = {
        "kind": "fully_connected",
        "widths": [5, 4],
        "centered": True,
        "output_scale": 100.0,
    }
    problem = deep({"kind": "gd"}, architecture=architecture, dtype="float32")
    expected = float(np.mean(problem.dataset.y.astype(np.float32) ** 2))
    assert stepper_of(problem, "engine").loss() == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize("name", ["adam in batches", "momentum"])
def test_memory_of_dead_units_ends_at_zero(name):
    """Otherwise it would be stuck at denormal numbers, on which an update takes twice as long."""
    architecture = {"kind": "fully_connected", "widths": [5, 4], "activation": "relu"}
    optimizer = {**OPTIMIZERS[name], "weight_decay": None, "iterations": 1000}
    current = stepper_of(deep(optimizer, architecture=architecture, dtype="float32"), "engine")
    state = current.state_dict()
    state["parameter/bias_2"] = np.full_like(
        state["parameter/bias_2"], -1e3
    )  # no unit of the second layer is active
    (key,) = [key for key in state if key.endswith(("mean/weight_1", "momentum/weight_1"))]
    state[key] = np.full_like(state[key], 1e-30)
    current.load_state_dict(state)
    current.advance(50)
    assert np.all(current.state_dict()[key] > 1e-35)
    current.advance(150)
    assert np.all(current.state_dict()[key] == 0)


def test_what_it_does_not_know_trains_by_autograd():
    assert not by_compiled(deep({"kind": "group_rmsprop", "layer_lr": {"weight_1": 2.0}}))


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"weight_*": 0.5}, {"weight_1": 0.5, "weight_2": 0.5, "weight_3": 0.5}),
        ({"weight_[12]": 0.5, "*t_2": 2.0}, {"weight_1": 0.5, "weight_2": 2.0}),
        ({"weight_2": 0.0, "weight_[12]": 0.5}, {"weight_1": 0.5, "weight_2": 0.0}),
    ],
    ids=["one pattern", "the last pattern", "a name before patterns"],
)
def test_factors_of_steps_go_by_patterns(given, expected):
    architecture = {"kind": "fully_connected", "widths": [5, 4]}
    problem = deep({"kind": "gd", "layer_lr": given}, architecture=architecture)
    assert problem.step_factors() == expected
    for backend in ("engine", "torch"):
        by_pattern, by_name = [
            stepper_of(
                deep({"kind": "gd", "layer_lr": factors}, architecture=architecture), backend
            )
            for factors in (given, expected)
        ]
        np.testing.assert_array_equal(by_pattern.advance(5), by_name.advance(5))


def test_weights_that_do_not_exist_are_refused():
    architecture = {"kind": "fully_connected", "widths": [5, 4], "train": ["weight_9"]}
    with pytest.raises(
        InputError,
        match=r"architecture\.train: the network has no weight 'weight_9'; it has weight_1",
    ):
        stepper_of(deep({"kind": "gd"}, architecture=architecture), "engine")
    with pytest.raises(
        InputError, match=r"optimizer\.layer_lr: no weight 'weight_9'; there are weight_1"
    ):
        choose([deep({"kind": "gd", "layer_lr": {"weight_9": 2.0}})])

"""One property of every stepper: neither the lengths of calls nor a checkpoint changes a bit."""

from functools import partial

import pytest

from dynamics_cli.optimizers.torch_optim import class_names
from dynamics_cli.training.backends import by_compiled, by_engine, by_kernel
from tests.cases import read
from tests.training import test_averages, test_fresh_samples, test_modes, test_positions
from tests.training.problems import assert_chunks_are_invisible, random_problem, stepper_of
from tests.training.test_adversarial import problem as gan
from tests.training.test_fresh_samples import SGD as FRESH
from tests.training.test_layers import OPTIMIZERS

from ..conftest import kinds_of

DEEP = read("""
architecture: {kind: fully_connected, widths: [5, 4], activation: tanh, bias: false}
initialization: {kind: default_scaled}
""")
CASES = {
    **OPTIMIZERS,
    **read("""
single samples: {kind: sgd, batch_size: 1}
clipped: {kind: adam, clip: 0.1, batch_size: 3}
muon: {kind: muon}
muon in batches: {kind: muon, nesterov: false, weight_decay: 0.1, batch_size: 3}
muon, exact: {kind: muon, polar: exact}
"""),
    **{
        f"torch {name}": {"kind": "torch", "name": name, "layer_lr": {"weight_2": 0.5}}
        for name in class_names()
    },
}


@pytest.mark.parametrize("dtype", ["float32", pytest.param("float64", marks=pytest.mark.long)])
@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("way", ["torch", "engine", "kernel"])
def test_chunks_and_resumption_are_invisible(way, case, dtype):
    """Of few samples, the engine takes the inputs in their span."""
    sizes = {"n": 5, "d": 9 if way == "engine" else 3, "dtype": dtype}
    network = {} if way == "kernel" else DEEP
    if way == "kernel" and CASES[case]["kind"] == "torch":
        pytest.skip("it takes the names of weights of the deep network")
    problem = random_problem(
        **sizes, **network, optimizer={"lr": 0.02, "iterations": 60, **CASES[case]}
    )
    if not {"engine": by_engine, "kernel": by_kernel}.get(way, bool)(problem):
        pytest.skip("this way has no such optimizer")
    assert_chunks_are_invisible(partial(stepper_of, problem, way), 30)


SGD = {"kind": "sgd", "batch_size": 4}
FLOW = {"kind": "gradient_flow", "until": 0.6, "points": 60}
ADAM = {"kind": "adam", "batch_size": 4}
NETWORKS = {
    "gan": partial(gan, "logistic"),
    "gan, several updates": partial(gan, "hinge", 3, dtype="float64"),
    "positions": test_positions.problem_of,
    "positions in batches": partial(test_positions.problem_of, optimizer=ADAM),
    "averages": test_averages.problem_of,
    "averages in batches": partial(test_averages.problem_of, optimizer=SGD),
    "fresh": test_fresh_samples.problem_of,
    "fresh batches": partial(test_fresh_samples.problem_of, optimizer=FRESH | {"batch_size": 5}),
    "dropout": partial(test_modes.problem_of, "dropout"),
    "batch norm": partial(test_modes.problem_of, "batch norm"),
    "dropout in batches": partial(test_modes.problem_of, "dropout", optimizer=SGD),
    "batch norm in batches": partial(test_modes.problem_of, "batch norm", optimizer=SGD),
    "flow with kinks": partial(random_problem, optimizer=FLOW),
    "flow": partial(random_problem, optimizer=FLOW, dtype="float32", **DEEP),
}


@pytest.fixture(scope="module")
def moded(tmp_path_factory):
    with kinds_of(tmp_path_factory.mktemp("parts") / "moded_parts.py", test_modes.PARTS):
        yield


@pytest.mark.usefixtures("moded")
@pytest.mark.parametrize("backend", ["torch", "compiled"])
@pytest.mark.parametrize("name", NETWORKS)
def test_of_other_networks_too(name, backend):
    problem = NETWORKS[name]()
    if backend == "compiled" and not by_compiled(problem):
        pytest.skip("torch alone trains it")
    assert_chunks_are_invisible(partial(stepper_of, problem, backend), 24)

"""Online SGD: new samples in every update, as a function of seed and iteration; all steppers
agree with plain loops.
"""

from functools import partial

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.special import erf

from dynamics_cli.config import load_config
from dynamics_cli.kinds import Streams
from dynamics_cli.training import batches
from dynamics_cli.training.backends import by_engine, choose
from dynamics_cli.training.batches import Fresh
from dynamics_cli.training.many.replicas import batch_key
from dynamics_cli.training.problem import build_problem
from tests.training.problems import (
    assert_replicas_are_the_networks_alone,
    assert_same_path,
    stepper_of,
)

N = 12
ERF = {"kind": "erf", "beta": float(np.sqrt(0.5))}
TEACHER = {
    "kind": "teacher",
    "n": 40,
    "dim": N,
    "noise": 0.3,
    "divide_inputs": True,
    "architecture": {"kind": "two_layer", "width": 2, "activation": ERF},
}
SGD = {"kind": "sgd", "lr": 0.5 / N, "iterations": 1000, "samples": "fresh"}
SETTINGS = {
    "name": "online",
    "dtype": "float64",
    "dataset": TEACHER,
    "architecture": {"kind": "two_layer", "width": 3, "activation": ERF},
    "initialization": {"kind": "unbalanced", "scale": 1.0, "divide_by": "sqrt_dim"},
    "loss": {"kind": "half_mse"},
    "optimizer": SGD,
}


def problem_of(**changes):
    return build_problem(load_config(SETTINGS | changes))


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch):
    monkeypatch.setattr(batches, "BLOCK", 8)


def test_every_sample_is_new_and_the_teacher_the_same():
    problem = problem_of(optimizer=SGD | {"batch_size": 3})
    fresh = Fresh(problem)
    drawn = [fresh.at(i) for i in range(30)]
    x = np.concatenate([one[0] for one in drawn])
    y = np.concatenate([one[1] for one in drawn])
    assert len(np.unique(np.concatenate([x, problem.dataset.x]), axis=0)) == 3 * 30 + 40
    weights = problem.config.dataset.weights(Streams(problem.config.seed))
    noise = y - erf(x @ weights["hidden_weight"].T / np.sqrt(2)) @ weights["output_weight"]
    assert 0.2 < np.std(noise) < 0.4
    x, y, k = Fresh(problem).at(2, 100)  # to the end of a block of two updates
    assert (k, x.tobytes()) == (2, np.concatenate([one[0] for one in drawn[2:4]]).tobytes())


@pytest.mark.parametrize("way", ["torch", "engine"])
def test_steps_are_those_of_the_released_code(way):
    """`w -= (eta / sqrt N) v g'(lambda) d x`, `v -= (eta_v / N) g(lambda) d` for `lambda = w x /
    sqrt N` (nn2pp).
    """
    problem = problem_of(optimizer=SGD | {"layer_lr": {"output_weight": 0.2}})
    assert choose([problem]).backend == "compiled"
    stepper = stepper_of(problem, way)
    fresh = Fresh(problem)
    eta = 0.5
    start = stepper.parameters()
    w = np.sqrt(N) * start["hidden_weight"]
    v = start["output_weight"].copy()
    for i in range(50):
        (x,), (y,), _ = fresh.at(i)
        lam = w @ x / np.sqrt(N)
        d = v @ erf(lam / np.sqrt(2)) - y
        slope = np.sqrt(2 / np.pi) * np.exp(-(lam**2) / 2)
        w = w - eta / np.sqrt(N) * d * np.outer(v * slope, x)
        v = v - 0.2 * eta / N * d * erf(lam / np.sqrt(2))
    stepper.advance(50)
    assert_allclose(stepper.parameters()["hidden_weight"], w / np.sqrt(N), rtol=1e-10, atol=1e-12)
    assert_allclose(stepper.parameters()["output_weight"], v, rtol=1e-10)


@pytest.mark.parametrize(
    "changes",
    [
        {"optimizer": SGD | {"batch_size": 5}, "loss": {"kind": "mse", "reduction": "sum"}},
        {
            "architecture": {
                "kind": "two_layer",
                "width": 4,
                "activation": "leaky_relu",
                "slope": 0.3,
            }
        },
        {
            "architecture": {"kind": "two_layer", "width": 4, "train_output": False},
            "dtype": "float32",
        },
        {"dataset": TEACHER | {"sign": True, "noise": 0.0}, "loss": {"kind": "logistic"}},
    ],
)
def test_both_steppers_agree(changes):
    problem = problem_of(**changes)
    tolerance = 1e-11 if problem.dtype == np.float64 else 2e-5
    assert_same_path(stepper_of(problem, "torch"), stepper_of(problem, "engine"), 60, tolerance)


def test_replicas_are_the_networks_alone():
    problems = [
        problem_of(seed=seed, optimizer=SGD | {"batch_size": 3, "lr": 0.01 * (1 + seed)})
        for seed in range(3)
    ]
    assert len({batch_key(problem) for problem in problems} - {None}) == 1
    assert by_engine(problems[0])
    assert_replicas_are_the_networks_alone(problems, partial(stepper_of, way="engine"), 50)


def test_the_error_of_a_linear_student_decays_as_it_should(monkeypatch):
    """`E ||e||^2` shrinks by `1 - 2 lr + lr^2 (d + 2)` a step, `e` the distance to the teacher:
    x is Gaussian.
    """
    monkeypatch.undo()
    d = 400
    lr = 0.5 / 400
    steps = 1000
    linear = {"kind": "two_layer", "width": 1, "activation": "linear", "train_output": False}
    data = {
        "kind": "teacher",
        "n": 10,
        "dim": d,
        "divide_inputs": True,
        "output_value": 1.0,
        "architecture": linear,
    }
    initial = {"kind": "unbalanced", "scale": 1.0, "divide_by": "sqrt_dim", "output_value": 1.0}
    sgd = SGD | {"lr": lr, "iterations": steps}
    problem = problem_of(dataset=data, architecture=linear, initialization=initial, optimizer=sgd)
    stepper = stepper_of(problem, "engine")
    goal = problem.config.dataset.weights(Streams(0))["hidden_weight"]

    def error():
        now = stepper.parameters()
        return float(np.sum((now["output_weight"][0] * now["hidden_weight"] - goal) ** 2))

    before = error()
    stepper.advance(steps)
    expected = (1 - 2 * lr + lr**2 * (d + 2)) ** steps  # 0.15
    assert error() / before == pytest.approx(expected, rel=0.25)

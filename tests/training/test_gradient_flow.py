"""Gradient flow: exact solutions, kinks, conservation, chunks, resumption, the run directory."""

from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose

from dynamics_cli.api import train
from dynamics_cli.config import load_config
from dynamics_cli.errors import RunError
from dynamics_cli.runs.run import Run
from dynamics_cli.theory.sphere_flow import sphere_flow
from dynamics_cli.training.backends import choose
from dynamics_cli.training.problem import build_problem
from tests.cases import read
from tests.training.problems import random_problem, stepper_of

CONFIGS = Path(__file__).parents[2] / "configs/boursier2022"
BACKENDS = ("compiled", "torch")
FIXED_OUTPUT = {"architecture": {"train_output": False}}
DEEP = read("""
architecture: {kind: fully_connected, widths: [5, 4], activation: tanh}
initialization: {kind: lecun}
""")


def flow(until, points=100, **settings):
    return {"kind": "gradient_flow", "until": until, "points": points, **settings}


def network(x, y, hidden, output, optimizer, **architecture):
    """Return the problem of a two-layer network with given initial weights."""
    x, y, hidden, output = (np.asarray(one, float) for one in (x, y, hidden, output))
    sections = {
        "name": "given",
        "dtype": "float64",
        "dataset": {"kind": "points", "x": x.tolist(), "y": y.tolist()},
        "architecture": {"kind": "two_layer", "width": len(output), **architecture},
        "initialization": {
            "kind": "values",
            "hidden_weight": hidden.tolist(),
            "output_weight": output.tolist(),
        },
        "loss": {"kind": "half_mse"},
        "optimizer": optimizer,
    }
    return build_problem(load_config(sections))


def losses_of(stepper):
    return np.append(stepper.advance(len(stepper.times) - 1), stepper.loss())


def states_of(stepper):
    """Return the weights of the states after the first."""
    states = []
    for _ in stepper.times[1:]:
        stepper.advance(1)
        states.append(stepper.parameters())
    return states


def losses_of_descent(problem, lr):
    """Return the losses of gradient descent with a small step at the times of a flow."""
    optimizer = problem.config.optimizer
    iterations = round(optimizer.until / lr)
    sections = problem.config.model_dump() | {
        "optimizer": {"kind": "gd", "lr": lr, "iterations": iterations}
    }
    stepper = stepper_of(build_problem(load_config(sections)), "engine")
    return np.append(stepper.advance(iterations), stepper.loss())[:: iterations // optimizer.points]


# exact solutions


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("rtol", [1e-4, 1e-7, 1e-10])
def test_a_balanced_linear_neuron_follows_its_closed_form(backend, rtol):
    """With w = a, x = y = 1 and half the square loss, u = a w follows u' = 2 u (1 - u)."""
    problem = network([[1.0]], [1.0], [[0.01]], [0.01], flow(6.0, rtol=rtol), activation="linear")
    stepper = stepper_of(problem, backend)
    u = 1.0 / (1.0 + (1.0 / 0.01**2 - 1.0) * np.exp(-2.0 * stepper.times))
    assert_allclose(losses_of(stepper), 0.5 * (u - 1.0) ** 2, atol=30 * rtol)


@pytest.mark.parametrize("scale", [1e-6, 1e-20])
def test_tiny_neurons_follow_the_flow_on_the_sphere(scale):
    """Eq. 10, with all its activation changes and sliding, from weights of any scale."""
    rng = np.random.default_rng(12)
    x = rng.standard_normal((9, 12))
    y = rng.standard_normal(9)
    W = scale * rng.standard_normal((30, 12))
    a = rng.choice([-1.0, 1.0], 30) * scale * np.linalg.norm(W / scale, axis=1)
    stepper = stepper_of(network(x, y, W, a, flow(4.0, 20)), "compiled")
    expected = sphere_flow(x, y, W, a, stepper.times)
    for i, weights in enumerate(states_of(stepper), start=1):
        norms = scale * np.linalg.norm(weights["hidden_weight"] / scale, axis=1)
        assert_allclose(
            weights["hidden_weight"] / norms[:, None], expected.directions[i], atol=3e-3
        )
        growth = np.log(norms / (scale * np.linalg.norm(W / scale, axis=1)))
        assert_allclose(growth, expected.log_growth[i], atol=3e-3)


@pytest.mark.parametrize("activation", ["relu", "linear", "tanh"])
@pytest.mark.parametrize("loss", ["mse", "logistic", "hinge"])
def test_gradient_descent_converges_to_it(loss, activation):
    settings = {} if loss == "mse" else FIXED_OUTPUT
    problem = random_problem(
        loss=loss, activation={"activation": activation}, optimizer=flow(1.0), **settings
    )
    exact = losses_of(stepper_of(problem, "compiled"))
    deviations = [np.abs(losses_of_descent(problem, lr) - exact).max() for lr in (1e-3, 2.5e-4)]
    # the kinks of gradient descent leave a noise of the order of the step besides; of hinge losses
    # that of the flow
    assert deviations[1] <= 0.3 * deviations[0] + (1e-4 if loss == "hinge" else 5e-5)


@pytest.mark.parametrize("loss", ["mse", "cross_entropy"])
def test_deep_networks_are_followed_and_errors_fall_with_the_tolerance(loss):
    settings = {**DEEP}
    if loss == "cross_entropy":
        settings["architecture"] = {**DEEP["architecture"], "outputs": 3}
        settings["dataset"] = {"kind": "points", "x": np.eye(3).tolist(), "y": [0.0, 1.0, 2.0]}

    def path(rtol, backend):
        return losses_of(
            stepper_of(
                random_problem(loss=loss, optimizer=flow(4.0, rtol=rtol), **settings), backend
            )
        )

    reference = path(1e-11, "torch")
    for rtol in (1e-4, 1e-6, 1e-8):
        assert np.abs(path(rtol, "compiled") - reference).max() <= 5 * rtol * max(1.0, reference[0])
    assert reference[-1] < reference[0]


# kinks and conservation


def test_neurons_conserve_their_invariant():
    """Lemma 1: `a_j^2 - ||w_j||^2`; no output weight of a balanced neuron changes its sign,
    however small it gets.
    """
    problem = random_problem(
        optimizer=flow(10.0, 5), width=20, initialization={"kind": "balanced", "scale": 1e-3}
    )
    stepper = stepper_of(problem, "compiled")
    before = stepper.parameters()
    after = states_of(stepper)[-1]
    norms = np.linalg.norm(after["hidden_weight"], axis=1)
    assert_allclose(after["output_weight"], np.copysign(norms, before["output_weight"]), rtol=1e-12)


@pytest.mark.parametrize("factor", [0.25, 2.0])
def test_layers_have_rates_of_their_own(factor):
    """With a' = -f dL/da, `a^2 - f ||w||^2` is conserved in place of `a^2 - ||w||^2`, which is not
    imposed then; with equal factors time is scaled.
    """
    given = ([[1.0, 0.5]], [1.0], [[0.1, 0.2]], [0.5])
    layer_lr = {"output_weight": factor}
    one = network(*given, flow(3.0, rtol=1e-9, layer_lr=layer_lr), activation="linear")
    states = states_of(stepper_of(one, "compiled"))
    a = np.array([state["output_weight"][0] for state in states])
    w = np.array([state["hidden_weight"][0] for state in states])
    assert_allclose(a**2 - factor * np.sum(w**2, axis=1), 0.25 - factor * 0.05, atol=1e-7)
    assert np.ptp(a**2 - np.sum(w**2, axis=1)) > 0.05

    both = {"*": factor}
    scaled = network(*given, flow(3.0, rtol=1e-9, layer_lr=both), activation="linear")
    plain = network(*given, flow(3.0 * factor, rtol=1e-9), activation="linear")
    assert_allclose(
        losses_of(stepper_of(scaled, "compiled")),
        losses_of(stepper_of(plain, "compiled")),
        atol=1e-8,
    )


def test_a_neuron_that_slides_follows_filippov():
    """Two inputs at 60 degrees: the negative label pushes w off its input, the positive one back
    onto the boundary.

    On the boundary w moves along it with the part of D_1 that is orthogonal to x_2.
    """
    x = np.array([[1.0, 0.0], [0.5, np.sqrt(3) / 2]])
    y = np.array([1.0, -3.0])
    start = 1e-8 * np.array([[np.cos(0.3), np.sin(0.3)]])
    stepper = stepper_of(network(x, y, start, [1e-8], flow(3.0, 30, rtol=1e-4)), "compiled")
    expected = sphere_flow(x, y, start, [1e-8], stepper.times)
    assert len(expected.switches[0]) >= 1
    w = states_of(stepper)[-1]["hidden_weight"][0]
    assert_allclose(w / np.linalg.norm(w), expected.directions[-1, 0], atol=1e-3)


# the contract of a stepper


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_start_that_is_not_finite_has_diverged(backend):
    stepper = stepper_of(network([[1e200]], [1.0], [[1e200]], [1.0], flow(1.0)), backend)
    assert len(stepper.advance(5)) == 1
    assert (stepper.iteration, stepper.halted) == (0, "diverged")


# config, run directory


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_run_records_times_and_work(backend, tmp_path):
    problem = random_problem(optimizer=flow(3.0, 80), backend=backend)
    assert choose([problem]).backend == backend
    run = train(problem.config, out=tmp_path / "run")
    assert run.info["gradient_evaluations"] > run.info["steps"] > 0
    assert run.times is not None
    assert_allclose(run.times, 3.0 * run.loss_iterations / 80, rtol=1e-14)


def test_a_flow_that_cannot_go_on_says_so(tmp_path, monkeypatch):
    def not_a_number(problem, *_):
        return lambda theta: (1.0, np.full_like(theta, np.nan))

    monkeypatch.setattr("dynamics_cli.training.steppers.flow.objective_of", not_a_number)
    with pytest.raises(
        RunError, match=r"gradient flow needs smaller steps .* a larger optimizer\.rtol may pass"
    ):
        train(random_problem(optimizer=flow(1.0)).config, out=tmp_path / "run")
    assert Run(tmp_path / "run").status == "failed"

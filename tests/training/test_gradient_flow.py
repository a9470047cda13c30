"""Gradient flow: exact solutions, kinks, sliding, conservation, order, chunks, resumption, the run directory."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from dynamics_cli._bundled.experiments.boursier2022.theory.growth import logistic_growth

from dynamics_cli.api import train
from dynamics_cli.config import ConfigError, load_config
from dynamics_cli.errors import RunError
from dynamics_cli.kinds import Problem
from dynamics_cli.runs.run import Run
from dynamics_cli.theory.sphere_flow import sphere_flow
from dynamics_cli.training.backends import choose
from dynamics_cli.training.flow.located import ERROR_SHARE, NODES, RADAU
from dynamics_cli.training.problem import build_problem
from experiments.boursier2022.theory.alignment import D_plus
from tests.training.problems import ACTIVATIONS, assert_chunks_are_invisible, random_problem, stepper_of

CONFIGS = Path(__file__).parents[2] / "configs/boursier2022"
BACKENDS = ("flow", "torch")
STEEP = {"activation": "leaky_relu", "slope": 1.5}
FIXED_OUTPUT = {"architecture": {"train_output": False}}


def flow(until: float, points: int = 100, **settings: Any) -> dict[str, Any]:
    return {"kind": "gradient_flow", "until": until, "points": points, **settings}


def network(
    x: Any, y: Any, hidden: Any, output: Any, optimizer: dict[str, Any], tmp_path: Path, **settings: Any
) -> Problem:
    """Return the problem of a two-layer network with given initial weights."""
    file = tmp_path / "weights.npz"
    np.savez(file, hidden_weight=np.asarray(hidden, float), output_weight=np.asarray(output, float))
    sections: dict[str, Any] = {
        "name": "given",
        "dtype": "float64",
        "dataset": {"kind": "points", "x": np.asarray(x, float).tolist(), "y": np.asarray(y, float).tolist()},
        "architecture": {"kind": "two_layer", "width": len(output), **settings.pop("architecture", {})},
        "initialization": {"kind": "file", "path": str(file)},
        "loss": {"kind": "half_mse"},
        "optimizer": optimizer,
    }
    return build_problem(load_config(sections | settings))


def losses_of(stepper: Any) -> np.ndarray:
    return np.append(stepper.advance(len(stepper.times) - 1), stepper.loss())


def losses_of_descent(problem: Problem, lr: float, way: str = "") -> np.ndarray:
    """Return the losses of gradient descent with a small step at the times of a flow."""
    optimizer: Any = problem.config.optimizer
    iterations = round(optimizer.until / lr)
    sections = problem.config.model_dump() | {"optimizer": {"kind": "gd", "lr": lr, "iterations": iterations}}
    descent = build_problem(load_config(sections))
    stepper = stepper_of(descent, way or choose([descent]).variant)
    return np.append(stepper.advance(iterations), stepper.loss())[:: iterations // optimizer.points]


def high_dim(until: float, points: int, rtol: float) -> Any:
    settings = [f"optimizer.{key}={value}" for key, value in (("until", until), ("points", points), ("rtol", rtol))]
    return stepper_of(build_problem(load_config(CONFIGS / "high_dim_flow.yaml", settings)), "flow")


# exact solutions


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize(("rtol", "start", "until"), [(1e-4, 0.01, 6.0), (1e-7, 0.01, 6.0), (1e-10, 0.01, 6.0),
                                                      (1e-4, 0.1, 2.0), (1e-8, 0.1, 2.0)])  # fmt: skip
def test_a_balanced_linear_neuron_follows_its_closed_form(backend, rtol, start, until, tmp_path):
    """With w = a, x = y = 1 and half the square loss, u = a w follows u' = 2 u (1 - u); the error control tells more.

    From 0.1 on, `w = sqrt(u)` grows, then settles: its relative errors are compared with what is estimated.
    """
    linear = {"architecture": {"activation": "linear"}}
    problem = network([[1.0]], [1.0], [[start]], [start], flow(until, rtol=rtol), tmp_path, **linear)
    stepper = stepper_of(problem, backend)
    u = 1.0 / (1.0 + (1.0 / start**2 - 1.0) * np.exp(-2.0 * stepper.times))
    np.testing.assert_allclose(losses_of(stepper), 0.5 * (u - 1.0) ** 2, atol=30 * rtol)
    if start < 0.1:
        return
    stepper, errors = stepper_of(problem, backend), []
    for exact in np.sqrt(u):
        errors.append(abs(stepper.parameters()["hidden_weight"][0, 0] / exact - 1.0))
        stepper.advance(1)
    told = stepper.numbers()["flow"]
    assert told["tolerance"] == rtol
    assert told["steps"] >= 3
    assert told["rejected"] >= 0
    assert max(errors) <= 3 * told["error_estimate"] <= 3 * rtol * told["steps"]
    assert told["error_estimate"] > 0.01 * rtol


def test_aligned_neurons_grow_logistically(tmp_path):
    """Section 4.2 of Boursier et al. 2022, from a squared norm of 1e-12."""
    x, y = np.eye(5)[:4], np.array([1.0, -0.5, 0.8, -1.2])
    D = D_plus(x, y)
    direction = D / np.linalg.norm(D)
    scales = np.array([0.8e-6, 0.6e-6])
    problem = network(x, y, scales[:, None] * direction, scales, flow(60.0), tmp_path)
    stepper = stepper_of(problem, "flow")
    mass = []
    for _ in range(100):
        stepper.advance(1)
        mass.append(np.sum(stepper.parameters()["output_weight"] ** 2))
    np.testing.assert_allclose(mass, logistic_growth(stepper.times[1:], 1e-12, x, y), rtol=1e-5)


@pytest.mark.parametrize("scale", [1e-6, 1e-20, 1e-150])
@pytest.mark.parametrize("d", [2, 5, 12])
def test_tiny_neurons_follow_the_flow_on_the_sphere(scale, d, tmp_path):
    """Eq. 10, with all its activation changes and sliding, from weights of any scale."""
    rng = np.random.default_rng(d)
    x, y = rng.standard_normal((9, d)), rng.standard_normal(9)
    W = scale * rng.standard_normal((30, d))
    a = rng.choice([-1.0, 1.0], 30) * scale * np.linalg.norm(W / scale, axis=1)
    problem = network(x, y, W, a, flow(8.0, 40), tmp_path)
    stepper = stepper_of(problem, "flow")
    expected = sphere_flow(x, y, W, a, stepper.times)
    for i in range(1, 41):
        stepper.advance(1)
        weights = stepper.parameters()
        norms = scale * np.linalg.norm(weights["hidden_weight"] / scale, axis=1)
        if norms.max() > 1e-5:  # no longer tiny
            break
        np.testing.assert_allclose(weights["hidden_weight"] / norms[:, None], expected.directions[i], atol=2e-6)
        np.testing.assert_allclose(
            np.log(norms / (scale * np.linalg.norm(W / scale, axis=1))), expected.log_growth[i], atol=2e-6
        )
    assert i > 5


# order, conservation, cost


def test_radau_collocation_integrates_polynomials():
    for q in range(3):
        np.testing.assert_allclose(RADAU @ NODES**q, NODES ** (q + 1) / (q + 1), rtol=1e-13)
    for q in (3, 4):  # order 5 at the end of the step
        assert RADAU[-1] @ NODES**q == pytest.approx(1 / (q + 1), rel=1e-13)
    t = np.linspace(0, 1, 100_001)
    nodal = np.prod(t[:, None] - NODES, axis=1) / np.prod(NODES)
    assert np.mean(np.abs(nodal)) == pytest.approx(ERROR_SHARE, rel=1e-4)


@pytest.mark.parametrize("loss", ["mse", "logistic", "exponential"])
def test_the_error_falls_with_the_tolerance(loss):
    def path(rtol: float) -> np.ndarray:
        return losses_of(stepper_of(random_problem(loss=loss, optimizer=flow(4.0, rtol=rtol)), "flow"))

    reference = path(1e-10)
    for rtol in (1e-3, 1e-5, 1e-7):
        assert np.abs(path(rtol) - reference).max() <= 3 * rtol * max(1.0, reference[0])


@pytest.mark.parametrize("settings", [{}, FIXED_OUTPUT], ids=["trained output", "fixed output"])
@pytest.mark.parametrize("activation", [*ACTIVATIONS, STEEP], ids=lambda a: f"{a['activation']} {a.get('slope', '')}")
@pytest.mark.parametrize("loss", ["mse", "half_mse", "logistic", "exponential"])
def test_gradient_descent_converges_to_it_at_first_order(loss, activation, settings):
    problem = random_problem(optimizer=flow(1.0, rtol=1e-8), loss=loss, activation=activation, **settings)
    exact = losses_of(stepper_of(problem, "flow"))
    deviations = [np.abs(losses_of_descent(problem, lr) - exact).max() for lr in (1e-3, 2.5e-4)]
    # the kinks of gradient descent leave a noise of the order of the step besides
    assert deviations[1] <= 0.3 * deviations[0] + 2.5e-5


def test_hinge_losses_are_followed_too():
    """The derivative of the loss jumps at the margin, and samples stay there: small steps, but the right path."""
    problem = random_problem(loss="hinge", optimizer=flow(1.0, rtol=1e-3), **FIXED_OUTPUT)
    np.testing.assert_allclose(losses_of_descent(problem, 1e-4), losses_of(stepper_of(problem, "flow")), atol=3e-3)


def test_high_dim_takes_fewer_gradients_than_a_fixed_step():
    """RK4 with step 0.2 takes 1 800 gradients up to time 90 and deviates by 4.7e-4, as measured once."""
    reference = losses_of(high_dim(90.0, 450, 1e-6))
    stepper = high_dim(90.0, 450, 1e-3)
    deviation = np.abs(losses_of(stepper) - reference).max()
    assert deviation <= 2e-5
    assert stepper.numbers()["gradient_evaluations"] <= 700
    W, a = (stepper.parameters()[name] for name in ("hidden_weight", "output_weight"))
    assert np.abs(a**2 - np.sum(W**2, axis=1)).max() <= 1e-9  # balanced at the start to 1e-46


@pytest.mark.parametrize("settings", [{}, {"initialization": {"kind": "balanced", "scale": 1e-3}}])
def test_neurons_conserve_their_invariant(settings):
    """Lemma 1: `a_j^2 - ||w_j||^2`; and no output weight of a balanced neuron changes its sign."""
    problem = random_problem(optimizer=flow(20.0, 50), width=40, **settings)
    stepper = stepper_of(problem, "flow")
    before = stepper.parameters()
    stepper.advance(50)
    after = stepper.parameters()
    invariant = [w["output_weight"] ** 2 - np.sum(w["hidden_weight"] ** 2, axis=1) for w in (before, after)]
    np.testing.assert_allclose(invariant[1], invariant[0], atol=1e-10)
    if settings:
        assert (np.sign(after["output_weight"]) == np.sign(before["output_weight"])).all()


# kinks


def test_a_neuron_that_slides_follows_filippov(tmp_path):
    """Two inputs at 60 degrees: the negative label pushes w off its input, the positive one back onto the boundary.

    On the boundary w moves along it with the part of D_1 that is orthogonal to x_2.
    """
    x = np.array([[1.0, 0.0], [0.5, np.sqrt(3) / 2]])
    y = np.array([1.0, -3.0])
    start = 1e-8 * np.array([np.cos(0.3), np.sin(0.3)])
    problem = network(x, y, start[None], [1e-8], flow(10.0, 200), tmp_path)
    stepper = stepper_of(problem, "flow")
    expected = sphere_flow(x, y, start[None], [1e-8], stepper.times)
    assert len(expected.switches[0]) >= 1
    stepper.advance(100)
    w = stepper.parameters()["hidden_weight"][0]
    np.testing.assert_allclose(w / np.linalg.norm(w), expected.directions[100, 0], atol=1e-7)
    assert w @ x[1] == pytest.approx(0.0, abs=1e-12 * np.linalg.norm(w))
    stepper.advance(100)
    descent = losses_of_descent(problem, 1e-3)
    assert stepper.loss() == pytest.approx(descent[-1], rel=1e-3)


def test_a_neuron_dies_on_the_boundary_of_orthogonal_inputs(tmp_path):
    """Lemma 7 (iii): on orthogonal inputs a sample once switched off keeps its pre-activation 0."""
    problem = network(np.eye(2), [1.0, -1.0], [[0.1, 0.05]], [0.1], flow(20.0, 20), tmp_path)
    stepper = stepper_of(problem, "flow")
    stepper.advance(20)
    w, a = stepper.parameters()["hidden_weight"][0], stepper.parameters()["output_weight"][0]
    assert w[1] == pytest.approx(0.0, abs=1e-14)
    assert a * w[0] == pytest.approx(1.0, rel=1e-4)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize(
    ("x", "hidden", "output", "loss"),
    [([[1.0, 1.0]], [[-1.0, -1.0], [0.0, 0.0]], [1.0, 0.0], 0.5), ([[1.0]], [[1.0]], [1.0], 0.0)],
)
def test_dead_neurons_and_interpolating_ones_stay(backend, x, hidden, output, loss, tmp_path):
    stepper = stepper_of(network(x, [1.0], hidden, output, flow(5.0, 10), tmp_path), backend)
    before = stepper.parameters()
    assert (losses_of(stepper) == loss).all()
    for name, value in stepper.parameters().items():
        np.testing.assert_array_equal(value, before[name])


@pytest.mark.parametrize("activation", ["linear", "relu"])
def test_output_weights_may_pass_zero(activation, tmp_path):
    """An unbalanced neuron whose output weight changes its sign; a linear one, so that descent has no kinks."""
    x, y = [[1.0, 0.3], [0.2, 1.0]], [-1.0, -0.5]
    architecture = {"activation": activation}
    problem = network(x, y, [[1.0, 0.8]], [0.3], flow(4.0, 50), tmp_path, architecture=architecture)
    stepper = stepper_of(problem, "flow")
    losses = losses_of(stepper)
    assert stepper.parameters()["output_weight"][0] < 0
    np.testing.assert_allclose(losses, losses_of_descent(problem, 1e-4), atol=2e-4)


def test_inputs_that_are_zero_or_equal_do_no_harm():
    problem = random_problem(n=4, d=3, optimizer=flow(5.0, 20))
    dataset = problem.dataset
    x = np.concatenate([dataset.x, dataset.x, np.zeros((2, 3))])
    y = np.concatenate([dataset.y, -dataset.y, [1.0, -1.0]])
    sections = problem.config.model_dump() | {"dataset": {"kind": "points", "x": x.tolist(), "y": y.tolist()}}
    losses = losses_of(stepper_of(build_problem(load_config(sections)), "flow"))
    assert (np.diff(losses) <= 1e-12).all()


# other architectures


@pytest.mark.parametrize(
    ("activation", "rtol", "kept", "atol"), [("linear", 1e-8, 1e-8, 1e-6), ("relu", 1e-6, 1e-4, 1e-2)]
)
def test_both_integrators_agree_and_roughly_across_kinks(activation, rtol, kept, atol):
    problem = random_problem(activation={"activation": activation}, optimizer=flow(3.0, rtol=rtol))
    averaged = stepper_of(problem, "torch")
    np.testing.assert_allclose(losses_of(averaged), losses_of(stepper_of(problem, "flow")), atol=atol)
    assert averaged.numbers()["rtol"] == kept


@pytest.mark.parametrize("loss", ["mse", "cross_entropy"])
def test_deep_networks_are_followed(loss):
    architecture = {"kind": "fully_connected", "widths": [5, 4], "outputs": 1 if loss == "mse" else 3}
    sections = random_problem(n=5, d=2, optimizer=flow(3.0, 30)).config.model_dump() | {"loss": {"kind": loss}}
    sections |= {"architecture": architecture, "initialization": {"kind": "default_scaled"}}
    if loss == "cross_entropy":
        sections["dataset"]["y"] = [0.0, 1.0, 2.0, 0.0, 1.0]
    problem = build_problem(load_config(sections))
    assert choose([problem]).backend == "torch"
    losses = losses_of(stepper_of(problem, "torch"))
    np.testing.assert_allclose(losses, losses_of_descent(problem, 1e-3, "torch"), atol=5e-3)
    assert losses[-1] < losses[0]


# the contract of a stepper


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("backend", BACKENDS)
def test_chunks_and_resumption_are_invisible(backend, dtype):
    make = partial(stepper_of, random_problem(optimizer=flow(3.0, 60), dtype=dtype), backend)
    assert_chunks_are_invisible(make)
    assert {value.dtype for value in make().parameters().values()} == {np.dtype(dtype)}
    assert make().numbers()["steps"] == 0


def test_steps_know_nothing_of_the_points():
    """The same flow, looked at 10 or 1 000 times, takes the same steps."""
    coarse, fine = (stepper_of(random_problem(optimizer=flow(3.0, N)), "flow") for N in (10, 1000))
    # the times of the points, multiples of 0.3 and of 0.003, differ by a rounding
    np.testing.assert_allclose(losses_of(coarse), losses_of(fine)[::100], rtol=1e-14)
    assert coarse.numbers() == fine.numbers()


@pytest.mark.filterwarnings("ignore:overflow", "ignore:invalid")
@pytest.mark.parametrize("backend", BACKENDS)
def test_a_start_that_is_not_finite_has_diverged(backend, tmp_path):
    problem = network([[1e200]], [1.0], [[1e200]], [1.0], flow(1.0), tmp_path)
    stepper = stepper_of(problem, backend)
    assert len(stepper.advance(5)) == 1
    assert (stepper.iteration, stepper.halted) == (0, "diverged")


# config, run directory


def test_times_are_a_grid():
    uniform = load_config(random_problem(optimizer=flow(2.0, 8)).config.model_dump()).optimizer
    np.testing.assert_allclose(uniform.times(), np.linspace(0, 2, 9), rtol=1e-15)
    geometric = random_problem(optimizer=flow(100.0, 5, spacing="geometric", first=0.01)).config.optimizer
    np.testing.assert_allclose(geometric.times(), [0, 0.01, 0.1, 1, 10, 100], rtol=1e-12)
    assert geometric.times()[-1] == 100.0


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"spacing": "geometric"}, "optimizer.first: is missing; geometric spacing needs the time of the first point"),
        ({"first": 0.1}, "optimizer.first: belongs to spacing geometric, not to uniform"),
        ({"spacing": "geometric", "first": 5.0}, "optimizer.first: must be below until = 2, not 5"),
        ({"lr": 0.1}, "optimizer.lr: unknown key of kind 'gradient_flow'"),
        ({"rtol": 0.0}, "optimizer.rtol: must be"),
    ],
)
def test_what_makes_no_sense_is_refused(settings, message):
    with pytest.raises(ConfigError, match=message):
        random_problem(optimizer=flow(2.0, 8, **settings))


def test_the_cost_model_locates_kinks_where_it_can():
    assert choose([random_problem(n=75, d=150, width=200, optimizer=flow(1.0))]).backend == "flow"
    assert choose([random_problem(n=600, d=3, width=5, optimizer=flow(1.0))]).backend == "torch"
    assert choose([random_problem(optimizer=flow(1.0), backend="torch")]).backend == "torch"


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_run_records_times_and_work(backend, tmp_path):
    run = train(random_problem(optimizer=flow(3.0, 80), backend=backend).config, out=tmp_path / "run")
    assert run.info["gradient_evaluations"] > 0
    assert run.times is not None
    np.testing.assert_allclose(run.times, 3.0 * run.loss_iterations / 80, rtol=1e-14)
    assert (run.iterations, run.info["backend"]) == (80, backend)


def test_a_flow_that_cannot_go_on_says_so(tmp_path, monkeypatch):
    from dynamics_cli.training.flow.located import LocatedFlow

    monkeypatch.setattr(LocatedFlow, "_solve", lambda self, length: None)
    with pytest.raises(RunError, match=r"gradient flow needs steps below .* a larger optimizer\.rtol may pass"):
        train(random_problem(optimizer=flow(1.0)).config, out=tmp_path / "run")
    assert Run(tmp_path / "run").status == "failed"


@pytest.mark.parametrize("name", ["orthogonal", "five_points", "high_dim"])
def test_bundled_configs_follow_those_of_gradient_descent(name):
    descent, along = load_config(CONFIGS / f"{name}.yaml"), load_config(CONFIGS / f"{name}_flow.yaml")
    assert along.optimizer.until == pytest.approx(descent.optimizer.iterations * descent.optimizer.lr)
    sections = ("seed", "dataset", "architecture", "initialization", "loss")
    assert all(getattr(descent, section) == getattr(along, section) for section in sections)

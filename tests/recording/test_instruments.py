"""Measures of curvature, tangent kernel and weights against dense matrices of automatic differentiation."""

from __future__ import annotations

import dataclasses
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from scipy.optimize import minimize

from dynamics_cli import api
from dynamics_cli.config import load_config
from dynamics_cli.kinds import Loss, Problem, State, get_kind
from dynamics_cli.losses.softmax import CrossEntropy
from dynamics_cli.measures.lanczos import largest_eigenvalues
from dynamics_cli.recording.derivatives import ByAutograd, ByEngine, derivatives_of, loss_curvature
from dynamics_cli.recording.weights import features
from dynamics_cli.training.problem import build_problem

REGRESSION = {"kind": "linear_map", "inputs": 5, "outputs": 3, "singular_values": [2.0, 1.0], "n": 9, "noise": 0.5}
POINTS = {"kind": "points", "x": [[0.3, 1.0], [-1.0, 0.4], [0.5, -0.2]], "y": [1.0, -1.0, 1.0], "append_bias": True}
CLASSES = POINTS | {"y": [0.0, 2.0, 1.0]}
CASES = {
    "two layers": (POINTS, {"kind": "two_layer", "width": 4}, "mse"),
    "leaky, logistic": (
        POINTS,
        {"kind": "two_layer", "width": 4, "activation": "leaky_relu", "slope": 0.2},
        "logistic",
    ),
    "linear vectors": (
        REGRESSION,
        {"kind": "fully_connected", "widths": [4], "activation": "linear", "outputs": 3},
        "mse",
    ),
    "tanh": (POINTS, {"kind": "fully_connected", "widths": [4, 3, 5], "activation": "tanh"}, "mse"),
    "deep ReLU": (POINTS, {"kind": "fully_connected", "widths": [4, 3]}, "half_mse"),
    "NTK scaling, centred": (
        REGRESSION,
        {
            "kind": "fully_connected",
            "widths": [4, 5],
            "outputs": 3,
            "parametrization": "ntk",
            "output_scale": 3.0,
            "centered": True,
        },
        "mse",
    ),
    "linear model": (POINTS, {"kind": "fully_connected", "widths": []}, "logistic"),
    "softmax": (CLASSES, {"kind": "fully_connected", "widths": [6], "outputs": 3}, "cross_entropy"),
    "frozen": (POINTS, {"kind": "fully_connected", "widths": [4, 3], "train": ["weight_2", "bias_3"]}, "mse"),
    "fixed outputs": (
        POINTS,
        {"kind": "two_layer", "width": 5, "train_output": False, "output_scale": 0.5},
        "logistic",
    ),
    "vectors": (REGRESSION, {"kind": "two_layer", "width": 4, "outputs": 3}, "half_mse"),
    "diagonal": (POINTS, {"kind": "diagonal_linear", "depth": 3}, "mse"),
    "residual": (POINTS, {"kind": "residual", "width": 3, "depth": 3}, "mse"),
    "transformer": (
        CLASSES,
        {
            "kind": "transformer",
            "tokens": 3,
            "width": 4,
            "heads": 2,
            "mlp_width": 3,
            "activation": "gelu",
            "outputs": 3,
        },
        "cross_entropy",
    ),
}


def problem_of(case: str) -> Problem:
    dataset, architecture, loss = CASES[case]
    unit = {"kind": "unbalanced", "scale": 0.7}
    deep = {"kind": "default_scaled", "factor": 1.5}
    config = {
        "name": "m",
        "seed": 3,
        "dtype": "float64",
        "dataset": dataset,
        "architecture": architecture,
        "initialization": unit if architecture["kind"] in ("two_layer", "diagonal_linear") else deep,
        "loss": {"kind": loss},
        "optimizer": {"kind": "gd", "lr": 0.1, "iterations": 5},
    }
    return build_problem(load_config(config))


def moved(problem: Problem, seed: int = 0) -> State:
    """Return a state whose trained weights are not those of the start."""
    start, rng = problem.initial_parameters(), np.random.default_rng(seed)
    names = derivatives_of(State(problem, start, lambda: start, 0)).names
    now = {name: value + 0.3 * rng.standard_normal(value.shape) * (name in names) for name, value in start.items()}
    return State(problem, now, lambda: start, 7)


class Reference:
    """Loss, Hessian and Jacobian of one state, all by `torch.func` on flat weights."""

    def __init__(self, state: State, names: list[str]) -> None:
        problem = state.problem
        start = state.start
        self.model = problem.config.architecture.network(problem.dataset.d, start, torch.float64)
        self.x = torch.from_numpy(problem.dataset.x)
        y = problem.dataset.y
        self.y = torch.from_numpy(y.astype(np.int64) if problem.loss.labels == "classes" else y)
        self.loss_kind = problem.loss
        self.fixed = {name: torch.from_numpy(np.array(value)) for name, value in state.parameters.items()}
        self.names, self.shapes = names, problem.shapes
        self.theta = torch.cat([self.fixed[name].flatten() for name in names])

    def f(self, theta: torch.Tensor) -> torch.Tensor:
        weights, at = dict(self.fixed), 0
        for name in self.names:
            size = int(np.prod(self.shapes[name]))
            weights[name] = theta[at : at + size].reshape(self.shapes[name])
            at += size
        return torch.func.functional_call(self.model, weights, (self.x,))

    def loss(self, theta: torch.Tensor) -> torch.Tensor:
        return self.loss_kind.total(self.f(theta), self.y)

    def each(self, theta: torch.Tensor) -> torch.Tensor:
        return self.loss_kind.values(self.f(theta), self.y)


@pytest.mark.parametrize("case", CASES)
def test_derivatives_are_those_of_automatic_differentiation(case: str) -> None:
    state = moved(problem_of(case))
    derivatives = derivatives_of(state)
    assert isinstance(derivatives, ByAutograd if case in ("diagonal", "residual", "transformer") else ByEngine)
    reference = Reference(state, derivatives.names)
    np.testing.assert_allclose(derivatives.gradient(), torch.func.grad(reference.loss)(reference.theta), atol=1e-12)
    H = torch.func.hessian(reference.loss)(reference.theta).numpy()
    np.testing.assert_allclose(derivatives.hessian(), H, atol=1e-11)
    J = torch.func.jacrev(reference.f)(reference.theta).reshape(-1, len(reference.theta)).numpy()
    np.testing.assert_allclose(derivatives.kernel(state.problem.dataset.n), J @ J.T, rtol=1e-10, atol=1e-12)
    each = torch.func.jacrev(reference.each)(reference.theta).numpy()
    np.testing.assert_allclose(derivatives.squared_gradients(), (each**2).sum(1), rtol=1e-10, atol=1e-13)

    measured = {
        name: get_kind("measure", name)().measure(state)
        for name in (
            "sharpness",
            "hessian_trace",
            "gauss_newton",
            "directional_sharpness",
            "gradient_norm",
            "gradient_noise",
        )
    }
    h = np.asarray(state.network(state.problem.dataset.x)).reshape(state.problem.dataset.n, -1)
    bend = loss_curvature(state.problem, h)
    n, C = h.shape
    blocks = np.zeros((n * C, n * C))
    for k in range(n):
        blocks[k * C : (k + 1) * C, k * C : (k + 1) * C] = bend[k]
    g = torch.func.grad(reference.loss)(reference.theta).numpy()
    weight = state.problem.loss.sample_weight(n) * n
    assert measured["sharpness"] == pytest.approx(np.linalg.eigvalsh(H)[-1], rel=1e-6, abs=1e-9)
    assert measured["hessian_trace"] == pytest.approx(np.trace(H), rel=1e-9, abs=1e-10)
    assert measured["gauss_newton"] == pytest.approx(np.linalg.eigvalsh(J.T @ blocks @ J)[-1], rel=1e-8)
    assert measured["directional_sharpness"] == pytest.approx(g @ H @ g / (g @ g), rel=1e-8)
    assert measured["gradient_norm"] == pytest.approx(np.linalg.norm(g), rel=1e-10)
    noise = (each**2).sum(1).mean() - np.sum((g / weight) ** 2)
    assert measured["gradient_noise"] == pytest.approx(noise, rel=1e-9, abs=1e-12)
    exact = get_kind("measure", "sharpness")(exact=True, top=3).measure(state)
    np.testing.assert_allclose(exact, np.linalg.eigvalsh(H)[:-4:-1], atol=1e-10)
    spectrum = get_kind("measure", "hessian_spectrum")().measure(state)
    np.testing.assert_allclose(spectrum, np.linalg.eigvalsh(H)[::-1], atol=1e-10)


class Own(CrossEntropy):
    """No formula."""

    def values(self, h: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return torch.nn.functional.cross_entropy(h, y, reduction="none")


@pytest.mark.parametrize("loss", [CrossEntropy(), Own()], ids=["formula", "autograd"])
def test_the_bends_of_losses_are_their_second_derivatives(loss: Loss) -> None:
    h = np.random.default_rng(0).standard_normal((3, 3))
    problem = dataclasses.replace(problem_of("softmax"), loss=loss)
    p = np.exp(h) / np.exp(h).sum(1, keepdims=True)
    expected = (np.einsum("nc,cd->ncd", p, np.eye(3)) - np.einsum("nc,nd->ncd", p, p)) / 3
    np.testing.assert_allclose(loss_curvature(problem, h), expected, atol=1e-14)


@pytest.mark.parametrize("k", [1, 3])
def test_lanczos_finds_the_largest_eigenvalues_from_any_start(k: int) -> None:
    rng = np.random.default_rng(1)
    A = rng.standard_normal((60, 60))
    A = A + A.T
    values, vectors = np.linalg.eigh(A)
    for start in (rng.standard_normal(60), vectors[:, 0], vectors[:, -1] + 1e-3 * rng.standard_normal(60)):
        found, directions, residual = largest_eigenvalues(lambda v: A @ v, start, k)
        assert residual <= 1e-6
        if not np.array_equal(start, vectors[:, 0]):  # an eigenvector spans no more than itself
            np.testing.assert_allclose(found, values[: -k - 1 : -1], rtol=1e-6)
            np.testing.assert_allclose(A @ directions, directions * found, atol=1e-4)


@pytest.mark.parametrize(
    ("kind", "settings"),
    [
        ("sharpness", {}), ("sharpness", {"top": 3}), ("sharpness", {"exact": True}), ("hessian_spectrum", {}),
        ("spectral_density", {"steps": 3}), ("gauss_newton", {}), ("hessian_trace", {}), ("kernel_eigenvalues", {}),
        ("kernel_effective_rank", {}),
    ],
)  # fmt: skip
def test_where_the_second_derivatives_are_not_finite_nothing_is_measured(kind: str, settings: dict[str, Any]) -> None:
    problem = problem_of("two layers")
    start = problem.initial_parameters()
    state = State(problem, {name: np.full_like(value, 1e250) for name, value in start.items()}, lambda: start, 1)
    with np.errstate(all="ignore"):
        assert np.isnan(get_kind("measure", kind)(**settings).measure(state)).all()


def test_kernels_move_from_their_start_and_align_with_labels() -> None:
    state = moved(problem_of("two layers"))
    problem = state.problem
    K, K_0 = (derivatives_of(one).kernel(3) for one in (state, State(problem, state.start, lambda: state.start, 0)))
    cosine = np.vdot(K, K_0) / np.linalg.norm(K) / np.linalg.norm(K_0)
    y = problem.dataset.y

    def measured(name: str, **settings: object) -> object:
        state.memory.clear()
        return get_kind("measure", name)(**settings).measure(state)

    assert measured("kernel_distance") == pytest.approx(1 - cosine)
    assert measured("kernel_distance", relative=True) == pytest.approx(np.linalg.norm(K - K_0) / np.linalg.norm(K_0))
    assert measured("kernel_alignment") == pytest.approx(y @ K @ y / np.linalg.norm(K) / (y @ y))
    values = np.linalg.eigvalsh(K)[::-1]
    np.testing.assert_allclose(measured("kernel_eigenvalues", top=4), [*values, np.nan])
    p = values / values.sum()
    assert measured("kernel_effective_rank") == pytest.approx(np.exp(-np.sum(p * np.log(p))))


def test_measures_of_weights() -> None:
    state = moved(problem_of("linear vectors"))
    now, start = state.parameters, state.start
    names = list(state.problem.shapes)

    def measured(name: str, **settings: object) -> object:
        return get_kind("measure", name)(**settings).measure(state)

    distance = np.sqrt(sum(np.sum((now[name] - start[name]) ** 2) for name in names))
    assert measured("distance") == pytest.approx(distance)
    part = np.linalg.norm(now["weight_1"] - start["weight_1"])
    relative = get_kind("measure", "distance")(layer="weight_1", relative=True)
    assert relative.name == "distance_weight_1"
    assert relative.measure(state) == pytest.approx(part / np.linalg.norm(start["weight_1"]))
    s = np.linalg.svd(now["weight_2"] @ now["weight_1"], compute_uv=False)
    np.testing.assert_allclose(measured("singular_values", layer="end_to_end", top=4), [*s, np.nan])
    s = np.linalg.svd(now["weight_1"], compute_uv=False)
    assert measured("stable_rank", layer="weight_1") == pytest.approx(np.sum(s**2) / s[0] ** 2)
    assert measured("effective_rank", layer="weight_1") == pytest.approx(
        np.exp(-np.sum(s / s.sum() * np.log(s / s.sum())))
    )
    difference = now["weight_2"].T @ now["weight_2"] - now["weight_1"] @ now["weight_1"].T
    np.testing.assert_allclose(measured("balancedness"), [np.linalg.norm(difference)])


def test_angles_with_vectors_and_with_the_hard_margin() -> None:
    state = moved(problem_of("linear model"))
    theta = np.concatenate([state.parameters["weight_1"][0], state.parameters["bias_1"]])

    def between(v: list[float], **settings: object) -> float:
        found = get_kind("measure", "angle")(to=v, **settings)
        assert found.offered(state.problem)
        return float(found.measure(State(state.problem, state.parameters, lambda: state.start, 7)))

    other = np.array([1.0, -2.0, 0.5, 1.0])
    cosine = theta @ other / np.linalg.norm(theta) / np.linalg.norm(other)
    assert between(list(other)) == pytest.approx(np.arccos(cosine))
    tiny = theta + 1e-11 * np.array([0, theta[2], -theta[1], 0])  # whose cosine is 1 in float64
    assert between(list(tiny)) == pytest.approx(1e-11 * np.hypot(theta[1], theta[2]) / np.linalg.norm(theta), rel=1e-3)
    margin = get_kind("measure", "angle")(to="hard_margin")
    assert margin.name == "angle_to_hard_margin"
    x, y = np.column_stack([state.problem.dataset.x, np.ones(3)]), state.problem.dataset.y
    w = minimize(lambda w: w @ w, np.zeros(4), constraints={"type": "ineq", "fun": lambda w: y * (x @ w) - 1}).x
    assert margin.measure(state) == pytest.approx(between(list(w)), abs=1e-5)
    neurons = moved(problem_of("leaky, logistic"))
    W, w = neurons.parameters["hidden_weight"], neurons.problem.dataset.x[0]
    cosines = W @ w / np.linalg.norm(W, axis=1) / np.linalg.norm(w)
    found = get_kind("measure", "angle")(to=list(w), layer="hidden_weight").measure(neurons)
    np.testing.assert_allclose(found, np.arccos(cosines))


def test_the_predictor_of_linear_networks() -> None:
    state = moved(problem_of("diagonal"))
    u, v = state.parameters["u"], state.parameters["v"]
    np.testing.assert_allclose(get_kind("measure", "predictor")().measure(state), u**3 - v**3)
    state = moved(problem_of("linear vectors"))
    product = state.parameters["weight_2"] @ state.parameters["weight_1"]
    np.testing.assert_allclose(get_kind("measure", "predictor")().measure(state), product.ravel())
    assert not get_kind("measure", "predictor")().offered(problem_of("tanh"))


def test_a_linear_model_has_no_hidden_neurons_to_measure() -> None:
    problem = problem_of("linear model")
    for name in ("dead_neurons", "activation_flips", "layer_similarity", "balancedness"):
        assert not get_kind("measure", name)().offered(problem)
    for settings in ({"kind": "margin"}, {"kind": "margin", "normalized": True}, {"kind": "weight_norm"}):
        measure = get_kind("measure", settings.pop("kind"))(**settings)
        assert measure.offered(problem)
        assert np.isfinite(measure.measure(moved(problem)))


def test_times_at_which_measures_pass_a_number(tmp_path: Path) -> None:
    every = {"at": {"kind": "every", "interval": 1}}
    times = {"first_below": "train_loss", "first_above": "weight_norm"}
    config = {
        "name": "times", "dataset": {**POINTS, "y": [1.0, -1.0, 1.0]}, "loss": {"kind": "logistic"},
        "architecture": {"kind": "fully_connected", "widths": []},
        "optimizer": {"kind": "gd", "lr": 1.0, "iterations": 90},
        "initialization": {"kind": "default_scaled"}, "dtype": "float64",
        "record": {"measures": [*({"kind": kind, "of": of, "value": value, **every} for kind, of in times.items()
                                  for value in (0.1, 2.0, 50.0)), {"kind": "predictor"}]},
    }  # fmt: skip
    run = api.train(config, out=tmp_path / "run")
    norms = np.sqrt(sum(np.sum(run.parameters[name] ** 2, axis=tuple(range(1, run.parameters[name].ndim)))
                        for name in run.parameters))  # fmt: skip
    for kind, values in (("first_below_train_loss", run.losses), ("first_above_weight_norm", norms)):
        for number in (0.1, 2.0, 50.0):
            passed = np.flatnonzero(values < number if "below" in kind else values > number)
            expected = float(passed[0]) if len(passed) else np.nan
            found = run.measures[f"{kind}_{number:g}"]
            np.testing.assert_equal(found[-1], expected)
            assert np.isnan(found[: int(np.nan_to_num(expected, nan=91))]).all()
    swept = api.sweep(config, {"optimizer.lr": [0.5, 1.0]}, out=tmp_path / "sweep", workers=1)
    assert swept.rows[1]["first_below_train_loss_0.1"] == run.measures["first_below_train_loss_0.1"][-1]
    assert swept.rows[0]["first_below_train_loss_0.1"] > swept.rows[1]["first_below_train_loss_0.1"]


def test_measures_of_neurons() -> None:
    state = moved(problem_of("two layers"))
    x, W, W_0 = state.problem.dataset.x, state.parameters["hidden_weight"], state.start["hidden_weight"]
    W[0] = [0.0, 0.0, -5.0]  # dead: the bias outweighs everything

    def measured(name: str, **settings: object) -> object:
        return get_kind("measure", name)(**settings).measure(state)

    assert measured("activation_flips") == np.mean((x @ W.T > 0) != (x @ W_0.T > 0))
    assert measured("dead_neurons") == np.mean(~(x @ W.T > 0).any(0)) >= 0.25
    u = np.array([[1.0, 0, 0], [0, 1.0, 0]])
    lengths = np.linalg.norm(W, axis=1)
    expected = np.sum(np.abs(W @ u.T).max(1)) / lengths.sum()
    assert measured("alignment", directions=(2 * u).tolist()) == pytest.approx(expected)
    h, h_0 = (np.maximum(x @ one.T, 0) for one in (W, W_0))
    a, b = h - h.mean(0), h_0 - h_0.mean(0)
    cka = np.sum((b.T @ a) ** 2) / np.linalg.norm(a.T @ a) / np.linalg.norm(b.T @ b)
    np.testing.assert_allclose(measured("layer_similarity"), [cka])


def test_margins() -> None:
    state = moved(problem_of("leaky, logistic"))
    data = state.problem.dataset
    margin = get_kind("measure", "margin")()
    assert margin.measure(state) == pytest.approx(np.min(data.y * state.network(data.x)))
    state = moved(problem_of("softmax"))
    h = state.network(state.problem.dataset.x)
    gaps = [h[k, int(c)] - max(h[k, j] for j in range(3) if j != int(c)) for k, c in enumerate(state.problem.dataset.y)]
    assert margin.measure(state) == pytest.approx(min(gaps))


def test_overlaps_of_student_and_teacher() -> None:
    config = {
        "name": "m",
        "dataset": {"kind": "teacher", "n": 5, "dim": 4, "architecture": {"kind": "two_layer", "width": 2}},
        "architecture": {"kind": "two_layer", "width": 3},
        "initialization": {"kind": "unbalanced", "scale": 1.0},
        "loss": {"kind": "mse"},
        "optimizer": {"kind": "gd", "lr": 0.1, "iterations": 1},
    }
    problem = build_problem(load_config(config))
    start = problem.initial_parameters()
    state = State(problem, start, lambda: start, 0)
    W = start["hidden_weight"].astype(np.float64)
    np.testing.assert_allclose(get_kind("measure", "student_overlaps")().measure(state), W @ W.T / 4)
    assert get_kind("measure", "teacher_overlaps")().measure(state).shape == (3, 2)
    other = dataclasses.replace(problem, config=load_config(config | {"dataset": POINTS}))
    assert not get_kind("measure", "teacher_overlaps")().offered(other)


def test_a_periodic_neuron_has_all_its_power_in_one_frequency() -> None:
    p = 11
    config = {
        "name": "m",
        "dataset": {"kind": "modular_arithmetic", "p": p},
        "architecture": {"kind": "two_layer", "width": 2, "outputs": p},
        "initialization": {"kind": "unbalanced", "scale": 1.0},
        "loss": {"kind": "mse"},
        "optimizer": {"kind": "gd", "lr": 0.1, "iterations": 1},
    }
    problem = build_problem(load_config(config))
    wave = np.cos(2 * np.pi * 3 * np.arange(p) / p)
    weights = problem.initial_parameters() | {"hidden_weight": np.tile(np.concatenate([wave, wave]), (2, 1))}
    measure = get_kind("measure", "fourier_concentration")()
    assert measure.measure(State(problem, weights, lambda: weights, 0)) == pytest.approx(1.0)
    assert measure.measure(State(problem, problem.initial_parameters(), lambda: weights, 0)) < 0.8
    shares = get_kind("measure", "fourier_spectrum")().measure(State(problem, weights, lambda: weights, 0))
    np.testing.assert_allclose(shares, np.arange(1, 6) == 3, atol=1e-12)


CLASSIFIED = {
    "logistic": (POINTS, {"kind": "two_layer", "width": 4}),
    "cross_entropy": (CLASSES | {"y": [0.0, 2.0, 2.0]}, {"kind": "two_layer", "width": 4, "outputs": 3}),
    "mse": (
        {"kind": "linear_map", "inputs": 3, "outputs": 2, "singular_values": [1.0], "n": 3},
        {"kind": "two_layer", "width": 4, "outputs": 2},
    ),
}


@pytest.mark.parametrize("loss", CLASSIFIED)
def test_losses_and_accuracies_by_class(loss: str) -> None:
    dataset, architecture = CLASSIFIED[loss]
    config = {
        "name": "m",
        "dtype": "float64",
        "dataset": dataset,
        "architecture": architecture,
        "initialization": {"kind": "unbalanced", "scale": 1.0},
        "loss": {"kind": loss},
        "optimizer": {"kind": "gd", "lr": 0.1, "iterations": 1},
    }
    problem = build_problem(load_config(config))
    y = np.array([[0.0, 1.0], [1.0, 0.0], [0.0, 1.0]]) if loss == "mse" else problem.dataset.y
    data = dataclasses.replace(problem.dataset, y=y, x_test=problem.dataset.x[:2], y_test=y[:2])
    state = moved(dataclasses.replace(problem, dataset=data))
    kind = state.problem.loss
    h, y = state.network(data.x), data.y.astype(np.int64) if loss == "cross_entropy" else data.y
    labels = y.argmax(1) if y.ndim == 2 else y
    told = h.argmax(1) if h.ndim == 2 else np.sign(h)
    classes = {"logistic": [-1, 1], "cross_entropy": [0, 1, 2], "mse": [0, 1]}[loss]
    each = kind.values(h, y)
    for part, x in (("train", slice(None)), ("test", slice(2))):
        for what, numbers in (("loss", each[x]), ("accuracy", (told == labels)[x])):
            whole = get_kind("measure", f"{part}_{what}")()
            assert whole.measure(state) == pytest.approx(np.mean(numbers))
            by_class = get_kind("measure", f"{part}_{what}")(by_class=True)
            chosen = [labels[x] == c for c in classes]
            expected = [np.mean(numbers[one]) if one.any() else np.nan for one in chosen]
            np.testing.assert_allclose(by_class.measure(state), expected)
            assert by_class.name == f"{part}_{what}_by_class"
            assert list(by_class.columns(dict(state.problem.config))) == [f"class {c}" for c in classes]
    real = dataclasses.replace(
        state.problem, dataset=dataclasses.replace(data, y=data.y + 0.5), loss=get_kind("loss", "mse")()
    )
    assert not get_kind("measure", "train_loss")(by_class=True).offered(real)


def test_quantiles_of_margins_and_margins_of_normalised_weights() -> None:
    state = moved(problem_of("leaky, logistic"))
    data = state.problem.dataset
    each = data.y * state.network(data.x)
    measure = get_kind("measure", "margin")
    np.testing.assert_allclose(measure(quantiles=[0.0, 0.5]).measure(state), [each.min(), np.median(each)])
    doubled = State(state.problem, {name: 2 * w for name, w in state.parameters.items()}, lambda: state.start, 7)
    one, two = (measure(normalized=True).measure(at) for at in (state, doubled))
    assert one == pytest.approx(two)  # the network is homogeneous of degree 2
    assert one == pytest.approx(each.min() / sum(np.sum(w**2) for w in state.parameters.values()))


def test_kernels_of_chosen_samples_and_similarity_between_layers() -> None:
    state = moved(problem_of("NTK scaling, centred"))
    K = derivatives_of(state).kernel(9).reshape(9, 3, 9, 3)
    values = np.linalg.eigvalsh(K[[4, 1]][:, :, [4, 1]].reshape(6, 6))[::-1]
    measure = get_kind("measure", "kernel_eigenvalues")
    np.testing.assert_allclose(measure(chosen=[4, 1], top=6).measure(state), values, atol=1e-10)
    pairs = get_kind("measure", "layer_similarity")(between_layers=True)
    a, b = features(state)
    A, B = (one - one.mean(0) for one in (a, b))
    cka = np.sum((B.T @ A) ** 2) / np.linalg.norm(A.T @ A) / np.linalg.norm(B.T @ B)
    np.testing.assert_allclose(pairs.measure(state), [cka])
    assert list(pairs.columns(dict(state.problem.config))) == ["layers 1-2"]
    assert not pairs.offered(problem_of("two layers"))


@pytest.mark.parametrize(
    ("optimizer", "bound"),
    [
        ({"kind": "gd"}, 20.0),
        ({"kind": "gd", "momentum": 0.9}, 38.0),
        ({"kind": "gd", "momentum": 0.9, "nesterov": True}, 3.8 / 0.28),
        ({"kind": "gd", "weight_decay": 0.5}, 19.5),
        ({"kind": "adam"}, None),
        ({"kind": "normalized_gd"}, None),
        ({"kind": "gd", "loss_scaled": True}, None),
        ({"kind": "gd", "layer_lr": {"output_weight": 0.5}}, None),
    ],
)
def test_the_threshold_is_where_a_quadratic_diverges(optimizer: dict[str, object], bound: float | None) -> None:
    """A network `a w x` with `a` fixed is a quadratic of curvature `2 (a x)^2`: just above the bound it grows."""
    found = get_kind("measure", "sharpness")().bound(
        {
            "optimizer": load_config(base_of(optimizer)).optimizer,
            "architecture": get_kind("architecture", "two_layer")(width=1),
        }
    )
    assert (None if found is None else found[1]) == (None if bound is None else pytest.approx(bound))
    if bound is not None:
        for share, grows in ((0.97, False), (1.03, True)):
            x = np.sqrt(share * bound / 2)
            run = api.train(base_of(optimizer, x), out=tempfile.mkdtemp())
            assert (run.losses[-1] > run.losses[0]) == grows


def base_of(optimizer: dict[str, object], x: float = 1.0) -> dict[str, object]:
    return {
        "name": "m",
        "dtype": "float64",
        "dataset": {"kind": "points", "x": [[x]], "y": [0.0]},
        "architecture": {"kind": "two_layer", "width": 1, "activation": "linear", "train_output": False},
        "initialization": {"kind": "values", "hidden_weight": [[1.0]], "output_weight": [1.0]},
        "loss": {"kind": "mse"},
        "optimizer": {"lr": 0.1, "iterations": 300, **optimizer},
    }


def test_what_takes_longer_is_estimated_to_cost_more() -> None:
    problem = problem_of("NTK scaling, centred")

    def cost(kind: str, **settings: object) -> int:
        return int(get_kind("measure", kind)(**settings).samples(problem))

    assert 0 < cost("gradient_norm") < cost("directional_sharpness") < cost("sharpness") < cost("sharpness", top=5)
    assert cost("sharpness", top=5) < cost("spectral_density") < cost("spectral_density", probes=50)
    assert cost("hessian_spectrum") == cost("sharpness", exact=True) > cost("hessian_trace", probes=3)
    assert cost("kernel_distance", count=3) < cost("kernel_distance", count=9)
    assert cost("singular_values", layer="weight_2") > 0

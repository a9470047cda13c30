"""Measures of curvature, tangent kernel and weights against dense matrices of automatic
differentiation.
"""

import dataclasses
import tempfile

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose

from dynamics_cli import api
from dynamics_cli.config import load_config
from dynamics_cli.errors import InputError
from dynamics_cli.gradients.derivatives import ByEngine, Derivatives, derivatives_of
from dynamics_cli.gradients.lanczos import largest_eigenvalues
from dynamics_cli.kinds import State, get_kind
from dynamics_cli.losses.softmax import CrossEntropy
from tests import cases
from tests.cases import read
from tests.dense import EXPECTED, dense_of

DATASETS = read("""
regression:
  {kind: linear_map, inputs: 5, outputs: 3, singular_values: [2.0, 1.0], n: 9, noise: 0.5}
chains: {kind: markov_chains, length: 4, symbols: 3, n: 5, n_test: 3}
pairs:
  kind: in_context_regression
  n: 4
  context: 2
  eigenvalues: [1.0, 0.5]
  features: interleaved
""")
POINTS = DATASETS["points"] = {**cases.POINTS, "append_bias": True}
CLASSES = DATASETS["classes"] = POINTS | {"y": [0.0, 2.0, 1.0]}
CASES = read("""
two layers: {dataset: points, loss: mse, kind: two_layer, width: 4}
leaky, logistic:
  {dataset: points, loss: logistic, kind: two_layer, width: 4, activation: leaky_relu, slope: 0.2}
linear vectors:
  dataset: regression
  loss: mse
  kind: fully_connected
  widths: [4]
  activation: linear
  outputs: 3
tanh: {dataset: points, loss: mse, kind: fully_connected, widths: [4, 3, 5], activation: tanh}
deep ReLU: {dataset: points, loss: half_mse, kind: fully_connected, widths: [4, 3]}
centred:
  dataset: regression
  loss: mse
  kind: fully_connected
  widths: [4, 5]
  outputs: 3
  output_scale: 3.0
  centered: true
linear model: {dataset: points, loss: logistic, kind: fully_connected, widths: []}
softmax: {dataset: classes, loss: cross_entropy, kind: fully_connected, widths: [6], outputs: 3}
frozen:
  {dataset: points, loss: mse, kind: fully_connected, widths: [4, 3], train: [weight_2, bias_3]}
fixed outputs:
  dataset: points
  loss: logistic
  kind: two_layer
  width: 5
  train_output: false
  output_scale: 0.5
vectors: {dataset: regression, loss: half_mse, kind: two_layer, width: 4, outputs: 3}
diagonal: {dataset: points, loss: mse, kind: diagonal_linear, depth: 3}
residual: {dataset: points, loss: mse, kind: residual, width: 3, depth: 3}
residual, tanh:
  {dataset: points, loss: logistic, kind: residual, width: 3, activation: tanh, output_scale: 2.0}
transformer:
  dataset: classes
  loss: cross_entropy
  kind: transformer
  tokens: 3
  width: 4
  heads: 2
  mlp_width: 3
  activation: gelu
  outputs: 3
sequences:
  dataset: chains
  loss: cross_entropy
  kind: transformer
  tokens: 4
  width: 4
  heads: 2
  mlp_width: 3
  activation: gelu
  outputs: 3
  predict: every
numbers:
  dataset: pairs
  loss: mse
  kind: transformer
  tokens: 5
  width: 4
  heads: 2
  mlp_width: 3
  activation: gelu
  predict: every
""")
"""Each case is an architecture with the names of its data set and of its loss."""


def problem_of(case):
    architecture = dict(CASES[case])
    dataset = DATASETS[architecture.pop("dataset")]
    loss = architecture.pop("loss")
    unit = {"kind": "unbalanced", "scale": 0.7}
    deep = {"kind": "default_scaled", "factor": 1.5}
    start = unit if architecture["kind"] in ("two_layer", "diagonal_linear") else deep
    return cases.problem_of(
        seed=3,
        dataset=dataset,
        architecture=architecture,
        initialization=start,
        loss={"kind": loss},
    )


def instrument(kind, **settings):
    return get_kind("measure", kind)(**settings)


def start_of(problem, **weights):
    """Return the initial state, some weights replaced."""
    start = problem.initial_parameters()
    return State(problem, {**start, **weights}, lambda: start, 0)


def moved(problem, seed=0):
    """Return a state whose trained weights are not those of the start."""
    start = problem.initial_parameters()
    rng = np.random.default_rng(seed)
    names = derivatives_of(State(problem, start, lambda: start, 0)).names
    now = {
        name: value + 0.3 * rng.standard_normal(value.shape) * (name in names)
        for name, value in start.items()
    }
    return State(problem, now, lambda: start, 7)


TOLERANCE = {
    "sharpness": 1e-6,
    "smallest_eigenvalue": 1e-6,
    "batch_sharpness": 1e-9,
    "hessian_trace": 1e-9,
    "gauss_newton": 1e-8,
    "gradient_norm": 1e-10,
    "gradient_noise": 1e-9,
}


@pytest.mark.parametrize("case", CASES)
def test_derivatives_are_those_of_automatic_differentiation(case):
    state = moved(problem_of(case))
    derivatives = derivatives_of(state)
    by_torch = case in ("diagonal", "transformer", "sequences", "numbers")
    assert isinstance(derivatives, ByEngine) != by_torch
    dense = dense_of(state)
    assert list(dense.weights) == derivatives.names
    assert_allclose(derivatives.gradient(), dense.g, atol=1e-12)
    assert_allclose(derivatives.hessian(), dense.H, atol=1e-11)
    J = dense.J
    n = state.problem.dataset.n
    u = np.random.default_rng(5).standard_normal(len(J))
    assert_allclose(derivatives.kernel(n), J @ J.T, rtol=1e-10, atol=1e-12)
    assert_allclose(derivatives.kernel_product(n)(u), J @ (J.T @ u), rtol=1e-10, atol=1e-11)
    squares = (dense.each**2).sum(1)
    assert_allclose(derivatives.squared_gradients(), squares, rtol=1e-10, atol=1e-13)

    for kind, tolerance in TOLERANCE.items():
        found = instrument(kind).measure(state)
        assert found == pytest.approx(EXPECTED[kind](dense), rel=tolerance, abs=1e-9), kind
    spectrum = instrument("hessian_spectrum").measure(state)
    assert_allclose(spectrum, np.linalg.eigvalsh(dense.H)[::-1], atol=1e-10)


@pytest.mark.parametrize("case", CASES)
def test_measures_of_an_update(case):
    problem = problem_of(case)
    older = moved(problem, 1)
    former = moved(problem, 2)
    dense = dense_of(former)
    rng = np.random.default_rng(3)
    u = -1e-2 * dense.g + 1e-4 * rng.standard_normal(len(dense.g))
    ends = np.cumsum(dense.sizes)[:-1]
    steps = dict(zip(dense.weights, np.split(u, ends), strict=True))
    now = {
        name: value + steps.get(name, np.zeros(value.size)).reshape(value.shape)
        for name, value in former.parameters.items()
    }
    before = (former.parameters, older.parameters)
    state = State(problem, now, lambda: older.start, 8, before=before)

    weights = dense.theta.numpy()
    others = {
        "norm": u,
        "relative": weights,
        "cosine_last": weights - dense_of(older).theta.numpy(),
        "cosine_gradient": -dense.g,
    }
    for of, other in others.items():
        expected = []
        for a, b in zip(np.split(u, ends), np.split(other, ends), strict=True):
            number = np.linalg.norm(a)
            if of == "relative":
                number /= np.linalg.norm(b)
            elif of != "norm":
                number = a @ b / (number * np.linalg.norm(b) or np.nan)
            expected.append(number)
        found = instrument("update", of=of, blocks="layer").measure(state)
        assert_allclose(found, expected, rtol=1e-7, atol=1e-12, err_msg=of)
    assert instrument("update").measure(state) == pytest.approx(np.linalg.norm(u), rel=1e-12)

    along = u @ dense.H @ u / (u @ u)
    found = instrument("directional_sharpness").measure(state)
    assert found == pytest.approx(along, rel=1e-7, abs=1e-10)

    def loss(multiple):
        return float(dense.total(dense.theta + multiple * torch.from_numpy(u)))

    critical = instrument("critical_lr").measure(state)
    if np.isinf(critical):
        assert loss(2.0**29) < dense.L
        return
    grid = [loss(share * critical) for share in (0.25, 0.5, 0.75)]
    assert max(grid) < dense.L
    assert abs(loss(critical) - dense.L) < 1e-4 * (dense.L - min(grid))
    before_the_first = State(problem, now, lambda: older.start, 0)
    for kind in ("update", "directional_sharpness", "critical_lr"):
        assert np.isnan(instrument(kind).measure(before_the_first))
    stays = State(problem, now, lambda: older.start, 1, before=(now,))
    for kind in ("directional_sharpness", "critical_lr"):
        assert np.isnan(instrument(kind).measure(stays))


class Own(CrossEntropy):
    """No formula."""

    def values(self, h, y):
        return torch.nn.functional.cross_entropy(h, y, reduction="none")


def test_gauss_newton_of_a_loss_that_is_no_formula():
    state = moved(problem_of("softmax"))
    own = moved(dataclasses.replace(state.problem, loss=Own()))
    v = np.random.default_rng(0).standard_normal(derivatives_of(state).size)
    product = Derivatives(own).gauss_newton_product(v)
    assert_allclose(product, derivatives_of(state).gauss_newton_product(v), rtol=1e-10)


@pytest.mark.parametrize("k", [1, 3])
def test_lanczos_finds_the_largest_eigenvalues_from_any_start(k):
    rng = np.random.default_rng(1)
    A = rng.standard_normal((60, 60))
    A = A + A.T
    values, vectors = np.linalg.eigh(A)
    for start in (
        rng.standard_normal(60),
        vectors[:, 0],
        vectors[:, -1] + 1e-3 * rng.standard_normal(60),
    ):
        found, directions, residual, *_ = largest_eigenvalues(lambda v: A @ v, start, k)
        assert residual <= 1e-6
        if not np.array_equal(start, vectors[:, 0]):  # an eigenvector spans no more than itself
            assert_allclose(found, values[: -k - 1 : -1], rtol=1e-6)
            assert_allclose(A @ directions, directions * found, atol=1e-4)


@pytest.mark.parametrize(
    ("kind", "settings"),
    [
        ("sharpness", {}),
        ("sharpness", {"top": 3}),
        ("hessian_spectrum", {}),
        ("spectral_density", {"steps": 3}),
        ("gauss_newton", {}),
        ("smallest_eigenvalue", {}),
        ("batch_sharpness", {"batch_size": 1}),
        ("hessian_trace", {}),
        ("kernel_eigenvalues", {}),
    ],
)
def test_where_the_second_derivatives_are_not_finite_nothing_is_measured(kind, settings):
    problem = problem_of("two layers")
    state = start_of(
        problem, **{name: np.full(shape, 1e250) for name, shape in problem.shapes.items()}
    )
    with np.errstate(all="ignore"):
        assert np.isnan(instrument(kind, **settings).measure(state)).all()


def size(weights):
    return np.sqrt(sum(np.sum(w**2) for w in weights))


def kernel(state):
    return derivatives_of(state).kernel(state.problem.dataset.n)


def cosine(a, b):
    return np.vdot(a, b) / np.linalg.norm(a) / np.linalg.norm(b)


def spectrum(matrix):
    return np.linalg.svd(matrix, compute_uv=False)


def features_by_hand(state):
    """Return the hidden neurons now and at first of a two-layer network of ReLUs."""
    both = (state.parameters["hidden_weight"], state.start["hidden_weight"])
    return tuple(np.maximum(state.problem.dataset.x @ W.T, 0) for W in both)


def along(W, v):
    """Return the mean over neurons, weighted by their norms, of the largest `|cos|` with
    orthonormal rows.
    """
    return np.sum(np.abs(W @ v.T).max(1)) / np.linalg.norm(W, axis=1).sum()


def gaps(state):
    """Return the margins of classes."""
    rows = zip(
        state.network(state.problem.dataset.x), state.problem.dataset.y.astype(int), strict=True
    )
    return [h[c] - max(np.delete(h, c)) for h, c in rows]


def signed(state):
    return state.problem.dataset.y * state.network(state.problem.dataset.x)


def activations_by_hand(state):
    """Return the activations (n, m) of the hidden layers."""
    w = state.parameters
    h = state.problem.dataset.x
    if "hidden_weight" in w:
        return [np.maximum(h @ w["hidden_weight"].T, 0)]
    sigma = state.problem.config.architecture.sigma.value
    layers = []
    for k in range(1, sum(name.startswith("weight") for name in w)):
        h = sigma(h @ w[f"weight_{k}"].T + w.get(f"bias_{k}", 0.0))
        layers.append(h)
    return layers


def of_hidden(number):
    return lambda s, w, w_0: np.squeeze([number(A) for A in activations_by_hand(s)])


STATISTICS = {
    "mean": np.mean,
    "sd": np.std,
    "zeros": lambda A: np.mean(A == 0),
    "stable_rank": lambda A: np.linalg.norm(A) ** 2 / np.linalg.norm(A, 2) ** 2,
}
U = np.eye(2, 3)


def by_position(number, part="", bins=None):
    """Return what a number of state, sample and position is on average, at positions or in bins."""

    def expected(state, w, w_0):
        y = getattr(state.problem.dataset, f"y{part}")
        h = state.network(getattr(state.problem.dataset, f"x{part}"))
        n, T = y.shape[:2]
        told = np.array([[number(state, h[k], y[k], k, t) for t in range(T)] for k in range(n)])
        starts = bins or list(range(1, T + 1))
        return [
            told[:, a - 1 : b - 1].mean() for a, b in zip(starts, [*starts[1:], T + 1], strict=True)
        ]

    return expected


def log_q(h, t):
    return h[t] - np.log(np.exp(h[t]).sum())


def symbols_by_hand(state):
    x = state.problem.dataset.x
    return x.reshape(len(x), -1, 3).argmax(-1)


def kl(predictor):
    """Return the divergence of the network from a predictor, which gives counts of symbols."""

    def number(state, h, y, k, t):
        counts = np.array(predictor(symbols_by_hand(state), state.problem.dataset.y, k, t), float)
        p = counts / counts.sum()
        return sum(a * (np.log(a) - b) for a, b in zip(p, log_q(h, t), strict=True) if a)

    return by_position(number)


def count(symbols):
    return [sum(s == c for s in symbols) for c in range(3)]


def behind(s, k, t):
    return [s[k, j + 1] for j in range(t) if s[k, j] == s[k, t]]


def from_ridge(strength):
    def number(state, h, y, k, t):
        tokens = state.problem.dataset.x[k].reshape(5, 3)
        known = [s for s in range(t) if not np.isnan(y[s, 0])]
        X = np.concatenate([tokens[known], np.sqrt(strength) * np.eye(3)])
        w = np.linalg.lstsq(X, np.append(y[known, 0], np.zeros(3)), rcond=1e-8)[0]
        return (h[t] - tokens[t] @ w) ** 2 + 0 * y[t, 0]

    return by_position(number)


def surprise(state, h, y, k, t):
    return -log_q(h, t)[int(y[t])]


def hit(state, h, y, k, t):
    return float(h[t].argmax() == y[t])


BY_POSITION = [
    ({}, by_position(surprise)),
    ({"bins": [1, 2]}, by_position(surprise, bins=[1, 2])),
    ({"held_out": True}, by_position(surprise, "_test")),
    ({"of": "accuracy", "bins": [3]}, by_position(hit, bins=[3])),
    ({"of": "kl_uniform"}, kl(lambda s, y, k, t: [1, 1, 1])),
    ({"of": "kl_unigram"}, kl(lambda s, y, k, t: count(y.ravel()))),
    ({"of": "kl_bigram"}, kl(lambda s, y, k, t: count(y[s == s[k, t]]))),
    ({"of": "kl_context_unigram"}, kl(lambda s, y, k, t: count([*s[k, : t + 1], 0, 1, 2]))),
    ({"of": "kl_context_bigram"}, kl(lambda s, y, k, t: count([*behind(s, k, t), 0, 1, 2]))),
]

# case, kind, its keys, expected value from the state, the weights and the initial weights
MEASURED = [
    ("two layers", "kernel_distance", {}, lambda s, w, w_0: 1 - cosine(kernel(s), kernel(s.first))),
    (
        "two layers",
        "kernel_alignment",
        {},
        lambda s, w, w_0: cosine(kernel(s), np.outer(s.problem.dataset.y, s.problem.dataset.y)),
    ),
    (
        "two layers",
        "kernel_eigenvalues",
        {"top": 4},
        lambda s, w, w_0: [*np.linalg.eigvalsh(kernel(s))[::-1], np.nan],
    ),
    (
        "centred",
        "kernel_eigenvalues",
        {"count": 2, "top": 6},
        lambda s, w, w_0: np.linalg.eigvalsh(kernel(s)[:6, :6])[::-1],
    ),
    ("linear vectors", "distance", {}, lambda s, w, w_0: size(w[name] - w_0[name] for name in w)),
    (
        "linear vectors",
        "distance",
        {"layer": "weight_1", "relative": True},
        lambda s, w, w_0: (
            np.linalg.norm(w["weight_1"] - w_0["weight_1"]) / np.linalg.norm(w_0["weight_1"])
        ),
    ),
    (
        "linear vectors",
        "singular_values",
        {"layer": "end_to_end", "top": 4},
        lambda s, w, w_0: [*spectrum(w["weight_2"] @ w["weight_1"]), np.nan],
    ),
    (
        "linear vectors",
        "balancedness",
        {},
        lambda s, w, w_0: [
            np.linalg.norm(w["weight_2"].T @ w["weight_2"] - w["weight_1"] @ w["weight_1"].T)
        ],
    ),
    ("linear vectors", "predictor", {}, lambda s, w, w_0: (w["weight_2"] @ w["weight_1"]).ravel()),
    ("diagonal", "predictor", {}, lambda s, w, w_0: w["u"] ** 3 - w["v"] ** 3),
    (
        "two layers",
        "activation_flips",
        {},
        lambda s, w, w_0: np.mean(np.not_equal(*(z > 0 for z in features_by_hand(s)))),
    ),
    (
        "two layers",
        "alignment",
        {"directions": (2 * U).tolist()},
        lambda s, w, w_0: along(w["hidden_weight"], U),
    ),
    (
        "two layers",
        "neurons",
        {"which": [3, 1]},
        lambda s, w, w_0: np.linalg.norm(w["hidden_weight"][[2, 0]], axis=1),
    ),
    (
        "two layers",
        "neurons",
        {"of": "cosine", "direction": [0.0, 2.0, 0.0]},
        lambda s, w, w_0: w["hidden_weight"][:, 1] / np.linalg.norm(w["hidden_weight"], axis=1),
    ),
    *(
        (case, "activations", {"of": of}, of_hidden(number))
        for case in ("two layers", "tanh", "deep ReLU", "softmax", "frozen", "centred")
        for of, number in STATISTICS.items()
    ),
    *(
        (case, "dead_units", {}, of_hidden(lambda A: np.mean((A <= 0).all(0))))
        for case in ("two layers", "tanh", "deep ReLU", "softmax", "frozen", "centred")
    ),
    *(("sequences", "by_position", settings, expected) for settings, expected in BY_POSITION),
    ("numbers", "by_position", {"of": "ridge"}, from_ridge(0.0)),
    ("numbers", "by_position", {"of": "ridge", "strength": 0.3}, from_ridge(0.3)),
    (
        "numbers",
        "by_position",
        {},
        by_position(lambda s, h, y, k, t: (h[t] - y[t, 0]) ** 2),
    ),
    ("leaky, logistic", "margin", {}, lambda s, w, w_0: np.min(signed(s))),
    ("softmax", "margin", {}, lambda s, w, w_0: min(gaps(s))),
]


@pytest.mark.parametrize(("case", "kind", "settings", "expected"), MEASURED)
def test_measures_by_their_formulas(case, kind, settings, expected):
    state = moved(problem_of(case))
    if kind in ("activation_flips", "alignment", "dead_units") and case == "two layers":
        state.parameters["hidden_weight"][0] = [
            0.0,
            0.0,
            -5.0,
        ]  # dead: the bias outweighs everything
    measure = instrument(kind, **settings)
    assert measure.offered(state.problem)
    by_hand = expected(state, state.parameters, state.start)
    assert_allclose(measure.measure(state), by_hand, rtol=1e-7, atol=1e-10 * ("count" in settings))


@pytest.mark.parametrize(
    ("case", "kind", "settings"),
    [
        ("tanh", "predictor", {}),
        *(("linear model", kind, {}) for kind in ("activation_flips", "balancedness")),
    ],
)
def test_measures_that_a_network_does_not_have(case, kind, settings):
    assert not instrument(kind, **settings).offered(problem_of(case))


def test_names_and_columns_of_measures():
    assert instrument("distance", layer="weight_1").name == "distance_weight_1"


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ({"which": [2, 900]}, "which has 900, hidden_weight has"),
        ({"of": "angle"}, "needs neurons of 2 numbers, hidden_weight has 3"),
        ({"of": "cosine"}, "direction goes with `of: cosine`"),
        ({"direction": [1.0, 0.0, 0.0]}, "direction goes with `of: cosine`"),
        ({"of": "cosine", "direction": [1.0]}, "direction has 1 numbers, neurons have 3"),
    ],
)
def test_neurons_that_a_network_does_not_have(settings, told):
    with pytest.raises(InputError, match=told):
        instrument("neurons", **settings).offered(problem_of("two layers"))


@pytest.mark.parametrize(
    ("case", "settings", "told"),
    [
        ("sequences", {"bins": [1, 5]}, "bins must increase and be at most 4"),
        ("sequences", {"bins": [3, 2]}, "bins must increase"),
        ("sequences", {"strength": 1.0}, "strength goes with `of: ridge`"),
        ("sequences", {"of": "ridge"}, None),
        ("numbers", {"of": "kl_uniform"}, None),
        ("numbers", {"of": "accuracy"}, None),
        ("numbers", {"held_out": True}, None),
        ("softmax", {}, None),
    ],
)
def test_numbers_by_position_that_a_problem_does_not_have(case, settings, told):
    measure = instrument("by_position", **settings)
    if told is None:
        assert not measure.offered(problem_of(case))
        return
    with pytest.raises(InputError, match=told):
        measure.offered(problem_of(case))


@pytest.mark.parametrize(("kind", "settings"), [("margin", {}), ("weight_norm", {})])
def test_measures_of_a_linear_model(kind, settings):
    problem = problem_of("linear model")
    assert instrument(kind, **settings).offered(problem)
    assert np.isfinite(instrument(kind, **settings).measure(moved(problem)))


def test_a_periodic_neuron_has_all_its_power_in_one_frequency():
    p = 11
    network = {"kind": "two_layer", "width": 2, "outputs": p}
    problem = cases.problem_of(dataset={"kind": "modular_arithmetic", "p": p}, architecture=network)
    wave = np.cos(2 * np.pi * 3 * np.arange(p) / p)
    state = start_of(problem, hidden_weight=np.tile(np.concatenate([wave, wave]), (2, 1)))
    measure = instrument("fourier_concentration")
    assert measure.measure(state) == pytest.approx(1.0)
    assert measure.measure(state.first) < 0.8


CLASSIFIED = {
    "logistic": (POINTS, {"kind": "two_layer", "width": 4}),
    "cross_entropy": (
        CLASSES | {"y": [0.0, 2.0, 2.0]},
        {"kind": "two_layer", "width": 4, "outputs": 3},
    ),
    "mse": (
        {"kind": "linear_map", "inputs": 3, "outputs": 2, "singular_values": [1.0], "n": 3},
        {"kind": "two_layer", "width": 4, "outputs": 2},
    ),
}


@pytest.mark.parametrize("loss", CLASSIFIED)
def test_losses_and_accuracies(loss):
    dataset, architecture = CLASSIFIED[loss]
    problem = cases.problem_of(dataset=dataset, architecture=architecture, loss={"kind": loss})
    y = np.array([[0.0, 1.0], [1.0, 0.0], [0.0, 1.0]]) if loss == "mse" else problem.dataset.y
    data = dataclasses.replace(problem.dataset, y=y, x_test=problem.dataset.x[:2], y_test=y[:2])
    state = moved(dataclasses.replace(problem, dataset=data))
    h = state.network(data.x)
    y = data.y.astype(np.int64) if loss == "cross_entropy" else data.y
    labels = y.argmax(1) if y.ndim == 2 else y
    told = h.argmax(1) if h.ndim == 2 else np.sign(h)
    for part, x in (("train", slice(None)), ("test", slice(2))):
        for what, numbers in (
            ("loss", state.problem.loss.values(h, y)[x]),
            ("accuracy", (told == labels)[x]),
        ):
            assert instrument(f"{part}_{what}").measure(state) == pytest.approx(np.mean(numbers))


def test_losses_and_accuracies_of_kept_and_replaced_labels():
    dataset = {"kind": "modular_arithmetic", "p": 5, "train_fraction": 0.8, "replaced_labels": 0.3}
    architecture = {"kind": "two_layer", "width": 6, "outputs": 5}
    state = moved(
        cases.problem_of(dataset=dataset, architecture=architecture, loss={"kind": "mse"})
    )
    data = state.problem.dataset
    h = state.network(data.x)
    told = {"loss": ((h - data.y) ** 2).sum(1), "accuracy": h.argmax(1) == data.y.argmax(1)}
    for what, numbers in told.items():
        measure = instrument(f"train_{what}", by_replaced=True)
        parts = [numbers[~data.replaced].mean(), numbers[data.replaced].mean()]
        assert_allclose(measure.measure(state), parts)
        assert measure.name == f"train_{what}_by_replaced"
        assert measure.offered(state.problem)
        assert not instrument(f"test_{what}", by_replaced=True).offered(state.problem)
    whole = cases.problem_of(
        dataset={**dataset, "replaced_labels": None}, architecture=architecture
    )
    assert not instrument("train_loss", by_replaced=True).offered(whole)


@pytest.mark.parametrize(
    ("optimizer", "bound"),
    [
        ({"kind": "gd"}, 20.0),
        ({"kind": "gd", "momentum": 0.9}, 38.0),
        ({"kind": "gd", "momentum": 0.9, "nesterov": True}, 3.8 / 0.28),
        ({"kind": "gd", "weight_decay": 0.5}, 19.5),
        ({"kind": "adam"}, None),
        ({"kind": "group_rmsprop"}, None),
        ({"kind": "gd", "loss_scaled": True}, None),
        ({"kind": "gd", "layer_lr": {"output_weight": 0.5}}, None),
    ],
)
def test_the_threshold_is_where_a_quadratic_diverges(optimizer, bound):
    """A network `a w x` with `a` fixed is a quadratic of curvature `2 (a x)^2`: just above the
    bound it grows.
    """
    found = instrument("sharpness").bound(dict(load_config(base_of(optimizer))))
    assert (None if found is None else found[1]) == (
        None if bound is None else pytest.approx(bound)
    )
    if bound is not None:
        for share, grows in ((0.97, False), (1.03, True)):
            x = np.sqrt(share * bound / 2)
            run = api.train(base_of(optimizer, x), out=tempfile.mkdtemp())
            assert (run.losses[-1] > run.losses[0]) == grows


def base_of(optimizer, x=1.0):
    return cases.config_of(
        dataset={"kind": "points", "x": [[x]], "y": [0.0]},
        architecture={
            "kind": "two_layer",
            "width": 1,
            "activation": "linear",
            "train_output": False,
        },
        initialization={"kind": "values", "hidden_weight": [[1.0]], "output_weight": [1.0]},
        optimizer={"iterations": 300, **optimizer},
    )

"""Teachers, linear maps, modular arithmetic, polynomials, matrices; noise on labels and
whitening.
"""

import numpy as np
import pytest
import torch
from dynamics_cli._bundled.experiments.arora2019.datasets.completion import MatrixCompletion
from numpy.testing import assert_allclose, assert_array_equal

from dynamics_cli.config import load_config
from dynamics_cli.config.dump import to_plain
from dynamics_cli.datasets.algorithmic import ModularArithmetic, SparseParity
from dynamics_cli.datasets.images import Mnist
from dynamics_cli.datasets.points import GivenPoints
from dynamics_cli.datasets.teachers import LinearMap, Teacher
from dynamics_cli.errors import InputError
from dynamics_cli.kinds import FreshStreams, Streams
from dynamics_cli.training.problem import build_problem
from tests.cases import read

STREAMS = Streams(2)


def test_a_teacher_labels_by_its_own_network():
    section = Teacher(
        n=5, dim=3, architecture={"kind": "two_layer", "width": 2}, n_test=4, noise=0.5, scale=2.0
    )
    data = section.samples(STREAMS)
    weights = section.weights(STREAMS)
    W = weights["hidden_weight"]
    a = weights["output_weight"]
    assert_allclose(data.y_test, np.maximum(data.x_test @ W.T, 0) @ a)
    assert 0.1 < np.std(data.y - np.maximum(data.x @ W.T, 0) @ a) < 1.5
    assert set(
        np.sign(section.model_copy(update={"sign": True, "noise": 0.0}).samples(STREAMS).y)
    ) <= {-1.0, 1.0}


STUDENT = """
name: student
dataset:
  kind: teacher
  n: 400
  dim: 5
  architecture: {kind: fully_connected, widths: [300], bias: false, activation: erf}
architecture: {kind: fully_connected, widths: [300], bias: false, activation: erf}
initialization: {kind: unbalanced, scale: 1.0}
loss: {kind: mse}
optimizer: {kind: gd, lr: 0.1, iterations: 1}
"""


def test_a_teacher_takes_an_initialization_as_networks_do():
    config = read(STUDENT)
    plain = load_config(config)
    given = load_config(config, ["dataset.initialization={kind: unbalanced, scale: 0.5}"])
    assert load_config(to_plain(given)) == given
    half = load_config(config, ["dataset.scale=0.5"])
    assert_array_equal(*(build_problem(one).dataset.y for one in (given, half)))  # draw for draw
    weights = given.dataset.weights(STREAMS)
    assert not np.allclose(
        weights["weight_1"], 0.5 * build_problem(plain).initial_parameters()["weight_1"]
    )
    drawn = load_config(
        config, ["dataset.initialization={kind: default_scaled, factor: 2.0, only: [weight_2]}"]
    )
    bound = [np.abs(one).max() for one in drawn.dataset.weights(STREAMS).values()]
    assert_allclose(bound, [1 / np.sqrt(5), 2 / np.sqrt(300)], rtol=0.02)
    fresh = given.dataset.fresh(FreshStreams(STREAMS.seed, 7), 3)
    assert_allclose(fresh.y, given.dataset.architecture.function(weights)(fresh.x))
    linear = [
        "dataset.initialization={kind: decoupled, scale: 0.1}",
        "dataset.architecture.activation=linear",
    ]
    of_data = load_config(config, linear).dataset
    with pytest.raises(InputError, match="cannot depend on x"):
        of_data.weights(STREAMS)


SCRIPT = """
name: t
seed: 5
dataset:
  kind: teacher
  n: 30
  dim: 3
  n_test: 20
  generator: torch
  architecture: {kind: fully_connected, widths: [40], outputs: 2, activation: tanh}
  initialization: {kind: default_scaled}
architecture: {kind: fully_connected, widths: [40], outputs: 2, activation: tanh}
initialization: {kind: default_scaled, factor: 2.0, generator: torch, seed: 5}
loss: {kind: mse}
optimizer: {kind: gd, lr: 0.1, iterations: 1}
"""


def test_the_draws_of_a_script_after_torch_manual_seed():
    torch.manual_seed(5)
    layers = [torch.nn.Linear(3, 40), torch.nn.Linear(40, 2)]
    net = torch.nn.Sequential(layers[0], torch.nn.Tanh(), layers[1])
    x = torch.normal(0, 1, size=(30, 3))
    held_out = torch.normal(0, 1, size=(20, 3))
    config = read(SCRIPT)
    problem = build_problem(load_config(config))
    data = problem.dataset
    assert_array_equal(data.x, x)
    assert_array_equal(data.x_test, held_out)
    assert_allclose(data.y_test, net(held_out).detach(), atol=1e-6)
    weights = [value for layer in layers for value in (layer.weight, layer.bias)]
    for ours, theirs in zip(problem.initial_parameters().values(), weights, strict=True):
        assert_array_equal(ours, 2 * theirs.detach())
    teacher = problem.config.dataset.weights(Streams(5))
    assert_array_equal(teacher["weight_1"], layers[0].weight.detach())
    torch.set_default_dtype(torch.float64)  # as a script of others may have left it
    try:
        precise = build_problem(load_config({**config, "dtype": "float64"}))
    finally:
        torch.set_default_dtype(torch.float32)
    assert_array_equal(precise.dataset.x, data.x)
    for name, weight in problem.initial_parameters().items():
        assert_array_equal(precise.initial_parameters()[name], weight)


def test_a_linear_map_has_the_singular_values_asked_for():
    section = LinearMap(inputs=6, outputs=4, singular_values=[3.0, 1.0])
    data = section.samples(STREAMS)
    assert_allclose(data.x.T @ data.x / data.n, np.eye(6), atol=1e-12)
    correlation = data.y.T @ data.x / data.n  # Sigma^yx (Saxe et al. 2014, Eq. 3)
    assert_allclose(np.linalg.svd(correlation)[1], [3.0, 1.0, 0.0, 0.0], atol=1e-12)
    bent = section.model_copy(update={"anisotropy": 0.5}).samples(STREAMS)
    power = np.sqrt(6 / (np.arange(1, 7) * 2.45))  # 1 + 1/2 + ... + 1/6
    assert_allclose(bent.x.T @ bent.x / bent.n, np.diag(power), atol=1e-12)
    assert_allclose(bent.y, bent.x @ correlation.T, atol=1e-12)


@pytest.mark.parametrize(("operation", "table"), [("add", 3), ("subtract", 4), ("multiply", 4)])
def test_modular_arithmetic(operation, table):
    # 4 op 6 modulo 7: 10 = 3, -2 = 5, 24 = 3
    expected = {"add": 3, "subtract": 5, "multiply": 3}[operation]
    data = ModularArithmetic(
        p=7, operation=operation, train_fraction=0.4, labels="classes"
    ).samples(STREAMS)
    x = np.concatenate([data.x, data.x_test])
    y = np.concatenate([data.y, data.y_test])
    assert (len(data.x), len(x)) == (20, 49)
    assert len(np.unique(x, axis=0)) == 49
    pair = np.concatenate([np.eye(7)[4], np.eye(7)[6]])
    assert y[(x == pair).all(axis=1)].tolist() == [expected]
    one_hot = ModularArithmetic(p=7, operation=operation, train_fraction=0.4).samples(STREAMS)
    assert_array_equal(one_hot.y.argmax(1), data.y)


def test_entries_of_a_matrix_of_low_rank():
    section = MatrixCompletion(rows=6, columns=5, rank=2, observed=12)
    W = section.matrix(STREAMS)
    data = section.samples(STREAMS)
    assert np.linalg.matrix_rank(W) == 2
    assert np.sqrt(np.mean(W**2)) == pytest.approx(1.0)
    x = np.concatenate([data.x, data.x_test])
    y = np.concatenate([data.y, data.y_test])
    assert (data.n, len(np.unique(x, axis=0))) == (12, 30)
    filled = np.zeros((6, 5))
    filled[tuple(x.astype(int).T)] = y
    assert_array_equal(filled, W)


def test_whitened_inputs_have_unit_covariance():
    rng = np.random.default_rng(0)
    x = rng.standard_normal((400, 3)) @ rng.standard_normal((3, 3))
    plain = GivenPoints(x=x.tolist(), y=x[:, 0].tolist(), append_bias=True)
    data = plain.model_copy(update={"whiten": True}).samples(STREAMS)
    assert_allclose(data.x[:, :3].T @ data.x[:, :3] / 400, np.eye(3), atol=1e-12)
    assert (data.x[:, 3] == 1).all()
    with pytest.raises(InputError, match="span fewer than 2 directions"):
        GivenPoints(x=[[1.0, 1.0], [2.0, 2.0]], y=[0.0, 1.0], whiten=True).samples(STREAMS)


DIGITS = """
name: m
dataset: {kind: mnist, source: subset, per_class: 2, test_per_class: 1}
loss: {kind: mse}
architecture: {kind: fully_connected, widths: [3], outputs: 10}
initialization: {kind: default_scaled}
optimizer: {kind: gd, lr: 0.1, iterations: 1}
"""


def test_classes_become_vectors_of_one_for_square_losses():
    config = read(DIGITS)
    digits = config["dataset"] | {"one_hot": True}
    section = Mnist(**digits)
    plain = Mnist(**{**digits, "one_hot": None})
    for name in ("y", "y_test"):
        classes = getattr(plain.samples(STREAMS), name).astype(int)
        assert_array_equal(getattr(section.samples(STREAMS), name), np.eye(10)[classes])
    for y in ([0.5, 1.0], [-1.0, 1.0]):
        with pytest.raises(InputError, match=r"class numbers 0, 1, \.\.\."):
            GivenPoints(x=[[1.0], [2.0]], y=y, one_hot=True).samples(STREAMS)
    with pytest.raises(InputError, match=r"dataset\.one_hot: true makes them"):
        build_problem(load_config(config))
    assert build_problem(load_config(config, ["dataset.one_hot=true"])).dataset.y.shape == (20, 10)


def test_the_parity_of_the_first_signs():
    data = SparseParity(n=300, dim=6, k=2, n_test=40, append_bias=True).samples(STREAMS)
    assert (data.x.shape, data.x_test.shape, data.bias) == ((300, 7), (40, 7), True)
    assert_array_equal(data.y, data.x[:, 0] * data.x[:, 1])
    assert_array_equal(data.y_test, data.x_test[:, 0] * data.x_test[:, 1])
    assert np.abs(data.x[:, :6].mean(0)).max() < 0.3  # 5 standard errors
    fresh = SparseParity(n=3, dim=6, k=6).fresh(FreshStreams(STREAMS.seed, 7), 5)
    assert_array_equal(fresh.y, fresh.x.prod(1))

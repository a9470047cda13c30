"""Labels at each position of a sequence: steppers and measures against plain torch, whatever the
blocks of samples.
"""

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose
from torch import nn
from torch.nn.functional import cross_entropy

import dynamics_cli as dyn
from dynamics_cli.config import load_config
from dynamics_cli.errors import InputError
from dynamics_cli.kinds import Problem, Samples, State, make_samples
from dynamics_cli.recording import measures
from dynamics_cli.recording.weights import Margin
from dynamics_cli.training.problem import build_problem
from tests.cases import read
from tests.dense import EXPECTED, Dense, dense_of
from tests.training.problems import (
    assert_replicas_are_the_networks_alone,
    assert_weights,
    stepper_of,
)

N = 6
T = 4
C = 3
CONFIG = read("""
name: positions
dtype: float64
dataset: {kind: points, x: [[0.0]], y: [0]}
architecture:
  {kind: transformer, tokens: 4, width: 4, mlp_width: 3, layer_norm: false, activation: tanh,
   predict: every, outputs: 3}
initialization: {kind: lecun}
loss: {kind: cross_entropy}
optimizer: {kind: gd, lr: 0.3, iterations: 20}
""")


def samples_of(loss, seed=0):
    """Return one-hot tokens with labels at most positions, those of other samples held out."""
    rng = np.random.default_rng(seed)
    x = np.eye(C)[rng.integers(C, size=(2 * N, T))].reshape(2 * N, -1)
    y = rng.integers(C, size=(2 * N, T)).astype(float)
    missing = rng.random((2 * N, T)) < np.linspace(0.0, 0.8, 2 * N)[rng.permutation(2 * N), None]
    y[missing] = -1
    if loss != "cross_entropy":
        y = rng.standard_normal((2 * N, T, 1 if loss == "single mse" else C))
        y[missing] = np.nan
    if loss == "one hot":
        y = make_samples(x, np.where(missing, -1, rng.integers(C, size=(2 * N, T))), positions=True)
        y = y.one_hot().y
    if loss == "logistic":
        y = rng.choice([-1.0, 1.0], (2 * N, T))
        y[missing] = np.nan
    return make_samples(x, y, trained=N, positions=True)


def problem_of(loss="cross_entropy", seed=0, optimizer=None):
    config = {**CONFIG, "seed": seed, "optimizer": {**CONFIG["optimizer"], **(optimizer or {})}}
    if loss in ("single mse", "logistic"):
        config["architecture"] = {**config["architecture"], "outputs": 1}
    if loss in ("mse", "single mse", "one hot"):
        loss_kind = "mse"
    else:
        loss_kind = loss
    config["loss"] = {"kind": loss_kind}
    return build_problem(load_config(config), dataset=samples_of(loss, seed))


def plain_loss(loss, h, y):
    """Return the mean loss over the labels that exist, one after the other."""
    values = []
    for outputs, labels in zip(h, y, strict=True):
        for output, label in zip(outputs, labels, strict=True):
            if loss == "cross_entropy" and label >= 0:
                values.append(-output.log_softmax(-1)[label.long()])
            if loss == "logistic" and not label.isnan():
                values.append(torch.log1p(torch.exp(-label * output)))
            if label.ndim and not label.isnan().any():
                values.append(((output - label) ** 2).sum())
    return torch.stack(values).mean()


def plain_path(problem, loss, batches):
    """Return the losses before the updates of gradient descent on batches, and the last weights."""
    data = problem.dataset
    net = problem.config.architecture.network(data.d, problem.initial_parameters(), torch.float64)
    losses = []
    for rows in batches:
        value = plain_loss(loss, net(torch.tensor(data.x[rows])), torch.tensor(data.y[rows]))
        gradients = torch.autograd.grad(value, list(net.parameters()))
        losses.append(float(value.detach()))
        with torch.no_grad():
            for w, g in zip(net.parameters(), gradients, strict=True):
                w.sub_(0.3 * g)
    return losses, {name: w.detach().numpy() for name, w in net.named_parameters()}


LOSSES = ("cross_entropy", "mse", "single mse", "one hot", "logistic")


@pytest.mark.parametrize("rows", [100, 4, 1], ids=["at once", "in blocks", "one by one"])
@pytest.mark.parametrize("loss", LOSSES)
def test_full_batch_steps_are_those_of_a_plain_loop(loss, rows, monkeypatch):
    monkeypatch.setattr(Problem, "block_samples", lambda *_: rows)
    problem = problem_of(loss)
    stepper = stepper_of(problem, "torch")
    losses, weights = plain_path(problem, loss, [slice(None)] * 4)
    assert_allclose(stepper.advance(4), losses, rtol=1e-12)
    assert_weights(stepper.parameters(), weights, rtol=1e-10, atol=1e-12)


def test_batches_take_the_mean_over_their_own_labels():
    problem = problem_of(optimizer={"kind": "sgd", "batch_size": 4})
    stepper = stepper_of(problem, "torch")
    order = stepper._batches[0].order(0)
    _, weights = plain_path(problem, "cross_entropy", [order[:4], order[4:]])
    stepper.advance(2)
    assert_weights(stepper.parameters(), weights, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("optimizer", [{}, {"kind": "adam", "batch_size": 4}])
def test_replicas_are_the_networks_alone(optimizer):
    problems = [problem_of(seed=seed, optimizer=optimizer) for seed in (0, 1)]
    assert_replicas_are_the_networks_alone(
        problems, lambda some: stepper_of(some, "torch"), 10, rtol=1e-9
    )


def state_of(problem):
    weights = problem.initial_parameters()
    return State(problem, weights, lambda: weights, 0)


@pytest.mark.parametrize("rows", [100, 4], ids=["at once", "in blocks"])
@pytest.mark.parametrize("loss", ["cross_entropy", "mse"])
def test_measures_are_those_of_dense_matrices(loss, rows, monkeypatch):
    """The loss of a sample is that of its labels, by the mean number of labels in a sample."""
    monkeypatch.setattr(Problem, "block_samples", lambda *_: rows)
    problem = problem_of(loss)
    oracle = dense_of(state_of(problem))
    oracle.loss = lambda h, y: plain_loss(loss, h, y)
    there = problem.loss.labelled(problem.dataset.y).sum(1)
    shares = torch.tensor(N * there / there.sum())
    singles = lambda theta: torch.stack(  # noqa: E731
        [share * oracle.total(theta, slice(k, k + 1)) for k, share in enumerate(shares) if share]
    )
    oracle.values = lambda theta: nn.functional.pad(singles(theta), (0, int((shares == 0).sum())))
    wanted = {kind: number(oracle) for kind, number in EXPECTED.items() if kind != "hessian_trace"}
    network = problem.config.architecture.network(
        problem.dataset.d, problem.initial_parameters(), torch.float64
    )
    y = torch.tensor(problem.loss.numbered(problem.dataset.y))
    (row,) = dyn.measure(
        network, problem.dataset.x, y, loss=problem.config.loss, measures=[*wanted], seed=5
    )
    assert {kind: row[kind] for kind in wanted} == pytest.approx(wanted, rel=2e-6, abs=1e-12)


class Causal(nn.Module):
    """The smallest network with an output at each position."""

    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(C, 2)
        self.readout = nn.Linear(2, C)

    def forward(self, x):
        return self.readout(self.embedding(x).cumsum(1).tanh())


def sum_and_count(h, y):
    summed = cross_entropy(h.transpose(1, 2), y, ignore_index=-1, reduction="sum")
    return summed, (y >= 0).sum()


def of_batch(model, batch):
    return sum_and_count(model(batch["x"]), batch["labels"])


@pytest.mark.parametrize("rows", [100, 4, 1])
@pytest.mark.parametrize("loss", ["cross_entropy", sum_and_count, of_batch])
def test_a_mean_over_tokens_does_not_depend_on_blocks(loss, rows, monkeypatch):
    monkeypatch.setattr(Problem, "block_samples", lambda *_: rows)
    data = samples_of("cross_entropy")
    parts = [(data.x, data.y), (data.x_test, data.y_test)]
    x, x_test = (torch.tensor(x).view(N, T, C).argmax(-1) for x, _ in parts)
    y, y_test = (torch.tensor(labels).long() for _, labels in parts)
    torch.manual_seed(0)
    model = Causal()
    plain = lambda h, y: cross_entropy(h.flatten(0, 1), y.flatten().long(), ignore_index=-1)  # noqa: E731
    oracle = Dense(model, x, y, plain)
    kinds = ["train_loss", "gradient_norm", "sharpness", "batch_sharpness"]
    if loss is not of_batch:  # whose outputs are losses
        kinds.append("gauss_newton")
    expected = {kind: EXPECTED[kind](oracle) for kind in kinds}
    expected["test_loss"] = Dense(model, x_test, y_test, plain).L
    given = {"y": y, "x_test": x_test, "y_test": y_test}
    if loss is of_batch:
        x = {"x": x, "labels": y}
        given = {"y": None, "x_test": {"x": x_test, "labels": y_test}}
    (row,) = dyn.measure(model, x, loss=loss, measures=[*expected], **given)
    assert {kind: row[kind] for kind in expected} == pytest.approx(expected, rel=2e-6)


@pytest.mark.parametrize(
    ("loss", "told"),
    [
        (lambda h, y: (sum_and_count(h, y)[0] ** 2, 4), "the sum does not add up over samples"),
        (lambda h, y: (h.sum(), (h > 0).sum()), "the count depends on the outputs"),
        (lambda h, y: sum_and_count(h, y)[0] / sum_and_count(h, y)[1], r"return \(sum, count\)"),
    ],
)
def test_losses_that_depend_on_blocks_are_refused(loss, told):
    data = samples_of("cross_entropy")
    x = torch.tensor(data.x).view(N, T, C).argmax(-1)
    with pytest.raises(InputError, match=told):
        dyn.measure(Causal(), x, torch.tensor(data.y).long(), loss=loss, measures=["train_loss"])


def test_accuracy_and_margin_are_of_the_positions_with_a_label():
    problem = problem_of()
    data = problem.dataset
    state = state_of(problem)
    h = state.network(data.x)
    pairs = [(h[k, t], int(data.y[k, t])) for k in range(N) for t in range(T) if data.y[k, t] >= 0]
    right = [row.argmax() == label for row, label in pairs]
    margins = [row[label] - np.delete(row, label).max() for row, label in pairs]
    assert measures.TrainAccuracy().measure(state) == pytest.approx(np.mean(right))
    assert Margin().measure(state) == pytest.approx(min(margins))
    held = state.network(data.x_test).argmax(-1) == data.y_test
    assert measures.TestAccuracy().measure(state) == pytest.approx(held[data.y_test >= 0].mean())
    assert measures.TrainLoss().measure(state) == pytest.approx(
        float(plain_loss("cross_entropy", torch.tensor(h), torch.tensor(data.y)))
    )


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        (
            {"architecture": {**CONFIG["architecture"], "predict": None}},
            "gives one output a sample; give architecture.predict: every",
        ),
        (
            {"architecture": {**CONFIG["architecture"], "tokens": 2}},
            "2 tokens, but labels are at 4 positions; give tokens: 4",
        ),
        ({"loss": {"kind": "mse"}}, "needs numbers"),
        ({"architecture": {**CONFIG["architecture"], "outputs": 2}}, r"y\[0, \d\] is 2"),
    ],
)
def test_labels_that_do_not_suit_are_refused(changes, told):
    config = {**CONFIG, **changes}
    with pytest.raises(InputError, match=told):
        build_problem(load_config(config), dataset=samples_of("cross_entropy"))
    bare = Samples(np.zeros((2, 12)), np.full((2, 4), -1.0), positions=True)
    with pytest.raises(InputError, match="no position has a label"):
        build_problem(load_config(CONFIG), dataset=bare)

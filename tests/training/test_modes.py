"""Networks with dropout and buffers: against a plain loop of torch, and the same bits in every way
of training them.
"""

import numpy as np
import pytest
import torch
from numpy.testing import assert_array_equal

import dynamics_cli as dyn
from dynamics_cli.errors import InputError
from dynamics_cli.kinds import stream
from dynamics_cli.training.backends import Choice
from dynamics_cli.training.estimate import estimate_legs
from dynamics_cli.training.legs import legs_of
from dynamics_cli.training.many.replicas import batch_key, build_problems
from dynamics_cli.training.many.train import Task, train_all
from dynamics_cli.training.problem import build_problem
from tests.training.problems import (
    assert_weights,
    random_problem,
    stepper_of,
)

from ..conftest import kinds_of

PARTS = """\
from torch import nn
from dynamics_cli.kinds import Architecture

class Moded(Architecture, kind="moded"):
    layer: str = "dropout"
    def build(self, d):
        layers = {"dropout": nn.Dropout(0.4), "batch norm": nn.BatchNorm1d(6), "none": nn.Tanh()}
        return nn.Sequential(
            nn.Linear(d, 6), layers[self.layer], nn.Tanh(), nn.Linear(6, 1), nn.Flatten(0)
        )
"""
LAYERS = ("dropout", "batch norm")
BATCHES = {"full batch": {}, "batches": {"kind": "sgd", "batch_size": 4}}


@pytest.fixture(scope="module", autouse=True)
def parts(tmp_path_factory):
    with kinds_of(tmp_path_factory.mktemp("parts") / "moded_parts.py", PARTS) as file:
        yield file


def problem_of(layer, optimizer=(), architecture=None, **changes):
    given = {"kind": "gd", "lr": 0.05, "iterations": 30, **dict(optimizer)}
    if "until" in given:
        given = optimizer
    network = architecture or {"kind": "moded", "layer": layer}
    return random_problem(n=10, seed=5, architecture=network, optimizer=given, **changes)


def config_of(layer, **changes):
    return problem_of(layer, **changes).config


@pytest.mark.parametrize("layer", LAYERS)
def test_updates_are_those_of_a_plain_loop_in_training_mode(layer):
    """Losses are those of evaluation mode; a mask is a function of (seed, iteration)."""
    problem = problem_of(layer)
    stepper = stepper_of(problem, "torch")
    start = problem.initial_parameters()
    model = problem.config.architecture.network(3, start, torch.float64)
    x, y = map(torch.from_numpy, (problem.dataset.x, problem.dataset.y))

    losses = []
    for i in range(30):
        with torch.no_grad():
            losses.append(float(((model.eval()(x) - y) ** 2).mean()))
        torch.manual_seed(int(stream(5, "layers", i).integers(2**63)))
        loss = ((model.train()(x) - y) ** 2).mean()
        weights = list(model.parameters())
        with torch.no_grad():
            for w, g in zip(weights, torch.autograd.grad(loss, weights), strict=True):
                w.sub_(0.05 * g)

    np.testing.assert_allclose(stepper.advance(30), losses, rtol=1e-12)
    found = stepper.parameters()
    assert list(found) == [*dict(model.named_parameters()), *dict(model.named_buffers())]
    assert_weights(found, model.state_dict(), rtol=1e-10)


def check_replicas(layer, optimizer, folder):
    """Those of a sweep are trained one by one, on whatever has drawn before."""
    config = config_of(layer, optimizer=optimizer)
    configs = [config.model_copy(update={"seed": seed}) for seed in (5, 6)]
    problems = build_problems(configs)
    assert batch_key(problems[0]) is None
    tasks = [Task([config], folder / str(k)) for k, config in enumerate(configs)]
    together = dict(train_all(tasks))
    torch.rand(3)
    for k, problem in enumerate(problems):
        alone = stepper_of(problem, "torch")
        alone.advance(30)
        assert_weights(together[k].run.state(-1), alone.parameters())


def check_network(layer, optimizer, folder):
    """A recorded state is the network in evaluation mode."""
    config = config_of(layer, optimizer=optimizer)
    run = dyn.train(config, out=folder / "run")
    model = config.architecture.build(3).double()
    x = np.random.default_rng(1).standard_normal((7, 3))
    for i in (0, 4, -1):
        state = {name: torch.from_numpy(value) for name, value in run.state(i).items()}
        model.load_state_dict(state)
        with torch.no_grad():
            expected = model.eval()(torch.from_numpy(x))
        np.testing.assert_allclose(run.network(i)(x), expected, rtol=1e-12)


CHECKS = (check_replicas, check_network)


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__.removeprefix("check_"))
@pytest.mark.parametrize("batches", BATCHES)
@pytest.mark.parametrize("layer", LAYERS)
def test_bits_are_the_same(layer, batches, check, tmp_path):
    check(layer, BATCHES[batches], tmp_path)


def test_a_run_that_halts_does_not_keep_the_statistics_of_the_updates_after_it():
    whole = stepper_of(problem_of("batch norm"), "torch")
    losses = whole.advance(30)
    level = float(losses[12])
    stopping = stepper_of(problem_of("batch norm", optimizer={"stop_below": level}), "torch")
    at = len(stopping.advance(30)) - 1
    again = stepper_of(problem_of("batch norm"), "torch")
    again.advance(at)
    assert_weights(stopping.parameters(), again.parameters())


def test_measures_choose_the_mode(tmp_path):
    """In training mode batch norm takes the statistics of all samples, and its curvature is that of
    finite differences; nothing of it shows in the run.
    """
    measured = ["train_loss", "sharpness", "gradient_norm", "hessian_spectrum"]
    both = [*measured, *({"kind": kind, "mode": "train"} for kind in measured)]
    config = config_of("batch norm", record={"measures": both})
    run = dyn.train(config, out=tmp_path / "run")
    plain = dyn.train(config_of("batch norm"), out=tmp_path / "plain")
    assert_array_equal(run.state(-1)["1.running_mean"], plain.state(-1)["1.running_mean"])
    np.testing.assert_allclose(run.measures["train_loss"][-1], run.losses[-1], rtol=1e-14)

    problem = problem_of("batch norm")
    model = problem.config.architecture.build(3).double()
    model.load_state_dict({name: torch.from_numpy(a) for name, a in run.state(-1).items()})
    x, y = map(torch.from_numpy, (problem.dataset.x, problem.dataset.y))
    weights = {name: w.detach() for name, w in model.named_parameters()}
    flat = torch.cat([w.flatten() for w in weights.values()])

    def loss(flat):
        parts = torch.split(flat, [w.numel() for w in weights.values()])
        pairs = zip(weights, parts, strict=True)
        given = {name: part.view_as(weights[name]) for name, part in pairs}
        return ((torch.func.functional_call(model, given, (x,)) - y) ** 2).mean()

    for mode, ending in ((False, ""), (True, "_in_training")):
        model.train(mode)
        if mode:
            torch.func.replace_all_batch_norm_modules_(model)
        H = torch.autograd.functional.hessian(loss, flat)
        eigenvalues = torch.linalg.eigvalsh(H).numpy()[::-1]
        spectrum = run.measures[f"hessian_spectrum{ending}"][-1]
        np.testing.assert_allclose(spectrum, eigenvalues, atol=1e-8)
        np.testing.assert_allclose(
            run.measures[f"sharpness{ending}"][-1], eigenvalues[0], rtol=1e-6
        )
        np.testing.assert_allclose(
            run.measures[f"train_loss{ending}"][-1], float(loss(flat)), rtol=1e-10
        )
    assert run.measures["sharpness"][-1] != run.measures["sharpness_in_training"][-1]


def test_the_loss_in_training_mode_is_that_which_an_update_descends(tmp_path):
    measure = {"kind": "train_loss", "mode": "train"}
    every = {"kind": "every", "interval": 1}
    config = config_of("dropout", record={"measures": [measure], "snapshots": every})
    run = dyn.train(config, out=tmp_path / "run")
    problem = build_problem(config)
    x, y = map(torch.from_numpy, (problem.dataset.x, problem.dataset.y))
    model = config.architecture.build(3).double().train()
    for i in (0, 17):
        model.load_state_dict({name: torch.from_numpy(a) for name, a in run.state(i).items()})
        torch.manual_seed(int(stream(5, "layers", i).integers(2**63)))
        with torch.no_grad():
            expected = float(((model(x) - y) ** 2).mean())
        assert run.measures["train_loss_in_training"][i] == pytest.approx(expected, rel=1e-12)


def test_what_needs_one_function_of_the_weights_is_refused():
    flow = {"kind": "gradient_flow", "until": 1.0, "points": 3}
    with pytest.raises(InputError, match=r"gradient_flow: the network has layers that differ"):
        problem_of("dropout", optimizer=flow)
    problem_of("none", optimizer=flow)


@pytest.mark.parametrize(
    "network",
    [
        {"kind": "moded", "layer": "batch norm"},
        {"kind": "residual", "width": 3, "depth": 3, "norm": "batch"},
    ],
    ids=["from outside", "bundled"],
)
def test_batches_too_small_for_their_statistics_are_refused_before_training(network):
    """Of ten samples batches of 3 leave a single one, which has no variance."""
    sgd = {"kind": "sgd", "iterations": None, "epochs": 2}

    def build(**optimizer):
        return problem_of("none", architecture=network, optimizer={**sgd, **optimizer})

    failure = r"has size 1, on which the network fails in training \(ValueError: Expected more than"
    remedy = "give optimizer.drop_last: true, or another batch_size"
    with pytest.raises(InputError, match=f"the last batch of an epoch {failure}.*{remedy}"):
        build(batch_size=3)
    with pytest.raises(InputError, match=f"each batch {failure}.*take larger batches"):
        build(batch_size=1)
    build(batch_size=3, iterations=3, epochs=None)  # the last batch is not reached
    build(batch_size=4)
    problem = build(batch_size=3, drop_last=True)
    assert problem.iterations == 6
    stepper = stepper_of(problem, "torch")
    stepper.advance(6)
    assert (stepper.iteration, stepper.halted) == (6, None)


def test_buffers_are_counted_among_what_is_recorded():
    chosen = Choice("cpu", "torch")
    needs = [estimate_legs(legs_of([problem_of(kind)]), chosen) for kind in ("none", *LAYERS)]
    plain, dropout, norm = (one.disk_bytes for one in needs)
    assert dropout == plain
    assert norm - plain == needs[0].snapshots * 8 * (6 + 6 + 6 + 6 + 1)

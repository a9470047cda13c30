"""Averages of weights: as `torch.optim.swa_utils` has them, equal bits in any way of training."""

from functools import partial

import numpy as np
import pytest
import torch
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn

import dynamics_cli as dyn
from dynamics_cli.errors import InputError, RunError
from dynamics_cli.training.backends import choose
from dynamics_cli.training.problem import build_problem
from tests.training.problems import (
    assert_replicas_are_the_networks_alone,
    assert_weights,
    loop_of_torch,
    random_problem,
    stepper_of,
)

AVERAGE = {"kind": "ema", "decay": 0.8}
BATCHES = {"full batch": {}, "batches": {"kind": "sgd", "batch_size": 4}}


NETWORK = {"kind": "fully_connected", "widths": [4], "activation": "tanh"}


def problem_of(seed=5, average=AVERAGE, optimizer=(), **changes):
    given = {"kind": "gd", "lr": 0.05, "iterations": 30, "average": average, **dict(optimizer)}
    return random_problem(n=10, seed=seed, architecture=NETWORK, optimizer=given, **changes)


def config_of(**settings):
    return problem_of(**settings).config


def arrays_of(module):
    return {name: w.detach().numpy() for name, w in module.named_parameters()}


def loss_of(run, i, **options):
    samples = run.dataset()
    return np.mean((run.network(i, **options)(samples.x) - samples.y) ** 2)


@pytest.mark.parametrize("batches", BATCHES)
def test_averages_are_those_of_torch(batches, tmp_path):
    """The recorded weights, one by one, give them."""
    every = {"kind": "every", "interval": 1}
    measures = ["train_loss", {"kind": "train_loss", "average": True}]
    config = config_of(
        optimizer=BATCHES[batches], record={"snapshots": every, "measures": measures}
    )
    run = dyn.train(config, out=tmp_path / "run")
    model = config.architecture.build(3).double()
    averaged = AveragedModel(model, multi_avg_fn=get_ema_multi_avg_fn(AVERAGE["decay"]))
    for i in range(31):
        model.load_state_dict({name: torch.from_numpy(w) for name, w in run.state(i).items()})
        averaged.update_parameters(model)
        assert_weights(run.state(i, average=True), arrays_of(averaged.module))
        if i % 10 == 0:
            for name, options in (("", {}), ("_of_average", {"average": True})):
                expected = loss_of(run, i, **options)
                assert run.measures[f"train_loss{name}"][i] == pytest.approx(expected, rel=1e-12)
    assert run.measures["train_loss"][-1] != run.measures["train_loss_of_average"][-1]


@pytest.mark.parametrize("batches", BATCHES)
def test_bits_are_the_same(batches):
    """Beside an equal run without averages."""
    optimizer = BATCHES[batches]
    plain = stepper_of(problem_of(average=None, optimizer=optimizer), "torch")
    averaged = stepper_of(problem_of(optimizer=optimizer), "torch")
    for stepper in (plain, averaged):
        stepper.advance(30)
    found = averaged.parameters()
    assert_weights({name: found[name] for name in plain.parameters()}, plain.parameters())


def test_replicas_have_averages_of_their_own_up_to_their_halt():
    problems = [problem_of(seed) for seed in (5, 6)]
    level = float(stepper_of(problems[0], "torch").advance(30)[12])
    problems = [problem_of(seed, optimizer={"stop_below": level}) for seed in (5, 6)]
    make = partial(stepper_of, way="torch")
    assert_replicas_are_the_networks_alone(problems, make, 30, rtol=1e-9)


@pytest.mark.parametrize("start", [None, "first_update"])
def test_the_start_is_that_of_the_usual_loop(start, tmp_path):
    """An `AveragedModel` that is updated after each step, or before the first one too."""
    average = {**AVERAGE, "start": start} if start else AVERAGE
    every = {"snapshots": {"kind": "every", "interval": 1}}
    config = config_of(average=average, record=every, changes=[{"at": 12, "freeze": ["bias_1"]}])
    run = dyn.train(config, out=tmp_path / "run")
    model = config.architecture.network(3, run.state(0), torch.float64)
    averaged = AveragedModel(model, multi_avg_fn=get_ema_multi_avg_fn(AVERAGE["decay"]))
    if start is None:
        averaged.update_parameters(model)

    def freeze(i, _, w):
        w["bias_1"].requires_grad_(i < 12)

    make = partial(torch.optim.SGD, lr=0.05)
    for i, w in enumerate(loop_of_torch(build_problem(config), make, 30, freeze), start=1):
        model.load_state_dict({name: torch.from_numpy(value) for name, value in w.items()})
        averaged.update_parameters(model)
        assert_weights(run.state(i, average=True), arrays_of(averaged.module), rtol=1e-10)


def test_a_change_on_the_way_goes_on_with_the_averages(tmp_path):
    changed = config_of(changes=[{"at": 15, "optimizer.lr": 0.05000001}])
    run = dyn.train(changed, out=tmp_path / "changed")
    plain = dyn.train(config_of(), out=tmp_path / "plain")
    found, expected = (one.state(-1, average=True) for one in (run, plain))
    assert_weights(found, expected, rtol=1e-5)


def test_torch_keeps_averages_and_others_are_told(tmp_path):
    problem = problem_of()
    assert choose([problem]).backend == "torch"
    assert choose([problem_of(average=None)]).backend == "compiled"
    measures = [{"kind": "train_loss", "average": True}]
    with pytest.raises(InputError, match=r"train_loss: average needs optimizer\.average"):
        config_of(average=None, record={"measures": measures})
    with pytest.raises(InputError, match=r"optimizer\.average: is kept in the whole run"):
        config_of(changes=[{"at": 15, "optimizer": {"average": None}}])
    run = dyn.train(config_of(average=None), out=tmp_path / "plain")
    with pytest.raises(RunError, match="keeps no averages"):
        run.network(-1, average=True)

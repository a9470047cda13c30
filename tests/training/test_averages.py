"""Averages of weights: as `torch.optim.swa_utils` has them, equal bits in any way of training."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
import torch
from numpy.testing import assert_array_equal
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn

import dynamics_cli as dyn
from dynamics_cli.config import load_config
from dynamics_cli.errors import InputError, RunError
from dynamics_cli.training.backends import choose
from dynamics_cli.training.problem import build_problem
from dynamics_cli.training.steppers.autograd import AutogradStepper
from tests.training.problems import assert_chunks_are_invisible, path_of, stepper_of

AVERAGE = {"kind": "ema", "decay": 0.8}
BATCHES = {"full batch": {}, "batches": {"kind": "sgd", "batch_size": 4}}


def config_of(seed=5, average=AVERAGE, optimizer=(), **changes):
    rng = np.random.default_rng(0)
    given = {"kind": "gd", "lr": 0.05, "iterations": 30, **dict(optimizer)}
    if average is not None:
        given["average"] = average
    config = {
        "name": "averaged",
        "seed": seed,
        "dtype": "float64",
        "dataset": {
            "kind": "points",
            "x": rng.standard_normal((10, 3)).tolist(),
            "y": rng.standard_normal(10).tolist(),
        },
        "architecture": {"kind": "fully_connected", "widths": [4], "activation": "tanh"},
        "initialization": {"kind": "unbalanced", "scale": 0.7},
        "loss": {"kind": "mse"},
        "optimizer": given,
    }
    return load_config(config | changes)


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
        found = run.state(i, average=True)
        for name, w in averaged.module.named_parameters():
            assert_array_equal(found[name], w.detach().numpy(), err_msg=f"{name} at {i}")
        if i % 10 == 0:
            for name, options in (("", {}), ("_of_average", {"average": True})):
                expected = loss_of(run, i, **options)
                assert run.measures[f"train_loss{name}"][i] == pytest.approx(expected, rel=1e-12)
    assert run.measures["train_loss"][-1] < run.measures["train_loss_of_average"][-1]


@pytest.mark.parametrize("batches", BATCHES)
def test_bits_are_the_same(batches):
    """In chunks, from a checkpoint, and beside an equal run without averages."""
    optimizer = BATCHES[batches]
    make = partial(stepper_of, build_problem(config_of(optimizer=optimizer)), "torch")
    assert_chunks_are_invisible(make, 24)
    assert path_of(make, [11, 19], through_state=True) == path_of(make, [30])
    plain = stepper_of(build_problem(config_of(average=None, optimizer=optimizer)), "torch")
    averaged = make()
    for stepper in (plain, averaged):
        stepper.advance(30)
    for name, value in plain.parameters().items():
        assert_array_equal(averaged.parameters()[name], value, err_msg=name)


def test_replicas_have_averages_of_their_own_up_to_their_halt():
    problems = [build_problem(config_of(seed)) for seed in (5, 6)]
    alone = [stepper_of(problem, "torch") for problem in problems]
    losses = [stepper.advance(30) for stepper in alone]
    level = float(losses[0][12])
    stopped = {"stop_below": level}
    problems = [build_problem(config_of(seed, optimizer=stopped)) for seed in (5, 6)]
    together = AutogradStepper(problems, "cpu")
    together.advance(30)
    for r, problem in enumerate(problems):
        single = stepper_of(problem, "torch")
        single.advance(30)
        for name, value in single.parameters().items():
            found = together.parameters()[name][r]
            np.testing.assert_allclose(found, value, rtol=1e-9, err_msg=name)


@pytest.mark.parametrize("start", [None, "first_update"])
def test_the_start_is_that_of_the_usual_loop(start, tmp_path):
    """An `AveragedModel` that is updated after each step, or before the first one too."""
    average = {**AVERAGE, "start": start} if start else AVERAGE
    every = {"snapshots": {"kind": "every", "interval": 1}}
    config = config_of(average=average, record=every, changes=[{"at": 12, "freeze": ["bias_1"]}])
    run = dyn.train(config, out=tmp_path / "run")
    model = config.architecture.build(3).double()
    model.load_state_dict({name: torch.from_numpy(w) for name, w in run.state(0).items()})
    averaged = AveragedModel(model, multi_avg_fn=get_ema_multi_avg_fn(AVERAGE["decay"]))
    if start is None:
        averaged.update_parameters(model)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    x, y = (torch.from_numpy(array) for array in (run.dataset().x, run.dataset().y))
    for i in range(30):
        dict(model.named_parameters())["bias_1"].requires_grad_(i < 12)
        optimizer.zero_grad()
        ((model(x) - y) ** 2).mean().backward()
        optimizer.step()
        averaged.update_parameters(model)
        found = run.state(i + 1, average=True)
        for name, w in averaged.module.named_parameters():
            expected = w.detach().numpy()
            np.testing.assert_allclose(found[name], expected, rtol=1e-10, err_msg=f"{name} {i}")


def test_a_change_on_the_way_goes_on_with_the_averages(tmp_path):
    changed = config_of(changes=[{"at": 15, "optimizer.lr": 0.05000001}])
    run = dyn.train(changed, out=tmp_path / "changed")
    plain = dyn.train(config_of(), out=tmp_path / "plain")
    for name, value in plain.state(-1, average=True).items():
        np.testing.assert_allclose(run.state(-1, average=True)[name], value, rtol=1e-5)


def test_torch_keeps_averages_and_others_are_told(tmp_path):
    problem = build_problem(config_of())
    assert choose([problem]).backend == "torch"
    assert choose([build_problem(config_of(average=None))]).backend == "compiled"
    measures = [{"kind": "train_loss", "average": True}]
    with pytest.raises(InputError, match=r"train_loss: average needs optimizer\.average"):
        config_of(average=None, record={"measures": measures})
    with pytest.raises(InputError, match=r"optimizer\.average: is kept in the whole run"):
        config_of(changes=[{"at": 15, "optimizer": {"average": None}}])
    run = dyn.train(config_of(average=None), out=tmp_path / "plain")
    with pytest.raises(RunError, match="keeps no averages"):
        run.network(-1, average=True)

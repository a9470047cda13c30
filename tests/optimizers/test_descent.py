"""Optimizers against `torch.optim` and their formulas; what they remember is resumed bit for
bit.
"""

from functools import partial

import numpy as np
import pytest
import torch

from dynamics_cli.training.backends import build_stepper, choose
from tests.training.problems import (
    assert_replicas_are_the_networks_alone,
    assert_weights,
    loop_of_torch,
    random_problem,
    updated_by_torch,
)
from tests.training.problems import stepper_of as way_of

DEEP = {"kind": "fully_connected", "widths": [5, 4], "activation": "tanh"}
COSINE = {"kind": "cosine", "warm_up": 50}
SGD = torch.optim.SGD
ADAM = torch.optim.Adam
ADAMW = torch.optim.AdamW
RMSPROP = torch.optim.RMSprop
NESTEROV = {"momentum": 0.9, "nesterov": True, "weight_decay": 0.01}

TORCH = [
    ({"kind": "gd"}, SGD, {}),
    ({"kind": "gd", "momentum": 0.9}, SGD, {"momentum": 0.9}),
    ({"kind": "gd", "weight_decay": 0.1}, SGD, {"weight_decay": 0.1}),
    ({"kind": "gd", **NESTEROV}, SGD, NESTEROV),
    ({"kind": "gd", **NESTEROV, "schedule": COSINE}, SGD, NESTEROV),
    ({"kind": "sgd", **NESTEROV, "batch_size": 2}, SGD, NESTEROV),
    ({"kind": "adam", "weight_decay": 0.1}, ADAM, {"weight_decay": 0.1, "fused": True}),
    ({"kind": "adamw"}, ADAMW, {"fused": True}),
    (
        {"kind": "adamw", "weight_decay": 0.3, "batch_size": 4},
        ADAMW,
        {"weight_decay": 0.3, "fused": True},
    ),
    ({"kind": "rmsprop"}, RMSPROP, {}),
    (
        {"kind": "rmsprop", "decay": 0.9, "momentum": 0.5, "weight_decay": 0.1},
        RMSPROP,
        {"alpha": 0.9, "momentum": 0.5, "weight_decay": 0.1},
    ),
]


def stepper_of(optimizer, iterations=1000, **settings):
    own = {"initialization": {"kind": "default_scaled"}, "architecture": DEEP, "backend": "torch"}
    settings = {**own, **settings}
    one = random_problem(optimizer={"lr": 0.01, "iterations": iterations, **optimizer}, **settings)
    return build_stepper([one], choose([one])), one


@pytest.mark.parametrize("steps", [40, pytest.param(1000, marks=pytest.mark.long)])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(("optimizer", "cls", "settings"), TORCH, ids=lambda value: str(value)[:60])
def test_the_updates_of_torch_optim(optimizer, cls, settings, dtype, steps):
    if (
        cls is RMSPROP and "momentum" in settings
    ):  # whose steps of one size near a minimum enlarge rounding without end
        steps = min(steps, 100)
    ours, problem = stepper_of(optimizer, dtype=dtype)
    ours.advance(steps)

    def set_step(i, theirs, _):
        theirs.param_groups[0]["lr"] = problem.config.optimizer.step_size(i, 1000)

    make = partial(cls, lr=0.01, **settings)
    *_, expected = loop_of_torch(problem, make, steps, set_step)
    rounding = (
        40 * steps * float(np.finfo(dtype).eps)
    )  # which Adam amplifies where gradients are small
    assert_weights(ours.parameters(), expected, atol=rounding)


class Written(torch.optim.Optimizer):
    """Subtracts `step(i, gradients)`, a list of arrays, from the weights."""

    def __init__(self, tensors, step):
        super().__init__(tensors, {})
        self._written = step
        self._i = -1

    def step(self, closure=None):
        self._i += 1
        tensors = self.param_groups[0]["params"]
        changes = self._written(self._i, [w.grad.numpy() for w in tensors])
        for w, change in zip(tensors, changes, strict=True):
            w.data.sub_(torch.from_numpy(change))


FACTOR = {"layer_lr": {"weight_2": 0.5}}
CLIPS = [{"clip": 0.1}, {"clip": 0.05, "clip_by": "value"}]


@pytest.mark.parametrize("clip", CLIPS, ids=str)
@pytest.mark.parametrize(
    ("backend", "optimizer"),
    [
        ("torch", {"kind": "gd"}),
        ("torch", {"kind": "gd", **FACTOR}),
        ("torch", {"kind": "torch", "name": "SGD", "weight_decay": 0.1, "momentum": 0.9, **FACTOR}),
        ("compiled", {"kind": "gd", "weight_decay": 0.1, "momentum": 0.9}),
    ],
    ids=str,
)
def test_clipped_gradients_are_those_of_a_loop_with_torch(backend, optimizer, clip):
    ours, problem = stepper_of({**optimizer, **clip}, 40, backend=backend)
    ours.advance(40)
    decay = {key: optimizer[key] for key in ("weight_decay", "momentum") if key in optimizer}
    factors = optimizer.get("layer_lr", {})
    steps = [0.01 * factors.get(name, 1.0) for name in problem.shapes]

    def clipped(theirs, *_):
        tensors = [w for group in theirs.param_groups for w in group["params"]]
        if "clip_by" in clip:
            torch.nn.utils.clip_grad_value_(tensors, 0.05)
        else:
            assert torch.nn.utils.clip_grad_norm_(tensors, 0.1) > 0.1

    def make(tensors):
        groups = [{"params": [w], "lr": lr} for w, lr in zip(tensors, steps, strict=True)]
        theirs = SGD(groups, **decay)
        theirs.register_step_pre_hook(clipped)
        return theirs

    *_, expected = loop_of_torch(problem, make, 40)
    assert_weights(ours.parameters(), expected, atol=1e-13)


@pytest.mark.parametrize("way", ["torch", "engine"])
def test_the_gradient_of_each_replica_is_clipped_by_itself(way):
    problems = [
        random_problem(optimizer={"kind": "gd", "lr": 0.1, "iterations": 9, "clip": 0.5}, seed=s)
        for s in range(3)
    ]
    assert_replicas_are_the_networks_alone(problems, lambda some: way_of(some, way), 9, rtol=1e-12)


def test_an_optimizer_of_torch_is_all_in_its_state():
    """An update by an optimizer that is made anew from the state has the same bits."""
    _, problem = stepper_of({"kind": "torch", "name": "ASGD", "t0": 5.0, "lambd": 0.1}, 20)
    at_once = build_stepper([problem], choose([problem]))
    at_once.advance(20)
    anew = updated_by_torch([problem])
    for group in anew._groups["all"]:
        group.updater = None
    anew.advance(20)
    assert_weights(anew.parameters(), at_once.parameters())

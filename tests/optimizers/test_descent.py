"""Optimizers against `torch.optim` and their formulas; what they remember is resumed bit for
bit.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose, assert_array_equal

from dynamics_cli.kinds import Problem
from dynamics_cli.optimizers.torch_optim import class_names
from dynamics_cli.training.backends import build_stepper, choose
from dynamics_cli.training.steppers.base import Stepper
from tests.training.problems import (
    assert_chunks_are_invisible,
    assert_replicas_are_the_networks_alone,
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
OTHERS = [
    {"kind": "sgd", "momentum": 0.5, "batch_size": 2},
    {"kind": "group_rmsprop"},
    {"kind": "muon"},
    {"kind": "muon", "nesterov": False, "weight_decay": 0.1, "batch_size": 3},
    {"kind": "muon", "polar": "exact"},
    {"kind": "adam", "clip": 0.1, "batch_size": 3},
]


def stepper_of(
    optimizer: dict[str, Any], iterations: int = 1000, **settings: Any
) -> tuple[Stepper, Problem]:
    own = {"initialization": {"kind": "default_scaled"}, "architecture": DEEP, "backend": "torch"}
    settings = {**own, **settings}
    one = random_problem(optimizer={"lr": 0.01, "iterations": iterations, **optimizer}, **settings)
    return build_stepper([one], choose([one])), one


def by_hand(
    problem: Problem, dtype: torch.dtype
) -> tuple[torch.nn.Module, torch.Tensor, torch.Tensor]:
    model = problem.config.architecture.build(problem.dataset.d).to(dtype)
    weights = problem.initial_parameters()
    model.load_state_dict({name: torch.from_numpy(value.copy()) for name, value in weights.items()})
    return (
        model,
        torch.from_numpy(problem.dataset.x).to(dtype),
        torch.from_numpy(problem.dataset.y).to(dtype),
    )


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
    model, x, y = by_hand(problem, getattr(torch, dtype))
    theirs = cls(model.parameters(), lr=0.01, **settings)
    (batches,) = getattr(ours, "_batches", None) or [None]
    config = problem.config.optimizer
    for i in range(steps):
        chosen = slice(None) if batches is None else torch.from_numpy(batches.at(i))
        theirs.zero_grad()
        problem.loss.total(model(x[chosen]), y[chosen]).backward()
        theirs.param_groups[0]["lr"] = config.step_size(i, 1000)
        theirs.step()
    rounding = (
        40 * steps * float(np.finfo(dtype).eps)
    )  # which Adam amplifies where gradients are small
    for name, weights in model.named_parameters():
        assert_allclose(ours.parameters()[name], weights.detach().numpy(), rtol=0, atol=rounding)


def reference(problem: Problem, step: Any, iterations: int) -> dict[str, np.ndarray]:
    """Return the weights after updates `step(i, gradients) -> what is subtracted`, with
    autograd's gradients.
    """
    model, x, y = by_hand(problem, torch.float64)
    weights = dict(model.named_parameters())
    for i in range(iterations):
        gradients = torch.autograd.grad(problem.loss.total(model(x), y), list(weights.values()))
        with torch.no_grad():
            changes = step(i, [g.numpy() for g in gradients])
            for weight, change in zip(weights.values(), changes, strict=True):
                weight.sub_(torch.from_numpy(change))
    return {name: weight.detach().numpy() for name, weight in weights.items()}


def normalised(share: float) -> Any:
    """Return steps along gradients over the root of the mean square of their norm."""
    mean = [0.0]

    def step(i: int, gradients: list[np.ndarray]) -> list[np.ndarray]:
        mean[0] = share * mean[0] + (1 - share) * sum(float((g**2).sum()) for g in gradients)
        return [0.01 * g / (np.sqrt(mean[0] / (1 - share ** (i + 1))) + 1e-6) for g in gradients]

    return step


def muon(old: list[np.ndarray], exact: bool = False) -> Any:
    """Return steps along momenta whose singular values went through the quintic five times, or are
    1; of vectors as rows.
    """

    def orthogonal(b: np.ndarray) -> np.ndarray:
        rows = b if b.ndim > 1 else b[None]
        U, s, V = np.linalg.svd(rows, full_matrices=False)
        s = s / np.linalg.norm(s)
        for _ in range(5):
            s = 3.4445 * s - 4.775 * s**3 + 2.0315 * s**5
        if exact:
            s = (s > 1e-13).astype(float)
        return (max(1.0, len(rows) / rows.shape[1]) ** 0.5 * (U * s) @ V).reshape(b.shape)

    def step(_: int, gradients: list[np.ndarray]) -> list[np.ndarray]:
        old[:] = [
            0.95 * b + g for b, g in zip(old or [0.0] * len(gradients), gradients, strict=True)
        ]
        return [0.01 * orthogonal(g + 0.95 * b) for b, g in zip(old, gradients, strict=True)]

    return step


@pytest.mark.parametrize(
    ("optimizer", "step"),
    [
        ({"kind": "group_rmsprop", "decay": 0.9}, normalised(0.9)),
        ({"kind": "muon"}, muon([])),
        ({"kind": "muon", "polar": "exact"}, muon([], exact=True)),
    ],
    ids=lambda value: value["kind"] if isinstance(value, dict) else "",
)
def test_updates_by_their_formulas(optimizer, step):
    ours, problem = stepper_of(optimizer, 60)
    ours.advance(60)
    for name, expected in reference(problem, step, 60).items():
        assert_allclose(ours.parameters()[name], expected, rtol=1e-6, atol=1e-9)


CLIPS = [{"clip": 0.1}, {"clip": 0.05, "clip_by": "value"}]


@pytest.mark.parametrize("clip", CLIPS, ids=str)
@pytest.mark.parametrize(
    ("backend", "optimizer"),
    [
        ("torch", {"kind": "gd"}),
        ("torch", {"kind": "gd", "layer_lr": {"weight_2": 0.5}}),
        ("torch", {"kind": "torch", "name": "SGD", "weight_decay": 0.1, "momentum": 0.9}),
        ("compiled", {"kind": "gd", "weight_decay": 0.1, "momentum": 0.9}),
    ],
    ids=str,
)
def test_clipped_gradients_are_those_of_a_loop_with_torch(backend, optimizer, clip):
    ours, problem = stepper_of({**optimizer, **clip}, 40, backend=backend)
    ours.advance(40)
    model, x, y = by_hand(problem, torch.float64)
    decay = {key: optimizer[key] for key in ("weight_decay", "momentum") if key in optimizer}
    factors = optimizer.get("layer_lr", {})
    groups = [
        {"params": [w], "lr": 0.01 * factors.get(name, 1.0)} for name, w in model.named_parameters()
    ]
    theirs = SGD(groups, **decay)
    for _ in range(40):
        theirs.zero_grad()
        problem.loss.total(model(x), y).backward()
        if "clip_by" in clip:
            torch.nn.utils.clip_grad_value_(model.parameters(), 0.05)
        else:
            norm = torch.nn.utils.clip_grad_norm_(model.parameters(), 0.1)
            assert norm > 0.1
        theirs.step()
    for weight, found in zip(model.parameters(), ours.parameters().values(), strict=True):
        assert_allclose(found, weight.detach().numpy(), rtol=0, atol=1e-13)


@pytest.mark.parametrize("way", ["torch", "engine"])
def test_the_gradient_of_each_replica_is_clipped_by_itself(way):
    problems = [
        random_problem(optimizer={"kind": "gd", "lr": 0.1, "iterations": 9, "clip": 0.5}, seed=s)
        for s in range(3)
    ]
    assert_replicas_are_the_networks_alone(problems, lambda some: way_of(some, way), 9, rtol=1e-12)


@pytest.mark.parametrize(
    "optimizer", [*(first for first, *_ in TORCH), *OTHERS], ids=lambda value: str(value)[:60]
)
def test_every_optimizer_goes_on_with_the_same_bits(optimizer):
    assert_chunks_are_invisible(lambda: stepper_of(optimizer, 30)[0], 30)


WITHOUT_BIAS = {"architecture": {**DEEP, "bias": False}}


@pytest.mark.parametrize("name", class_names())
def test_every_class_of_torch_optim(name):
    """Its updates are those of the class in a loop, and its state is all in the checkpoint."""
    optimizer = {"kind": "torch", "name": name, "layer_lr": {"weight_2": 0.5}}
    assert_chunks_are_invisible(lambda: stepper_of(optimizer, 30, **WITHOUT_BIAS)[0], 30)

    ours, problem = stepper_of(optimizer, 30, **WITHOUT_BIAS)
    ours.advance(30)
    model, x, y = by_hand(problem, torch.float64)
    cls = getattr(torch.optim, name)
    steps = {"weight_2": 0.005}
    theirs = [cls([w], lr=steps.get(weight, 0.01)) for weight, w in model.named_parameters()]
    for _ in range(30):
        model.zero_grad()
        problem.loss.total(model(x), y).backward()
        for one in theirs:
            one.step()
    for weight, found in zip(model.parameters(), ours.parameters().values(), strict=True):
        assert_allclose(found, weight.detach().numpy(), rtol=0, atol=1e-13)


def test_an_optimizer_of_torch_is_all_in_its_state():
    """An update by an optimizer that is made anew from the state has the same bits."""
    _, problem = stepper_of({"kind": "torch", "name": "ASGD", "t0": 5.0, "lambd": 0.1}, 20)
    at_once = build_stepper([problem], choose([problem]))
    at_once.advance(20)
    anew = updated_by_torch([problem])
    for group in anew._groups["all"]:
        group.updater = None
    anew.advance(20)
    for name, weights in at_once.parameters().items():
        assert_array_equal(anew.parameters()[name], weights)

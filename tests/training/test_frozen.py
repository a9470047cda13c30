"""Weights that are frozen on the way and trained again: every optimizer against torch's, and
every measure against a network in which they never were trained.
"""

from __future__ import annotations

from functools import partial
from itertools import product
from typing import Any

import numpy as np
import pytest
import torch

import dynamics_cli as dyn
from dynamics_cli.config import load_config
from dynamics_cli.errors import InputError
from dynamics_cli.kinds import State, all_kinds
from dynamics_cli.optimizers.torch_optim import class_names
from dynamics_cli.training import loop
from dynamics_cli.training.problem import build_problem
from dynamics_cli.training.session import obtain_run, plan_run
from tests.cases import read
from tests.dense import dense_of
from tests.runs.damage import arrays_of
from tests.training.problems import assert_weights, loop_of_torch
from tests.training.test_changes import BASE, gan_config, interrupted_everywhere

CHANGES = [
    {"at": 8, "freeze": ["hidden_weight"]},
    {"at": 17, "freeze": ["output_weight"]},
    {"at": 25, "freeze": []},
]
LENGTH = 40
EVERY = {"snapshots": {"kind": "every", "interval": 1}, "measures": []}


def frozen_at(i):
    """Return the weight that the update from state i leaves as it is."""
    return "hidden_weight" if 8 <= i < 17 else "output_weight" if 17 <= i < 25 else None


class GroupRMSprop(torch.optim.Optimizer):
    """As the released code of Arora et al. 2019, of the weights that have gradients."""

    def __init__(self, tensors, lr):
        super().__init__(tensors, {"lr": lr})
        self.v = 0.0
        self.count = 0

    def step(self, closure=None):
        self.count += 1
        ((group),) = self.param_groups
        moved = [w for w in group["params"] if w.grad is not None]
        self.v = 0.99 * self.v + 0.01 * sum(float((w.grad**2).sum()) for w in moved)
        root = (self.v / (1 - 0.99**self.count)) ** 0.5 + 1e-6
        for w in moved:
            w.data -= group["lr"] / root * w.grad


class Muon(torch.optim.Optimizer):
    """As Jordan 2024, of matrices and of vectors as rows, by singular values.

    They go through the quintic five times, or are 1.
    """

    def __init__(self, tensors, lr, *, exact=False):
        super().__init__(tensors, {"lr": lr})
        self.exact = exact

    def orthogonal(self, matrix):
        U, s, Vh = torch.linalg.svd(matrix, full_matrices=False)
        s = s / s.norm()
        for _ in range(5):
            s = 3.4445 * s - 4.775 * s**3 + 2.0315 * s**5
        if self.exact:
            s = (s > 1e-13).double()
        return (U * s) @ Vh

    def step(self, closure=None):
        ((group),) = self.param_groups
        for w in group["params"]:
            if w.grad is None:
                continue
            state = self.state[w]
            state["b"] = 0.95 * state.get("b", 0.0) + w.grad
            matrix = (w.grad + 0.95 * state["b"]).reshape(
                -1 if w.ndim == 1 else len(w), w.shape[-1]
            )
            scale = max(1.0, matrix.shape[0] / matrix.shape[1]) ** 0.5
            w.data -= group["lr"] * scale * self.orthogonal(matrix).reshape(w.shape)


def _of(name, **arguments):
    return lambda tensors: getattr(torch.optim, name)(tensors, lr=0.02, **arguments)


ONE: dict[str, tuple[dict[str, Any], Any]] = {
    "gd": ({"momentum": 0.9}, _of("SGD", momentum=0.9)),
    "sgd": (
        {"momentum": 0.9, "nesterov": True, "batch_size": 4},
        _of("SGD", momentum=0.9, nesterov=True),
    ),
    "adam": ({"weight_decay": 0.1}, _of("Adam", weight_decay=0.1)),
    "adamw": ({}, _of("AdamW")),
    "rmsprop": ({"momentum": 0.5}, _of("RMSprop", momentum=0.5)),
    "group_rmsprop": ({}, lambda tensors: GroupRMSprop(tensors, 0.02)),
    "muon": ({}, lambda tensors: Muon(tensors, 0.02)),
}
CLASSES = [name for name in class_names() if name != "Muon"]  # which takes matrices alone
CASES: dict[str, tuple[dict[str, Any], Any]] = {
    **{kind: ({"kind": kind, **given}, make) for kind, (given, make) in ONE.items()},
    "muon, exact": (
        {"kind": "muon", "polar": "exact"},
        lambda tensors: Muon(tensors, 0.02, exact=True),
    ),
    **{f"torch {name}": ({"kind": "torch", "name": name}, _of(name)) for name in CLASSES},
}


def settings_of(optimizer, **given):
    optimizer = {"lr": 0.02, "iterations": LENGTH, **optimizer}
    return {**BASE, "optimizer": optimizer, "record": EVERY, "changes": CHANGES, **given}


def test_all_optimizers_are_tested():
    own = {
        kind for kind, cls in all_kinds("optimizer").items() if "experiments" not in cls.__module__
    }
    assert own == {*ONE, "torch", "gradient_flow"}


@pytest.mark.parametrize(
    ("case", "clip"),
    [
        *((case, None) for case in CASES),
        *(
            pytest.param(case, 0.3, marks=() if case in (*ONE, "torch Adam") else pytest.mark.long)
            for case in CASES
        ),
    ],
)
@pytest.mark.parametrize("backend", ["compiled", "torch"])
def test_the_memory_of_frozen_weights_rests_as_in_torch(tmp_path, case, backend, clip):
    optimizer, make = CASES[case]
    if clip is not None:
        optimizer = {**optimizer, "clip": clip}
    able = backend == "torch" or optimizer["kind"] not in ("torch", "muon")
    if not able or (clip is not None and case == "group_rmsprop"):
        pytest.skip("no such stepper")
    run = dyn.train(settings_of(optimizer, backend=backend), out=tmp_path / "run")

    def clipped(made, *_):
        torch.nn.utils.clip_grad_norm_(made.param_groups[0]["params"], clip)

    def freeze(i, made, w):
        for name, tensor in w.items():
            tensor.requires_grad_(name != frozen_at(i))
        if i == 0 and clip is not None:
            made.register_step_pre_hook(clipped)

    path = loop_of_torch(build_problem(run.config), make, LENGTH, freeze)
    for i, expected in enumerate(path, start=1):
        atol = 1e-8 if "muon" in case else 1e-12  # singular values are rounded otherwise
        assert_weights(run.state(i), expected, rtol=1e-9, atol=atol)


@pytest.mark.parametrize("backend", ["compiled", "torch"])
@pytest.mark.parametrize("case", ["gd", "adamw", "rmsprop", "group_rmsprop", "torch Adam"])
def test_a_run_with_frozen_weights_resumes_bit_for_bit(in_memory, monkeypatch, case, backend):
    optimizer, _ = CASES[case]
    if optimizer["kind"] == "torch" and backend == "compiled":
        pytest.skip("no such stepper")
    config = load_config(settings_of(optimizer, backend=backend))
    obtain_run(plan_run(config, in_memory / "whole"))
    monkeypatch.setattr(loop, "CALL_SECONDS", 1e-9)
    interrupted_everywhere(plan_run(config, in_memory / "stopped"), [5, 8, 12, 19, 30])
    assert arrays_of(in_memory / "stopped") == arrays_of(in_memory / "whole")


BLOCKS = {"head": "output_weight", "rest": "hidden*"}
MEASURES: list[dict[str, Any]] = [
    {"kind": "alignment", "directions": [[1.0, 0.0, 0.0]]},
    {"kind": "spectral_density", "probes": 2, "steps": 20},
    {"kind": "llc", "burn_in": 5, "draws": 5},
    {"kind": "singular_values", "layer": "hidden_weight"},
    *(
        {"kind": kind, "blocks": blocks}
        for kind in ("sharpness", "hessian_trace", "update")
        for blocks in ("layer", BLOCKS)
    ),
    *(
        {"kind": "update", "of": of}
        for of in ("norm", "relative", "cosine_last", "cosine_gradient")
    ),
]


def measures_of(config):
    """Return every measure that a run offers."""
    given = {measure["kind"] for measure in MEASURES}
    problem = build_problem(load_config(config))
    others = [cls() for kind, cls in all_kinds("measure").items() if kind not in given]
    return [*MEASURES, *(measure.kind for measure in others if measure.offered(problem))]


@pytest.mark.parametrize("backend", ["compiled", "torch"])
def test_measures_are_of_the_weights_that_are_trained(tmp_path, backend):
    """Of every measure the number that a network with `architecture.train` has there."""
    settings = settings_of({"kind": "adam"}, backend=backend)
    measures = measures_of(settings)
    assert len(measures) > 25
    settings["record"] = {**EVERY, "measures": measures}
    run = dyn.train(settings, out=tmp_path / "run")
    for i, trained in ((4, [*run.parameters]), (12, ["output_weight"]), (22, ["hidden_weight"])):
        network = {**settings["architecture"], "train": trained}
        problem = build_problem(load_config({**settings, "architecture": network, "changes": None}))
        state = State(
            problem,
            run.state(i),
            lambda: run.state(0),
            i,
            before=(run.state(i - 1), run.state(i - 2)),
            preconditioner=_of_adam(run, i),
        )
        for name, measure in problem.measures.items():
            found = run.measures[name][i]
            if getattr(measure, "blocks", None):  # a number for each weight, in some order
                by_layer = measure.model_copy(update={"blocks": "layer"}).measure(state)
                known = dict(zip(trained, by_layer, strict=True))
                order = [*run.parameters] if measure.blocks == "layer" else [*run.parameters][::-1]
                expected = np.array([known.get(weight, np.nan) for weight in order])
            else:
                expected = np.asarray(measure.measure(state))
            if name == "hessian_spectrum":
                assert np.isnan(found[expected.size :]).all()
                found = found[: expected.size]
            np.testing.assert_allclose(
                found, expected, rtol=1e-5, atol=1e-10, err_msg=f"{name} at {i}"
            )


def _of_adam(run, i):
    """Return Adam's preconditioner at a state, from dense gradients."""
    problem = build_problem(run.config)
    v = dict.fromkeys(problem.shapes, 0.0)
    t = dict.fromkeys(problem.shapes, 0)
    for k in range(i):
        state = State(problem, run.state(k), lambda: run.state(0), k)
        slopes = dense_of(state).g
        for name, g in zip(v, np.split(slopes, [run.state(0)["hidden_weight"].size]), strict=True):
            if name != frozen_at(k):
                v[name] = 0.999 * v[name] + 0.001 * g.reshape(problem.shapes[name]) ** 2
                t[name] += 1
    return {n: (1 - 0.9 ** t[n]) * (np.sqrt(v[n] / (1 - 0.999 ** t[n])) + 1e-8) for n in v}


def test_gradient_flow_leaves_frozen_weights(tmp_path):
    """As gradient descent by small steps does."""
    flow = {"kind": "gradient_flow", "until": 0.4, "points": 40}
    runs = [
        dyn.train(
            {**BASE, "optimizer": optimizer, "changes": changes, "record": EVERY},
            out=tmp_path / optimizer["kind"],
        )
        for optimizer, changes in (
            (flow, CHANGES),
            (
                {"kind": "gd", "lr": 1e-5, "iterations": 40000},
                [{**c, "at": 1000 * c["at"]} for c in CHANGES],
            ),
        )
    ]
    hidden = runs[0].parameters["hidden_weight"]
    assert (hidden[8:18] == hidden[8]).all()
    for name, w in runs[0].state(-1).items():
        np.testing.assert_allclose(w, runs[1].state(-1)[name], atol=5e-5)


def test_a_player_rests(tmp_path):
    """Nothing but the discriminator is trained, from the weights that it has."""
    gan = gan_config(1)
    plain = dyn.train(gan, out=tmp_path / "plain")
    generator = [name for name in plain.parameters if name.startswith("generator")]
    run = dyn.train({**gan, "changes": [{"at": 6, "freeze": generator}]}, out=tmp_path / "run")
    for name, weights in run.parameters.items():
        still = (weights[6:] == weights[6]).all()
        assert still == (name in generator), name


def test_all_weights_cannot_be_frozen(tmp_path):
    names = ["hidden_weight", "output_weight"]
    with pytest.raises(
        InputError, match=r"changes\[0\]: freeze: no weight is left that is trained"
    ):
        plan_run(load_config({**BASE, "changes": [{"at": 3, "freeze": names}]}), tmp_path / "run")


def test_runs_that_freeze_other_weights_are_other_runs(tmp_path):
    def hash_of(*changes):
        return plan_run(load_config({**BASE, "changes": [*changes]}), tmp_path / "run").hash

    lr = {"at": 9, "optimizer.lr": 0.03}
    frozen = {"at": 3, "freeze": ["hidden_weight"]}
    hashes = {
        hash_of(lr),
        hash_of(frozen, lr),
        hash_of({**frozen, "freeze": ["output_weight"]}, lr),
    }
    assert len(hashes) == 3
    assert hash_of(frozen, lr) == hash_of(frozen, {**lr, "freeze": ["hidden_weight"]})


OTHERS = read("""
rmsprop: {kind: rmsprop, lr: 0.01}
rmsprop with momentum: {kind: rmsprop, lr: 0.01, momentum: 0.9}
adam: {kind: adam, lr: 0.01}
gd: {kind: gd, lr: 0.01, momentum: 0.9}
""")


NEITHER: dict[str, dict[str, Any]] = {key: {} for key in OTHERS} | {"rmsprop": {"momentum": None}}
"""Settings of the other optimizer that do not stay."""
PAIRS = [
    p
    for p in product(OTHERS, OTHERS)
    if p[0] == p[1] or {*p} != {"rmsprop", "rmsprop with momentum"}
]


@pytest.mark.parametrize("backend", ["compiled", "torch"])
@pytest.mark.parametrize(("first", "second"), PAIRS)
def test_another_optimizer_begins_as_a_new_one(tmp_path, first, second, backend):
    """Unless both have one formula, as the settings of one do, it is a new object of torch."""
    settings = {**BASE, "record": EVERY, "backend": backend}
    settings["optimizer"] = {**OTHERS[first], "iterations": 24}
    settings["changes"] = [{"at": 10, "optimizer": {**NEITHER[second], **OTHERS[second]}}]
    if first == second:
        settings["changes"] = [{"at": 10, "optimizer.lr": 0.01}]
    run = dyn.train(settings, out=tmp_path / "run")
    classes = {"rmsprop": "RMSprop", "adam": "Adam", "gd": "SGD"}

    def made(tensors, key):
        given = dict(OTHERS[key])
        return getattr(torch.optim, classes[given.pop("kind")])(tensors, **given)

    def change(i, _, w):
        return made([*w.values()], second) if i == 10 and first != second else None

    *_, expected = loop_of_torch(build_problem(run.config), partial(made, key=first), 24, change)
    assert_weights(run.state(-1), expected, rtol=1e-9)

"""Runs that change on the way: against torch, and resumed bit for bit in every segment."""

import os
import signal
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
import torch

import dynamics_cli as dyn
from dynamics_cli.analysis.theories import predictions
from dynamics_cli.analysis.view import View
from dynamics_cli.config import load_config
from dynamics_cli.config.dump import to_plain
from dynamics_cli.config.errors import ConfigError
from dynamics_cli.errors import InputError, UsageError
from dynamics_cli.runs.errors import CorruptRunError
from dynamics_cli.runs.run import Run
from dynamics_cli.runs.store.checkpoints import kept_checkpoints
from dynamics_cli.runs.verify import verify_run
from dynamics_cli.training import loop
from dynamics_cli.training.many.replicas import batch_key, build_problems
from dynamics_cli.training.parent import parent_of
from dynamics_cli.training.problem import build_problem
from dynamics_cli.training.session import obtain_run, plan_problems, plan_run, prospect
from dynamics_cli.training.signals import Interrupted
from tests.runs.damage import arrays_of
from tests.training.problems import assert_weights, loop_of_torch

rng = np.random.default_rng(3)
X = rng.standard_normal((4, 3))
WIDE = rng.standard_normal((4, 9))
Y = rng.standard_normal(4)
BASE = {
    "name": "changes",
    "dtype": "float64",
    "dataset": {"kind": "points", "x": X.tolist(), "y": Y.tolist()},
    "architecture": {"kind": "two_layer", "width": 5, "activation": "tanh"},
    "initialization": {"kind": "unbalanced", "scale": 0.7},
    "loss": {"kind": "mse"},
    "optimizer": {"kind": "gd", "lr": 0.02, "iterations": 40},
    "record": {"snapshots": {"kind": "every", "interval": 8}, "measures": ["weight_norm"]},
}
RELU = {"kind": "two_layer", "width": 5}
WIDE_POINTS = {"kind": "points", "x": WIDE.tolist(), "y": Y.tolist()}
MOMENTUM = {"kind": "gd", "lr": 0.02, "momentum": 0.9, "iterations": 40}
FLOW = {"kind": "gradient_flow", "until": 4.0, "points": 40}
LR = {"at": 12, "optimizer.lr": 0.05}
ADAM = {"at": 20, "optimizer": {"kind": "adam", "lr": 0.01}}
WEIGHTS = {"at": 28, "freeze": ["hidden_weight"], "scale": {"output_weight": 2.0}}
RESET = {"at": 28, "reset": {"output_weight": 0.5}, "record.loss_every": 3}
HUBER = {"at": 20, "loss": {"kind": "half_mse"}, "dataset.y": Y[::-1].tolist()}
CASES = {
    "kernel, then the engine": {"architecture": RELU, "changes": [LR, ADAM, WEIGHTS]},
    "kernel": {"architecture": RELU, "changes": [LR, HUBER, RESET]},
    "kernel of single samples": {
        "architecture": {"kind": "two_layer", "width": 5, "activation": "relu"},
        "optimizer": {"kind": "sgd", "lr": 0.02, "epochs": 10},
        "changes": [LR, {"at": 20, "optimizer.batch_size": 3}, RESET],
    },
    "engine": {"optimizer": MOMENTUM, "changes": [LR, HUBER, ADAM | {"at": 28}]},
    "engine in a span": {
        "dataset": WIDE_POINTS,
        "optimizer": MOMENTUM,
        "changes": [LR, {"at": 20, "optimizer.weight_decay": 0.1}, WEIGHTS],
    },
    "engine, loss scaled": {
        "optimizer": {"kind": "gd", "lr": 0.01, "iterations": 40, "loss_scaled": True},
        "changes": [LR, {"at": 20, "optimizer.loss_scaled": False}],
    },
    "torch": {"backend": "torch", "optimizer": MOMENTUM, "changes": [LR, ADAM, WEIGHTS]},
    "torch, no formula": {
        "optimizer": {"kind": "muon", "lr": 0.02, "iterations": 40},
        "changes": [LR, HUBER, ADAM | {"at": 28}],
    },
    "torch, batches": {
        "backend": "torch",
        "optimizer": {"kind": "adam", "lr": 0.02, "iterations": 40, "batch_size": 3},
        "changes": [LR, {"at": 20, "optimizer": {"kind": "adamw", "lr": 0.01}}, RESET],
    },
    "class of torch": {
        "optimizer": {"kind": "torch", "name": "Adam", "lr": 0.02, "iterations": 40},
        "changes": [
            {"at": 12, "freeze": ["hidden_weight"]},
            {"at": 20, "freeze": [], "optimizer.amsgrad": True},
            {"at": 28, "optimizer": {"name": "NAdam", "lr": 0.01}},
        ],
    },
    "flow": {"optimizer": FLOW, "changes": [HUBER, {"at": 28, "scale": {"output_weight": 2.0}}]},
    "flow, float32": {
        "optimizer": FLOW,
        "dtype": "float32",
        "backend": "torch",
        "changes": [{"at": 12, "optimizer.rtol": 1e-3}, HUBER],
    },
    "centred": {
        "architecture": {
            "kind": "two_layer",
            "width": 5,
            "activation": "tanh",
            "centered": True,
            "output_scale": 3.0,
        },
        "dataset": WIDE_POINTS,
        "changes": [LR, ADAM, WEIGHTS],
    },
}


def settings_of(case):
    return {**BASE, **case}


def first_of(settings):
    """Return the problem of a run before its changes."""
    return build_problem(load_config({**settings, "changes": None}))


def interrupted_everywhere(plan, states):
    """Train a plan, interrupted by Ctrl-C at each of the states, to its end."""
    for state in states:
        with pytest.raises(Interrupted):
            obtain_run(plan, resume=True, progress=_interrupting(state))
    obtain_run(plan, resume=True)


def _interrupting(state):
    def progress(reached, loss):
        if reached >= state:
            os.kill(os.getpid(), signal.SIGINT)

    return progress


@pytest.mark.parametrize("case", CASES)
def test_a_changed_run_resumes_bit_for_bit_in_each_segment(in_memory, monkeypatch, case):
    config = load_config(settings_of(CASES[case]))
    obtain_run(plan_run(config, in_memory / "whole"))
    monkeypatch.setattr(loop, "CALL_SECONDS", 1e-9)  # calls of one update
    interrupted_everywhere(plan_run(config, in_memory / "stopped"), [5, 12, 13, 22, 30, 36])
    assert arrays_of(in_memory / "stopped") == arrays_of(in_memory / "whole")
    run = Run(in_memory / "whole")
    assert run.iterations == 40
    assert {change.at for change in config.changes or ()} < set(run.snapshot_iterations.tolist())
    assert np.isfinite(run.losses).all()


@pytest.mark.parametrize("backend", ["compiled", "torch"])
def test_replicas_change_as_each_does_alone(in_memory, monkeypatch, backend):
    changes = [LR, ADAM, {"at": 28, "freeze": ["output_weight"]}]
    case = settings_of({"changes": changes, "backend": backend, "optimizer": MOMENTUM})
    configs = [load_config(case, seed=seed) for seed in range(3)]
    problems = build_problems(configs)
    assert batch_key(problems[0]) is not None
    obtain_run(plan_problems(problems, in_memory / "whole"))
    monkeypatch.setattr(loop, "CALL_SECONDS", 1e-9)
    interrupted_everywhere(plan_problems(problems, in_memory / "stopped"), [5, 22, 30])
    assert arrays_of(in_memory / "stopped") == arrays_of(in_memory / "whole")
    together = Run(in_memory / "whole").losses
    for r, config in enumerate(configs):
        alone = obtain_run(plan_run(config, in_memory / f"{r}")).run
        np.testing.assert_allclose(together[:, r], alone.losses, rtol=1e-10)


@pytest.mark.parametrize("backend", ["compiled", "torch"])
def test_a_changed_run_is_what_torch_does(tmp_path, backend):
    """Step halved, another optimizer, a frozen layer: `torch.optim` on the same network."""
    changes = [LR, ADAM, {"at": 28, "freeze": ["hidden_weight"], "scale": {"output_weight": 2.0}}]
    case = settings_of({"changes": changes, "optimizer": MOMENTUM, "backend": backend})
    run = obtain_run(plan_run(load_config(case), tmp_path / "run")).run

    def change(i, made, w):
        if i == 12:
            made.param_groups[0]["lr"] = 0.05
        if i == 20:
            return torch.optim.Adam([*w.values()], lr=0.01)
        if i == 28:
            w["hidden_weight"].requires_grad_(False)
            w["output_weight"].data.mul_(2.0)
        return None

    begun = partial(torch.optim.SGD, lr=0.02, momentum=0.9)
    states = run.snapshot_iterations.tolist()
    for i, expected in enumerate(loop_of_torch(first_of(case), begun, 40, change), start=1):
        if i in states:
            assert_weights(run.state(states.index(i)), expected, rtol=1e-10)
    begins = "changes[1]: the memory of adam (mean, square) begins at 0 at iteration 20"
    assert run.info["messages"] == [begins]
    steps = np.diff(run.times)
    np.testing.assert_allclose(steps, [0.02] * 12 + [0.05] * 8 + [0.01] * 20)


def _zeros(name):
    return lambda optimizer, w: optimizer.state[w].update({name: torch.zeros_like(w)})


OF_TORCH = {
    "decay": ("Adam", {}, {"weight_decay": 0.1}, None),
    "betas": ("AdamW", {}, {"betas": [0.5, 0.9]}, None),
    "momentum of SGD": ("SGD", {}, {"momentum": 0.5}, None),
    "nesterov": ("SGD", {"momentum": 0.9}, {"nesterov": True}, None),
    "momentum of RMSprop": ("RMSprop", {}, {"momentum": 0.5}, _zeros("momentum_buffer")),
    "amsgrad": ("Adam", {}, {"amsgrad": True}, _zeros("max_exp_avg_sq")),
}


@pytest.mark.parametrize("case", OF_TORCH)
def test_settings_of_a_torch_optimizer_change_and_its_memory_stays(tmp_path, case):
    name, given, changed, added = OF_TORCH[case]
    optimizer = {"kind": "torch", "name": name, "lr": 0.01, "iterations": 40, **given}
    settings = settings_of({"optimizer": optimizer, "changes": [{"at": 20, "optimizer": changed}]})
    run = obtain_run(plan_run(load_config(settings), tmp_path / "run")).run

    def change(i, made, w):
        if i == 20:
            made.param_groups[0].update(changed)
            for tensor in w.values() if added else ():
                added(made, tensor)

    make = partial(getattr(torch.optim, name), lr=0.01, **given)
    *_, expected = loop_of_torch(first_of(settings), make, 40, change)
    assert_weights(run.state(-1), expected, rtol=1e-9)


def test_another_class_of_torch_takes_the_place_of_the_one_before(tmp_path):
    optimizer = {"kind": "torch", "name": "Adam", "lr": 0.01, "iterations": 40}
    another = {"at": 20, "optimizer": {"name": "SGD", "lr": 0.02}}
    settings = settings_of({"optimizer": optimizer, "changes": [another]})
    run = obtain_run(plan_run(load_config(settings), tmp_path / "run")).run

    def change(i, made, w):
        return torch.optim.SGD([*w.values()], lr=0.02) if i == 20 else None

    make = partial(torch.optim.Adam, lr=0.01)
    *_, expected = loop_of_torch(first_of(settings), make, 40, change)
    assert_weights(run.state(-1), expected, rtol=1e-9)


def test_weights_that_a_network_lacks_are_refused(tmp_path):
    change = {"at": 3, "freeze": ["hiden_weight"]}
    with pytest.raises(InputError, match=r"changes\[0\]: freeze: no weight .*'hidden_weight'\?"):
        plan_run(load_config(settings_of({"changes": [change]})), tmp_path)


PARENTS = ["kernel, then the engine", "kernel of single samples", "engine in a span", "torch"]
PARENTS += ["torch, no formula", "torch, batches", "engine, loss scaled", "flow", "centred"]


@pytest.mark.parametrize("case", PARENTS)
def test_the_beginning_of_a_changed_run_is_that_of_its_parent(in_memory, case):
    """The run without its last change keeps checkpoints: the bits are those from nothing."""
    settings = settings_of(CASES[case])
    *before, last = settings["changes"]
    record = {**settings["record"], "checkpoints": 7}
    parent = load_config({**settings, "changes": before or None, "record": record})
    of = obtain_run(plan_run(parent, in_memory / "changes-parent")).run.path
    plan = replace(plan_run(load_config(settings), in_memory / "changes-child"), parent=of)
    assert prospect(plan).action.startswith("train from iteration ")
    run = obtain_run(plan).run
    at = last["at"] // 7 * 7
    hashed = {"run": "changes-parent", "hash": Run(in_memory / "changes-parent").hash}
    assert run.info["parent"] == {**hashed, "iteration": at}
    fresh = obtain_run(plan, force=True).run
    assert "parent" not in fresh.info
    obtain_run(replace(plan, directory=in_memory / "changes-again"))
    assert arrays_of(in_memory / "changes-again") == arrays_of(in_memory / "changes-child")
    assert Run(in_memory / "changes-again").info["parent"]["iteration"] == at
    assert Run(in_memory / "changes-again").info["messages"] == fresh.info["messages"]


def test_a_branch_that_compiled_code_cannot_train_is_trained_by_torch(in_memory):
    obtain_run(plan_run(load_config(BASE), in_memory / "p"))
    change = {"optimizer": {"kind": "torch", "name": "SGD", "lr": 0.05}}
    branch = dyn.plan_train(str(in_memory / "p"), change, at=12)
    assert branch.choice.backend == "torch"
    same = dyn.plan_train({**BASE, "changes": [{"at": 12, "optimizer.lr": 0.05}]})
    run = obtain_run(branch).run
    np.testing.assert_allclose(run.losses, obtain_run(same).run.losses, rtol=1e-10)
    with pytest.raises(UsageError, match="at cannot change the seed"):
        dyn.plan_train(str(in_memory / "p"), change, at=12, seed=3)


def test_a_branch_of_an_interrupted_run_goes_on_from_there(in_memory, monkeypatch):
    config = load_config(settings_of({}))
    monkeypatch.setattr(loop, "CALL_SECONDS", 1e-9)
    with pytest.raises(Interrupted):
        obtain_run(plan_run(config, in_memory / "p"), progress=_interrupting(11))
    branch = dyn.plan_train(str(in_memory / "p"), {"optimizer.lr": 0.05}, at=12)
    branch = replace(branch, directory=in_memory / "b")
    run = obtain_run(branch).run
    assert run.info["parent"]["iteration"] == 11
    early = dyn.plan_train(str(in_memory / "p"), {"optimizer.lr": 0.05}, at=10)
    assert "parent" not in obtain_run(replace(early, directory=in_memory / "e")).run.info
    whole = load_config(settings_of({"changes": [LR]}))
    assert load_config(to_plain(branch.config), ["backend=auto", "device=auto"]) == whole
    assert arrays_of(in_memory / "b") == arrays_of(
        obtain_run(plan_run(whole, in_memory / "w")).run.path
    )


def test_a_branch_that_keeps_no_times_of_a_parent_that_does(in_memory):
    record = {**BASE["record"], "checkpoints": [8]}
    parent = load_config(settings_of({"record": record, "changes": [LR | {"at": 30}]}))
    of = obtain_run(plan_run(parent, in_memory / "p")).run
    assert of.times is not None
    child = plan_run(load_config(settings_of({"changes": [WEIGHTS]})), in_memory / "c")
    assert obtain_run(replace(child, parent=of.path)).run.info["parent"]["iteration"] == 8
    obtain_run(replace(child, directory=in_memory / "fresh"))
    assert arrays_of(in_memory / "c") == arrays_of(in_memory / "fresh")


def test_a_parent_with_other_data_or_damage_is_none(in_memory):
    settings = settings_of({"record": {"checkpoints": [8, 12]}})
    parent = obtain_run(plan_run(load_config(settings), in_memory / "changes-parent")).run.path
    child = {**settings, "changes": [LR]}
    assert kept_checkpoints(parent) == ["checkpoints/12.npz", "checkpoints/8.npz"]
    other = plan_run(load_config(child, ["dataset.y=[1.0,2.0,3.0,4.0]"]), in_memory / "o")
    assert parent_of(other.config, other.legs, parent) is None
    plan = plan_run(load_config(child), in_memory / "c")
    found = parent_of(plan.config, plan.legs, parent)
    assert found is not None
    assert found.checkpoint.iteration == 12
    damaged = parent / "checkpoints" / "12.npz"
    contents = bytearray(damaged.read_bytes())
    contents[200] ^= 1
    damaged.write_bytes(contents)
    assert [fault.file for fault in verify_run(parent)] == [damaged]
    found = parent_of(plan.config, plan.legs, parent)
    assert found is not None
    assert found.checkpoint.iteration == 8
    losses = parent / "losses.npy"
    contents = bytearray(losses.read_bytes())
    contents[130] ^= 1
    losses.write_bytes(contents)
    with pytest.raises(CorruptRunError, match="losses.npy is damaged"):
        obtain_run(replace(plan, parent=parent))
    assert not (plan.directory / "run.json").exists()  # no run was begun


def gan_config(interval):
    """Return the config of a small GAN whose weights are recorded at every `interval` states."""
    return {
        "name": "gan",
        "dataset": {"kind": "mixture", "n": 24},
        "architecture": {
            "kind": "gan",
            "noise_dim": 2,
            "generator_widths": [3],
            "discriminator_widths": [3],
        },
        "initialization": {"kind": "default_scaled"},
        "loss": {"kind": "logistic"},
        "optimizer": {"kind": "adam", "lr": 0.01, "batch_size": 4, "iterations": 12},
        "record": {"snapshots": {"kind": "every", "interval": interval}, "parameters": "all"},
    }


def test_players_change_on_the_way(in_memory):
    gan = gan_config(6)

    def trained(*changes):
        config = {**gan, "changes": [*changes]} if changes else gan
        return dyn.train(config, out=in_memory / str(len(list(in_memory.iterdir()))))

    plain = trained()
    same = trained({"at": 6, "optimizer.lr": 0.01})  # the memory of both players, and their draws
    frozen = trained({"at": 6, "freeze": ["generator_weight_1"]})
    for name, weights in plain.parameters.items():
        np.testing.assert_array_equal(same.parameters[name], weights)
        np.testing.assert_array_equal(frozen.parameters[name][:2], weights[:2])
    first = frozen.parameters["generator_weight_1"]
    np.testing.assert_array_equal(first[2], first[1])
    second = frozen.parameters["generator_weight_2"]
    assert (second[2] != second[1]).any()
    with pytest.raises(ConfigError, match=r"changes\[0\].optimizer.kind: must be adam"):
        trained({"at": 6, "optimizer": {"kind": "sgd", "lr": 0.01, "batch_size": 4}})


def test_readers_take_the_data_of_the_time(in_memory):
    other = {"at": 12, "dataset.y": Y[::-1].tolist()}
    case = settings_of({"architecture": RELU, "changes": [LR | other]})
    case["record"] = {**BASE["record"], "measures": ["train_loss"], "parameters": "all"}
    run = dyn.train(case, out=in_memory / "run")
    np.testing.assert_array_equal(run.dataset().y, Y)
    for i, iteration in enumerate(run.snapshot_iterations.tolist()):
        samples = run.dataset(iteration)
        outputs = run.network(i)(samples.x)
        loss = np.mean((outputs - samples.y) ** 2)
        assert run.measures["train_loss"][i] == pytest.approx(loss, rel=1e-9)
    assert View(run).no_dataset == "its data change on the way, at iteration 12"
    with pytest.raises(InputError, match="changes on the way, at iteration 12"):
        predictions(run)


UPDATES = [
    "sharpness",
    "directional_sharpness",
    "critical_lr",
    *({"kind": "update", "of": of} for of in ("norm", "cosine_last")),
]
WAYS = {
    "full batch": {},
    "one measure": {"record": {**BASE["record"], "measures": ["sharpness"]}},
    "batches": {"optimizer": {"kind": "sgd", "lr": 0.02, "batch_size": 3, "iterations": 40}},
    "torch": {"backend": "torch", "optimizer": {"kind": "adam", "lr": 0.02, "iterations": 40}},
    "flow": {"optimizer": FLOW, "record": {**BASE["record"], "measures": ["sharpness"]}},
}


@pytest.mark.parametrize(
    ("way", "at", "kept"),
    [
        pytest.param(way, at, kept, marks=() if way == "full batch" or usual else pytest.mark.long)
        for way in WAYS
        for at, kept, usual in ((16, [16], 0), (16, [9, 19], 0), (19, [16], 0), (19, [9, 19], 1))
    ],
)
def test_a_branch_has_the_arrays_of_training_from_nothing(in_memory, way, at, kept):
    """At states that the parent recorded (16) and others, from checkpoints at, before, after."""
    case = WAYS[way]
    record = {"measures": UPDATES, "loss_every": 5, **BASE["record"], **case.get("record", {})}
    if "record" not in case:
        record["measures"] = UPDATES
    settings = settings_of({**case, "record": record})
    parent = load_config({**settings, "record": {**record, "checkpoints": kept}})
    of = obtain_run(plan_run(parent, in_memory / "changes-parent")).run.path
    assert len(kept_checkpoints(of)) == len(kept)
    key = "optimizer.rtol" if way == "flow" else "optimizer.lr"
    child = load_config({**settings, "changes": [{"at": at, key: 0.01}]})
    plan = replace(plan_run(child, in_memory / "changes-child"), parent=of)
    run = obtain_run(plan).run
    begun = [state for state in kept if state <= at]
    assert run.info.get("parent", {}).get("iteration") == (max(begun) if begun else None)
    obtain_run(plan_run(child, in_memory / "fresh"), force=True)
    assert arrays_of(in_memory / "fresh") == arrays_of(in_memory / "changes-child")


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("cut", [13, 16])
def test_a_parent_that_was_interrupted_at_its_own_change(in_memory, monkeypatch, way, cut):
    """Its last state is recorded, which that of its branch is not."""
    settings = settings_of(WAYS[way])
    key = "optimizer.rtol" if way == "flow" else "optimizer.lr"
    first, second = ({"at": state, key: 0.01} for state in (cut, 22))
    monkeypatch.setattr(loop, "CALL_SECONDS", 1e-9)
    parent = plan_run(load_config({**settings, "changes": [first]}), in_memory / "changes-parent")
    with pytest.raises(Interrupted):
        obtain_run(parent, progress=_interrupting(cut))
    assert Run(in_memory / "changes-parent").iterations == cut
    child = load_config({**settings, "changes": [second]})
    plan = plan_run(child, in_memory / "changes-child")
    obtain_run(replace(plan, parent=parent.directory))
    obtain_run(plan_run(child, in_memory / "fresh"), force=True)
    assert arrays_of(in_memory / "fresh") == arrays_of(in_memory / "changes-child")

"""Settings of an optimizer that a change does not name stay; a change without effect is told."""

import numpy as np
import pytest

import dynamics_cli as dyn
from dynamics_cli.config import load_config
from dynamics_cli.config.changes import segments_of
from dynamics_cli.config.dump import to_plain
from dynamics_cli.config.errors import ConfigError
from dynamics_cli.errors import InputError, UsageError
from dynamics_cli.optimizers.torch_optim import READ_ONCE, arguments_of, class_names
from dynamics_cli.training.estimate import check_problem
from dynamics_cli.training.session import plan_run
from tests.cases import read

COMMON = read("""
lr: 0.003
batch_size: 3
epochs: 4
clip: 0.5
layer_lr: {hidden_weight: 0.5}
stop_below: 1e-9
""")
BASE = read("""
name: changed
dtype: float64
dataset: {kind: sparse_parity, n: 12, dim: 4, k: 2}
architecture: {kind: fully_connected, widths: [4], activation: tanh, bias: false}
initialization: {kind: unbalanced, scale: 0.7}
loss: {kind: mse}
record: {snapshots: {kind: every, interval: 1}}
""")
ADAM = {"kind": "torch", "name": "Adam", "betas": [0.8, 0.99], "weight_decay": 0.1}
CHANGES = {
    # before, the change, what stays beside COMMON and what it says
    **{
        f"Adam, then {name}": (ADAM, {"optimizer.name": name}, {"name": name})
        for name in class_names()
    },
    "Adam, then AdamW": (
        ADAM,
        {"optimizer": {"name": "AdamW", "lr": 0.1}},
        {"name": "AdamW", "lr": 0.1, "betas": [0.8, 0.99], "weight_decay": 0.1},
    ),
    "adam, then adamw": (
        {"kind": "adam", "beta1": 0.8},
        {"optimizer.kind": "adamw"},
        {"kind": "adamw", "beta1": 0.8, "weight_decay": 0.01},
    ),
    "adam, then rmsprop": (
        {"kind": "adam", "eps": 1e-6},
        {"optimizer": {"kind": "rmsprop", "lr": 0.1}},
        {"kind": "rmsprop", "lr": 0.1, "eps": 1e-6},
    ),
    "the class of torch, then the kind": (
        {"kind": "torch", "name": "SGD", "momentum": 0.9},
        {"optimizer": {"kind": "sgd"}},
        {"kind": "sgd", "momentum": 0.9},
    ),
    "less": ({"kind": "adam"}, {"optimizer": {"clip": None, "stop_below": None}}, {"clip": None}),
}


@pytest.mark.parametrize("case", CHANGES)
def test_settings_that_a_change_does_not_name_stay(case):
    before, change, after = CHANGES[case]
    config = load_config(
        {**BASE, "optimizer": {**COMMON, **before}, "changes": [{"at": 5, **change}]}
    )
    changed = segments_of(config)[1].config.optimizer
    expected = {**COMMON, **after}
    if "stop_below" in str(change):
        expected["stop_below"] = None
    for key, value in expected.items():
        assert getattr(changed, key) == value, key
    again = load_config(to_plain(config))
    assert segments_of(again)[1].config == segments_of(config)[1].config


@pytest.mark.parametrize("name", class_names())
def test_a_change_has_an_effect_or_is_told(tmp_path, name):
    """Of the step size, the decay, and what is known to be read once."""
    arguments = arguments_of(name)
    optimizer = {"kind": "torch", "name": name, "iterations": 12, "lr": 0.05}
    plain = dyn.train({**BASE, "optimizer": optimizer}, out=tmp_path / "plain")
    tried = {"weight_decay", "initial_accumulator_value"} & arguments.model_fields.keys()
    for key in {"lr", *tried}:
        other = 0.03
        config = {**BASE, "optimizer": optimizer, "changes": [{"at": 5, f"optimizer.{key}": other}]}
        if key in READ_ONCE.get(name, ()):
            told = rf"changes\[0\]\.optimizer\.{key}: {name} takes it for its first update alone"
            with pytest.raises(ConfigError, match=told):
                load_config(config)
            continue
        run = dyn.train(config, out=tmp_path / key)
        apart = [np.abs(run.state(-1)[w] - plain.state(-1)[w]).max() for w in plain.state(0)]
        assert max(apart) > 1e-12, key


def test_a_check_refuses_what_training_refuses(tmp_path):
    """Of a change that the backend cannot train."""
    optimizer = {"kind": "adam", "lr": 0.1, "iterations": 12}
    change = {"at": 5, "optimizer": {"kind": "torch", "name": "Adam"}}
    config = load_config(
        {**BASE, "optimizer": optimizer, "backend": "compiled", "changes": [change]}
    )
    for refuse in (check_problem, lambda config: plan_run(config, tmp_path)):
        with pytest.raises(UsageError, match="backend: compiled cannot train this problem"):
            refuse(config)
    config = load_config(
        {
            **BASE,
            "optimizer": {**optimizer, "kind": "muon"},
            "changes": [{"at": 5, "optimizer": {"kind": "torch", "name": "Muon"}}],
            "architecture": {"kind": "two_layer", "width": 3},
        }
    )
    for refuse in (check_problem, lambda config: plan_run(config, tmp_path)):
        with pytest.raises(InputError, match="does not take output_weight"):
            refuse(config)

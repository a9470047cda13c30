"""Changes on the way of a run: how they are read, refused, and named."""

import pytest

from dynamics_cli.config import ConfigError, load_config, run_hash, to_yaml
from dynamics_cli.config.changes import segments_of
from dynamics_cli.config.dump import to_plain
from dynamics_cli.errors import did_you_mean

BASE = {
    "name": "changes",
    "dataset": {"kind": "points", "x": [[1.0], [2.0]], "y": [1.0, -1.0]},
    "architecture": {"kind": "two_layer", "width": 3},
    "initialization": {"kind": "balanced", "scale": 0.1},
    "loss": {"kind": "mse"},
    "optimizer": {"kind": "sgd", "lr": 0.1, "iterations": 100, "layer_lr": {"output_weight": 0.5}},
}


def read(*changes, **settings):
    return load_config({**BASE, "changes": list(changes), **settings})


def name_of(config):
    return run_hash(config, device="cpu", backend="compiled")


def test_changes_follow_each_other():
    config = read(
        {"at": 10, "optimizer.lr": 0.2, "freeze": ["hidden_weight"]},
        {"at": 20, "optimizer": {"kind": "adam", "lr": 0.3}, "record.loss_every": 5},
        {"at": 30, "freeze": []},
    )
    segments = segments_of(config)
    optimizers = [segment.config.optimizer for segment in segments]
    assert [(o.kind, o.lr, o.layer_lr, o.iterations) for o in optimizers] == [  # type: ignore[attr-defined]
        ("sgd", 0.1, {"output_weight": 0.5}, 100),
        ("sgd", 0.2, {"output_weight": 0.5}, 100),
        ("adam", 0.3, {"output_weight": 0.5}, 100),
        ("adam", 0.3, {"output_weight": 0.5}, 100),
    ]
    frozen = ("hidden_weight",)
    assert [segment.frozen for segment in segments] == [(), frozen, frozen, ()]
    assert [segment.first for segment in segments_of(config)] == [0, 10, 20, 30]
    assert segments_of(config)[3].config.record.loss_every == 5


def test_a_change_names_the_run_by_what_it_says():
    plain = load_config(BASE)
    short = read({"at": 10, "optimizer.lr": 0.2})
    long = read({"at": 10, "optimizer": {"lr": 0.2, "replacement": False}})
    assert name_of(short) == name_of(long) == name_of(read({"at": 10, "optimizer": {"lr": 0.2}}))
    assert name_of(load_config(BASE, ["changes=null"])) == name_of(plain) != name_of(short)
    resolved = load_config(to_plain(short), device="cpu", backend="compiled")
    assert name_of(resolved) == name_of(short)
    assert name_of(read({"at": 11, "optimizer.lr": 0.2})) != name_of(short)


def test_changes_can_be_set_and_are_written_out(tmp_path):
    config = load_config(
        {**BASE, "changes": [{"at": 10, "optimizer.lr": 0.2}]},
        ["changes.0.at=12", "changes.0.optimizer.lr=0.4"],
    )
    assert (config.changes[0].at, config.changes[0].optimizer) == (12, {"lr": 0.4})
    file = tmp_path / "c.yaml"
    file.write_text(to_yaml(config))
    assert load_config(file) == config


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ("at: 100\n    optimizer.lr: 0.1", "5: changes[0].at: must be before the end of the run"),
        ("at: 0\n    optimizer.lr: 0.1", "5: changes[0].at: must be >= 1, not 0"),
        ("at: 5", "5: changes[0]: says no change"),
        ("at: 5\n    seed: 3", "6: changes[0].seed: unknown key; allowed are at"),
        ("at: 5\n    optimiser.lr: 3", "6: changes[0].optimiser: unknown key; allowed are at"),
        ("at: 5\n    optimizer.lrr: 3", "6: changes[0].optimizer.lrr: unknown key of kind 'sgd'"),
        ("at: 5\n    optimizer.lr: -1", "6: changes[0].optimizer.lr: must be > 0, not -1"),
        ("at: 5\n    loss: {kind: msee}", "6: changes[0].loss.kind: unknown kind 'msee'"),
        ("at: 5\n    optimizer.iterations: 7", "6: changes[0].optimizer.iterations: belongs to"),
        ("at: 5\n    record.measures: []", "6: changes[0].record.measures: belongs to"),
        (
            "at: 5\n    optimizer: {kind: gradient_flow}",
            "6: changes[0].optimizer.kind: gradient flow can neither begin nor end on the way",
        ),
        (
            "at: 5\n    optimizer: {kind: torch, name: rmsprop}",
            "6: changes[0].optimizer.name: torch.optim has no 'rmsprop'",
        ),
        (
            "at: 5\n    loss.reduction: sum\n  - at: 4\n    optimizer.lr: 0.1",
            "7: changes[1].at: must be after the change before it, 5, not 4",
        ),
    ],
)
def test_a_change_that_cannot_be_is_refused_in_its_line(tmp_path, change, told):
    (tmp_path / "base.yaml").write_text(to_yaml(BASE))
    file = tmp_path / "run.yaml"
    file.write_text(f"extends: base.yaml\nname: x\n# below\nchanges:\n  - {change}\n")
    with pytest.raises(ConfigError) as error:
        load_config(file)
    assert f"run.yaml:{told}" in str(error.value)


def test_the_letters_of_a_word_count_more_than_their_case():
    assert did_you_mean("rmsprop", ["Rprop", "RMSprop"]) == " (did you mean 'RMSprop'?)"


def test_data_of_a_change_stand_beside_the_config(tmp_path):
    (tmp_path / "a.csv").write_text("1,1\n2,-1\n")
    (tmp_path / "b.csv").write_text("1,1\n3,-1\n")
    base = {**BASE, "dataset": {"kind": "file", "path": "a.csv"}}
    base["changes"] = [{"at": 10, "dataset": {"path": "b.csv"}}]
    file = tmp_path / "run.yaml"
    file.write_text(to_yaml(base))
    config = load_config(file)
    assert config.changes[0].dataset == {"path": str(tmp_path / "b.csv")}
    before = name_of(config)
    (tmp_path / "b.csv").write_text("1,1\n4,-1\n")
    assert name_of(config) != before

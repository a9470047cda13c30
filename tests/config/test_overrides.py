"""`--set key=value`."""

import pytest

from dynamics_cli.config import load_config


@pytest.mark.parametrize(
    ("override", "section", "key", "value"),
    [
        ("optimizer.lr=1e-2", "optimizer", "lr", 0.01),
        ("optimizer.lr = 2", "optimizer", "lr", 2.0),
        ("dataset.x=[[1],[2]]", "dataset", "x", [[1.0], [2.0]]),
        ("dataset.append_bias=false", "dataset", "append_bias", False),
        ("loss.reduction=sum", "loss", "reduction", "sum"),
        ("optimizer.stop_below=", "optimizer", "stop_below", None),
        ("optimizer={kind: sgd, lr: 1, epochs: 3}", "optimizer", "epochs", 3),
        ("record.limit_gib=1", "record", "limit_gib", 1.0),
    ],
)
def test_values_are_yaml(override, section, key, value, base):
    assert getattr(getattr(load_config(base, [override]), section), key) == value


def test_setting_a_kind_keeps_the_keys_that_it_knows(base):
    base["optimizer"] |= {"loss_scaled": True, "stop_below": 0.1}
    optimizer = load_config(base, ["optimizer.kind=adam"]).optimizer
    assert optimizer.kind == "adam"
    assert (optimizer.lr, optimizer.iterations, optimizer.stop_below) == (1e-3, 20000, 0.1)


def test_the_order_of_a_kind_and_its_keys_does_not_matter(base):
    overrides = ["optimizer.batch_size=2", "optimizer.kind=sgd", "optimizer.replacement=true"]
    assert load_config(base, overrides) == load_config(base, overrides[::-1])
    assert load_config(base, overrides).optimizer.batch_size == 2


def test_kind_of_a_section_within_a_section(base):
    base["record"] = {"snapshots": {"kind": "geometric", "ratio": 2.0, "include": [5]}}
    snapshots = load_config(
        base, ["record.snapshots.kind=every", "record.snapshots.interval=10"]
    ).record.snapshots
    assert (snapshots.kind, snapshots.interval, snapshots.include) == ("every", 10, [5])


def test_kind_within_a_kind_drops_the_keys_that_it_does_not_know(base):
    teacher = {"kind": "two_layer", "width": 3, "activation": "tanh"}
    base["dataset"] = {"kind": "teacher", "n": 4, "dim": 2, "architecture": teacher}
    overrides = ["dataset.architecture.widths=[5]", "dataset.architecture.kind=fully_connected"]
    architecture = load_config(base, overrides).dataset.architecture
    assert architecture.widths == [5]
    assert architecture.activation.kind == "tanh"


@pytest.mark.parametrize(
    ("override", "message"),
    [
        ("optimizer.lrr=1", "--set: optimizer.lrr: unknown key of kind 'gd'; allowed are "),
        ("optimizer.lr", "--set: 'optimizer.lr' must have the form section.key=value"),
        ("=3", "--set: '=3' must have the form section.key=value"),
        ("optimizer..lr=3", "--set: 'optimizer..lr=3' must have the form section.key=value"),
        (
            "architecture.width.x=3",
            "--set: architecture.width.x: architecture.width is not a section with keys",
        ),
        ("dataset.x.7=3", "--set: dataset.x.7: dataset.x is not a section with keys"),
        ("loss={kind: mse, kind: mse}", "--set: loss.kind: duplicate key (first on line 1)"),
        ("dataset.x=[[1]", "--set: dataset.x: not valid YAML: while parsing a flow sequence"),
        ("dataset.x=[[1],[2],[3]]", "<config>: dataset.y: has 2 labels, but x has 3 samples"),
        ("dataset.y=[1]", "--set: dataset.y: has 1 label, but x has 2 samples"),
    ],
)
def test_refused(override, message, base, problems):
    (told,) = problems(base, override)
    assert told.startswith(message)

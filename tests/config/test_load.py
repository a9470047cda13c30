"""What a bad config is answered with, whole messages; and what a good one becomes."""

import re
from pathlib import Path

import numpy as np
import pytest

from dynamics_cli.config import load_config
from dynamics_cli.config.describe import explain, list_kinds
from dynamics_cli.config.text import listing
from dynamics_cli.kinds.registry import general_kinds


def test_defaults_are_those_of_the_design(write):
    config = load_config(write())
    assert (config.seed, config.device, config.backend, config.dtype) == (
        0,
        "auto",
        "auto",
        "float32",
    )
    assert (config.record.snapshots.kind, config.loss.reduction) == ("geometric", "mean")
    assert config.optimizer.stop_below is None
    assert (config.initialization.scale, config.optimizer.lr) == (1e-6, 1e-3)


BAD_LINES = [  # what stands in place of the section that it begins with; line, key and message
    (
        "optimizer: {kind: gd, lrr: 1, lr: 1, iterations: 2}",
        (
            "6: optimizer.lrr: unknown key of kind 'gd'; allowed are kind, stop_below, lr,"
            " layer_lr, schedule, clip, clip_by, average, momentum, nesterov, weight_decay,"
            " iterations, loss_scaled (did you mean 'lr'?)"
        ),
    ),
    (
        "loss: {kind: mse}\noptimiser: {}",
        (
            "6: optimiser: unknown key; allowed are name, seed, device, backend, dtype, dataset,"
            " architecture, initialization, loss, optimizer, record, changes, pictures, sweep"
            " (did you mean 'optimizer'?)"
        ),
    ),
    (
        "loss: {kind: mse}\nlr: 0.1",
        (
            "6: lr: unknown key; allowed are name, seed, device, backend, dtype, dataset,"
            " architecture, initialization, loss, optimizer, record, changes, pictures, sweep"
            " (did you mean optimizer.lr?)"
        ),
    ),
    (
        "architecture: {kind: two_layer, width: 3, activation: swish}",
        (
            "3: architecture.activation: unknown kind 'swish'; allowed are"
            f" {listing([*general_kinds('activation')])} (did you mean 'silu'?);"
            " `dyn --with PATH`, or `dyn.use(PATH)` in Python, loads others"
        ),
    ),
    (
        "loss: {kind: msee}",
        (
            f"5: loss.kind: unknown kind 'msee'; allowed are {listing([*general_kinds('loss')])} "
            "(did you mean 'mse'?); `dyn --with PATH`, or `dyn.use(PATH)` in Python, loads others"
        ),
    ),
    (
        "architecture: {kind: 2, width: 3}",
        (
            "3: architecture.kind: unknown kind 2; allowed are"
            f" {listing([*general_kinds('architecture')])}; `dyn --with PATH`, or `dyn.use(PATH)`"
            " in Python, loads others"
        ),
    ),
    (
        "architecture: {width: 3}",
        (
            "3: architecture.kind: is missing; allowed are"
            f" {listing([*general_kinds('architecture')])}"
        ),
    ),
    ("optimizer:\n  kind: gd\n  lr: 0.1", "6: optimizer.iterations: is missing"),
    ("# no loss", "1: loss: is missing"),
    ("loss:", "5: loss: must be a section (a mapping), not empty (null)"),
    ("loss: mse", "5: loss: must be a section (a mapping), not one word (did you mean loss.kind?)"),
    (
        "architecture: {kind: two_layer, width: sixty}",
        "3: architecture.width: must be an integer, not the text 'sixty'",
    ),
    (
        "optimizer: {kind: gd, lr: '0.1', iterations: 2}",
        "6: optimizer.lr: must be a number, not the text '0.1'",
    ),
    (
        "optimizer: {kind: gd, lr: true, iterations: 2}",
        "6: optimizer.lr: must be a number, not true",
    ),
    ("name: a\nseed: true", "2: seed: must be an integer, not true"),
    (
        "dataset: {kind: points, x: [[1]], y: [1], append_bias: 1}",
        "2: dataset.append_bias: must be true or false, not 1",
    ),
    (
        "dataset: {kind: points, x: [[1]], y: [1], append_bias: yes}",
        "2: dataset.append_bias: must be true or false, not the text 'yes'",
    ),
    ("name: 2022", "1: name: must be a text, not 2022"),
    ("name: a/b", "1: name: must match pattern '^[A-Za-z0-9][A-Za-z0-9._-]*$', not the text 'a/b'"),
    (
        "optimizer:\n  kind: gd\n  lr: -1e-3\n  iterations: 2",
        "8: optimizer.lr: must be > 0, not -0.001",
    ),
    ("optimizer: {kind: gd, lr: 0, iterations: 2}", "6: optimizer.lr: must be > 0, not 0"),
    (
        "optimizer: {kind: gd, lr: .inf, iterations: 2}",
        "6: optimizer.lr: must be a finite number, not inf",
    ),
    (
        "optimizer: {kind: gd, lr: 1e999, iterations: 2}",
        "6: optimizer.lr: must be a finite number, not inf",
    ),
    ("architecture: {kind: two_layer, width: 0}", "3: architecture.width: must be >= 1, not 0"),
    (
        "architecture: {kind: two_layer, width: 1e300}",
        "3: architecture.width: must be an integer, not 1e+300",
    ),
    (
        f"architecture: {{kind: two_layer, width: {10**40}}}",
        "3: architecture.width: must be < 9223372036854775808, not an integer of many digits",
    ),
    ("optimizer: {kind: gd, lr: 1, iterations: 0}", "6: optimizer.iterations: must be >= 1, not 0"),
    (
        "optimizer: {kind: gd, lr: 1, iterations: 1e3}",
        "6: optimizer.iterations: must be an integer, not 1000.0",
    ),
    (
        "name: a\ndevice: cudaa",
        "2: device: must be 'auto', 'cpu' or 'cuda', not the text 'cudaa' (did you mean 'cuda'?)",
    ),
    (
        "name: a\nrecord: {parameters: some}",
        "2: record.parameters: must be 'all' or 'none' or a list, not the text 'some'",
    ),
    ("name: a\nrecord: {parameters: [a, 1]}", "2: record.parameters[1]: must be a text, not 1"),
    (
        "architecture: {kind: two_layer, width: 2, train: []}",
        "3: architecture.train: must have at least 1 item, not an empty list",
    ),
    ("loss:\n  kind: mse\n  kind: hinge", "7: loss.kind: duplicate key (first on line 6)"),
    ("loss: {kind: mse}\nloss: {kind: mse}", "6: loss: duplicate key (first on line 5)"),
    (
        "loss: !!python/object/apply:os.system ['touch pwned']",
        (
            "5: loss: the YAML tag '!!python/object/apply:os.system' is not allowed: a config holds"
            " only plain values"
        ),
    ),
    (
        "architecture: {kind: two_layer, width: !!python/name:os.system }",
        (
            "3: architecture.width: the YAML tag '!!python/name:os.system' is not allowed: a config"
            " holds only plain values"
        ),
    ),
    (
        "dataset:\n  kind: points\n  x: [[1],\n      [.nan]]\n  y: [1, 2]",
        "5: dataset.x[1][0]: must be a finite number, not nan",
    ),
    (
        "dataset:\n  kind: points\n  x: [[1], [2]]\n  y: [1]",
        "5: dataset.y: has 1 label, but x has 2 samples; there must be one label per sample",
    ),
    ("dataset: {kind: points, x: [1], y: [1]}", "2: dataset.x[0]: must be a list, not 1"),
    (
        "dataset: {kind: file, path: d.csv, test_fraction: 1}",
        "2: dataset.test_fraction: must be < 1, not 1",
    ),
    ("dataset:\n  kind: file\n  path: none.csv", "4: dataset.path: there is no file HERE/none.csv"),
    (
        "initialization: {kind: file, path: none.npz}",
        "4: initialization.path: there is no file HERE/none.npz",
    ),
]


@pytest.mark.parametrize(("line", "told"), BAD_LINES)
def test_one_bad_line_gives_one_message(line, told, write, problems, here):
    (here / "d.csv").write_text("1,1\n")
    section = line.partition(":")[0].removeprefix("# no ")
    assert [text.replace(str(here), "HERE") for text in problems(write(**{section: line}))] == [
        f"run.yaml:{told}"
    ]
    assert not (here / "pwned").exists()


def test_all_problems_are_told_at_once_in_the_order_of_lines(write, problems):
    path = write(
        dataset="dataset: {kind: points, x: [[1], [2, 3]], y: [1]}",
        architecture="architecture: {kind: two_layer, width: 0}",
        loss="loss: {kind: hinge, kind: mse}",
        optimizer="optimizer: {kind: gd, lr: -1}",
    )
    assert problems(path, "seed=-1") == [
        "run.yaml:2: dataset.x[1]: has 2 coordinates, the first 1; all need the same",
        (
            "run.yaml:2: dataset.y: has 1 label, but x has 2 samples; there must be one label per"
            " sample"
        ),
        "run.yaml:3: architecture.width: must be >= 1, not 0",
        "run.yaml:5: loss.kind: duplicate key (first on line 5)",
        "run.yaml:6: optimizer.lr: must be > 0, not -1",
        "run.yaml:6: optimizer.iterations: is missing",
        "--set: seed: must be >= 0, not -1",
    ]


def test_a_mapping_reads_like_a_file(base, write, problems):
    assert load_config(base) == load_config(write())
    base["optimizer"]["lr"] = -1
    assert problems(base) == ["<config>: optimizer.lr: must be > 0, not -1"]


def test_the_mapping_given_is_not_changed(base):
    before = repr(base)
    load_config(base, ["optimizer.kind=adam", "dataset.x=[[1],[2]]"], seed=4)
    assert repr(base) == before


def test_arrays_tuples_and_paths_are_taken(base, here):
    plain = load_config(base)
    base["dataset"] |= {"x": np.array([[-0.5], [2.0]]), "y": (-1, np.float64(1))}
    assert load_config(base) == plain
    (here / "w.npz").touch()
    base["initialization"] = {"kind": "file", "path": Path("w.npz")}
    assert load_config(base).initialization.path == str(here / "w.npz")


def test_a_mapping_with_other_things_in_it(base, problems):
    base["loss"] = object()
    base["optimizer"][3] = 4
    loss, optimizer = problems(base)
    assert loss == "<config>: loss: must be a section (a mapping), not a object"
    assert optimizer.startswith("<config>: optimizer.3: unknown key of kind 'gd'; allowed are kind")


def test_settings_replace_top_level_keys(write, problems):
    config = load_config(write(), ["seed=1"], seed=7, device="cpu", dtype=None)
    assert (config.seed, config.device, config.dtype) == (7, "cpu", "float32")
    assert problems(write(), seed=-3, sed=1) == [
        "<settings>: seed: must be >= 0, not -3",
        (
            "<settings>: sed: unknown key; allowed are name, seed, device, backend, dtype, dataset,"
            " architecture, initialization, loss, optimizer, record, changes, pictures, sweep"
            " (did you mean 'seed'?)"
        ),
    ]


def test_paths_are_relative_to_the_file_that_names_them(write, here):
    path = write("deep/run.yaml", dataset="dataset: {kind: file, path: ../d.csv}")
    for name in ("d.csv", "t.csv"):
        (here / name).write_text("1,1\n")
    assert load_config(path).dataset.path == str(here / "d.csv")
    assert load_config(path, ["dataset.path=t.csv"]).dataset.path == str(here / "t.csv")


def test_snapshots_without_a_kind_are_geometric(write, problems):
    assert load_config(write(), ["record.snapshots.ratio=1.5"]).record.snapshots.ratio == 1.5
    assert problems(write(), "record.snapshots.interval=3") == [
        "--set: record.snapshots.interval: unknown key; allowed are kind, include, ratio"
    ]


def test_kinds_of_one_paper_are_in_no_general_list(base, problems):
    (told,) = problems(base | {"dataset": {"kind": "nosuch"}})
    allowed = told.partition("allowed are ")[2].partition(";")[0]
    assert allowed.count("'") == 20
    assert re.search(r" and \d+ more$", allowed)
    listed = {(row["section"], row["kind"]) for row in list_kinds()}
    assert ("dataset", "points") in listed
    assert not any(kind.startswith("doshi2023") for _, kind in listed)
    assert "doshi2023" not in explain("dataset") + told
    assert "doshi2023_pairs" in explain("doshi2023_pairs")

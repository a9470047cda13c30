"""What a bad config is answered with, whole messages; and what a good one becomes."""

from __future__ import annotations

import copy
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dynamics_cli.config import ConfigError, Problem, RunConfig, load_config
from dynamics_cli.config.text import SECTIONS

Write = Callable[..., Path]
Problems = Callable[..., list[str]]


def test_defaults_are_those_of_the_design(write: Write) -> None:
    config = load_config(write())
    assert (config.seed, config.device, config.backend, config.dtype) == (0, "auto", "auto", "float32")
    assert (config.record.snapshots.kind, config.loss.reduction) == ("geometric", "mean")
    assert config.optimizer.stop_below is None
    assert (config.initialization.scale, config.optimizer.lr) == (1e-6, 1e-3)


BAD_LINES = {
    "unknown key": (
        {"optimizer": "optimizer: {kind: gd, lrr: 1, lr: 1, iterations: 2}"},
        "run.yaml:6: optimizer.lrr: unknown key of kind 'gd'; allowed are kind, stop_below, lr, layer_lr, schedule, "
        "momentum, nesterov, weight_decay, label_noise, iterations, loss_scaled (did you mean 'lr'?)",
    ),
    "unknown section": (
        {"loss": "loss: {kind: mse}\noptimiser: {}"},
        "run.yaml:6: optimiser: unknown key; allowed are name, seed, device, backend, dtype, dataset, architecture, "
        "initialization, loss, optimizer, record, sweep (did you mean 'optimizer'?)",
    ),
    "unknown kind": (
        {"loss": "loss: {kind: msee}"},
        "run.yaml:5: loss.kind: unknown kind 'msee'; allowed are 'cross_entropy', 'exponential', "
        "'half_mse', 'hinge', 'logistic', 'mse' (did you mean 'mse'?); `dyn --with FILE` loads others",
    ),
    "kind of a wrong type": (
        {"architecture": "architecture: {kind: 2, width: 3}"},
        "run.yaml:3: architecture.kind: must be 'convolutional', 'diagonal_linear', 'fully_connected', 'gan', "
        "'matrix_product', 'residual', 'transformer', 'two_layer' or 'vgg16', not 2",
    ),
    "kind missing": (
        {"architecture": "architecture: {width: 3}"},
        "run.yaml:3: architecture.kind: is missing; allowed are 'convolutional', 'diagonal_linear', "
        "'fully_connected', 'gan', 'matrix_product', 'residual', 'transformer', 'two_layer', 'vgg16'",
    ),
    "key missing": (
        {"optimizer": "optimizer:\n  kind: gd\n  lr: 0.1"},
        "run.yaml:6: optimizer.iterations: is missing; it must be an integer >= 1",
    ),
    "section missing": ({"loss": "# no loss"}, "run.yaml:1: loss: is missing; it must be a section (a mapping)"),
    "section empty": ({"loss": "loss:"}, "run.yaml:5: loss: must be a section (a mapping), not empty (null)"),
    "section a word": (
        {"loss": "loss: mse"},
        "run.yaml:5: loss: must be a section (a mapping), not one word (did you mean loss.kind?)",
    ),
    "wrong type": (
        {"architecture": "architecture: {kind: two_layer, width: sixty}"},
        "run.yaml:3: architecture.width: must be an integer >= 1, not the text 'sixty'",
    ),
    "number as text": (
        {"optimizer": "optimizer: {kind: gd, lr: '0.1', iterations: 2}"},
        "run.yaml:6: optimizer.lr: must be a number > 0, not the text '0.1' (without quotes)",
    ),
    "boolean as number": (
        {"optimizer": "optimizer: {kind: gd, lr: true, iterations: 2}"},
        "run.yaml:6: optimizer.lr: must be a number > 0, not true",
    ),
    "boolean as integer": ({"name": "name: a\nseed: true"}, "run.yaml:2: seed: must be an integer >= 0, not true"),
    "number as boolean": (
        {"dataset": "dataset: {kind: points, x: [[1]], y: [1], append_bias: 1}"},
        "run.yaml:2: dataset.append_bias: must be true or false, not 1",
    ),
    "yes as boolean": (
        {"dataset": "dataset: {kind: points, x: [[1]], y: [1], append_bias: yes}"},
        "run.yaml:2: dataset.append_bias: must be true or false, not the text 'yes' (write true)",
    ),
    "number as name": (
        {"name": "name: 2022"},
        "run.yaml:1: name: must be a text of 1 to 80 characters that matches ^[A-Za-z0-9][A-Za-z0-9._-]*$, not 2022"
        " (put it in quotes)",
    ),
    "name with a slash": (
        {"name": "name: a/b"},
        "run.yaml:1: name: must be a text of 1 to 80 characters that matches ^[A-Za-z0-9][A-Za-z0-9._-]*$, "
        "not the text 'a/b'",
    ),
    "negative step": (
        {"optimizer": "optimizer:\n  kind: gd\n  lr: -1e-3\n  iterations: 2"},
        "run.yaml:8: optimizer.lr: must be a number > 0, not -0.001",
    ),
    "step zero": (
        {"optimizer": "optimizer: {kind: gd, lr: 0, iterations: 2}"},
        "run.yaml:6: optimizer.lr: must be a number > 0, not 0",
    ),
    "infinite step": (
        {"optimizer": "optimizer: {kind: gd, lr: .inf, iterations: 2}"},
        "run.yaml:6: optimizer.lr: must be a finite number > 0, not inf",
    ),
    "overflowing step": (
        {"optimizer": "optimizer: {kind: gd, lr: 1e999, iterations: 2}"},
        "run.yaml:6: optimizer.lr: must be a finite number > 0, not inf",
    ),
    "width 0": (
        {"architecture": "architecture: {kind: two_layer, width: 0}"},
        "run.yaml:3: architecture.width: must be an integer >= 1, not 0",
    ),
    "width beyond 64 bits": (
        {"architecture": f"architecture: {{kind: two_layer, width: {10**40}}}"},
        "run.yaml:3: architecture.width: must be an integer >= 1 and < 2^63, not an integer of more than 30 digits",
    ),
    "iterations 0": (
        {"optimizer": "optimizer: {kind: gd, lr: 1, iterations: 0}"},
        "run.yaml:6: optimizer.iterations: must be an integer >= 1, not 0",
    ),
    "iterations 1e3": (
        {"optimizer": "optimizer: {kind: gd, lr: 1, iterations: 1e3}"},
        "run.yaml:6: optimizer.iterations: must be an integer >= 1, not 1000.0 (write 1000)",
    ),
    "misspelt word": (
        {"name": "name: a\ndevice: cudaa"},
        "run.yaml:2: device: must be 'auto', 'cpu' or 'cuda', not the text 'cudaa' (did you mean 'cuda'?)",
    ),
    "recorded parameters": (
        {"name": "name: a\nrecord: {parameters: some}"},
        "run.yaml:2: record.parameters: must be 'all', 'none' or a list of texts, not the text 'some'",
    ),
    "recorded parameters, a list": (
        {"name": "name: a\nrecord: {parameters: [a, 1]}"},
        "run.yaml:2: record.parameters[1]: must be a text, not 1 (put it in quotes)",
    ),
    "an empty list": (
        {"architecture": "architecture: {kind: two_layer, width: 2, train: []}"},
        "run.yaml:3: architecture.train: must be a non-empty list of texts, not an empty list",
    ),
    "duplicate key": (
        {"loss": "loss:\n  kind: mse\n  kind: hinge"},
        "run.yaml:7: loss.kind: duplicate key (first on line 6)",
    ),
    "duplicate section": (
        {"loss": "loss: {kind: mse}\nloss: {kind: mse}"},
        "run.yaml:6: loss: duplicate key (first on line 5)",
    ),
    "python object": (
        {"loss": "loss: !!python/object/apply:os.system ['touch pwned']"},
        "run.yaml:5: loss: the YAML tag '!!python/object/apply:os.system' is not allowed: "
        "a config holds only plain values",
    ),
    "python name": (
        {"architecture": "architecture: {kind: two_layer, width: !!python/name:os.system }"},
        "run.yaml:3: architecture.width: the YAML tag '!!python/name:os.system' is not allowed: "
        "a config holds only plain values",
    ),
    "NaN in data": (
        {"dataset": "dataset:\n  kind: points\n  x: [[1],\n      [.nan]]\n  y: [1, 2]"},
        "run.yaml:5: dataset.x[1][0]: must be a finite number, not nan",
    ),
    "X and y of different lengths": (
        {"dataset": "dataset:\n  kind: points\n  x: [[1], [2]]\n  y: [1]"},
        "run.yaml:5: dataset.y: has 1 label, but x has 2 samples; there must be one label per sample",
    ),
    "x flat": (
        {"dataset": "dataset: {kind: points, x: [1], y: [1]}"},
        "run.yaml:2: dataset.x[0]: must be a non-empty list of numbers, not 1",
    ),
    "fraction 1": (
        {"dataset": "dataset: {kind: file, path: d.csv, test_fraction: 1}"},
        "run.yaml:2: dataset.test_fraction: must be a number > 0 and < 1, not 1",
    ),
    "missing data file": (
        {"dataset": "dataset:\n  kind: file\n  path: none.csv"},
        "run.yaml:4: dataset.path: there is no file HERE/none.csv",
    ),
    "missing weights": (
        {"initialization": "initialization: {kind: file, path: none.npz}"},
        "run.yaml:4: initialization.path: there is no file HERE/none.npz",
    ),
}


@pytest.mark.parametrize(("lines", "message"), BAD_LINES.values(), ids=BAD_LINES.keys())
def test_one_bad_line_gives_one_message(
    lines: dict[str, str], message: str, write: Write, problems: Problems, here: Path
) -> None:
    (here / "d.csv").write_text("1,1\n")
    assert [line.replace(str(here), "HERE") for line in problems(write(**lines))] == [message]
    assert not (here / "pwned").exists()


def test_all_problems_are_told_at_once_in_the_order_of_lines(write: Write, problems: Problems) -> None:
    path = write(
        dataset="dataset: {kind: points, x: [[1], [2, 3]], y: [1]}",
        architecture="architecture: {kind: two_layer, width: 0}",
        loss="loss: {kind: hinge, kind: mse}",
        optimizer="optimizer: {kind: gd, lr: -1}",
    )
    assert problems(path, "seed=-1") == [
        "run.yaml:2: dataset.x[1]: has 2 coordinates, the first 1; all need the same",
        "run.yaml:2: dataset.y: has 1 label, but x has 2 samples; there must be one label per sample",
        "run.yaml:3: architecture.width: must be an integer >= 1, not 0",
        "run.yaml:5: loss.kind: duplicate key (first on line 5)",
        "run.yaml:6: optimizer.lr: must be a number > 0, not -1",
        "run.yaml:6: optimizer.iterations: is missing; it must be an integer >= 1",
        "--set: seed: must be an integer >= 0, not -1",
    ]


def test_many_bad_values_of_one_list_are_counted(base: dict[str, Any], problems: Problems) -> None:
    base["dataset"] |= {"x": [[float("nan")]] * 12, "y": [1.0] * 12}
    assert problems(base) == [
        *(f"<config>: dataset.x[{row}][0]: must be a finite number, not nan" for row in range(5)),
        "<config>: dataset.x: and 7 more values like these",
    ]


def test_a_mapping_reads_like_a_file(base: dict[str, Any], write: Write, problems: Problems) -> None:
    assert load_config(base) == load_config(write())
    base["optimizer"]["lr"] = -1
    assert problems(base) == ["<config>: optimizer.lr: must be a number > 0, not -1"]


def test_the_mapping_given_is_not_changed(base: dict[str, Any]) -> None:
    before = repr(base)
    load_config(base, ["optimizer.kind=adam", "dataset.x=[[1],[2]]"], seed=4)
    assert repr(base) == before


def test_arrays_tuples_and_paths_are_taken(base: dict[str, Any], here: Path) -> None:
    plain = load_config(base)
    base["dataset"] |= {"x": np.array([[-0.5], [2.0]]), "y": (-1, np.float64(1))}
    assert load_config(base) == plain
    (here / "w.npz").touch()
    base["initialization"] = {"kind": "file", "path": Path("w.npz")}
    assert load_config(base).initialization.path == str(here / "w.npz")


def test_a_mapping_with_other_things_in_it(base: dict[str, Any], problems: Problems) -> None:
    base["loss"] = object()
    base["optimizer"][3] = 4
    assert problems(base) == [
        "<config>: loss: a object is not allowed: a config holds only plain values",
        "<config>: optimizer: a key must be a text, not 3",
    ]
    base["loss"] = base
    assert any(line.endswith("is nested more than 20 levels deep") for line in problems(base))


def test_mappings_need_not_be_dictionaries(base: dict[str, Any]) -> None:
    class Lookup(Mapping[str, object]):
        def __getitem__(self, key: str) -> object:
            return base[key]

        def __iter__(self) -> Iterator[str]:
            return iter(base)

        def __len__(self) -> int:
            return len(base)

    assert load_config(Lookup()) == load_config(base)


def test_settings_replace_top_level_keys(write: Write, problems: Problems) -> None:
    config = load_config(write(), ["seed=1"], seed=7, device="cpu", dtype=None)
    assert (config.seed, config.device, config.dtype) == (7, "cpu", "float32")
    assert problems(write(), seed=-3, sed=1) == [
        "<settings>: seed: must be an integer >= 0, not -3",
        "<settings>: sed: unknown key; allowed are name, seed, device, backend, dtype, dataset, architecture, "
        "initialization, loss, optimizer, record, sweep (did you mean 'seed'?)",
    ]


def test_paths_are_relative_to_the_file_that_names_them(write: Write, here: Path) -> None:
    path = write("deep/run.yaml", dataset="dataset: {kind: file, path: d.csv, test_path: ../t.csv}")
    (here / "deep/d.csv").write_text("1,1\n")
    (here / "t.csv").write_text("1,1\n")
    config = load_config(path)
    assert (config.dataset.path, config.dataset.test_path) == (str(here / "deep/d.csv"), str(here / "t.csv"))
    assert load_config(path, ["dataset.path=t.csv"]).dataset.path == str(here / "t.csv")


def test_a_directory_is_no_data_file(write: Write, problems: Problems, here: Path) -> None:
    (here / "d.csv").mkdir()
    path = write(dataset="dataset: {kind: file, path: d.csv}")
    assert problems(path) == [f"run.yaml:2: dataset.path: {here}/d.csv is a directory, not a file"]
    assert problems(path, check_files_exist=False) == []


def test_snapshots_without_a_kind_are_geometric(write: Write, problems: Problems) -> None:
    assert load_config(write(), ["record.snapshots.ratio=1.5"]).record.snapshots.ratio == 1.5
    assert problems(write(), "record.snapshots.interval=3") == [
        "--set: record.snapshots.interval: unknown key; allowed are kind, include, ratio"
    ]


def test_text_files_say_which_sections_are_needed() -> None:
    needed = [name for name, field in RunConfig.model_fields.items() if field.is_required()]
    assert SECTIONS.replace(" and", ",").split(", ") == needed


def test_importing_configs_is_light() -> None:
    code = (
        "import sys; from dynamics_cli.config import load_config; "
        "print([m for m in ('torch', 'matplotlib', 'scipy', 'numba', 'PIL') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


values = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=3) | st.just([]) | st.just({})
anything = values | st.lists(values, max_size=2) | st.dictionaries(st.sampled_from(["kind", "x"]), values, max_size=2)
KEYS = [
    *(f"{section}" for section in RunConfig.model_fields),
    *("dataset.kind", "dataset.x", "dataset.y", "dataset.x_test", "architecture.width", "architecture.slope"),
    *("initialization.kind", "initialization.scale", "loss.kind", "optimizer.kind", "optimizer.lr"),
    *("record.snapshots", "record.snapshots.kind", "record.parameters", "record.measures", "other", "loss.other"),
]


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.dictionaries(st.sampled_from(KEYS), anything, min_size=1, max_size=3))
def test_anything_is_taken_or_answered(base: dict[str, Any], changes: dict[str, Any]) -> None:
    data = copy.deepcopy(base)
    for key, value in changes.items():
        *above, last = key.split(".")
        section = data
        for part in above:
            section = section.setdefault(part, {})
            if not isinstance(section, dict):
                break
        else:
            section[last] = value
    problems: list[Problem] = []
    try:
        load_config(data, check_files_exist=False)
    except ConfigError as error:
        problems = error.problems
    well = not problems and RunConfig.model_validate(data)
    assert well or all(problem.file == "<config>" and problem.key and problem.message for problem in problems)

"""A resolved config reads back as itself."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from dynamics_cli.config import ConfigError, Mistake, RunConfig, json_schema, load_config, run_hash, to_yaml
from dynamics_cli.config.nodes import read_text
from tests.fuzz.strategies import grown

from .conftest import BASE


@st.composite
def changed(draw: st.DrawFn) -> dict[str, Any]:
    """Draw a config that differs from the usual one in some sections, mostly valid."""
    names = draw(st.lists(st.sampled_from(list(RunConfig.model_fields)), max_size=2))
    sections = json_schema()["$defs"]["RunConfig"]["properties"]
    return {**copy.deepcopy(BASE), **{name: draw(grown(sections[name], wild=draw(st.booleans()))) for name in names}}


@given(changed() | grown().filter(lambda data: isinstance(data, dict)))
def test_a_config_is_answered_or_reads_back_as_itself(data: dict[str, Any]) -> None:
    told: list[Mistake] = []
    try:
        config = load_config(data, check_files_exist=False)
    except ConfigError as error:
        told = error.problems
    assert all(problem.file == "<config>" and problem.message for problem in told)
    if told:
        return
    text = to_yaml(config)
    assert load_config(yaml.safe_load(text), check_files_exist=False) == config
    assert load_config(read_text(text, "config.yaml", Path()).data, check_files_exist=False) == config
    assert to_yaml(load_config(yaml.safe_load(text), check_files_exist=False)) == text


def test_a_dumped_config_is_the_same_run(base: dict[str, Any], here: Path) -> None:
    (here / "d.csv").write_text("1,2\n")
    base["dataset"] = {"kind": "file", "path": "d.csv"}
    config = load_config(base)
    (here / "elsewhere").mkdir()
    (here / "elsewhere/config.yaml").write_text(to_yaml(config), encoding="utf-8")
    again = load_config("elsewhere/config.yaml")
    assert again == config
    assert run_hash(again, device="cpu", backend="torch") == run_hash(config, device="cpu", backend="torch")


@pytest.mark.parametrize("name", ["1e5", "0x10", "010", "yes", "null", "1.5", "2022-01-31", "1_000", "0o7", "true"])
def test_names_that_look_like_something_else(name: str, base: dict[str, Any], here: Path) -> None:
    config = load_config(base | {"name": name})
    (here / "config.yaml").write_text(to_yaml(config))
    assert load_config("config.yaml").name == name
    assert yaml.safe_load(to_yaml(config))["name"] == name


def test_the_text(base: dict[str, Any]) -> None:
    assert to_yaml(load_config(base)) == (
        "name: two-points\n"
        "seed: 0\n"
        "device: auto\n"
        "backend: auto\n"
        "dtype: float32\n"
        "dataset:\n"
        "  kind: points\n"
        "  x:\n"
        "  - [-0.5]\n"
        "  - [2.0]\n"
        "  y: [-1.0, 1.0]\n"
        "  append_bias: true\n"
        "architecture: {kind: two_layer, activation: relu, width: 60, train_output: true}\n"
        "initialization: {kind: balanced, scale: 1.0e-06, divide_by: sqrt_width, output_signs: random}\n"
        "loss: {kind: mse, reduction: mean}\n"
        "optimizer: {kind: gd, lr: 0.001, iterations: 20000, loss_scaled: false}\n"
        "record:\n"
        "  snapshots:\n"
        "    kind: geometric\n"
        "    include: []\n"
        "    ratio: 1.05\n"
        "  parameters: all\n"
        "  limit_gib: 4.0\n"
    )

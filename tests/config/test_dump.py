"""A resolved config reads back as itself."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from dynamics_cli.config import load_config, run_hash, to_yaml
from dynamics_cli.config.nodes import read_text

positive = st.floats(1e-300, 1e300)
number = st.floats(allow_nan=False, allow_infinity=False)
count = st.integers(1, 2**62)


def section(kind: str, required: dict[str, Any], **optional: Any) -> st.SearchStrategy[dict[str, Any]]:
    return st.fixed_dictionaries({"kind": st.just(kind), **required}, optional=optional)


@st.composite
def points(draw: st.DrawFn) -> dict[str, Any]:
    n, n_test, d = draw(st.integers(1, 3)), draw(st.integers(0, 2)), draw(st.integers(1, 3))
    inputs = st.lists(number, min_size=d, max_size=d)
    data = {"kind": "points", "append_bias": draw(st.booleans())}
    for suffix, size in (("", n), ("_test", n_test)):
        if size:
            data[f"x{suffix}"] = draw(st.lists(inputs, min_size=size, max_size=size))
            data[f"y{suffix}"] = draw(st.lists(number, min_size=size, max_size=size))
    return data


file_names = st.text(min_size=1).map(lambda name: f"/data/{name.replace('/', '_')}.npz")
datasets = (
    points()
    | section(
        "orthonormal", {"n": st.just(3), "dim": st.integers(3, 10**6)}, y=st.lists(number, min_size=3, max_size=3)
    )
    | section("file", {"path": file_names}, test_fraction=st.floats(0.01, 0.99), append_bias=st.booleans())
)
two_layer = section(
    "two_layer", {"width": count}, activation=st.sampled_from(["relu", "linear"]), train_output=st.booleans()
)
leaky = section("two_layer", {"width": count, "activation": st.just("leaky_relu"), "slope": st.floats(0, 1)})
scaled = {
    "divide_by": st.sampled_from(["none", "sqrt_width", "sqrt_dim", "sqrt_width_times_dim"]),
    "output_value": positive,
    "output_signs": st.sampled_from(["random", "halves"]),
}
initializations = (
    st.one_of(*(section(kind, {"scale": positive}, **scaled) for kind in ("balanced", "unbalanced", "dominated")))
    | section("default_scaled", {}, factor=positive)
    | section("file", {"path": file_names}, suffix=st.text())
)
optimizers = (
    section("gd", {"lr": positive, "iterations": count}, loss_scaled=st.booleans(), stop_below=st.floats(0, 1))
    | section("sgd", {"lr": positive, "epochs": count}, batch_size=count, replacement=st.booleans())
    | section("adam", {"lr": positive, "iterations": count}, beta1=st.floats(0, 0.99), eps=positive)
    | section(
        "gradient_flow", {"until": positive}, points=count, rtol=st.floats(1e-12, 0.5), stop_below=st.floats(0, 1)
    )
)
records = st.fixed_dictionaries(
    {},
    optional={
        "snapshots": section("geometric", {}, ratio=st.floats(1.001, 10))
        | section("every", {"interval": count}, include=st.just([0, 1]))
        | section("list", {}),
        "parameters": st.sampled_from(["all", "none"]) | st.lists(st.text()),
        "measures": st.none() | st.lists(st.sampled_from(["weight_norm", "test_loss", "train_accuracy"])),
        "loss_every": count,
        "limit_gib": positive,
    },
)
configs = st.fixed_dictionaries(
    {
        "name": st.from_regex(r"[A-Za-z0-9][A-Za-z0-9._-]{0,79}", fullmatch=True),
        "dataset": datasets,
        "architecture": two_layer | leaky,
        "initialization": initializations,
        "loss": section("mse", {}) | section("half_mse", {}, reduction=st.sampled_from(["mean", "sum"])),
        "optimizer": optimizers,
    },
    optional={
        "seed": st.integers(0, 2**63 - 1),
        "device": st.sampled_from(["auto", "cpu", "cuda"]),
        "dtype": st.sampled_from(["float32", "float64"]),
        "record": records,
    },
)


@given(configs)
def test_a_dumped_config_reads_back_as_itself(data: dict[str, Any]) -> None:
    config = load_config(data, check_files_exist=False)
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

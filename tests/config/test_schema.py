"""The JSON Schema, evaluated by the library `jsonschema`."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from dynamics_cli.config import json_schema, load_config
from dynamics_cli.config.dump import to_plain


def accepts(value: Any) -> bool:
    return bool(Draft202012Validator(json_schema()).is_valid(value))


def test_head_and_references() -> None:
    schema = json_schema()
    Draft202012Validator.check_schema(schema)
    assert schema["$schema"] == "https://json-schema.org/draft/2020-12/schema"
    assert schema["title"] == "dyn config"
    text = json.dumps(schema, allow_nan=False)
    references = re.findall(r'"\$ref": "#/\$defs/([\w.]+)"', text)
    assert len(references) > 40
    assert set(references) <= set(schema["$defs"])


def test_every_key_is_described() -> None:
    for name, node in json_schema()["$defs"].items():
        for key, below in node.get("properties", {}).items():
            known = "description" in below or key == "kind" or "$ref" in below or name.endswith("RunConfig")
            assert known, f"{name}.{key}"


def test_accepts_what_the_loader_accepts(base: dict[str, Any]) -> None:
    assert accepts(base)
    assert accepts(to_plain(load_config(base)))
    assert accepts(base | {"record": {"snapshots": {"ratio": 1.1}}})
    assert accepts(base | {"record": {"parameters": ["hidden_weight"], "measures": None}})


@pytest.mark.parametrize(
    "change",
    [
        {"optimzer": {}}, {"loss": {"kind": "msee"}}, {"name": "a/b"},
        {"architecture": {"kind": "two_layer", "width": 0}},
        {"architecture": {"kind": "two_layer", "widths": [3], "width": 3}},
        {"optimizer": {"kind": "gd", "lr": -1, "iterations": 3}},
        {"dataset": {"kind": "points", "x": [], "y": []}}, {"record": {"parameters": "some"}},
    ],
)  # fmt: skip
def test_refuses_what_the_loader_refuses(change: dict[str, Any], base: dict[str, Any]) -> None:
    assert not accepts(base | change)


def test_nothing_is_required_of_a_file_that_extends() -> None:
    assert accepts({"extends": "parent.yaml"})
    assert accepts({"extends": "parent.yaml", "architecture": {"width": 3}, "optimizer": {"kind": "adam"}})
    assert not accepts({"extends": "parent.yaml", "architecture": {"width": 0}})
    assert not accepts({"extends": "parent.yaml", "architecture": {"with": 3}})
    assert not accepts({"extends": 3})

"""Growing configs from their schema, mostly well-formed, and writing them down in many ways."""

from __future__ import annotations

import json
import random
from functools import cache
from typing import Any

import yaml

from dynamics_cli.config import json_schema
from tests.fuzz.nasty import SCALARS

INTEGERS = [0, 1, 2, 3, 5, 8, 10, 30, 100, 1000, 10**6, 10**9, 10**12, 2**31, 2**32, 2**53, 2**62, 2**63 - 1]
NUMBERS = [1e-12, 1e-6, 1e-3, 0.01, 0.1, 0.3, 0.5, 0.99, 1.0, 1.05, 2.0, 10.0, 1e3, 1e9, 1e30, 1e300]


@cache
def _schema() -> dict[str, Any]:
    return json_schema()


def _resolved(node: dict[str, Any]) -> dict[str, Any]:
    while "$ref" in node:
        node = _schema()["$defs"][node["$ref"].rpartition("/")[2]]
    return node


def config(rng: random.Random, wild: float = 0.01) -> Any:
    """Return a config as plain data; each value is something else than it should be with probability `wild`."""
    return value(rng, {"$ref": "#/$defs/RunConfig"}, wild)


def value(rng: random.Random, node: dict[str, Any], wild: float) -> Any:  # noqa: PLR0911 - one return a type
    """Return a value that the JSON Schema `node` allows, or now and then one that it does not."""
    node = _resolved(node)
    if rng.random() < wild:
        return rng.choice(
            [None, True, [], {}, "", -1, 1e400, "x" * 100, "\0", [[]], {"kind": "x"}, rng.choice(SCALARS)[:300]]
        )
    if "const" in node:
        return node["const"]
    if "enum" in node:
        return rng.choice(node["enum"])
    if options := node.get("oneOf", node.get("anyOf")):
        return value(rng, rng.choice(options), wild)
    match node.get("type"):
        case "object":
            return _mapping(rng, node, wild)
        case "array":
            count = rng.randint(node.get("minItems", 0), min(node.get("maxItems", 3), max(3, node.get("minItems", 0))))
            return [value(rng, node["items"], wild) for _ in range(count)]
        case "integer":
            return _number(rng, node, INTEGERS, integer=True)
        case "number":
            return _number(rng, node, NUMBERS if rng.random() < 0.8 else INTEGERS, integer=False)
        case "boolean":
            return rng.random() < 0.5
        case "string":
            return rng.choice(
                ["a", "toy-1", "hidden_weight", "output_weight", "weight_1", "d.csv", "weights.npz", "weight_norm"]
            )
    return None


def _mapping(rng: random.Random, node: dict[str, Any], wild: float) -> dict[str, Any]:
    required = node.get("required", [])
    keys = [key for key in node.get("properties", {}) if key in required or key == "kind" or rng.random() < 0.25]
    if rng.random() < wild:
        keys = keys[1:]
    found = {key: value(rng, node["properties"][key], wild) for key in keys}
    if rng.random() < wild:
        found[rng.choice(["extends", "kindd", "x", "\ud800", "", "a.b", "<<"])] = rng.choice([1, "a", None])
    return found


def _number(rng: random.Random, node: dict[str, Any], choices: list[Any], *, integer: bool) -> Any:
    allowed = [number for number in choices if _fits(number, node)]
    small = [number for number in allowed if number <= 10]
    if not allowed:
        return rng.randint(0, 9) if integer else rng.random()
    return rng.choice(small if small and rng.random() < 0.7 else allowed)


def _fits(number: Any, node: dict[str, Any]) -> bool:
    return (
        node.get("minimum", number) <= number <= node.get("maximum", number)
        and number > node.get("exclusiveMinimum", number - 1)
        and number < node.get("exclusiveMaximum", number + 1)
    )


def written(rng: random.Random, data: Any) -> str:
    """Return the data as YAML or JSON, in one of the many ways of writing it."""
    match rng.randrange(6):
        case 0:
            return json.dumps(data, indent=rng.choice([None, 1, 4, "\t"]))
        case 1:
            return json.dumps(data, ensure_ascii=False, separators=(",", ":"))
        case 2:
            return yaml.safe_dump(data, default_flow_style=True, allow_unicode=True)
        case 3:
            return yaml.safe_dump(data, default_flow_style=False, default_style=rng.choice([None, '"', "'", "|"]))
        case 4:
            text = yaml.safe_dump(
                data, default_flow_style=None, sort_keys=False, explicit_start=True, explicit_end=True
            )
            return text.replace("\n", rng.choice(["\n", "\r\n", "\n\n", " # x\n"]))
    return "\ufeff" * rng.randrange(2) + yaml.safe_dump(
        data, width=rng.choice([5, 40, 10_000]), indent=rng.choice([2, 3, 9])
    )


def override(rng: random.Random) -> str:
    """Return the text of a `--set`."""
    node, path = {"$ref": "#/$defs/RunConfig"}, []
    while "properties" in (resolved := _resolved(node)):
        path.append(rng.choice(list(resolved["properties"])))
        node = resolved["properties"][path[-1]]
        options = _resolved(node).get("oneOf", _resolved(node).get("anyOf", [node]))
        node = rng.choice(options)
        if rng.random() < 0.3:
            break
    if rng.random() < 0.05:
        path.insert(rng.randrange(len(path) + 1), rng.choice(["", "0", "kind", "x" * 100, "\ud800", " "]))
    text = rng.choice(SCALARS)[:120_000] if rng.random() < 0.3 else json.dumps(value(rng, node, 0.05))
    return ".".join(path) + rng.choice(["=", "=", "=", " = ", "", "=="]) + text

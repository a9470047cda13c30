"""The JSON Schema of a config, and questions about which keys and values it allows."""

from __future__ import annotations

import ast
import inspect
import sys
from collections.abc import Iterator, Mapping
from copy import deepcopy
from functools import cache
from itertools import pairwise
from typing import Any, Literal

from pydantic import Field

from dynamics_cli.config.errors import KeyPath
from dynamics_cli.kinds import Kind, PositiveInt, Record, RunConfig, Section, all_kinds
from dynamics_cli.kinds.registry import SECTIONS

DIALECT = "https://json-schema.org/draft/2020-12/schema"
Node = dict[str, Any]


class SweepSection(Section):
    """The settings that `dyn sweep` varies: a section of a config file that is no part of any of its runs."""

    example = """\
sweep:
  grid: {optimizer.lr: "1e-3:1e-2:log:3", architecture.width: [20, 60]}
  let: {initialization.scale: 0.06 / architecture.width}
  seeds: 2
"""
    grid: dict[str, Any] = Field(default_factory=dict)
    """Settings, each with its values: every combination is trained.

    Values are a list, or a text: `1e-6:10:log:25` (first, last, count), `1:5:5`, `8:512:logint:7` (whole numbers)."""
    zip: list[dict[str, Any]] = Field(default_factory=list)
    """Settings that run together, value by value, each with as many values."""
    let: dict[str, Any] = Field(default_factory=dict)
    """Settings that are computed: `optimizer.lr: min(10, 0.1 / initialization.scale**2)`."""
    seeds: PositiveInt = 1
    """Seeds per point of the grid: that of the config and those after it."""
    record: Literal["light", "ends", "config"] | None = None
    """Kept of each job: its ends and about a thousand losses; its ends; what `record` says.

    By default what `record` says, as long as that is estimated below `record.limit_gib` for all jobs together."""


def _definitions() -> dict[str, Node]:
    """Return the schema of the whole config, of its sections, and of every kind as `section.kind`."""
    known = {section: all_kinds(section) for section in SECTIONS}
    return _made(tuple((section, name, cls) for section, kinds in known.items() for name, cls in kinds.items()))


@cache
def _made(known: tuple[tuple[str, str, type[Kind]], ...]) -> dict[str, Node]:
    whole = RunConfig.model_json_schema()
    definitions: dict[str, Node] = {"RunConfig": whole, **whole.pop("$defs", {})}
    definitions |= {f"{section}.{name}": cls.model_json_schema() for section, name, cls in known}
    definitions["SweepSection"] = SweepSection.model_json_schema()
    whole["properties"]["sweep"] = {"$ref": "#/$defs/SweepSection"}
    classes: dict[str, type[Section]] = {
        "RunConfig": RunConfig,
        "Record": Record,
        "SweepSection": SweepSection,
        **{f"{section}.{name}": cls for section, name, cls in known},
    }
    for name, described in classes.items():
        for key, text in _docstrings(described).items():
            if key in definitions[name]["properties"]:
                definitions[name]["properties"][key].setdefault("description", text)
    defaults = {(note["kinds"], note["default kind"]) for note in _notes(definitions)}
    for section, name, _ in known:
        node = definitions[f"{section}.{name}"]
        if (section, name) not in defaults:
            node["properties"]["kind"].pop("default")
            node["required"] = ["kind", *node.get("required", ())]
    names = {section: [name for of, name, _ in known if of == section] for section in SECTIONS}
    return {name: _chosen(node, names, definitions) for name, node in definitions.items()}


def _docstrings(cls: type[Section]) -> dict[str, str]:
    """Return the text below each field of a section, its bases' included; pydantic's own way slows every start."""
    found: dict[str, str] = {}
    for base in reversed(cls.__mro__):
        if issubclass(base, Section):
            found |= _written(base.__module__).get(base.__qualname__, {})
    return found


@cache
def _written(module: str) -> dict[str, dict[str, str]]:
    """Return class -> field -> the text below it, of the classes of a module; nothing without a source."""
    try:
        tree = ast.parse(inspect.getsource(sys.modules[module]))
    except (OSError, TypeError, SyntaxError, KeyError):  # typed into a console
        return {}
    found: dict[str, dict[str, str]] = {}
    for node in tree.body:
        if isinstance(node, ast.ClassDef):
            fields = found.setdefault(node.name, {})
            for field, text in pairwise(node.body):
                match field, text:
                    case ast.AnnAssign(target=ast.Name(id=key)), ast.Expr(value=ast.Constant(value=str(written))):
                        fields[key] = inspect.cleandoc(written)
    return found


def _notes(node: Any) -> Iterator[Node]:
    """Yield the notes that `OneOf` left in a schema, wherever they stand."""
    if isinstance(node, dict) and isinstance(node.get("kinds"), str):
        yield node
    for value in node.values() if isinstance(node, dict) else node if isinstance(node, list) else ():
        yield from _notes(value)


def _chosen(node: Any, names: Mapping[str, list[str]], definitions: Mapping[str, Node]) -> Any:
    """Return a copy of `node` with the choice between kinds in place of the notes that `OneOf` left."""
    if isinstance(node, list):
        return [_chosen(item, names, definitions) for item in node]
    if not isinstance(node, dict):
        return node
    if not isinstance(section := node.get("kinds"), str):
        return {key: _chosen(value, names, definitions) for key, value in node.items()}
    rest = {key: value for key, value in node.items() if key not in ("kinds", "default kind", "word")}
    places = {name: f"#/$defs/{section}.{name}" for name in names[section]}
    choice = {
        "discriminator": {"mapping": places, "propertyName": "kind"},
        "oneOf": [{"$ref": place} for place in places.values()],
    }
    if not node["word"]:
        return rest | choice
    words = [name for name in names[section] if definitions[f"{section}.{name}"]["required"] == ["kind"]]
    return rest | {"anyOf": [{"enum": words, "type": "string"}, choice]}


def section_schema(cls: type[Section]) -> Node:
    """Return the schema of a kind, of a section without kinds, or of the whole config."""
    name = f"{cls.section}.{cls.model_fields['kind'].default}" if issubclass(cls, Kind) else cls.__name__
    return _definitions()[name]


def json_schema() -> dict[str, Any]:
    """Return the JSON Schema (draft 2020-12) of a config file, for editors.

    A file that extends another may leave out whatever its parent says, so no key is required in it.
    """
    definitions = deepcopy(_definitions())
    partial = {f"Partial{name}": _partial(node) for name, node in definitions.items()}
    partial["PartialRunConfig"]["properties"]["extends"] = {
        "type": "string",
        "minLength": 1,
        "description": "A config that this one extends, relative to it: values here replace values there.",
    }
    return {
        "$schema": DIALECT,
        "title": "dyn config",
        "description": "One training run: `dyn train FILE`.",
        "type": "object",
        "if": {"required": ["extends"]},
        "then": {"$ref": "#/$defs/PartialRunConfig"},
        "else": {"$ref": "#/$defs/RunConfig"},
        "$defs": {**definitions, **partial},
    }


def _partial(node: Any) -> Any:
    """Return a copy of `node` in which no key is required and references point at partial definitions."""
    if isinstance(node, list):
        return [_partial(item) for item in node]
    if not isinstance(node, dict):
        return node
    copy = {key: _partial(value) for key, value in node.items() if key not in ("required", "discriminator")}
    if "oneOf" in copy:  # without its kind a section may fit several
        copy["anyOf"] = copy.pop("oneOf")
    if isinstance(reference := copy.get("$ref"), str):
        copy["$ref"] = reference.replace("#/$defs/", "#/$defs/Partial")
    return copy


def _resolved(node: Node) -> Node:
    while "$ref" in node:
        node = _definitions()[node["$ref"].rpartition("/")[2]]
    return node


def _branches(node: Node) -> dict[str, Node]:
    """Return the schema of each kind by name; empty where a section has no kinds."""
    if "discriminator" in node:
        options = [_resolved(option) for option in node["oneOf"]]
        return {option["properties"]["kind"]["const"]: option for option in options}
    return next((found for option in node.get("anyOf", ()) if (found := _branches(option))), {})


def _default_kind(branches: Mapping[str, Node]) -> str | None:
    """Return the kind of a section that names none, if there is such a kind."""
    return next((kind for kind, node in branches.items() if "default" in node["properties"]["kind"]), None)


def node_at(path: KeyPath, data: object) -> Node | None:
    """Return the schema of the value at `path`, where `data` (the whole config) says which kinds hold on the way.

    None when the schema has nothing there. A section that has kinds comes back as the choice between them.
    """
    node: Node = _definitions()["RunConfig"]
    for part in path:
        node = _section(node, data)
        if isinstance(part, int):
            lists = [option for option in node.get("anyOf", [node]) if "items" in option]
            if not lists:
                return None
            node = lists[0]["items"]
        elif part in node.get("properties", {}):
            node = node["properties"][part]
        else:
            values = [option.get("additionalProperties") for option in node.get("anyOf", [node])]
            values = [value for value in values if isinstance(value, dict)]  # of a mapping with names of the user
            if not values:
                return None
            node = values[0]
        data = value_at((part,), data)
    return _resolved(node)


def _section(node: Node, data: object) -> Node:
    node = _resolved(node)
    branches = _branches(node)
    if not branches:
        return node
    kind = data.get("kind", _default_kind(branches)) if isinstance(data, Mapping) else data
    return branches.get(kind, {}) if isinstance(kind, str) else {}


def value_at(path: KeyPath, data: object) -> object:
    """Return the value at `path` of plain data; None where there is none."""
    for part in path:
        if isinstance(part, int):
            data = data[part] if isinstance(data, list) and part < len(data) else None
        else:
            data = data.get(part) if isinstance(data, Mapping) else None
    return data


def kinds(path: KeyPath, data: object = None) -> list[str]:
    """Return the kinds that the section at `path` has, by name; empty when it has none."""
    node = node_at(path, data)
    return [] if node is None else list(_branches(node))


def known_keys(path: KeyPath, kind: object = None, data: object = None) -> list[str] | None:
    """Return the keys of the section at `path` under `kind`; None when there is no such section or kind."""
    node = node_at(path, data)
    if node is None:
        return None
    branches = _branches(node)
    if branches:
        kind = _default_kind(branches) if kind is None else kind
        node = branches.get(kind) if isinstance(kind, str) else None
    if node is None or "properties" not in node:
        return None
    return sorted(node["properties"], key=lambda key: key != "kind")  # the kind first, inherited keys after it

"""The JSON Schema of a config, and questions about which keys and values it allows."""

from __future__ import annotations

import ast
import inspect
import sys
from collections.abc import Mapping
from copy import deepcopy
from functools import cache
from itertools import pairwise
from typing import Any, Literal

from pydantic import Field

from dynamics_cli.config.errors import KeyPath
from dynamics_cli.kinds import Kind, OneOf, PositiveInt, Record, RunConfig, Section, all_kinds
from dynamics_cli.kinds.base import RECORDED
from dynamics_cli.kinds.registry import SECTIONS, find_kind, general_kinds, one_of

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
    classes: dict[str, type[Section]] = {"RunConfig": RunConfig, "Record": Record, "SweepSection": SweepSection}
    classes |= {f"{section}.{name}": cls for section, name, cls in known}
    definitions: dict[str, Node] = {}
    for name, cls in classes.items():
        definitions[name] = cls.model_json_schema()
        definitions[name].pop("$defs", None)
        for key, text in _docstrings(cls).items():
            if key in definitions[name]["properties"]:
                definitions[name]["properties"][key].setdefault("description", text)
    definitions["RunConfig"]["properties"]["sweep"] = {"$ref": "#/$defs/SweepSection"}
    kinds = {section: [cls for of, _, cls in known if of == section] for section in SECTIONS}
    return {name: _chosen(node, kinds) for name, node in definitions.items()}


def _docstrings(cls: type[Section]) -> dict[str, str]:
    """Return the text below each field of a section, its bases' included; pydantic's own way slows every start."""
    texts: dict[str, str] = {}
    for base in reversed(cls.__mro__):
        if issubclass(base, Section):
            texts |= _written(base.__module__).get(base.__qualname__, {})
    return texts


@cache
def _written(module: str) -> dict[str, dict[str, str]]:
    """Return class -> field -> the text below it, of the classes of a module; nothing without a source."""
    try:
        tree = ast.parse(inspect.getsource(sys.modules[module]))
    except (OSError, TypeError, SyntaxError, KeyError):  # typed into a console
        return {}
    classes: dict[str, dict[str, str]] = {}
    for node in tree.body:
        if isinstance(node, ast.ClassDef):
            fields = classes.setdefault(node.name, {})
            for field, text in pairwise(node.body):
                match field, text:
                    case ast.AnnAssign(target=ast.Name(id=key)), ast.Expr(value=ast.Constant(value=str(written))):
                        fields[key] = inspect.cleandoc(written)
    return classes


def _chosen(node: Any, kinds: Mapping[str, list[type[Kind]]]) -> Any:
    """Return a copy of `node` with the choice between kinds in place of the notes that `OneOf` left.

    No key is required: a file that extends another may leave out whatever its parent says.
    """
    if isinstance(node, list):
        return [_chosen(item, kinds) for item in node]
    if not isinstance(node, dict):
        return node
    if not isinstance(section := node.get("kinds"), str):
        return {key: _chosen(value, kinds) for key, value in node.items() if key != "required"}
    about = {key: value for key, value in node.items() if key not in ("kinds", "word")}
    choice = [{"$ref": f"#/$defs/{section}.{cls.model_fields['kind'].default}"} for cls in kinds[section]]
    plain = [cls for cls in kinds[section] if not any(field.is_required() for field in cls.model_fields.values())]
    words = [{"enum": [cls.model_fields["kind"].default for cls in plain], "type": "string"}] if node["word"] else []
    return about | {"anyOf": [*words, *choice]}


def section_schema(cls: type[Section]) -> Node:
    """Return the schema of a kind, of a section without kinds, or of the whole config."""
    name = f"{cls.section}.{cls.model_fields['kind'].default}" if issubclass(cls, Kind) else cls.__name__
    return _definitions()[name]


def json_schema() -> dict[str, Any]:
    """Return the JSON Schema (draft 2020-12) of a config file, for editors."""
    definitions = deepcopy(_definitions())
    definitions["RunConfig"]["properties"]["extends"] = {
        "type": "string",
        "minLength": 1,
        "description": "A config that this one extends, relative to it: values here replace values there.",
    }
    about = {"title": "dyn config", "description": "One training run: `dyn train FILE`."}
    return {"$schema": DIALECT, **about, "$ref": "#/$defs/RunConfig", "$defs": definitions}


def choice_at(path: KeyPath, data: object) -> OneOf | type[Section] | None:
    """Return the kinds, or the section, that the value at `path` of a config must be; None where it is neither."""
    *above, key = path
    if isinstance(key, int):
        return choice_at(tuple(above), data)
    cls = section_at(tuple(above), data)
    if cls is RunConfig and key == "sweep":
        return SweepSection
    field = cls.model_fields.get(key) if cls is not None else None
    if field is None or (note := one_of(field)) is not None:
        return None if field is None else note
    return field.annotation if isinstance(field.annotation, type) and issubclass(field.annotation, Section) else None


def section_at(path: KeyPath, data: object) -> type[Section] | None:
    """Return the class of the section at `path`, where `data` (the whole config) says which kinds hold on the way."""
    choice = choice_at(path, data) if path else RunConfig
    if not isinstance(choice, OneOf):
        return choice
    value = value_at(path, data)
    kind = value.get("kind", choice.default) if isinstance(value, Mapping) else value
    return find_kind(choice.section, kind) if isinstance(kind, str) else None


def value_at(path: KeyPath, data: object) -> object:
    """Return the value at `path` of plain data; None where there is none."""
    for part in path:
        if isinstance(part, int):
            data = data[part] if isinstance(data, list) and part < len(data) else None
        else:
            data = data.get(part) if isinstance(data, Mapping) else None
    return data


def kinds(path: KeyPath, data: object = None) -> dict[str, bool]:
    """Return the kinds that the section at `path` has, and whether each serves any paper; empty when it has none."""
    choice = choice_at(path, data) if path else None
    if not isinstance(choice, OneOf):
        return {}
    general = general_kinds(choice.section)
    return {name: name in general for name in all_kinds(choice.section)}


def known_keys(path: KeyPath, kind: object = None, data: object = None) -> list[str] | None:
    """Return the keys of the section at `path` under `kind`; None when there is no such section or kind."""
    cls = choice_at(path, data) if path else RunConfig
    if isinstance(cls, OneOf):
        kind = cls.default if kind is None else kind
        cls = find_kind(cls.section, kind) if isinstance(kind, str) else None
    if cls is None:
        return None
    keys = [*cls.model_fields, *(["sweep"] if cls is RunConfig else [])]
    keys = [key for key in keys if key != RECORDED]  # nobody writes it
    return sorted(keys, key=lambda key: key != "kind")  # the kind first, inherited keys after it

"""What kinds say of themselves, for `dyn list kinds` and `dyn explain`."""

from __future__ import annotations

import inspect
import json
from typing import Any

from dynamics_cli.config.base import Kind
from dynamics_cli.config.registry import SECTIONS, all_kinds, source_of
from dynamics_cli.config.schema import kind_schema
from dynamics_cli.config.text import describe
from dynamics_cli.errors import InputError, UsageError, did_you_mean

PLAIN = """\
name: example
dataset: {kind: points, x: [[-0.5], [2.0]], y: [-1.0, 1.0], append_bias: true}
architecture: {kind: two_layer, width: 60}
initialization: {kind: balanced, scale: 1.0e-3}
loss: {kind: mse}
optimizer: {kind: gd, lr: 1.0e-2, iterations: 1000}
"""
"""The config of two points that examples change."""


def kind_rows(section: str | None = None) -> list[dict[str, str]]:
    """Return section, name, first sentence and origin of all kinds, or of those of one section.

    Raises:
        UsageError: there is no such section.
    """
    if section is not None and section not in SECTIONS:
        raise UsageError(f"no section {section!r}{did_you_mean(section, SECTIONS)}; there are {', '.join(SECTIONS)}")
    return [
        {"section": of, "kind": name, "from": _origin(cls), "what": _sentence(cls)}
        for of in ([section] if section else SECTIONS)
        for name, cls in all_kinds(of).items()
    ]


def find_explained(name: str) -> type[Kind]:
    """Return the kind that is called `section.kind`, or by its kind alone where that is unique.

    Raises:
        UsageError: there is none; the message names the closest ones.
    """
    known = {f"{section}.{kind}": cls for section in SECTIONS for kind, cls in all_kinds(section).items()}
    found = [full for full in known if name == full or full.partition(".")[2] == name]
    if len(found) == 1:
        return known[found[0]]
    if found:
        raise UsageError(f"{name!r} is several kinds: {', '.join(found)}")
    if name in SECTIONS:
        raise UsageError(f"{name!r} is a section; `dyn list kinds {name}` lists its kinds")
    close = did_you_mean(name, [*known, *(full.partition(".")[2] for full in known)])
    raise UsageError(f"no kind {name!r}{close}; `dyn list kinds` lists them")


def explain(name: str) -> str:
    """Return what a kind does, its keys with their types and defaults, and a config that uses it.

    Raises:
        UsageError: there is no such kind.
    """
    cls = find_explained(name)
    title = f"{cls.section}.{cls.model_fields['kind'].default}"
    keys = key_rows(cls)
    lines = [title, "-" * len(title), inspect.cleandoc(cls.__doc__ or ""), "", f"From: {_origin(cls)}", ""]
    if panel := getattr(cls, "panel", ""):
        lines[-1:] = [f"Drawn by: dyn plot RUN --panel {panel}", ""]
    lines.append("Keys:" if keys else "It has no keys.")
    for key in keys:
        default = " (required)" if key["required"] else f", by default {_default(key['default'])}"
        lines.append(f"  {key['name']}: {key['type']}{default}")
        lines += [f"      {line}" for line in key["what"].split("\n") if line]
    return "\n".join([*lines, "", "Example:", *(f"  {line}" for line in example(cls).splitlines())])


def key_rows(cls: type[Kind]) -> list[dict[str, Any]]:
    """Return name, type, default and description of the keys of a kind, and whether they must be given."""
    node = kind_schema(cls)
    return [
        {
            "name": key,
            "type": describe(below),
            "required": key in node.get("required", ()),
            "default": below.get("default"),
            "what": below.get("description", ""),
        }
        for key, below in node["properties"].items()
        if key != "kind"
    ]


def described_keys(cls: type[Kind]) -> list[dict[str, Any]]:
    """Return name and description of the keys of a kind, and whether they must be given."""
    return [
        {"name": row["name"], "description": " ".join(row["what"].split()), "required": row["required"]}
        for row in key_rows(cls)
    ]


def example(cls: type[Kind]) -> str:
    """Return a config in YAML that uses a kind: that of two points with the sections that the kind's example says."""
    name = cls.model_fields["kind"].default
    written = cls.example or f"{{kind: {name}}}"
    place = {
        "activation": "architecture: {{kind: two_layer, width: 60, activation: {}}}",
        "schedule": "optimizer: {{kind: gd, lr: 1.0e-2, iterations: 1000, schedule: {}}}",
        "measure": "record: {{measures: [{}]}}",
        "snapshots": "record: {{snapshots: {}}}",
        "theory": "",
    }.get(cls.section, cls.section + ": {}")
    changed = (written if "\n" in written else place.format(written)).strip().splitlines()
    keys = {line.partition(":")[0] for line in changed}
    kept = [line for line in PLAIN.splitlines() if line.partition(":")[0] not in keys]
    return "\n".join([*kept, *changed])


def _default(value: Any) -> str:
    if isinstance(value, dict) and set(value) == {"kind"}:
        value = value["kind"]
    return "none" if value is None else json.dumps(value)


def _origin(cls: type[Kind]) -> str:
    try:
        source = source_of(cls)
    except InputError:
        return "code without a source"
    return "dyn" if source is None else source.origin


def _sentence(cls: type[Kind]) -> str:
    return inspect.cleandoc(cls.__doc__ or "").split("\n\n")[0].replace("\n", " ")

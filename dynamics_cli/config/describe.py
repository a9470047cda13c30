"""What kinds say of themselves, for `dyn list kinds`, `dyn explain` and the handbook's pages."""

from __future__ import annotations

import ast
import inspect
import json
import textwrap
from collections.abc import Mapping
from functools import cache
from itertools import pairwise
from typing import Any

from dynamics_cli.config.schema import SWEEP, SweepSection
from dynamics_cli.config.text import type_text
from dynamics_cli.errors import InputError, UsageError, did_you_mean
from dynamics_cli.formulas.tracing import obstacle
from dynamics_cli.kinds import Kind, Record, RunConfig, Section, all_kinds
from dynamics_cli.kinds.pictures import Whole
from dynamics_cli.kinds.problem import Change
from dynamics_cli.kinds.registry import SECTIONS, general_kinds, source_of, speaking_of
from dynamics_cli.notebook import Explanation
from dynamics_cli.text import Table

PLAIN = """\
name: example
dataset: {kind: points, x: [[-0.5], [2.0]], y: [-1.0, 1.0], append_bias: true}
architecture: {kind: two_layer, width: 60}
initialization: {kind: balanced, scale: 1.0e-3}
loss: {kind: mse}
optimizer: {kind: gd, lr: 1.0e-2, iterations: 1000}
"""
"""The config of two points that examples change."""
WHOLE: dict[str, type[Section]] = {
    "config": RunConfig,
    "record": Record,
    "changes": Change,
    "pictures": Whole,
    "sweep": SweepSection,
}
"""Sections without kinds, and the whole config."""


def list_kinds(section: str | None = None) -> Table:
    """List the kinds that a config can name.

    Of all sections, or of one; `dyn explain SECTION.KIND` says more. Kinds that serve one paper are
    left out. The columns are section, kind, where it comes from, and what it is.

    Raises UsageError: there is no such section.
    """
    sections = list(SECTIONS)
    if section is not None:
        if section not in SECTIONS:
            meant = did_you_mean(section, SECTIONS)
            raise UsageError(f"no section {section!r}{meant}; there are {', '.join(SECTIONS)}")
        sections = [section]
    table = Table()
    for of in sections:
        for name, cls in general_kinds(of).items():
            row = {"section": of, "kind": name, "from": origin(cls), "what": _sentence(cls)}
            table.append(row)
    return table


def find_explained(name: str) -> type[Section] | str:
    """Return a section, or the kind `section.kind`, whose section may be left out if it is unique.

    A section without kinds is returned as its class, another by its name.

    Raises:
        UsageError: there is none; the message names the closest ones.
    """
    if name in SECTIONS:
        return name
    if name in WHOLE:
        return WHOLE[name]
    known: dict[str, type[Kind]] = {}
    short: dict[str, list[str]] = {}
    for section in SECTIONS:
        for kind, cls in all_kinds(section).items():
            known[f"{section}.{kind}"] = cls
            short.setdefault(kind, []).append(f"{section}.{kind}")

    matching = short.get(name, [name])
    if len(matching) > 1:
        raise UsageError(f"{name!r} is several kinds: {', '.join(matching)}")
    if matching[0] in known:
        return known[matching[0]]
    close = did_you_mean(name, [*WHOLE, *SECTIONS, *known, *short])
    close = close or speaking_of(name, known)
    raise UsageError(
        f"no section or kind {name!r}{close}; `dyn list kinds` lists them, `dyn --with PATH` adds"
        " others"
    )


def explain(kind: str) -> Explanation:
    """Explain a kind or a section: its purpose, its keys, an example.

    Args:
        kind: `section.kind`, the kind alone where only one section has it, or a section such as
            `record`, `sweep`, `dataset`, or the whole `config`.

    Raises UsageError: there is no such kind or section; the message names the closest one.
    """
    found = find_explained(kind)
    if isinstance(found, str):
        title = found
        config = section_example(found)
        lines = [f"The kinds of the section `{found}`; `dyn explain {found}.KIND` says more.", ""]
        for name, cls in general_kinds(found).items():
            lines += [name, f"  {_sentence(cls)}"]
            lines += [f"    {key['name']}{_by_default(key)}" for key in key_rows(cls)]
    else:
        title = kind
        config = example(found)
        lines = [inspect.cleandoc(found.__doc__ or ""), ""]
        if issubclass(found, Kind):
            title = f"{found.section}.{name_of(found)}"
            lines.append(f"From: {origin(found)}")
            if panel := getattr(found, "panel", None):
                lines.append(f"Drawn by: dyn plot RUN --panel {panel}")
            if why := obstacle_of(found):
                lines.append(f"Trained by autograd, as it is no formula: {why}")
            lines.append("")
        lines += _keys(found)
    shown = textwrap.indent(config.rstrip("\n"), "  ", lambda line: True)
    return Explanation("\n".join([title, "-" * len(title), *lines, "", "Example:", shown]))


def _keys(cls: type[Section]) -> list[str]:
    rows = key_rows(cls)
    if not rows:
        return ["It has no keys."]
    lines = ["Keys:"]
    for key in rows:
        lines.append(f"  {key['name']}: {key['type']}{_by_default(key)}")
        lines += [f"      {line}" for line in key["what"].split("\n") if line]
    return lines


def name_of(cls: type[Kind]) -> str:
    """Return the name of a kind."""
    return str(cls.model_fields["kind"].default)


def origin(cls: type[Kind]) -> str:
    """Return the package, or the file, that a kind comes from."""
    try:
        return getattr(source_of(cls), "origin", "dyn")
    except InputError:
        return "code without a source"


def obstacle_of(cls: type[Kind]) -> str | None:
    """Return why a kind is no formula, and trained by autograd; numbers without a default are 1."""
    fields = cls.model_fields.items()
    needed: dict[str, Any] = {
        key: 1.0 for key, field in fields if field.is_required() and field.annotation is float
    }
    return obstacle(cls.model_construct(**needed))


def key_rows(cls: type[Section]) -> list[dict[str, Any]]:
    """Return `name`, `type`, `required`, `default` and `what` it means of each key of a section."""
    properties = cls.model_json_schema()["properties"]
    descriptions: dict[str, str] = {}
    rows: list[dict[str, Any]] = []
    for base in reversed(cls.__mro__):
        descriptions |= _descriptions(base)
    for key, field in cls.model_fields.items():
        if key == "kind":
            continue
        row = {"name": key, "type": type_text(properties[key]), "required": field.is_required()}
        default = None
        if not field.is_required():
            default = field.get_default(call_default_factory=True)
        if isinstance(default, Section):
            default = getattr(default, "kind", {})
        rows.append({**row, "default": default, "what": descriptions.get(key, "")})
    if cls is RunConfig:  # a key of files alone
        row = {"name": SWEEP, "type": type_text({}), "required": False}
        rows.append({**row, "default": None, "what": ""})
    return rows


@cache
def _descriptions(cls: type) -> dict[str, str]:
    """Return the texts below the fields that a class adds; pydantic's own way slows every start."""
    try:
        (tree,) = ast.parse(textwrap.dedent(inspect.getsource(cls))).body
    except (OSError, TypeError):  # typed into a console
        return {}
    texts = {}
    for field, text in pairwise(getattr(tree, "body", ())):
        match field, text:
            case ast.AnnAssign(target=ast.Name(id=key)), ast.Expr(
                value=ast.Constant(value=str(written))
            ):
                texts[key] = inspect.cleandoc(written)
    return texts


def section_example(section: str) -> str:
    """Return a config in YAML that uses a kind of a section; the plain one if it already does."""
    known = all_kinds(section)
    used = [cls for name, cls in known.items() if f"{section}: {{kind: {name}" in PLAIN]
    return example([*used, *known.values()][0])


def example(cls: type[Section]) -> str:
    """Return a config in YAML that uses a section: two points, and the sections of the example."""
    if not issubclass(cls, Kind):
        return f"{PLAIN}{cls.example}"
    written = cls.example or f"{{kind: {name_of(cls)}}}"
    place = {
        "activation": "architecture: {{kind: two_layer, width: 60, activation: {}}}",
        "schedule": "optimizer: {{kind: gd, lr: 1.0e-2, iterations: 1000, schedule: {}}}",
        "measure": "record: {{measures: [{}]}}",
        "snapshots": "record: {{snapshots: {}}}",
        "theory": "",
    }.get(cls.section, cls.section + ": {}")
    if "\n" not in written:
        written = place.format(written)
    changed = written.strip().splitlines()
    keys = {line.partition(":")[0] for line in changed}
    kept = [line for line in PLAIN.splitlines() if line.partition(":")[0] not in keys]
    return "\n".join([*kept, *changed])


def _by_default(key: Mapping[str, Any]) -> str:
    if key["required"]:
        return " (required)"
    if key["default"] is None:
        return ", by default none"
    return f", by default {json.dumps(key['default'], default=str)}"


def _sentence(cls: type[Kind]) -> str:
    return inspect.cleandoc(cls.__doc__ or "").split("\n\n")[0].replace("\n", " ")

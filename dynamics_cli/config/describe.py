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

from dynamics_cli.config.schema import SweepSection
from dynamics_cli.config.text import describe
from dynamics_cli.errors import InputError, UsageError, did_you_mean
from dynamics_cli.formulas.tracing import obstacle
from dynamics_cli.kinds import Kind, Record, RunConfig, Section, all_kinds
from dynamics_cli.kinds.registry import SECTIONS, general_kinds, source_of
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
WHOLE: dict[str, type[Section]] = {"config": RunConfig, "record": Record, "sweep": SweepSection}
"""Sections without kinds, and the whole config."""


def list_kinds(section: str | None = None) -> Table:
    """List the kinds that a config can name.

    Of all sections, or of one; `dyn explain SECTION.KIND` says more. Kinds that serve one paper are
    left out. The columns are section, kind, where it comes from, and what it is.

    Raises UsageError: there is no such section.
    """
    if section is not None and section not in SECTIONS:
        raise UsageError(
            f"no section {section!r}{did_you_mean(section, SECTIONS)}; there are"
            f" {', '.join(SECTIONS)}"
        )
    return Table(
        {"section": of, "kind": name, "from": origin(cls), "what": _sentence(cls)}
        for of in ([section] if section else SECTIONS)
        for name, cls in general_kinds(of).items()
    )


def find_explained(name: str) -> type[Section] | str:
    """Return the kind that is called `section.kind`, or by its kind alone where that is unique, or
    a section.

    A section without kinds is returned as its class, another by its name.

    Raises:
        UsageError: there is none; the message names the closest ones.
    """
    if name in SECTIONS:
        return name
    if name in WHOLE:
        return WHOLE[name]
    known = {
        f"{section}.{kind}": cls for section in SECTIONS for kind, cls in all_kinds(section).items()
    }
    matching = [full for full in known if name in (full, full.partition(".")[2])]
    if len(matching) == 1:
        return known[matching[0]]
    if matching:
        raise UsageError(f"{name!r} is several kinds: {', '.join(matching)}")
    close = did_you_mean(
        name, [*WHOLE, *SECTIONS, *known, *(full.partition(".")[2] for full in known)]
    )
    raise UsageError(
        f"no section or kind {name!r}{close}; `dyn list kinds` lists them, `dyn --with PATH` adds"
        " others"
    )


def explain(kind: str) -> str:
    """Explain a kind or a section: its purpose, its keys, an example.

    Args:
        kind: `section.kind`, the kind alone where only one section has it, or a section such as
            `record`, `sweep`, `dataset`, or the whole `config`.

    Raises UsageError: there is no such kind or section; the message names the closest one.
    """
    cls = find_explained(kind)
    if isinstance(cls, str):
        title = cls
        config = section_example(cls)
        lines = [f"The kinds of the section `{cls}`; `dyn explain {cls}.KIND` says more.", ""]
        for name, of in general_kinds(cls).items():
            lines += [
                name,
                f"  {_sentence(of)}",
                *(f"    {key['name']}{_by_default(key)}" for key in key_rows(of)),
            ]
    else:
        title = next((name for name, section in WHOLE.items() if section is cls), "")
        lines = [inspect.cleandoc(cls.__doc__ or ""), ""]
        config = example(cls)
        keys = key_rows(cls)
        if issubclass(cls, Kind):
            title = f"{cls.section}.{name_of(cls)}"
            panel = getattr(cls, "panel", None)
            why = obstacle_of(cls)
            lines += [
                f"From: {origin(cls)}",
                *([f"Drawn by: dyn plot RUN --panel {panel}"] if panel else []),
            ]
            lines += [*([f"Trained by autograd, as it is no formula: {why}"] if why else []), ""]
        lines.append("Keys:" if keys else "It has no keys.")
        for key in keys:
            lines.append(f"  {key['name']}: {key['type']}{_by_default(key)}")
            lines += [f"      {line}" for line in key["what"].split("\n") if line]
    return "\n".join(
        [
            title,
            "-" * len(title),
            *lines,
            "",
            "Example:",
            *(f"  {line}" for line in config.splitlines()),
        ]
    )


def name_of(cls: type[Kind]) -> str:
    """Return the name of a kind."""
    return str(cls.model_fields["kind"].default)


def origin(cls: type[Kind]) -> str:
    """Return the package, or the file, that a kind comes from."""
    try:
        source = source_of(cls)
    except InputError:
        return "code without a source"
    return "dyn" if source is None else source.origin


def obstacle_of(cls: type[Kind]) -> str | None:
    """Return why a kind is no formula, so that autograd trains it; numbers that a config must
    give are 1.
    """
    fields = cls.model_fields.items()
    needed: dict[str, Any] = {
        key: 1.0 for key, field in fields if field.is_required() and field.annotation is float
    }
    return obstacle(cls.model_construct(**needed))


def key_rows(cls: type[Section]) -> list[dict[str, Any]]:
    """Return name, type, default and description of the keys of a section, and whether they must
    be given.
    """
    properties = cls.model_json_schema()["properties"]
    descriptions: dict[str, str] = {}
    rows = []
    for base in reversed(cls.__mro__):
        descriptions |= _descriptions(base)
    for key, field in cls.model_fields.items():
        if key == "kind":
            continue
        default = None if field.is_required() else field.get_default(call_default_factory=True)
        default = getattr(default, "kind", {}) if isinstance(default, Section) else default
        values = describe(properties[key])
        what = descriptions.get(key, "")
        rows.append(
            {
                "name": key,
                "type": values,
                "required": field.is_required(),
                "default": default,
                "what": what,
            }
        )
    if cls is RunConfig:  # a key of files alone
        rows.append(
            {"name": "sweep", "type": describe({}), "required": False, "default": None, "what": ""}
        )
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
    """Return a config in YAML that uses a kind of a section; the plain config where it already
    does.
    """
    known = all_kinds(section)
    plain = next(
        (cls for name, cls in known.items() if f"{section}: {{kind: {name}" in PLAIN), None
    )
    return example(plain or next(iter(known.values())))


def example(cls: type[Section]) -> str:
    """Return a config in YAML that uses a section: the config of two points with the sections of
    the example.
    """
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
    changed = (written if "\n" in written else place.format(written)).strip().splitlines()
    keys = {line.partition(":")[0] for line in changed}
    kept = [line for line in PLAIN.splitlines() if line.partition(":")[0] not in keys]
    return "\n".join([*kept, *changed])


def _by_default(key: Mapping[str, Any]) -> str:
    if key["required"]:
        return " (required)"
    return (
        ", by default"
        f" {'none' if key['default'] is None else json.dumps(key['default'], default=str)}"
    )


def _sentence(cls: type[Kind]) -> str:
    return inspect.cleandoc(cls.__doc__ or "").split("\n\n")[0].replace("\n", " ")

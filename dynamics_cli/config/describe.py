"""What kinds say of themselves, for `dyn list kinds` and `dyn explain`."""

from __future__ import annotations

import inspect
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pydantic.fields import FieldInfo

from dynamics_cli.config.schema import SweepSection, section_schema
from dynamics_cli.config.text import describe
from dynamics_cli.errors import InputError, UsageError, did_you_mean
from dynamics_cli.kinds import Kind, Record, RunConfig, Section, all_kinds
from dynamics_cli.kinds.registry import SECTIONS, of_one_paper, one_of, source_of
from dynamics_cli.kinds.tracing import obstacle
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


def list_kinds(section: str | None = None) -> Table:
    """See `api.list_kinds`."""
    if section is not None and section not in SECTIONS:
        raise UsageError(f"no section {section!r}{did_you_mean(section, SECTIONS)}; there are {', '.join(SECTIONS)}")
    return Table(
        {"section": of, "kind": name, "from": _origin(cls), "what": _sentence(cls)}
        for of in ([section] if section else SECTIONS)
        for name, cls in all_kinds(of).items()
        if not of_one_paper(cls)
    )


WHOLE: dict[str, type[Section]] = {"config": RunConfig, "record": Record, "sweep": SweepSection}
"""Sections without kinds, and the whole config."""


_FILES_ONLY = FieldInfo(default=None)
"""Of a key that only config files have, `sweep`."""


def find_explained(name: str) -> type[Section] | str:
    """Return the kind that is called `section.kind`, or by its kind alone where that is unique, or a section.

    A section without kinds is returned as its class, another by its name.

    Raises:
        UsageError: there is none; the message names the closest ones.
    """
    if name in SECTIONS:
        return name
    if name in WHOLE:
        return WHOLE[name]
    known = {f"{section}.{kind}": cls for section in SECTIONS for kind, cls in all_kinds(section).items()}
    found = [full for full in known if name == full or full.partition(".")[2] == name]
    if len(found) == 1:
        return known[found[0]]
    if found:
        raise UsageError(f"{name!r} is several kinds: {', '.join(found)}")
    close = did_you_mean(name, [*WHOLE, *SECTIONS, *known, *(full.partition(".")[2] for full in known)])
    raise UsageError(f"no section or kind {name!r}{close}; `dyn list kinds` lists them, `dyn --with PATH` adds others")


@dataclass(frozen=True)
class Description:
    """All that is known of a kind, or of a section without kinds: `dyn explain` and the handbook write it."""

    title: str
    """`section.kind`, or the name of the section."""
    text: str
    """Paragraphs in plain words, with code between backticks."""
    origin: str | None
    """The package, or the file, that a kind comes from; None of a section."""
    panel: str
    """The panel that draws a measure; empty of all else."""
    obstacle: str | None
    """Why a kind is no formula, so that autograd trains it."""
    keys: list[dict[str, Any]]
    """As `key_rows`."""
    example: str
    """A config in YAML."""


def description(cls: type[Section]) -> Description:
    """Return all that is known of a kind, or of a section without kinds."""
    text, keys, config = inspect.cleandoc(cls.__doc__ or ""), key_rows(cls), example(cls)
    if not issubclass(cls, Kind):
        title = next(name for name, section in WHOLE.items() if section is cls)
        return Description(title, text, None, "", None, keys, config)
    title = f"{cls.section}.{cls.model_fields['kind'].default}"
    return Description(title, text, _origin(cls), getattr(cls, "panel", ""), _obstacle(cls), keys, config)


def explain(kind: str) -> str:
    """See `api.explain`."""
    cls = find_explained(kind)
    if isinstance(cls, str):
        return _explain_kinds(cls)
    known = description(cls)
    lines = [known.text, ""]
    if known.origin is not None:
        lines += [f"From: {known.origin}", *([f"Drawn by: dyn plot RUN --panel {known.panel}"] if known.panel else [])]
        lines += [f"Trained by autograd, as it is no formula: {known.obstacle}"] if known.obstacle else []
        lines.append("")
    lines.append("Keys:" if known.keys else "It has no keys.")
    for key in known.keys:
        lines.append(f"  {key['name']}: {key['type']}{by_default(key)}")
        lines += [f"      {line}" for line in key["what"].split("\n") if line]
    return _page(known.title, lines, known.example)


def _obstacle(cls: type[Kind]) -> str | None:
    """Return why a kind is no formula; numbers that a config must give are 1."""
    fields = cls.model_fields.items()
    needed: dict[str, Any] = {key: 1.0 for key, one in fields if one.is_required() and one.annotation is float}
    return obstacle(cls.model_construct(**needed))


def _explain_kinds(section: str) -> str:
    """Return the kinds of a section with the keys of each, in short, and a config."""
    lines = [f"The kinds of the section `{section}`; `dyn explain {section}.KIND` says more.", ""]
    for name, cls in all_kinds(section).items():
        if of_one_paper(cls):
            continue
        lines += [name, f"  {_sentence(cls)}", *(f"    {key['name']}{by_default(key)}" for key in key_rows(cls))]
    return _page(section, lines, section_example(section))


def section_example(section: str) -> str:
    """Return a config in YAML that uses a kind of a section; the plain config where it already does."""
    used = all_kinds(section).values()
    plain = next((cls for cls in used if f"{section}: {{kind: {cls.model_fields['kind'].default}" in PLAIN), None)
    return example(plain or next(iter(used)))


def _page(title: str, lines: Sequence[str], config: str) -> str:
    return "\n".join([title, "-" * len(title), *lines, "", "Example:", *(f"  {line}" for line in config.splitlines())])


def key_rows(cls: type[Section]) -> list[dict[str, Any]]:
    """Return name, type, default and description of the keys of a section, and whether they must be given."""
    rows = []
    for key, below in section_schema(cls)["properties"].items():
        field = cls.model_fields.get(key, _FILES_ONLY)
        default = None if field.is_required() else field.get_default(call_default_factory=True)
        default = getattr(default, "kind", {}) if isinstance(default, Section) else default
        kind = describe(below)
        if note := one_of(field):
            kind = f"{'a list of kinds' if ' list ' in kind else 'a kind'} of `{note.section}`"
        what = below.get("description", "")
        rows.append({"name": key, "type": kind, "required": field.is_required(), "default": default, "what": what})
    return [row for row in rows if row["name"] != "kind"]


def example(cls: type[Section]) -> str:
    """Return a config in YAML that uses a section: the config of two points with the sections of the example."""
    if not issubclass(cls, Kind):
        return f"{PLAIN}{cls.example}"
    written = cls.example or f"{{kind: {cls.model_fields['kind'].default}}}"
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


def by_default(key: Mapping[str, Any]) -> str:
    """Return ` (required)`, or `, by default` with the value."""
    value = key["default"]
    return (
        " (required)"
        if key["required"]
        else f", by default {'none' if value is None else json.dumps(value, default=str)}"
    )


def _origin(cls: type[Kind]) -> str:
    try:
        source = source_of(cls)
    except InputError:
        return "code without a source"
    return "dyn" if source is None else source.origin


def _sentence(cls: type[Kind]) -> str:
    return inspect.cleandoc(cls.__doc__ or "").split("\n\n")[0].replace("\n", " ")

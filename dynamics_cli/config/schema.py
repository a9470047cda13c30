"""Which sections, kinds and keys a config may have at a place."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from pydantic import Field

from dynamics_cli.config.errors import KeyPath
from dynamics_cli.kinds import OneOf, PositiveInt, RunConfig, Section, all_kinds
from dynamics_cli.kinds.base import RECORDED
from dynamics_cli.kinds.registry import find_kind, general_kinds, one_of


class SweepSection(Section):
    """The settings that `dyn sweep` varies: a section of a config file that is no part of any of
    its runs.
    """

    example = """\
sweep:
  grid: {optimizer.lr: "1e-3:1e-2:log:3", architecture.width: [20, 60]}
  let: {initialization.scale: 0.06 / architecture.width}
  seeds: 2
  labels: {optimizer.lr: step size η, final_loss: training loss}
  columns: {reached: first(loss < 0.1)}
"""
    grid: dict[str, Any] = Field(default_factory=dict)
    """Settings, each with its values: every combination is trained.

    Values are a list, or a text: `1e-6:10:log:25` (first, last, count), `1:5:5`, `8:512:logint:7`
    (whole numbers).
    """
    let: dict[str, Any] = Field(default_factory=dict)
    """Settings that are computed: `optimizer.lr: min(10, 0.1 / initialization.scale**2)`."""
    seeds: PositiveInt = 1
    """Seeds per point of the grid: that of the config and those after it."""
    record: Literal["light", "ends", "config"] | None = None
    """Kept of each job: its ends and about a thousand losses; its ends; what `record` says.

    By default what `record` says, as long as that is estimated below `record.limit_gib` for all
    jobs together.
    """
    labels: dict[str, str] = Field(default_factory=dict)
    """What pictures and pages call swept settings, measures, words of settings, `loss` and
    `iteration`.
    """
    columns: dict[str, str] = Field(default_factory=dict)
    """Further columns of the table, computed from the curves of each job: `grokked:
    first(test_accuracy > 0.95)`.

    A curve is `loss`, a measure, or a number of a measure such as `singular_values.1`. Of a curve c
    with values at the recorded states: `first(c > 0.95)`, the first iteration at which it is so
    (also >=, <, <=); `last(c)`; `least(c)`; `largest(c)`; `at(c, 1000)`, its value at the state
    nearest to an iteration; `mean(c, 10)`, of its last 10 values. Arithmetic is as in `let`, with
    swept settings, numbers of the config, and columns before this one.
    """


def choice_at(path: KeyPath, data: object) -> OneOf | type[Section] | None:
    """Return the kinds, or the section, that the value at `path` of a config must be; None where
    it is neither.
    """
    *above, key = path
    if isinstance(key, int):
        return choice_at(tuple(above), data)
    cls = section_at(tuple(above), data)
    if cls is RunConfig and key == "sweep":
        return SweepSection
    field = cls.model_fields.get(key) if cls is not None else None
    if field is None or (note := one_of(field)) is not None:
        return None if field is None else note
    return (
        field.annotation
        if isinstance(field.annotation, type) and issubclass(field.annotation, Section)
        else None
    )


def section_at(path: KeyPath, data: object) -> type[Section] | None:
    """Return the class of the section at `path`, where `data` (the whole config) says which
    kinds hold on the way.
    """
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
    """Return the kinds that the section at `path` has, and whether each serves any paper; empty
    when it has none.
    """
    choice = choice_at(path, data) if path else None
    if not isinstance(choice, OneOf):
        return {}
    general = general_kinds(choice.section)
    return {name: name in general for name in all_kinds(choice.section)}


def known_keys(path: KeyPath, kind: object = None, data: object = None) -> list[str] | None:
    """Return the keys of the section at `path` under `kind`; None when there is no such section
    or kind.
    """
    cls = choice_at(path, data) if path else RunConfig
    if isinstance(cls, OneOf):
        kind = cls.default if kind is None else kind
        cls = find_kind(cls.section, kind) if isinstance(kind, str) else None
    if cls is None:
        return None
    keys = [*cls.model_fields, *(["sweep"] if cls is RunConfig else [])]
    keys = [key for key in keys if key != RECORDED]  # nobody writes it
    return sorted(keys, key=lambda key: key != "kind")  # the kind first, inherited keys after it

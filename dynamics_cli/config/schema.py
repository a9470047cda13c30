"""Which sections, kinds and keys a config may have at a place."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import reduce
from typing import Any, Literal, get_args, get_origin

from pydantic import Field

from dynamics_cli.config.errors import KeyPath
from dynamics_cli.kinds import OneOf, PositiveInt, RunConfig, Section, all_kinds
from dynamics_cli.kinds.base import RECORDED
from dynamics_cli.kinds.registry import find_kind, general_kinds, one_of

SWEEP = "sweep"
"""The section that says what `dyn sweep` varies; no run has it."""
CHANGES = "changes"
"""The list of what is changed on the way of a run."""


class SweepSection(Section):
    """The settings that `dyn sweep` varies: a section of a file that is no part of any run."""

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
    points: list[dict[str, Any]] | str = Field(default_factory=list)
    """Points in place of a grid, or beside it: a list of settings, or the name of a CSV or YAML
    file with one.
    """
    let: dict[str, Any] = Field(default_factory=dict)
    """Settings that are computed: `optimizer.lr: min(10, 0.1 / initialization.scale**2)`."""
    seeds: PositiveInt = 1
    """Seeds per point of the grid: the config's and the following ones."""
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


@dataclass(frozen=True)
class Node:
    """A value of a config, right or wrong, and what the config may have in its place."""

    value: Any
    """Plain data; None where there is nothing."""
    choice: OneOf | None = None
    """The kinds that the value, or each of its items, chooses from; None where it has no kind."""
    section: type[Section] | None = None
    """The section that it is; None for any other value, and for a kind that nobody knows."""
    items: type[Section] | None = None
    """The section that each item of a list or a mapping is; None of other values."""

    def below(self, key: str | int) -> Node:
        """Return the value under a key of this section, or at a place of this list."""
        try:
            value = self.value[key]
        except (LookupError, TypeError):  # it is not there, or nothing can be below this value
            value = None

        if isinstance(key, int) or self.items is not None:
            return _chosen(value, self.choice, self.items)
        if self.section is RunConfig and key == SWEEP:
            return Node(value, section=SweepSection)
        field = getattr(self.section, "model_fields", {}).get(key)
        if field is None:
            return Node(value)
        section, items = _sections(field.annotation)
        return replace(_chosen(value, one_of(field), section), items=items)

    def kinds(self) -> dict[str, bool]:
        """Return the kinds to choose from, and whether each serves any paper."""
        if self.choice is None:
            return {}
        general = general_kinds(self.choice.section)
        return {name: name in general for name in all_kinds(self.choice.section)}

    def keys(self) -> list[str]:
        """Return the keys that the section may have, its kind first, inherited keys last."""
        keys = list(getattr(self.section, "model_fields", ()))
        if self.section is not None and isinstance(self.value, Mapping):
            keys += self.section.further_keys(self.value)
        if self.section is RunConfig:
            keys.append(SWEEP)
            keys.remove(RECORDED)  # nobody writes it
        return sorted(keys, key=lambda key: key != "kind")


def _sections(annotation: Any) -> tuple[type[Section] | None, type[Section] | None]:
    """Return the section that a value is, or that each item of a list or a mapping is."""
    if isinstance(annotation, type) and issubclass(annotation, Section):
        return annotation, None
    for part in get_args(annotation):
        section, items = _sections(part)
        if get_origin(annotation) in (list, dict):
            items = section
            section = None
        if section is not None or items is not None:
            return section, items
    return None, None


def node_at(path: KeyPath, data: object) -> Node:
    """Return the value at `path` of `data`, the whole config as plain data."""
    return reduce(Node.below, path, Node(data, section=RunConfig))


def _chosen(value: object, choice: OneOf | None, otherwise: type[Section] | None = None) -> Node:
    """Return a value that is one of the kinds of `choice`; without a choice, the given section."""
    if choice is None:
        return Node(value, section=otherwise)
    kind = value
    if isinstance(value, Mapping):
        kind = value.get("kind", choice.default)
    if not isinstance(kind, str):
        return Node(value, choice)
    return Node(value, choice, find_kind(choice.section, kind))

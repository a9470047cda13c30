"""A run that changes on the way, as segments: each has a config of its own.

`changes` of a config is a list, each with `at`, the last state before it, and what is other from
there on. Reading checks every segment; training asks `segments_of` for them, and no other module
knows how one follows from the one before.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from dynamics_cli.config.check import check_files, check_sections
from dynamics_cli.config.errors import KeyPath, Mistake
from dynamics_cli.config.explain import mistakes_in
from dynamics_cli.config.schema import CHANGES, node_at
from dynamics_cli.config.source import Place, Written, merge
from dynamics_cli.formulas.tracing import remembered
from dynamics_cli.kinds import Optimizer, RunConfig
from dynamics_cli.kinds.problem import Change

SECTIONS = ("dataset", "loss", "optimizer", "record")
"""Sections of a config that may change on the way."""
_FIXED = {
    "optimizer": ("iterations", "epochs", "until", "points", "spacing", "first"),
    "record": ("parameters", "measures", "checkpoints", "limit_gib"),
}
"""Keys that are of a run as a whole."""
_NOWHERE = Place("<config>", None, Path())


@dataclass(frozen=True)
class Segment:
    """The part of a run from a state on, up to the next change or the end of the run."""

    first: int
    """The state from which it trains."""
    config: RunConfig
    """Without `changes`."""
    change: Change | None = None
    """What was changed at its first state; None of the first segment."""
    frozen: tuple[str, ...] = ()
    """The weights that `freeze` of this change, or of an earlier one, names."""
    anew: bool = False
    """Whether the optimizer does not take over memory that has the names of its own."""

    @property
    def resolved(self) -> Mapping[str, Any]:
        """What identifies the change, however it was written, beside the config."""
        assert self.change is not None
        plain = self.change.model_dump(exclude_none=True, exclude={*SECTIONS, "freeze"})
        if self.frozen:
            plain["frozen"] = self.frozen
        if self.anew:
            plain["memory"] = "new"
        return plain


def _listed(source: Written) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield the place of each change and what it says; what is none, a mistake, is passed over."""
    changes = source.data.get(CHANGES)
    for k, change in enumerate(changes if isinstance(changes, list) else ()):
        if isinstance(change, dict):
            yield k, change


def nest_changes(source: Written) -> None:
    """Write `optimizer.lr: 0.1` in changes as `optimizer: {lr: 0.1}`."""
    for k, change in _listed(source):
        for key in [key for key in change if "." in key]:
            origin = source.origin((CHANGES, k, key))
            source.assign((CHANGES, str(k), *key.split(".")), change.pop(key), origin)


def written_out(source: Written) -> Iterator[tuple[int, Written]]:
    """Yield the place of each change and the config from there on, which extends that before it."""
    whole = {key: value for key, value in source.data.items() if key != CHANGES}
    before = Written(whole, source.origins)
    for k, change in _listed(source):
        place = (CHANGES, k)
        said = {key: change[key] for key in SECTIONS if change.get(key) is not None}
        origins = {at[2:]: origin for at, origin in source.origins.items() if at[:2] == place}
        child = Written(said, {(): source.origin(place), **origins})
        before = merge(Written(deepcopy(before.data), {**before.origins}), child, _as_a_whole)
        yield k, before


def _as_a_whole(place: KeyPath, said: Mapping[str, Any]) -> bool:
    """Whether a section takes the place of the one before; settings of an optimizer stay."""
    return "kind" in said and place != ("optimizer",)


def mistakes_of_changes(
    source: Written, config: RunConfig, *, check_files_exist: bool = True
) -> list[Mistake]:
    """Return what is wrong with the changes of a config that is right without them."""
    changes = config.changes or []
    problems = []
    before = 0
    last = _known_length(config)
    for k, change in enumerate(changes):
        place: KeyPath = (CHANGES, k)
        if change.at <= before:
            told = f"must be after the change before it, {before}, not {change.at}"
            problems.append(source.problem((*place, "at"), told))
        if last is not None and change.at >= last:
            told = f"must be before the end of the run, {last}, not {change.at}"
            problems.append(source.problem((*place, "at"), told))
        if change.model_fields_set == {"at"}:
            able = ", ".join(SECTIONS)
            told = f"says no change; {able} can change, and freeze, reset, scale weights"
            problems.append(source.problem(place, told))
        before = change.at

    seen: set[tuple[str, str]] = set()
    for k, written in written_out(_resolved(config, source.origins)):
        change = changes[k]
        found = _mistakes_from(written, config, check_files_exist=check_files_exist)
        where = source.origin((CHANGES, k))
        for problem in found:
            if (problem.key, problem.message) in seen:  # of an earlier change, still there
                continue
            seen.add((problem.key, problem.message))
            section = problem.key.partition(".")[0].partition("[")[0]
            key = f"{CHANGES}[{k}].{problem.key}"
            if getattr(change, section, None) is None:  # a section that the change does not suit
                problem = replace(problem, file=where.file, line=where.line)  # noqa: PLW2901
            problems.append(replace(problem, key=key))
    if problems:
        return problems
    return [
        source.problem((CHANGES, k, "optimizer", key), told)
        for k, key, told in _without_effect(segments_of(config))
    ]


def _without_effect(segments: Sequence[Segment]) -> Iterator[tuple[int, str, str]]:
    """Yield the number of a change, the key of an optimizer, and why it changes nothing."""
    for k, (before, after) in enumerate(pairwise(segments)):
        old, new = (segment.config.optimizer for segment in (before, after))
        name = getattr(new, "name", new.kind)
        if name != getattr(old, "name", old.kind):
            continue
        for key in new.read_once:
            if getattr(new, key, None) != getattr(old, key, None):
                yield k, key, f"{name} takes it for its first update alone; leave the change out"


def _mistakes_from(
    written: Written, config: RunConfig, *, check_files_exist: bool
) -> list[Mistake]:
    """Return what is wrong with the config from a change on, beside mistakes of the whole run."""
    kind: Any = node_at(("optimizer",), written.data).section
    if kind is not None and kind.is_flow != config.optimizer.is_flow:
        told = "gradient flow can neither begin nor end on the way"
        return [written.problem(("optimizer", "kind"), told)]
    try:
        following = RunConfig.model_validate(written.data)
    except ValidationError as error:
        return mistakes_in(error, written)
    findings = [*check_sections(dict(following)), *_fixed(config, following)]
    if check_files_exist:
        findings += check_files(dict(following))
    return [written.problem(path, message) for path, message in findings]


def _known_length(config: RunConfig) -> int | None:
    """Return the iterations of a run where they do not depend on its data."""
    if getattr(config.optimizer, "epochs", None) is not None:
        return None
    return config.optimizer.count(1)


def _fixed(config: RunConfig, following: RunConfig) -> Iterator[tuple[KeyPath, str]]:
    """Yield the settings of a whole run that a segment would change."""
    kept = [getattr(c.optimizer, "average", None) is not None for c in (config, following)]
    if len(set(kept)) > 1:
        yield ("optimizer", "average"), "is kept in the whole run, or not at all"
    for name, keys in _FIXED.items():
        old = getattr(config, name)
        new = getattr(following, name)
        for key in keys:
            given = getattr(new, key, None)
            silent = key == "measures" and given is None  # `_resolved` leaves them out
            if given != getattr(old, key, None) and not silent:
                yield (name, key), "belongs to the whole run, it cannot change on the way"


def segments_of(config: RunConfig) -> list[Segment]:
    """Return the segments of a run, one for a run without changes."""
    segments = [Segment(0, config.model_copy(update={CHANGES: None}))]
    if not config.changes:
        return segments
    for k, written in written_out(_resolved(config, {(): _NOWHERE})):
        change = config.changes[k]
        before = segments[-1]
        following = RunConfig.model_validate(written.data)
        fixed = {key: getattr(config.record, key) for key in _FIXED["record"]}
        made = {**dict(following), "record": following.record.model_copy(update=fixed)}
        said = {name: made[name] for name in SECTIONS if getattr(change, name) is not None}
        frozen = before.frozen
        if change.freeze is not None:
            frozen = tuple(sorted(set(change.freeze)))
        anew = _forgets(following.optimizer, before.config.optimizer)
        now = before.config.model_copy(update=said)
        segments.append(Segment(change.at, now, change, frozen, anew))
    return segments


def _resolved(config: RunConfig, origins: dict[KeyPath, Place]) -> Written:
    """Return a config with all its settings, as it is checked and trained."""
    plain = config.model_dump(exclude_none=True)
    plain["record"].pop("measures", None)  # they stay, and may be functions without a name
    return Written(plain, origins)


def _forgets(optimizer: Optimizer, before: Optimizer) -> bool:
    """Return whether memory of the optimizer before has equal names, but another meaning."""
    if optimizer.goes_on_from(before):
        return False
    return not {*remembered(optimizer)}.isdisjoint(remembered(before))

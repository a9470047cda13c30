"""The jobs of a sweep: a validated config per grid point and seed, made when it is asked for."""

from __future__ import annotations

import copy
import hashlib
import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache, partial
from pathlib import Path
from typing import Any, overload

import numpy as np
from pydantic import ValidationError

from dynamics_cli.config import ConfigError, RunConfig, load_config, run_hash
from dynamics_cli.config.dump import to_plain
from dynamics_cli.config.identity import Parts
from dynamics_cli.config.load import SWEEP, check_sections, load_sweep, self_contained, written_config
from dynamics_cli.config.reader import Assignment
from dynamics_cli.config.schema import SweepSection
from dynamics_cli.config.source import Place
from dynamics_cli.errors import DynError, UsageError
from dynamics_cli.sweeps.expressions import Let, computed, parse_let
from dynamics_cli.sweeps.grid import Axis, assignment, check_axes, grouped, read_axis, zipped

LIGHT_LOSSES = 1000
"""About how many losses each job of a sweep keeps with `--record light`."""
RECORDS = ("light", "ends", "config")
"""Records of a job: its ends and about a thousand losses; its ends only; all that its config asks for."""
ONE_BY_ONE = 10_000
"""Points of a grid that are all read before anything starts, and jobs whose configs make the name of their sweep."""
_TEMPLATES = 1000
"""Templates that are kept."""


@dataclass(frozen=True)
class Job:
    """A run of a sweep."""

    number: int
    settings: dict[str, Any]
    """Swept keys with their values."""
    config: RunConfig


def read_sweep_section(source: Any, overrides: Sequence[str] = ()) -> tuple[list[Axis], list[Let], SweepSection]:
    """Return the axes and the computed settings that the section `sweep` of a config asks for, and the section.

    Raises:
        ConfigError: the section is not valid; each problem with its line.
    """
    section, plain = load_sweep(source, overrides)
    axes: list[Axis] = []
    lets: list[Let] = []
    if section is None:
        return axes, lets, SweepSection()
    problems = list(plain.problems)

    def told(path: tuple[str | int, ...], read: Any) -> list[Any]:
        try:
            found = read()
        except UsageError as error:
            problems.append(plain.problem((SWEEP, *path), str(error)))
            return []
        return found if isinstance(found, list) else [found]

    for key, values in section.grid.items():
        origin = plain.origin((SWEEP, "grid", key))
        axes += told(("grid", key), partial(axis_of, key, values, origin=origin))
    for place, together in enumerate(section.zip):
        parts: list[Axis] = []
        for key, values in together.items():
            origin = plain.origin((SWEEP, "zip", place, key))
            parts += told(("zip", place, key), partial(axis_of, key, values, distinct=False, origin=origin))
        axes += told(("zip", place), partial(zipped, parts))
    for key, expression in section.let.items():
        parsed = told(("let", key), partial(parse_let, f"{key}={expression}"))
        lets += [Let(key, let.expression, plain.origin((SWEEP, "let", key))) for let in parsed]
    if problems:
        raise ConfigError(problems)
    return axes, lets, section


def axis_of(key: str, values: Any, *, distinct: bool = True, **more: Any) -> Axis:
    """Return the axis of a setting: values are a sequence, or a text as after `--grid key=`.

    Raises:
        UsageError: there are no values, or a value comes twice.
    """
    if isinstance(values, str):
        axis = read_axis(f"{key}={values}", distinct=distinct)
        return Axis(key, axis.values, axis.log, **more)
    listed = tuple(values) if isinstance(values, list | tuple) else (values,)
    if not listed or (distinct and len({repr(value) for value in listed}) < len(listed)):
        raise UsageError(f"the grid of {key} must have values, none of them twice")
    return Axis(key, listed, **more)


class PlannedSweep(Sequence[Job]):
    """The jobs of a sweep in their order: the last axis runs fastest, and the seeds of a point faster than that.

    A million jobs are no million objects: each is made from its number when it is asked for.
    """

    def __init__(
        self,
        source: Any,
        overrides: Sequence[str] = (),
        axes: Sequence[Axis] = (),
        *,
        lets: Sequence[Let] = (),
        seeds: int = 1,
        record: str = "light",
        checked: bool = False,
        **settings: Any,
    ) -> None:
        """Read all points of the grid; of more than `ONE_BY_ONE` the values of each axis, beside the first of others.

        Args:
            source: a config as `load_config` takes it.
            overrides: as after `--set`, for all jobs.
            axes: the grid.
            lets: settings that are computed at each point of the grid.
            seeds: jobs per grid point, with the config's seed and those after it.
            record: one of `RECORDS`.
            checked: whether this has been done before.
            settings: top-level settings for all jobs.

        Raises:
            ConfigError: a point of the grid gives a config that is not valid.
            UsageError: the grid makes no sense.
        """
        if record not in RECORDS:
            raise UsageError(f"record must be {', '.join(RECORDS)}, not {record!r}")
        check_axes(axes, seeds, [let.key for let in lets])
        self.axes, self.lets, self.seeds, self.record = tuple(axes), tuple(lets), seeds, record
        self._source, self._overrides, self._settings = source, list(overrides), settings
        self._origins = {axis.key: axis.origin for axis in axes} | {let.key: let.origin for let in lets}
        self.groups = grouped(axes)
        self.sizes = [len(group[0].values) for group in self.groups]
        self.strides = [math.prod(self.sizes[k + 1 :]) for k in range(len(self.sizes))]
        self.points = math.prod(self.sizes)
        self.structural = [not all(axis.numeric for axis in group) for group in self.groups]
        self._at, self._template = lru_cache(1)(self._make), lru_cache(_TEMPLATES)(self._read_template)
        for point in () if checked else self._to_check():
            self._at(point)

    def _to_check(self) -> Iterator[int]:
        if self.points <= ONE_BY_ONE:
            yield from range(self.points)
            return
        for size, stride in zip(self.sizes, self.strides, strict=True):
            few = min(size, ONE_BY_ONE)
            yield from (stride * (k * (size - 1) // max(few - 1, 1)) for k in range(few))

    @property
    def keys(self) -> list[str]:
        """The settings that differ from job to job."""
        return [axis.key for axis in self.axes] + [let.key for let in self.lets]

    def __len__(self) -> int:
        return self.points * self.seeds

    @overload
    def __getitem__(self, number: int) -> Job: ...
    @overload
    def __getitem__(self, number: slice) -> list[Job]: ...
    def __getitem__(self, number: int | slice) -> Job | list[Job]:
        if isinstance(number, slice):
            return [self[k] for k in range(*number.indices(len(self)))]
        if not -len(self) <= number < len(self):
            raise IndexError(number)
        number %= len(self)
        point, k = divmod(number, self.seeds)
        settings, config = self._at(point)
        return Job(number, dict(settings), config if k == 0 else config.model_copy(update={"seed": config.seed + k}))

    def cells(self, number: int) -> tuple[dict[str, Any], int | None]:
        """Return the settings of a job and its seed, without its config; no seed where it cannot be computed."""
        point, k = divmod(number, self.seeds)
        settings = self._swept(point)
        try:
            if self.lets:
                settings = computed(self.lets, settings, self._template(self._outer(point)).written)
            seed = settings["seed"] if "seed" in settings else self._template(self._outer(point)).config.seed
        except DynError:  # told by the job itself
            return settings, None
        return settings, int(seed) + k

    def _swept(self, point: int) -> dict[str, Any]:
        """Return the swept settings of a point, in the order of the axes."""
        places = zip(self.groups, self.strides, self.sizes, strict=True)
        chosen = {axis.key: axis.values[point // stride % size] for group, stride, size in places for axis in group}
        return {axis.key: chosen[axis.key] for axis in self.axes}

    def _outer(self, point: int) -> int:
        """Return the first point with the kinds, lists and words of another, which decide the keys of the config."""
        places = zip(self.structural, self.strides, self.sizes, strict=True)
        return sum(point // stride % size * stride for structural, stride, size in places if structural)

    def _make(self, point: int) -> tuple[dict[str, Any], RunConfig]:
        """Return the settings of a point, and its config: a template in which numbers are replaced.

        Raises:
            ConfigError: it is not valid; the message is that of the slow way, which knows better words.
        """
        template, settings = self._template(self._outer(point)), self._swept(point)
        changes = {key: value for key, value in settings.items() if key not in template.fixed}
        settings = computed(self.lets, settings, template.written)
        changes |= {let.key: settings[let.key] for let in self.lets}
        heads = {key.partition(".")[0] for key in changes} & template.plain.keys()
        data = dict(template.config) | {head: template.plain[head] for head in heads}  # jobs share the other sections
        try:
            for key, value in changes.items():
                _set(data, key.split("."), value)
            config = RunConfig.model_validate(data)
            if next(check_sections(dict(config)), None) is None:
                return settings, config
        except (ValidationError, LookupError, TypeError, ValueError):
            pass
        return settings, self._read(template.overrides, changes)

    def _read_template(self, outer: int) -> _Template:
        swept, groups = self._swept(outer), zip(self.groups, self.structural, strict=True)
        numbers = {axis.key for group, structural in groups if not structural for axis in group}
        fixed = {key: value for key, value in swept.items() if key not in numbers}
        overrides: list[str | Assignment] = [*self._overrides, *self._assigned(fixed)]
        written = written_config(self._source, overrides, **self._settings).data if self.lets else {}
        # settings that the config leaves to the sweep may have no value before
        settings = computed(self.lets, swept, written)
        changes = {key: value for key, value in settings.items() if key not in fixed}
        config = self._read(overrides, changes)
        return _Template(overrides, {*fixed}, written, config, to_plain(config))

    def _assigned(self, settings: Mapping[str, Any]) -> list[Assignment]:
        return [assignment(key, value, self._origins[key]) for key, value in settings.items()]

    def _read(self, overrides: Sequence[str | Assignment], changes: Mapping[str, Any]) -> RunConfig:
        changed: list[str | Assignment] = [*overrides, *self._assigned(changes)]
        config = load_config(self._source, changed, swept=True, **self._settings)
        return config if self.record == "config" else light(config, 1 if self.record == "ends" else LIGHT_LOSSES)

    def first_of_each_kind(self) -> Iterator[RunConfig]:
        """Yield a config for each combination of values that are not numbers."""
        points = np.arange(self.points).reshape(self.sizes)
        for point in points[*(slice(None if structural else 1) for structural in self.structural)].flat:
            yield self._at(int(point))[1]

    @cached_property
    def hash(self) -> str:
        """The identity of the sweep: that of its runs in their order, device and backend as they were asked for.

        Of more than `ONE_BY_ONE` jobs: that of a run for each combination of kinds, lists and words, and of the
        swept values.

        Raises:
            ConfigError: when a file that a config names is not there or cannot be read.
        """
        digest, many, parts = hashlib.sha256(), len(self) > ONE_BY_ONE, Parts()
        for config in self.first_of_each_kind() if many else (job.config for job in self):
            digest.update(run_hash(config, device=config.device, backend=config.backend, parts=parts).encode())
        if many:
            swept = [[(a.key, a.values, a.leader) for a in self.axes], [(x.key, x.expression) for x in self.lets]]
            digest.update(json.dumps([*swept, self.seeds]).encode())
        return digest.hexdigest()

    def described(self) -> dict[str, Any]:
        """Return its description in `sweep.json`, from which `planned_again` makes the same jobs anywhere.

        Raises:
            ConfigError: when a file that a config names is not there or cannot be read.
        """
        axes = [
            {"key": a.key, "values": list(a.values), "log": a.log}
            | ({} if a.numeric else {"folder": str(a.origin.directory if a.origin else Path.cwd())})
            | ({"with": a.leader} if a.leader else {})
            for a in self.axes
        ]
        lets = {"computed": {let.key: let.expression for let in self.lets}} if self.lets else {}
        return {
            "hash": self.hash,
            "name": self[0].config.name,
            "axes": axes,
            **lets,
            "seeds": self.seeds,
            "jobs": len(self),
            "record": self.record,
            "config": self_contained(self._source, self._overrides, **self._settings),
        }


def planned_again(described: Mapping[str, Any]) -> PlannedSweep:
    """Return the sweep of a description by `PlannedSweep.described`."""
    axes = [
        Axis(
            a["key"],
            tuple(a["values"]),
            a["log"],
            a.get("with"),
            Place("sweep.json", None, Path(a.get("folder", "."))),
        )
        for a in described["axes"]
    ]
    lets = [Let(key, expression) for key, expression in described.get("computed", {}).items()]
    more = {name: described[name] for name in ("seeds", "record")}
    return PlannedSweep(described["config"], (), axes, lets=lets, checked=True, **more)


@dataclass(frozen=True)
class _Template:
    """A config in which numbers are replaced without reading it again."""

    overrides: list[str | Assignment]
    fixed: set[str]
    """Settings that are assigned by them."""
    written: dict[str, Any]
    """The config as it is written, without defaults; nothing where no setting is computed."""
    config: RunConfig
    plain: dict[str, Any]


def light(config: RunConfig, losses: int = LIGHT_LOSSES) -> RunConfig:
    """Return the config with a record that keeps the ends, and about a number of losses between them."""
    total = getattr(config.optimizer, "iterations", None)
    snapshots = {"kind": "list", "include": []}
    every = max(1, total // losses) if total and getattr(config.optimizer, "batch_size", None) is None else None
    changes: dict[str, Any] = {"snapshots": snapshots}
    if every is not None and config.record.loss_every is None:
        changes["loss_every"] = every
    plain = to_plain(config)
    plain["record"] = {**plain["record"], **changes}
    return RunConfig.model_validate(plain)


def _set(data: Any, path: Sequence[str], value: Any) -> None:
    """Replace a value; the containers on the way are copied, so that jobs do not share them."""
    head, *rest = path
    key: Any = int(head) if isinstance(data, list) else head
    if not rest:
        data[key] = value
        return
    data[key] = copy.copy(data[key])
    _set(data[key], rest, value)

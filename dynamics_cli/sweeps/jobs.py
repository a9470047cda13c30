"""The jobs of a sweep: one validated config per grid point and seed, made when it is asked for."""

from __future__ import annotations

import copy
import hashlib
import itertools
import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import Any, overload

from pydantic import ValidationError

from dynamics_cli.config import ConfigError, RunConfig, load_config, run_hash
from dynamics_cli.config.dump import to_plain
from dynamics_cli.config.identity import Parts
from dynamics_cli.config.load import SWEEP, check_sections, load_sweep, self_contained, written_config
from dynamics_cli.config.reader import Assignment
from dynamics_cli.config.schema import SweepSection
from dynamics_cli.config.source import Origin
from dynamics_cli.errors import DynError, UsageError
from dynamics_cli.sweeps.expressions import Computed, Let, parse_let
from dynamics_cli.sweeps.grid import Axis, assignment, check_axes, grouped, read_axis, zipped

LIGHT_LOSSES = 1000
"""About how many losses each job of a sweep keeps with `--record light`."""
RECORDS = ("light", "ends", "config")
"""What each job keeps: its ends and about a thousand losses; its ends only; what its config says."""
ONE_BY_ONE = 10_000
"""Points of a grid that are all read before anything starts, and jobs whose configs make the name of their sweep."""
_TEMPLATES = 1000
"""Templates that are kept."""


@dataclass(frozen=True)
class Job:
    """One run of a sweep."""

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
        UsageError: there are no values, or one comes twice.
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
            source: what `load_config` takes.
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
        check_axes(axes, seeds)
        self.axes, self.lets, self.seeds, self.record = tuple(axes), tuple(lets), seeds, record
        self._source, self._overrides, self._settings = source, list(overrides), settings
        self._computed = Computed(lets, [axis.key for axis in axes])
        self.groups = grouped(axes)
        self.sizes = [len(group[0].values) for group in self.groups]
        self.structural = [not all(axis.numeric for axis in group) for group in self.groups]
        self._templates: dict[tuple[int, ...], _Template] = {}
        self._last: tuple[int, tuple[dict[str, Any], RunConfig]] | None = None
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
    def points(self) -> int:
        """Number of points of the grid."""
        return math.prod(self.sizes)

    @property
    def strides(self) -> list[int]:
        """How far apart, in points, two neighbouring values of each group of axes are."""
        return [math.prod(self.sizes[k + 1 :]) for k in range(len(self.sizes))]

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
        computed, config = self._at(point)
        config = config if k == 0 else config.model_copy(update={"seed": config.seed + k})
        return Job(number, {**self._swept(point), **computed}, config)

    def cells(self, number: int) -> tuple[dict[str, Any], int | None]:
        """Return the settings of a job and its seed, without its config; no seed where it cannot be computed."""
        point, k = divmod(number, self.seeds)
        settings = self._swept(point)
        try:
            if self.lets:
                settings |= self._template(point).computed(settings)
            seed = settings["seed"] if "seed" in settings else self._template(point).seed
        except DynError:  # told by the job itself
            return settings, None
        return settings, int(seed) + k

    def _places(self, point: int) -> list[int]:
        return [point // stride % size for stride, size in zip(self.strides, self.sizes, strict=True)]

    def _swept(self, point: int) -> dict[str, Any]:
        """Return the swept settings of a point, in the order of the axes."""
        chosen = {
            axis.key: axis.values[k]
            for group, k in zip(self.groups, self._places(point), strict=True)
            for axis in group
        }
        return {axis.key: chosen[axis.key] for axis in self.axes}

    def _at(self, point: int) -> tuple[dict[str, Any], RunConfig]:
        """Return the computed settings of a point, and its config."""
        if self._last is None or self._last[0] != point:
            self._last = point, self._template(point).at(self._swept(point))
        return self._last[1]

    def _template(self, point: int) -> _Template:
        """Return what the configs of all points with the same kinds, lists and words are made of.

        These change what keys there are: they take the whole way through the reader.
        """
        places = self._places(point)
        outer = tuple(place for place, structural in zip(places, self.structural, strict=True) if structural)
        if outer not in self._templates:
            if len(self._templates) >= _TEMPLATES:
                self._templates.clear()
            first = {axis.key: axis.values[place if structural else 0]
                     for group, place, structural in zip(self.groups, places, self.structural, strict=True)
                     for axis in group}  # fmt: skip
            fixed = {axis.key for group, one in zip(self.groups, self.structural, strict=True) if one for axis in group}
            self._templates[outer] = _Template(
                self._source, self._overrides, self._settings, {axis.key: first[axis.key] for axis in self.axes},
                fixed, [*self.axes, *self.lets], self._computed, self.record,
            )  # fmt: skip
        return self._templates[outer]

    def first_of_each_kind(self) -> Iterator[RunConfig]:
        """Yield a config for each combination of values that are not numbers."""
        each = zip(self.sizes, self.strides, self.structural, strict=True)
        for offsets in itertools.product(
            *(range(0, size * stride if one else 1, stride) for size, stride, one in each)
        ):
            yield self._at(sum(offsets))[1]

    @cached_property
    def hash(self) -> str:
        """The identity of the sweep: that of its runs in their order, device and backend as they were asked for.

        Of more than `ONE_BY_ONE` jobs: that of one run for each combination of kinds, lists and words, and what is
        swept.

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
        """Return what `sweep.json` says of it, from which `planned_again` makes the same jobs anywhere.

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
    """Return the sweep of which `PlannedSweep.described` has told."""
    axes = [
        Axis(
            a["key"],
            tuple(a["values"]),
            a["log"],
            a.get("with"),
            Origin("sweep.json", None, Path(a.get("folder", "."))),
        )
        for a in described["axes"]
    ]
    lets = [Let(key, expression) for key, expression in described.get("computed", {}).items()]
    more = {name: described[name] for name in ("seeds", "record")}
    return PlannedSweep(described["config"], (), axes, lets=lets, checked=True, **more)


class _Template:
    """A config in which numbers are replaced without reading it again."""

    def __init__(
        self,
        source: Any,
        overrides: Sequence[str],
        settings: Mapping[str, Any],
        first: Mapping[str, Any],
        fixed: set[str],
        origins: Sequence[Axis | Let],
        computed: Computed,
        record: str,
    ) -> None:
        """Read the config at its `first` point; the settings that are `fixed` stay as they are there."""
        self._origins = {one.key: one.origin for one in origins}
        self._first, self._fixed, self._computed, self._record = first, fixed, computed, record
        self._source, self._settings = source, settings
        outer = {key: value for key, value in first.items() if key in fixed}
        self._overrides: list[str | Assignment] = [*overrides, *self._assignments(outer)]
        self._written = written_config(source, self._overrides, **settings).data if computed.lets else {}
        # what the config leaves to the sweep may have no value before
        self._config = self._read(self._changes(first))
        self._plain = to_plain(self._config)
        self.seed = self._config.seed

    def _assignments(self, point: Mapping[str, Any]) -> list[Assignment]:
        return [assignment(key, value, self._origins[key]) for key, value in point.items()]

    def computed(self, point: Mapping[str, Any]) -> dict[str, Any]:
        """Return the computed settings at a point."""
        return self._computed.at(point, self._written)

    def _changes(self, point: Mapping[str, Any]) -> dict[str, Any]:
        swept = {key: value for key, value in point.items() if key not in self._fixed}
        return {**swept, **self.computed(point)}

    def at(self, point: Mapping[str, Any]) -> tuple[dict[str, Any], RunConfig]:
        """Return the computed settings at a point, and its config.

        Raises:
            ConfigError: it is not valid; the message is that of the slow way, which knows better words.

        """
        changes = self._changes(point)
        computed = {key: changes[key] for key in self._computed.lets}
        if point == self._first:
            return computed, self._config
        heads = {key.partition(".")[0] for key in changes} & self._plain.keys()
        data = dict(self._config) | {head: self._plain[head] for head in heads}  # jobs share the other sections
        try:
            for key, value in changes.items():
                _set(data, key.split("."), value)
            config = RunConfig.model_validate(data)
            valid = next(check_sections(dict(config)), None) is None
        except (ValidationError, LookupError, TypeError, ValueError):
            valid = False
        return computed, config if valid else self._read(changes)

    def _read(self, changes: Mapping[str, Any]) -> RunConfig:
        overrides: list[str | Assignment] = [*self._overrides, *self._assignments(changes)]
        config = load_config(self._source, overrides, swept=True, **self._settings)
        return config if self._record == "config" else light(config, 1 if self._record == "ends" else LIGHT_LOSSES)


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
    """Replace one value; the containers on the way are copied, so that jobs do not share them."""
    head, *rest = path
    key: Any = int(head) if isinstance(data, list) else head
    if not rest:
        data[key] = value
        return
    data[key] = copy.copy(data[key])
    _set(data[key], rest, value)

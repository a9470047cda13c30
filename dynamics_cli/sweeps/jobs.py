"""The jobs of a sweep: one validated config per grid point and seed."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from pydantic import ValidationError

from dynamics_cli.config import ConfigError, RunConfig, load_config
from dynamics_cli.config.dump import to_plain
from dynamics_cli.config.load import SWEEP, check_config, load_sweep, written_config
from dynamics_cli.config.overrides import Assignment
from dynamics_cli.errors import UsageError
from dynamics_cli.sweeps.expressions import Computed, Let, parse_let
from dynamics_cli.sweeps.grid import Axis, assignment, combinations, grouped, read_axis, zipped

LIGHT_LOSSES = 1000
"""About how many losses each job of a sweep keeps, unless the config's own record is asked for."""


@dataclass(frozen=True)
class Job:
    """One run of a sweep."""

    number: int
    settings: dict[str, Any]
    """Swept keys with their values."""
    config: RunConfig


def read_sweep_section(source: Any, overrides: Sequence[str] = ()) -> tuple[list[Axis], list[Let], int]:
    """Return the axes, the computed settings and the number of seeds that the section `sweep` of a config asks for.

    Raises:
        ConfigError: the section is not valid; each problem with its line.
    """
    section, plain = load_sweep(source, overrides)
    axes: list[Axis] = []
    lets: list[Let] = []
    if section is None:
        return axes, lets, 1
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
    return axes, lets, section.seeds


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


def build_jobs(
    source: Any,
    overrides: Sequence[str],
    axes: Sequence[Axis],
    *,
    lets: Sequence[Let] = (),
    seeds: int = 1,
    full_record: bool = False,
    **settings: Any,
) -> list[Job]:
    """Return all jobs, each with a validated config.

    Args:
        source: what `load_config` takes.
        overrides: as after `--set`, for all jobs.
        axes: the grid.
        lets: settings that are computed at each point of the grid.
        seeds: jobs per grid point, with the config's seed and those after it.
        full_record: keep the record section of the config; otherwise only the first and last state and about a
            thousand losses are kept.
        settings: top-level settings for all jobs.

    Raises:
        ConfigError: a point of the grid gives a config that is not valid.
        UsageError: the grid makes no sense.

    """
    computed = Computed(lets, [axis.key for axis in axes])
    numeric = [axis for group in grouped(axes) if all(axis.numeric for axis in group) for axis in group]
    structural = [axis for axis in axes if axis not in numeric]
    order = [axis.key for axis in axes]
    points: dict[tuple[str, ...], tuple[dict[str, Any], RunConfig]] = {}
    for outer in combinations(structural):
        # kinds, lists and words change what keys there are: they take the whole way through the reader
        template = _Template(source, overrides, settings, outer, [*axes, *lets], computed, full_record)
        for inner in combinations(numeric):
            points[_place(order, {**outer, **inner})] = template.at(inner)
    jobs: list[Job] = []
    for point in combinations(axes):
        changes, config = points[_place(order, point)]
        for k in range(seeds):
            each = config if k == 0 else config.model_copy(update={"seed": config.seed + k})
            jobs.append(Job(len(jobs), {**point, **changes}, each))
    return jobs


def _place(order: Sequence[str], point: Mapping[str, Any]) -> tuple[str, ...]:
    return tuple(repr(point[key]) for key in order)


class _Template:
    """A config in which numbers are replaced without reading it again."""

    def __init__(
        self,
        source: Any,
        overrides: Sequence[str],
        settings: Mapping[str, Any],
        outer: Mapping[str, Any],
        origins: Sequence[Axis | Let],
        computed: Computed,
        full_record: bool,
    ) -> None:
        self._origins = {one.key: one.origin for one in origins}
        self._outer, self._computed, self._full_record = outer, computed, full_record
        self._source, self._settings = source, settings
        self._overrides: list[str | Assignment] = [*overrides, *self._assignments(outer)]
        self._written = written_config(source, self._overrides, **settings).data if computed.lets else {}
        self._plain: dict[str, Any] | None = None

    def _assignments(self, point: Mapping[str, Any]) -> list[Assignment]:
        return [assignment(key, value, self._origins[key]) for key, value in point.items()]

    def at(self, inner: Mapping[str, Any]) -> tuple[dict[str, Any], RunConfig]:
        """Return the computed settings at a point, and its config.

        Raises:
            ConfigError: it is not valid; the message is that of the slow way, which knows better words.

        """
        computed = self._computed.at({**self._outer, **inner}, self._written)
        changes = {**inner, **computed}
        if self._plain is None:  # the first point: what the config leaves to the sweep may have no value before
            config = self._read(changes)
            self._plain = to_plain(config)
            return computed, config
        data = copy.copy(self._plain)
        try:
            for key, value in changes.items():
                _set(data, key.split("."), value)
            config = RunConfig.model_validate(data)
            valid = next(check_config(config), None) is None
        except (ValidationError, LookupError, TypeError, ValueError):
            valid = False
        return computed, config if valid else self._read(changes)

    def _read(self, changes: Mapping[str, Any]) -> RunConfig:
        overrides: list[str | Assignment] = [*self._overrides, *self._assignments(changes)]
        config = load_config(self._source, overrides, swept=True, **self._settings)
        return config if self._full_record else light(config)


def light(config: RunConfig) -> RunConfig:
    """Return the config with a record that keeps the ends, and about a thousand losses."""
    total = getattr(config.optimizer, "iterations", None)
    snapshots = {"kind": "list", "include": []}
    every = max(1, total // LIGHT_LOSSES) if total and getattr(config.optimizer, "batch_size", None) is None else None
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

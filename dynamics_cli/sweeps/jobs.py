"""The jobs of a sweep: one validated config per grid point and seed."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pydantic import ValidationError

from dynamics_cli.config import ConfigError, Problem, RunConfig, load_config
from dynamics_cli.config.dump import to_plain
from dynamics_cli.config.errors import key_text
from dynamics_cli.config.load import check_config
from dynamics_cli.errors import UsageError
from dynamics_cli.sweeps.grid import Axis, as_override, combinations

LIGHT_LOSSES = 1000
"""About how many losses each job of a sweep keeps, unless the config's own record is asked for."""


@dataclass(frozen=True)
class Job:
    """One run of a sweep."""

    number: int
    settings: dict[str, Any]
    """Swept keys with their values."""
    config: RunConfig


def build_jobs(
    source: Any,
    overrides: Sequence[str],
    axes: Sequence[Axis],
    *,
    seeds: int = 1,
    full_record: bool = False,
    **settings: Any,
) -> list[Job]:
    """Return all jobs, each with a validated config.

    Args:
        source: what `load_config` takes.
        overrides: as after `--set`, for all jobs.
        axes: the grid.
        seeds: jobs per grid point, with the config's seed and those after it.
        full_record: keep the record section of the config; otherwise only the first and last state and about a
            thousand losses are kept.
        settings: top-level settings for all jobs.

    Raises:
        ConfigError: a point of the grid gives a config that is not valid.
        UsageError: the grid makes no sense.

    """
    structural = [axis for axis in axes if not axis.numeric]
    numeric = [axis for axis in axes if axis.numeric]
    order = [axis.key for axis in axes]
    configs: dict[tuple[str, ...], RunConfig] = {}
    for outer in combinations(structural):
        # kinds, lists and words change what keys there are: they take the whole way through the reader
        template = _Template(source, [*overrides, *_texts(outer)], settings, full_record)
        for inner in combinations(numeric):
            configs[_place(order, {**outer, **inner})] = template.at(inner)
    jobs: list[Job] = []
    for point in combinations(axes):
        config = configs[_place(order, point)]
        for k in range(seeds):
            each = config if k == 0 else config.model_copy(update={"seed": config.seed + k})
            jobs.append(Job(len(jobs), point, each))
    return jobs


def _texts(point: Mapping[str, Any]) -> list[str]:
    return [as_override(key, value) for key, value in point.items()]


def _place(order: Sequence[str], point: Mapping[str, Any]) -> tuple[str, ...]:
    return tuple(repr(point[key]) for key in order)


class _Template:
    """A config in which numbers are replaced without reading it again."""

    def __init__(self, source: Any, overrides: Sequence[str], settings: Mapping[str, Any], full_record: bool) -> None:
        self._source, self._overrides, self._settings = source, overrides, settings
        config = load_config(source, overrides, **settings)
        self._config = config if full_record else light(config)
        self._plain = to_plain(self._config)

    def at(self, changes: Mapping[str, Any]) -> RunConfig:
        """Return the config with numbers replaced.

        Raises:
            ConfigError: it is not valid; the message is that of the slow way, which knows better words.

        """
        if not changes:
            return self._config
        data = copy.copy(self._plain)
        try:
            for key, value in changes.items():
                _set(data, key.split("."), value)
            config = RunConfig.model_validate(data)
        except (ValidationError, LookupError, TypeError, ValueError) as error:
            load_config(self._source, [*self._overrides, *_texts(changes)], **self._settings)
            raise UsageError(f"--grid {', '.join(_texts(changes))}: {error}") from error
        problems = [Problem("--grid", None, key_text(path), message) for path, message in check_config(config)]
        if problems:
            raise ConfigError(problems)
        return config


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

"""The jobs of a sweep: a resolved config per grid point and seed."""

from __future__ import annotations

import copy
import hashlib
import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property, partial
from pathlib import Path
from types import MappingProxyType
from typing import Any

from pydantic import ValidationError

from dynamics_cli.config import ConfigError, RunConfig, load_config, run_hash
from dynamics_cli.config.dump import to_plain
from dynamics_cli.config.errors import Mistake
from dynamics_cli.config.identity import Parts
from dynamics_cli.config.load import SWEEP, check_sections, load_sweep, self_contained
from dynamics_cli.config.reader import Assignment
from dynamics_cli.config.schema import SweepSection
from dynamics_cli.config.source import Place
from dynamics_cli.errors import DynError, UsageError
from dynamics_cli.memory import GIB
from dynamics_cli.sweeps.expressions import computed
from dynamics_cli.sweeps.grid import MOST_JOBS, Axis, axis_of
from dynamics_cli.text import size
from dynamics_cli.training.backends import choose
from dynamics_cli.training.estimate import estimate
from dynamics_cli.training.problem import build_problem

LIGHT_LOSSES = 1000
"""About how many losses each job of a sweep keeps with `--record light`."""
RECORDS = ("light", "ends", "config")
"""Records of a job: its ends and about a thousand losses; its ends only; all that its config asks for."""
LOOKED_AT = 100
"""Jobs whose needs are estimated at most; they stand for the others."""


@dataclass(frozen=True, slots=True)
class Job:
    """A run of a sweep."""

    number: int
    settings: dict[str, Any]
    """Swept and computed keys with their values."""
    config: RunConfig


def read_sweep_section(source: Any, overrides: Sequence[str] = ()) -> tuple[list[Axis], SweepSection]:
    """Return the axes that the section `sweep` of a config asks for, and the section.

    Raises:
        ConfigError: the section is not valid; each problem with its line.
    """
    section, plain = load_sweep(source, overrides)
    axes: list[Axis] = []
    if section is None:
        return axes, SweepSection()
    problems = list(plain.problems)
    for key, values in section.grid.items():
        path = (SWEEP, "grid", key)
        try:
            axes.append(axis_of(key, values, plain.origin(path)))
        except UsageError as error:
            problems.append(plain.problem(path, str(error)))
    if problems:
        raise ConfigError(problems)
    return axes, section


class PlannedSweep(list[Job]):
    """The jobs of a sweep in their order: the last axis runs fastest, and the seeds of a point faster than that."""

    def __init__(
        self,
        source: Any,
        overrides: Sequence[str] = (),
        axes: Sequence[Axis] = (),
        *,
        let: Mapping[str, str] = MappingProxyType({}),
        seeds: int = 1,
        record: str | None = "light",
        messages: Callable[[str], object] | None = None,
        **settings: Any,
    ) -> None:
        """Read the config of each point of the grid; see `api.sweep` for the arguments.

        `record` is one of `RECORDS`, or None for `config`, unless that is too much, which `messages` is told.

        Raises:
            ConfigError: a point of the grid gives a config that is not valid.
            UsageError: the grid makes no sense.
        """
        if record not in (*RECORDS, None):
            raise UsageError(f"record must be {', '.join(RECORDS)}, not {record!r}")
        keys = [axis.key for axis in axes]
        if twice := [key for key in keys if [*keys, *let].count(key) > 1]:
            raise UsageError(f"{twice[0]} gets its values twice; sweep it or compute it once")
        if (jobs := seeds * math.prod(len(axis.values) for axis in axes)) > MOST_JOBS:
            raise UsageError(f"{jobs} networks are asked for; a sweep has at most {MOST_JOBS}")
        self.axes, self.let, self.seeds = tuple(axes), dict(let), seeds
        self.written = self_contained(source, overrides, **settings)
        configs = _Configs(partial(load_config, source, swept=True, **settings), overrides, axes)
        for values in itertools.product(*(axis.values for axis in axes)):
            point = computed(let, dict(zip(keys, values, strict=True)), self.written)
            config = configs.at(point)
            of_seeds = [config.model_copy(update={"seed": config.seed + k}) if k else config for k in range(seeds)]
            self += [Job(len(self) + k, point, of_seed) for k, of_seed in enumerate(of_seeds)]
        if record is None and (too_much := self._beyond_limit()) is not None:
            record = "light"
            if messages is not None:
                messages(too_much)
        self.record = record or "config"
        if self.record != "config":
            light = partial(_light, 1 if self.record == "ends" else LIGHT_LOSSES, {})
            self[:] = [Job(job.number, job.settings, light(job.config)) for job in self]

    @cached_property
    def hash(self) -> str:
        """The identity of the sweep: its runs' in their order, with device and backend as requested.

        Raises:
            ConfigError: when a file that a config names is not there or cannot be read.
        """
        digest, parts = hashlib.sha256(), Parts()
        for config in (job.config for job in self):
            digest.update(run_hash(config, device=config.device, backend=config.backend, parts=parts).encode())
        return digest.hexdigest()

    def disk_bytes(self) -> float:
        """Return about how much all jobs record; those that cannot be trained record nothing."""
        some, total = self[:: -(-len(self) // LOOKED_AT)], 0.0
        for job in some:
            try:
                problem = build_problem(job.config)
                total += estimate(problem, choose([problem])).disk_bytes
            except DynError:  # told when the job is trained
                pass
        return total * len(self) / len(some)

    def _beyond_limit(self) -> str | None:
        total, limit = self.disk_bytes(), self[0].config.record.limit_gib
        if total <= limit * GIB:
            return None
        return (
            f"the jobs would record about {size(round(total))}, record.limit_gib is {limit:g}: each keeps its ends and "
            f"about {LIGHT_LOSSES} losses (--record light); --record ends keeps fewer, --record config all"
        )

    def described(self) -> dict[str, Any]:
        """Return its description in `sweep.json`.

        Raises:
            ConfigError: when a file that a config names is not there or cannot be read.
        """
        return {
            "hash": self.hash,
            "name": self[0].config.name,
            "axes": [{"key": axis.key, "values": list(axis.values), "log": axis.log} for axis in self.axes],
            "computed": self.let,
            "points": [[*job.settings.values()] for job in self[:: self.seeds]],
            "seeds": self.seeds,
            "jobs": len(self),
            "record": self.record,
            "config": self.written,
        }


class _Configs:
    """The configs of a grid; a point that only replaces numbers of another point is not read again."""

    def __init__(self, load: Callable[[Any], RunConfig], overrides: Sequence[str], axes: Sequence[Axis]) -> None:
        self._load, self._overrides = load, overrides
        self._axes = {axis.key: axis for axis in axes}
        self._like: dict[str, tuple[RunConfig, dict[str, Any]]] = {}
        """Settings that are no numbers -> the first config that has them, and the same as plain data."""
        self._sections: dict[tuple[str, ...], Any] = {}
        """Those, a section and its numbers -> that section, which all jobs with these settings share."""

    def at(self, settings: Mapping[str, Any]) -> RunConfig:
        """Return the config of some settings.

        Raises:
            ConfigError: it is not valid.
        """
        numbers: dict[str, dict[str, Any]] = {}
        for key, value in settings.items():
            if type(value) in (int, float):
                numbers.setdefault(key.partition(".")[0], {})[key] = value
        words = repr({key: value for key, value in settings.items() if type(value) not in (int, float)})
        if words in self._like:
            with suppress(ValidationError, LookupError, TypeError, ValueError):  # told by reading it
                sections = {name: self._section(words, name, values) for name, values in numbers.items()}
                config = self._like[words][0].model_copy(update=sections)
                if next(check_sections(dict(config)), None) is None:
                    return config
        origins = {key: axis.origin for key, axis in self._axes.items() if axis.origin is not None}
        place = Place("--grid", None, Path.cwd())
        assigned = [Assignment(tuple(key.split(".")), settings[key], origins.get(key, place)) for key in settings]
        try:
            config = self._load([*self._overrides, *assigned])
        except ConfigError as error:
            raise ConfigError([self._spaced_by_integers(problem) for problem in error.problems]) from error
        self._like.setdefault(words, (config, to_plain(config)))
        return config

    def _section(self, words: str, name: str, numbers: Mapping[str, Any]) -> Any:
        """Return a section of the config that has these words, with other numbers."""
        known = words, name, repr(numbers)
        if known not in self._sections:
            first, plain = self._like[words]
            data = {name: copy.deepcopy(plain[name])}
            for key, value in numbers.items():
                *above, last = key.split(".")
                inner: Any = data
                for part in above:
                    inner = inner[int(part) if isinstance(inner, list) else part]
                inner[int(last) if isinstance(inner, list) else last] = value
            self._sections[known] = getattr(RunConfig.model_validate(dict(first) | data), name)
        return self._sections[known]

    def _spaced_by_integers(self, problem: Mistake) -> Mistake:
        """Return a problem; of a logarithmic range of a key of integers it says how to write the range."""
        axis = self._axes.get(problem.key)
        if axis is None or not axis.log or "must be an integer" not in problem.message:
            return problem
        written = f"{axis.key}={axis.values[0]:g}:{axis.values[-1]:g}:logint:{len(axis.values)}"
        return replace(problem, message=f"{problem.message.partition(' (write')[0]}; use logint: {written}")


def _light(losses: int, known: dict[tuple[int, int | None], tuple[Any, Any]], config: RunConfig) -> RunConfig:
    """Return a config whose record keeps the ends, and about `losses` losses between them.

    `known` has `id` of a section and iterations between two losses -> that section, and the lighter one.
    """
    total, every = getattr(config.optimizer, "iterations", None), config.record.loss_every
    if every is None and total and getattr(config.optimizer, "batch_size", None) is None:
        every = max(1, total // losses)
    key = id(config.record), every
    if key not in known:
        plain = {**to_plain(config)["record"], "snapshots": {"kind": "list", "include": []}, "loss_every": every}
        known[key] = config.record, type(config.record).model_validate(plain)
    return config.model_copy(update={"record": known[key][1]})

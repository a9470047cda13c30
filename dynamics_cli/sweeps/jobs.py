"""The jobs of a sweep: a resolved config per grid point and seed."""

from __future__ import annotations

import copy
import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any

from pydantic import ValidationError

from dynamics_cli.config import ConfigError, RunConfig, load_config, run_hash
from dynamics_cli.config.dump import to_plain
from dynamics_cli.config.errors import Mistake
from dynamics_cli.config.identity import Parts
from dynamics_cli.config.load import SWEEP, check_sections, load_sweep, self_contained
from dynamics_cli.config.schema import SweepSection
from dynamics_cli.errors import DynError, UsageError
from dynamics_cli.memory import GIB
from dynamics_cli.sweeps.expressions import Let, computed, parse_let
from dynamics_cli.sweeps.grid import Axis, assignment, axis_of, check_axes, points, zipped
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


class PlannedSweep(list[Job]):
    """The jobs of a sweep in their order: the last axis runs fastest, and the seeds of a point faster than that."""

    def __init__(
        self,
        source: Any,
        overrides: Sequence[str] = (),
        axes: Sequence[Axis] = (),
        *,
        lets: Sequence[Let] = (),
        seeds: int = 1,
        record: str | None = "light",
        messages: Callable[[str], object] | None = None,
        **settings: Any,
    ) -> None:
        """Read the config of each point of the grid.

        Args:
            source: a config as `load_config` takes it.
            overrides: as after `--set`, for all jobs.
            axes: the grid.
            lets: settings that are computed at each point of the grid.
            seeds: jobs per grid point, with the config's seed and those after it.
            record: one of `RECORDS`; None for `config`, unless that is too much, which `messages` is told.
            messages: called with sentences for the user.
            settings: top-level settings for all jobs.

        Raises:
            ConfigError: a point of the grid gives a config that is not valid.
            UsageError: the grid makes no sense.
        """
        if record not in (*RECORDS, None):
            raise UsageError(f"record must be {', '.join(RECORDS)}, not {record!r}")
        check_axes(axes, seeds, [let.key for let in lets])
        self.axes, self.lets, self.seeds = tuple(axes), tuple(lets), seeds
        self.written = self_contained(source, overrides, **settings)
        configs = _Configs(partial(load_config, source, swept=True, **settings), overrides, axes, lets)
        for settings_here in points_of(axes, lets, self.written):
            config = configs.at(settings_here)
            for k in range(seeds):
                own = config.model_copy(update={"seed": config.seed + k}) if k else config
                self.append(Job(len(self), settings_here, own))
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
                problem = build_problem(job.config, drawn=False)
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
        axes = [
            {"key": a.key, "values": list(a.values), "log": a.log} | ({"with": a.leader} if a.leader else {})
            for a in self.axes
        ]
        return {
            "hash": self.hash,
            "name": self[0].config.name,
            "axes": axes,
            "computed": {let.key: let.expression for let in self.lets},
            "seeds": self.seeds,
            "jobs": len(self),
            "record": self.record,
            "config": self.written,
        }


def points_of(axes: Sequence[Axis], lets: Sequence[Let], written: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the swept and the computed settings of each point of the grid of a config.

    Raises:
        UsageError: a setting cannot be computed.
    """
    for point in points(axes):
        try:
            yield computed(lets, point, written)
        except UsageError as error:
            where = ", ".join(f"{key} {value}" for key, value in point.items())
            raise UsageError(f"{error}{f' (at {where})' if where else ''}") from error


def settings_of(described: Mapping[str, Any]) -> list[tuple[dict[str, Any], int]]:
    """Return the settings and the seed of each job of a sweep that is described so; no kind need be known here.

    Raises:
        UsageError: a setting cannot be computed.
    """
    axes = [Axis(one["key"], tuple(one["values"]), one["log"], one.get("with")) for one in described["axes"]]
    lets = [Let(key, expression) for key, expression in described["computed"].items()]
    found, first = [], described["config"].get("seed", 0)
    for settings in points_of(axes, lets, described["config"]):
        found += [(settings, settings.get("seed", first) + k) for k in range(described["seeds"])]
    return found


class _Configs:
    """The configs of a grid; a point that only replaces numbers of another point is not read again."""

    def __init__(
        self, load: Callable[[Any], RunConfig], overrides: Sequence[str], axes: Sequence[Axis], lets: Sequence[Let]
    ) -> None:
        self._load, self._overrides = load, overrides
        self._axes = {axis.key: axis for axis in axes}
        self._origins = {axis.key: axis.origin for axis in axes} | {let.key: let.origin for let in lets}
        self._like: dict[str, tuple[RunConfig, dict[str, Any]]] = {}
        """Settings that are no numbers -> the first config that has them, and the same as plain data."""
        self._sections: dict[str, Any] = {}
        """The settings of a section -> that section, which all jobs with these settings share: it is hashed once."""

    def at(self, settings: Mapping[str, Any]) -> RunConfig:
        """Return the config of some settings.

        Raises:
            ConfigError: it is not valid.
        """
        numbers = {key: value for key, value in settings.items() if type(value) in (int, float)}
        words = repr({key: value for key, value in settings.items() if key not in numbers})
        if words in self._like and (config := _changed(*self._like[words], numbers)) is not None:
            heads: dict[str, list[Any]] = {}
            for key, value in numbers.items():
                heads.setdefault(key.partition(".")[0], []).append((key, value))
            shared = {h: self._sections.setdefault(f"{h} {words} {at}", getattr(config, h)) for h, at in heads.items()}
            return config.model_copy(update=shared)
        assigned = [assignment(key, value, self._origins[key]) for key, value in settings.items()]
        try:
            config = self._load([*self._overrides, *assigned])
        except ConfigError as error:
            raise ConfigError([self._spaced_by_integers(one) for one in error.problems]) from error
        self._like.setdefault(words, (config, to_plain(config)))
        return config

    def _spaced_by_integers(self, problem: Mistake) -> Mistake:
        """Return a problem; of a logarithmic range of a key of integers it says how to write the range."""
        axis = self._axes.get(problem.key)
        if axis is None or not axis.log or "must be an integer" not in problem.message:
            return problem
        first, *_, last = axis.values
        written = f"{axis.key}={first:g}:{last:g}:logint:{len(axis.values)}"
        return replace(problem, message=f"{problem.message.partition(' (write')[0]}; use logint: {written}")


def _changed(first: RunConfig, plain: Mapping[str, Any], numbers: Mapping[str, Any]) -> RunConfig | None:
    """Return a config with other numbers, None where that is refused; its other sections are shared."""
    heads = {key.partition(".")[0] for key in numbers}
    data = dict(first) | {head: plain[head] for head in heads if head in plain}
    try:
        for key, value in numbers.items():
            _set(data, key.split("."), value)
        config = RunConfig.model_validate(data)
    except (ValidationError, LookupError, TypeError, ValueError):
        return None
    return config if next(check_sections(dict(config)), None) is None else None


def _set(data: Any, path: Sequence[str], value: Any) -> None:
    """Replace a value; the containers on the way are copied, so that jobs do not share them."""
    head, *rest = path
    key: Any = int(head) if isinstance(data, list) else head
    if not rest:
        data[key] = value
        return
    data[key] = copy.copy(data[key])
    _set(data[key], rest, value)


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

"""The jobs of a sweep: a resolved config per grid point and seed."""

from __future__ import annotations

import hashlib
import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from types import MappingProxyType
from typing import Any

from dynamics_cli.config import ConfigError, RunConfig, load_config
from dynamics_cli.config.check import check_sections
from dynamics_cli.config.dump import to_plain
from dynamics_cli.config.errors import Mistake
from dynamics_cli.config.load import load_sweep, self_contained
from dynamics_cli.config.reader import Assignment
from dynamics_cli.config.schema import SWEEP, SweepSection
from dynamics_cli.config.source import Place
from dynamics_cli.errors import DynError, UsageError
from dynamics_cli.memory import GIB
from dynamics_cli.sweeps.columns import LOOKED_AT, AskedColumn, check_columns
from dynamics_cli.sweeps.directory import SweepDescription, SweptAxis
from dynamics_cli.sweeps.expressions import computed
from dynamics_cli.sweeps.grid import MOST_JOBS, Axis, axis_of, points_of, read_points
from dynamics_cli.text import size
from dynamics_cli.training.backends import choose
from dynamics_cli.training.estimate import estimate_legs
from dynamics_cli.training.legs import legs_of
from dynamics_cli.training.many.train import SHORT, Task, asked_hash
from dynamics_cli.training.problem import build_problem

LIGHT_LOSSES = 1000
"""About how many losses each job of a sweep keeps with `--record light`."""
RECORDS = ("light", "ends", "config")
"""Records of a job: ends and about a thousand losses; ends alone; all that its config asks for."""


@dataclass(frozen=True, slots=True)
class Job:
    """A run of a sweep."""

    number: int
    settings: dict[str, Any]
    """Swept and computed keys with their values."""
    config: RunConfig


def read_sweep_section(
    source: Any, overrides: Sequence[str] = ()
) -> tuple[list[Axis], list[dict[str, Any]], list[AskedColumn], SweepSection]:
    """Return axes, points, columns and section that `sweep` of a config asks for.

    Raises:
        ConfigError: the section is not valid; each problem with its line.
    """
    section, plain = load_sweep(source, overrides)
    axes: list[Axis] = []
    if section is None:
        return axes, [], [], SweepSection()
    columns = [
        AskedColumn(name, expression, plain.origin((SWEEP, "columns", name)))
        for name, expression in section.columns.items()
    ]
    problems = list(plain.problems)
    for key, values in section.grid.items():
        path = (SWEEP, "grid", key)
        try:
            axes.append(axis_of(key, values, plain.origin(path)))
        except UsageError as error:
            problems.append(plain.problem(path, str(error)))
    points = []
    try:
        if isinstance(section.points, str):
            points = read_points(plain.origin((SWEEP, "points")).directory / section.points)
        else:
            points = points_of(section.points)
    except UsageError as error:
        problems.append(plain.problem((SWEEP, "points"), str(error)))
    if problems:
        raise ConfigError(problems)
    return axes, points, columns, section


class PlannedSweep(list[Job]):
    """The jobs of a sweep in order: the last axis runs fastest, and seeds of a point faster."""

    task: type[Task] = Task
    """How a job becomes a run."""
    loop: str | None = None
    """The author's file that trains, which is kept beside the sweep."""

    def __init__(
        self,
        source: Any,
        overrides: Sequence[str] = (),
        axes: Sequence[Axis] = (),
        points: Sequence[Mapping[str, Any]] = (),
        *,
        let: Mapping[str, str] = MappingProxyType({}),
        seeds: int = 1,
        record: str | None = "light",
        labels: Mapping[str, str] = MappingProxyType({}),
        columns: Sequence[AskedColumn] = (),
        messages: Callable[[str], object] | None = None,
        **settings: Any,
    ) -> None:
        """Read the config of each point of the grid; see `api.sweep` for the arguments.

        `points` are mappings of the same settings, each combined with all values of the axes.
        `record` is one of `RECORDS`, or None for `config`, unless that is too much, which
        `messages` is told. `labels` has what pictures call settings and measures. `columns` are
        further columns of the table.

        Raises:
            ConfigError: a point of the grid gives a config that is not valid, or a column cannot be
                computed.
            UsageError: the grid makes no sense.
        """
        if record not in (*RECORDS, None):
            raise UsageError(f"record must be {', '.join(RECORDS)}, not {record!r}")
        listed = [*points] or [{}]
        keys = [*(axis.key for axis in axes), *listed[0]]
        if twice := [key for key in keys if [*keys, *let].count(key) > 1]:
            raise UsageError(f"{twice[0]} gets its values twice; sweep it or compute it once")
        for key in labels:
            of_config = "." in key and key.partition(".")[0] in RunConfig.model_fields
            if of_config and key not in (*keys, *let):
                known = ", ".join([*keys, *let]) or "nothing"
                raise UsageError(f"sweep.labels: {key} is not swept; this sweep varies {known}")
        self.labels = dict(labels)
        if (jobs := seeds * math.prod(map(len, [listed, *(a.values for a in axes)]))) > MOST_JOBS:
            raise UsageError(f"{jobs} networks are asked for; a sweep has at most {MOST_JOBS}")
        # of listed points each setting has its values, in their order
        of_points = [
            Axis(key, tuple({repr(point[key]): point[key] for point in listed}.values()))
            for key in listed[0]
        ]
        self.axes = (*axes, *of_points)
        self.let = dict(let)
        self.seeds = seeds
        self._source = source
        self._overrides = overrides
        self._settings = settings
        self.written = self._written()
        self._sections: dict[tuple[str, str], Any] = {}
        """Name and text of a section -> the section, which all configs with this text share."""
        self._of_changes: dict[tuple[str, str], Any] = {}
        """Name of a section and what a point changes in it -> the section."""
        origins = {axis.key: axis.origin for axis in axes if axis.origin is not None}
        place = Place("--grid", None, Path.cwd())
        for values in itertools.product(*(axis.values for axis in axes), listed):
            of_axes = dict(zip(keys, values[:-1], strict=False))
            point = computed(let, {**of_axes, **values[-1]}, self.written)
            changes = [
                Assignment(tuple(key.split(".")), point[key], origins.get(key, place))
                for key in point
            ]
            config = self._config_of(changes)
            for k in range(seeds):
                of_seed = config.model_copy(update={"seed": config.seed + k})
                self.append(Job(len(self), point, of_seed))
        self._check_distinct()
        if record is None and (too_much := self._beyond_limit()) is not None:
            record = "light"
            if messages is not None:
                messages(too_much)
        self.record = record or "config"
        if self.record != "config":
            losses = 1 if self.record == "ends" else LIGHT_LOSSES
            records = dict[tuple[int, int | None], Any]()
            self[:] = [
                Job(job.number, job.settings, _light(job.config, losses, records)) for job in self
            ]
        check_columns(columns, [(job.settings, job.config) for job in self], self.record)
        self.columns = {column.name: column.expression for column in columns}

    def _written(self) -> dict[str, Any]:
        """Return what all jobs share, as a plain config."""
        return self_contained(self._source, self._overrides, **self._settings)

    def _config_of(self, changes: Sequence[Assignment]) -> RunConfig:
        """Return the config of a point, given its settings.

        Sections that points before have had are not validated again, but for what they say of each
        other.

        Raises ConfigError: it is not valid.
        """
        texts: dict[str, str] = {}
        for change in changes:
            key = change.path[0]
            texts[key] = f"{texts.get(key, '')} {change.path} {change.value!r}"
        known = {key: self._of_changes.get((key, text)) for key, text in texts.items()}
        if self and self[0].config.changes is None and None not in known.values():
            config = self[0].config.model_copy(update=known)
            if not any(check_sections(dict(config))):
                return config
        config = self._shared(self._loaded(changes))
        self._of_changes |= {(key, texts[key]): getattr(config, key) for key in texts}
        return config

    def _loaded(self, changes: Sequence[Assignment]) -> RunConfig:
        try:
            return load_config(self.written, changes)
        except ConfigError:  # whose message has lines of the file if it is read again
            try:
                return load_config(
                    self._source, [*self._overrides, *changes], swept=True, **self._settings
                )
            except ConfigError as error:
                raise ConfigError(
                    [_of_integers(problem, self.axes) for problem in error.problems]
                ) from error

    def _check_distinct(self) -> None:
        """Raise UsageError where two jobs have one config.

        Their seeds overlap, or two values are spellings of one.
        """
        known = set[tuple[int, ...]]()
        for job in self:
            # equal sections are shared
            parts = {key: id(part) for key, part in job.config} | {"seed": job.config.seed}
            fields = tuple(parts.values())
            if fields in known:
                settings = {**job.settings, "seed": job.config.seed}
                told = ", ".join(f"{key}={value}" for key, value in settings.items())
                advice = ""
                if self.seeds > 1:
                    advice = f"; values of seed must lie {self.seeds} apart"
                raise UsageError(f"the sweep trains {told} twice{advice}")
            known.add(fields)

    def _shared(self, config: RunConfig) -> RunConfig:
        """Return the config with shared sections, so that a hundred thousand fit in memory."""
        shared = {
            name: self._sections.setdefault((name, repr(section)), section)
            for name, section in config
        }
        return config.model_copy(update=shared)

    @property
    def hash(self) -> str:
        """The identity of the sweep: its runs in order, with device and backend as requested.

        Raises:
            ConfigError: when a file that a config names is not there or cannot be read.
        """
        return hashlib.sha256("".join(self.hashes).encode()).hexdigest()

    @cached_property
    def hashes(self) -> list[str]:
        """The hash of each job as planned; raises as `hash`."""
        digests: dict[str, str] = {}
        return [asked_hash(job.config, digests) for job in self]

    def _beyond_limit(self) -> str | None:
        """Return that all jobs would record more than the limit, None where they would not."""
        sample = self[:: -(-len(self) // LOOKED_AT)]
        total = 0.0
        for job in sample:
            with suppress(DynError):  # told when the job is trained
                legs = legs_of([build_problem(job.config)])
                choice = choose([legs[0].problem], [leg.problem for leg in legs[1:]])
                total += estimate_legs(legs, choice).disk_bytes
        total *= len(self) / len(sample)
        limit = self[0].config.record.limit_gib
        if total <= limit * GIB:
            return None
        return (
            f"the jobs would record about {size(round(total))}, record.limit_gib is {limit:g}: each"
            f" keeps its ends and about {LIGHT_LOSSES} losses (--record light); --record ends keeps"
            " fewer, --record config all"
        )

    def described(self, batches: Sequence[Sequence[int]] = ()) -> SweepDescription:
        """Return its description in `sweep.json`, given the jobs of each batch.

        Raises:
            ConfigError: when a file that a config names is not there or cannot be read.
        """
        return SweepDescription(
            hash=self.hash,
            name=self[0].config.name,
            axes=[
                SweptAxis(key=axis.key, values=list(axis.values), log=axis.log)
                for axis in self.axes
            ],
            computed=self.let,
            points=[[*job.settings.values()] for job in self[:: self.seeds]],
            seeds=self.seeds,
            jobs=len(self),
            record=self.record,
            labels=self.labels,
            columns=self.columns,
            config=self.written,
            hashes=[of_job[:SHORT] for of_job in self.hashes],
            batches=[[*numbers] for numbers in batches],
        )


def _of_integers(problem: Mistake, axes: Sequence[Axis]) -> Mistake:
    """Return a problem; of a log range of integers it says how to write the range."""
    for axis in axes:
        if axis.key == problem.key and axis.log and "must be an integer" in problem.message:
            written = f"{axis.key}={axis.values[0]:g}:{axis.values[-1]:g}:logint:{len(axis.values)}"
            return replace(
                problem, message=f"{problem.message.partition(' (write')[0]}; use logint: {written}"
            )
    return problem


def _light(config: RunConfig, losses: int, known: dict[tuple[int, int | None], Any]) -> RunConfig:
    """Return a config whose record keeps the ends, and about so many `losses` between them.

    `known` has `id` of a record and iterations between two losses -> the lighter record.
    """
    total = getattr(config.optimizer, "iterations", None)
    every = config.record.loss_every
    if every is None and total and getattr(config.optimizer, "batch_size", None) is None:
        every = max(1, total // losses)
    if (key := (id(config.record), every)) not in known:
        plain = to_plain(config)["record"]
        plain |= {"snapshots": {"kind": "list", "include": []}, "loss_every": every}
        known[key] = type(config.record).model_validate(plain)
    return config.model_copy(update={"record": known[key]})

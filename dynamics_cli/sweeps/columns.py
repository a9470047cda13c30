"""Columns of a sweep's table computed from curves: `grokked: first(test_accuracy > 0.95)`.

They belong to the sweep and to none of its runs: the same sweep with other columns trains nothing
again.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from itertools import islice
from typing import Any, NamedTuple

import numpy as np

from dynamics_cli.config import ConfigError, RunConfig
from dynamics_cli.config.errors import Mistake
from dynamics_cli.config.source import Place
from dynamics_cli.errors import DynError, UsageError, did_you_mean
from dynamics_cli.kinds.arrays import Floats, Ints
from dynamics_cli.runs.run import Run, curve_of
from dynamics_cli.runs.writer import LOSS
from dynamics_cli.sweeps.expressions import value_of

LOOKED_AT = 100
"""Jobs whose measures and needs are looked at, at most; they stand for the others."""
TAKEN = (
    *("job", "seed", "status", "iterations", "final_loss", "path", "replica", "hash", "message"),
    LOSS,
)
"""Names that no column may have."""
Offered = Mapping[str, Collection[str]]
"""Name of a curve that a run records -> names of its numbers, where the measure names them."""
SettingsAndConfig = tuple[Mapping[str, Any], RunConfig]
"""Swept and computed settings of a job, and its config."""


class AskedColumn(NamedTuple):
    """A column that the section `sweep` of a config asks for."""

    name: str
    expression: str
    origin: Place
    """Where it was written."""

    def mistake(self, message: str) -> Mistake:
        """Return a mistake in the column."""
        return Mistake(self.origin.file, self.origin.line, f"sweep.columns.{self.name}", message)


def check_columns(
    columns: Sequence[AskedColumn], jobs: Sequence[SettingsAndConfig], record: str
) -> None:
    """Check names and expressions of columns, before anything is trained.

    Args:
        columns: the columns.
        jobs: settings and config of each job.
        record: what jobs keep, one of `jobs.RECORDS`.

    Raises:
        ConfigError: a name is taken or no word, an expression is none, or no job records the curve
            that it names.
    """
    if not columns:
        return
    wrong = _mistakes(columns, jobs[0], record, None)
    configs: dict[tuple[int, ...], SettingsAndConfig] = {}
    for job in jobs:
        _, config = job
        parts = (config.record, config.dataset, config.loss, config.architecture)
        configs.setdefault(tuple(map(id, parts)), job)  # equal sections are shared
    if wrong:
        raise ConfigError(wrong)
    for job in islice(configs.values(), LOOKED_AT):
        try:
            offered = _offered(job[1])
        except DynError:  # told when the job is trained
            continue
        wrong = _mistakes(columns, job, record, offered)
        if not wrong:  # some jobs have the curves: a measure may be swept
            return
    if wrong:
        raise ConfigError(wrong)


def _offered(config: RunConfig) -> dict[str, Collection[str]]:
    """Return the curves that a run of a config records.

    Raises DynError: the config cannot be trained.
    """
    # whoever reads a sweep needs no training
    from dynamics_cli.training.problem import build_problem

    measures = build_problem(config).measures
    return {LOSS: (), **{name: kind.columns(dict(config)) for name, kind in measures.items()}}


def _mistakes(
    columns: Sequence[AskedColumn], job: SettingsAndConfig, record: str, offered: Offered | None
) -> list[Mistake]:
    """Return the mistakes in columns for a job; with `offered`, also curves that it lacks."""

    def curves(name: str, reduction: str) -> tuple[Ints, Floats]:
        """Refuse a curve that is not there, or not kept; NaN stands for its numbers."""
        if offered is not None:
            _refuse_unknown(name, offered)
        if reduction != "last" and (record == "ends" or (record == "light" and name != LOSS)):
            raise UsageError(
                f"{reduction} needs the whole curve of {name}, --record {record} keeps its ends;"
                " take --record config"
            )
        return np.zeros(0, np.int64), np.zeros(0)

    mistakes = []
    settings, config = job
    values = dict(settings)
    plain = config.model_dump(exclude_none=True)
    for column in columns:
        if not column.name.isidentifier():
            mistakes.append(column.mistake("a column is called by one word: letters, digits and _"))
        elif column.name in (*TAKEN, *settings, *(offered or ())):
            mistakes.append(column.mistake("the table has a column of this name; take another"))
        try:
            values[column.name] = value_of(column.expression, values, plain, curves)
        except UsageError as error:
            mistakes.append(column.mistake(f"{column.expression!r}: {error}"))
            values[column.name] = math.nan
    return mistakes


def _refuse_unknown(name: str, offered: Offered) -> None:
    """Raise UsageError where a run records no such curve."""
    measure = next((known for known in offered if name.startswith(f"{known}.")), name)
    if measure not in offered or (measure == LOSS and name != LOSS):
        known = ", ".join(offered)
        raise UsageError(f"no curve {name!r}{did_you_mean(name, offered)}; jobs record {known}")
    part = name.removeprefix(measure).removeprefix(".")
    if offered[measure] and part not in offered[measure]:
        known = ", ".join(f"{measure}.{part}" for part in offered[measure])
        raise UsageError(f"no curve {name!r}; there are {known}")


def column_numbers(
    columns: Mapping[str, str], settings: Mapping[str, Any], run: Run
) -> tuple[dict[str, Any], list[str]]:
    """Return the numbers of columns for a job, and why expressions gave none, which are NaN.

    Args:
        columns: name and expression of each.
        settings: swept and computed settings of the job.
        run: its run.
    """
    values = dict(settings)
    messages = list[str]()
    config = run.config.model_dump(exclude_none=True)
    for name, expression in columns.items():
        try:
            values[name] = value_of(
                expression, values, config, lambda curve, reduction: curve_of(run, curve)
            )
        except UsageError as error:
            values[name] = math.nan
            messages.append(f"{name}: {error}")
    return {name: values[name] for name in columns}, messages

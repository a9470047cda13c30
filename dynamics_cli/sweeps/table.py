"""The table of a sweep, computed from its runs."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

from dynamics_cli.errors import DynError
from dynamics_cli.runs.columns import column_names
from dynamics_cli.runs.run import FEW_NUMBERS, Run
from dynamics_cli.runs.store import files
from dynamics_cli.sweeps.jobs import settings_of
from dynamics_cli.text import Table

COLUMNS: dict[str, Callable[[Run], Any]] = {
    "status": lambda run: run.info.get("replica_statuses", [run.status]),
    "iterations": lambda run: run.info.get("replica_iterations", [run.iterations]),
    "final_loss": lambda run: run.info.get("replica_losses", [run.final_loss]),
}
"""Name -> its values for the networks of a run."""
ENDED = ("complete", "diverged")
PLACE = ("path", "replica", "hash", "message")
"""Columns that say where the run of a job is."""
FIXED = ("job", "seed", "status", *PLACE)
"""Columns that are neither settings nor final numbers."""


class Batch(NamedTuple):
    """Jobs that are trained together, often a single one."""

    name: str
    """Their run directory, below that of the sweep."""
    numbers: Sequence[int]


def batches_of(described: Mapping[str, Any]) -> list[Batch]:
    """Return the batches of a sweep that is described so, larger than one job first."""
    several: list[list[int]] = described["batches"]
    alone = sorted({*range(described["jobs"])}.difference(*several))
    batches = [Batch(f"batches/{numbers[0]:06d}", numbers) for numbers in several]
    return [*batches, *(Batch(f"jobs/{number:06d}", [number]) for number in alone)]


def ended_run(directory: Path, batch: Batch) -> Run | None:
    """Return the run of a batch whose jobs have ended; a run that cannot be read is trained again, which tells why."""
    with suppress(DynError):
        if files.exists(directory / batch.name):
            run = Run(directory / batch.name)
            if run.status in ENDED and len(run.info.get("replicas", [0])) == len(batch.numbers):
                return run
    return None


def rows_of(directory: Path, described: Mapping[str, Any], failed: Mapping[str, str] = MappingProxyType({})) -> Table:
    """Return a row for each job that has ended, in their order; numbers that are not finite are None.

    `failed` has the batches that failed, and why.
    """
    settings, rows = settings_of(described), dict[int, dict[str, Any]]()
    for batch in batches_of(described):
        if batch.name in failed:
            columns = {"status": ["failed"] * len(batch.numbers), "message": [failed[batch.name]] * len(batch.numbers)}
        elif (run := ended_run(directory, batch)) is not None:
            columns = _columns(run, len(batch.numbers))
        else:
            continue
        for k, number in enumerate(batch.numbers):
            point, seed = settings[number]
            ended = {column: values[k] for column, values in columns.items()}
            rows[number] = {"job": number, **point, "seed": seed, **ended, "path": batch.name}
    before = ["job", *(key for key in settings[0][0] if key != "seed"), "seed", *COLUMNS]
    measures = dict.fromkeys(name for number in sorted(rows) for name in rows[number])
    names = [*before, *(name for name in measures if name not in (*before, *PLACE)), *PLACE]
    return Table({name: row.get(name) for name in names} for row in map(rows.pop, sorted(rows)))


def _columns(run: Run, jobs: int) -> dict[str, list[Any]]:
    """Return the final numbers of the jobs of a run by column."""
    together = "replicas" in run.info
    columns: dict[str, list[Any]] = {column: of(run) for column, of in COLUMNS.items()}
    for measure, values in run.measures.items():
        if len(values):
            last = np.asarray(values[-1], float).reshape(jobs, -1)
            names = [measure] if values.ndim == 1 + together else []
            if not names and last.shape[1] <= FEW_NUMBERS:
                names = [f"{measure}.{part}" for part in column_names(run.config, measure, last.shape[1])]
            columns |= {column: last[:, k].tolist() for k, column in enumerate(names)}
    finite = {column: [_finite(value) for value in values] for column, values in columns.items()}
    place: dict[str, list[Any]] = {"replica": [k if together else None for k in range(jobs)], "hash": [run.hash] * jobs}
    return {**finite, **place, "message": [""] * jobs}


def _finite(value: Any) -> Any:
    return None if isinstance(value, float) and not math.isfinite(value) else value

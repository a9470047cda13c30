"""A sweep as a directory: what was asked for, its runs, its table."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dynamics_cli.config import run_hash
from dynamics_cli.errors import UsageError
from dynamics_cli.runs.store import files, layout
from dynamics_cli.runs.store.locks import run_lock
from dynamics_cli.sweeps.directory import SWEEP, read_sweep, table_seal, write_sweep, write_table
from dynamics_cli.sweeps.engine import Report, Result, run_jobs
from dynamics_cli.sweeps.grid import Axis
from dynamics_cli.sweeps.jobs import Job


@dataclass(frozen=True)
class Sweep:
    """A finished sweep."""

    path: Path
    results: list[Result]
    table: Path


def sweep_hash(jobs: Sequence[Job]) -> str:
    """Return the identity of a sweep: that of its runs in their order, device and backend as they were asked for.

    Raises:
        ConfigError: when a file that a config names is not there or cannot be read.

    """
    digest = hashlib.sha256()
    for job in jobs:
        config = job.config
        digest.update(run_hash(config, device=config.device, backend=config.backend).encode())
    return digest.hexdigest()


def run_sweep(
    jobs: Sequence[Job],
    axes: Sequence[Axis],
    *,
    seeds: int = 1,
    out: Path | None = None,
    executor: Executor | None = None,
    workers: int | None = None,
    report: Report | None = None,
) -> Sweep:
    """Train the jobs of a sweep, skip what is done, and write its table.

    Raises:
        UsageError: the directory holds another sweep.
        ConfigError: a file that a config names cannot be read.
        RunError: the directory cannot be written.
        Interrupted: a signal came; calling again goes on.

    """
    identity = sweep_hash(jobs)
    directory = out or layout.outputs_root() / "sweeps" / f"{jobs[0].config.name}-{identity[:10]}"
    with run_lock(directory):
        described = {
            "hash": identity,
            "name": jobs[0].config.name,
            "axes": [{"key": a.key, "values": list(a.values), "log": a.log} for a in axes],
            "seeds": seeds,
            "jobs": len(jobs),
        }
        _claim(directory, described)
        results = run_jobs(jobs, directory, executor=executor, workers=workers, report=report)
        path = write_table(directory, results, [axis.key for axis in axes])
        write_sweep(directory, {**described, "table": table_seal(files.read(path))})
    return Sweep(directory, results, path)


def _claim(directory: Path, described: dict[str, Any]) -> None:
    if files.exists(directory / SWEEP):
        if read_sweep(directory)["hash"] != described["hash"]:
            raise UsageError(f"{directory} holds another sweep; give --out another directory")
        return
    foreign = [name for name in (layout.INFO, layout.CONFIG) if files.exists(directory / name)]
    if foreign:
        raise UsageError(f"{directory} holds {foreign[0]}: it is not the directory of a sweep")
    write_sweep(directory, described)

"""The directory of a sweep: its description `sweep.json`, its table `results.csv`, and checking both."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dynamics_cli.errors import RunError
from dynamics_cli.runs import CorruptRunError, Finding, list_runs, verify_run
from dynamics_cli.runs.errors import unreadable_as_corrupt
from dynamics_cli.runs.store import files
from dynamics_cli.runs.store.sealed import read_sealed, seal

if TYPE_CHECKING:
    from dynamics_cli.sweeps.sweep import Result

SWEEP = "sweep.json"
RESULTS = "results.csv"
FORMAT = 1
_AGAIN = "the runs are files of their own; the same `dyn sweep` again only reads them and writes the table"
_DELETE = f"the runs are files of their own; delete {SWEEP}, and the same `dyn sweep` again only reads them"


def is_sweep(directory: Path) -> bool:
    """Whether a directory is that of a sweep."""
    return files.exists(directory / SWEEP)


def read_sweep(directory: Path) -> dict[str, Any]:
    """Return the description of a sweep.

    Raises:
        RunError: it is not a sweep, or a newer version of dyn wrote it.
        CorruptRunError: its description is damaged.
    """
    path = directory / SWEEP
    try:
        described = read_sealed(path, FORMAT, _DELETE)
    except OSError as error:
        raise RunError(f"{directory} is not the directory of a sweep ({SWEEP}: {error.strerror})") from error
    axes = described.get("axes")
    if not isinstance(axes, list) or not all(
        isinstance(axis, dict) and isinstance(axis.get("key"), str) and isinstance(axis.get("values"), list)
        for axis in axes
    ):
        raise CorruptRunError(path, "its settings are not those of a sweep", _DELETE)
    return described


def write_sweep(directory: Path, described: Mapping[str, Any]) -> None:
    """Write the description of a sweep, with a checksum, in one indivisible step.

    Raises:
        RunError: it cannot be written.
    """
    files.save(directory / SWEEP, seal({"format": FORMAT, **described}))


def table_seal(data: bytes) -> str:
    """Return the checksum of a table, which the description of its sweep keeps as `table`."""
    return hashlib.sha256(data).hexdigest()


def table(results: Sequence[Result], keys: Sequence[str]) -> tuple[list[str], list[list[Any]]]:
    """Return header and rows of the table: job, swept settings, seed, status, final numbers, where the run is."""
    measures = sorted({name for result in results for name in result.measures})
    keys = [key for key in keys if key != "seed"]  # which has a column in any case
    header = ["job", *keys, "seed", "status", "iterations", "final_loss", *measures, "path", "replica", "message"]
    rows = [
        [
            result.job.number,
            *(_cell(result.job.settings[key]) for key in keys),
            result.job.config.seed,
            result.status,
            "" if result.iterations is None else result.iterations,
            repr(result.final_loss),
            *(repr(result.measures[name]) if name in result.measures else "" for name in measures),
            result.path,
            "" if result.replica is None else result.replica,
            result.message,
        ]
        for result in results
    ]
    return header, rows


def _cell(value: Any) -> Any:
    return json.dumps(value) if isinstance(value, list | dict | bool) else value


def write_table(directory: Path, results: Sequence[Result], keys: Sequence[str]) -> Path:
    """Write `results.csv` in one indivisible step and return its path."""
    return files.save_csv(directory / RESULTS, *table(results, keys))


def read_table(directory: Path) -> str:
    """Return the text of the table of a sweep.

    Raises:
        RunError: there is none yet.
        CorruptRunError: it is not the one that the sweep wrote.
    """
    path = directory / RESULTS
    expected = read_sweep(directory).get("table")
    try:
        with unreadable_as_corrupt(path, _AGAIN, but=(FileNotFoundError,)):
            data = files.read(path)
    except FileNotFoundError as error:
        if expected is None:
            raise RunError(f"{directory} has no {RESULTS} yet: the sweep is not finished") from error
        raise CorruptRunError(path, "it is missing", _AGAIN) from error
    if table_seal(data) != expected:
        raise CorruptRunError(path, "it is not the table that the sweep wrote; was it edited?", _AGAIN)
    return data.decode()


def verify_sweep(directory: Path) -> list[Finding]:
    """Check every checksum of a sweep: its description, its table, and every run below it.

    Returns what is wrong, an empty list when nothing is.
    """
    findings = []
    try:
        if "table" in read_sweep(directory):  # without it the sweep has not ended yet
            read_table(directory)
    except RunError as error:
        findings.append(Finding.of(error, directory))
    return [*findings, *(found for run in list_runs(directory) for found in verify_run(run.path))]

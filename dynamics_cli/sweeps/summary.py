"""Sweeps by any of their names: how far they are, the jobs that have ended, comparing two; and the table of runs."""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

from dynamics_cli.errors import RunError, UsageError
from dynamics_cli.runs import CorruptRunError, Run, find, is_locked
from dynamics_cli.runs.store import files, layout
from dynamics_cli.sweeps.directory import ENDINGS, FIXED, RESULTS, SWEEP, is_sweep, number_of, read_rows, read_sweep
from dynamics_cli.sweeps.find import find_sweep, sweeps_root
from dynamics_cli.text import Table

if TYPE_CHECKING:
    from dynamics_cli.sweeps.sweep import Sweep


def list_runs(
    root: str | Path | None = None, *, statuses: Iterable[str] = (), sweep: Sweep | str | Path | None = None
) -> Table:
    """Return the runs that are kept, one row each; `size` in bytes, `modified` in seconds since 1970.

    Args:
        root: where they are; by default below `outputs/runs`.
        statuses: only runs of these statuses.
        sweep: the sweep whose jobs are listed instead, those that have ended: `run` as `load_run` takes it, settings,
            seed, how it ended.

    Raises UsageError: there is no such status.
    """
    statuses = find.known_statuses(statuses)
    if sweep is not None:
        return Table(job for job in _jobs(find_sweep(sweep)) if not statuses or job["status"] in statuses)
    found = find.list_runs(Path(root or layout.runs_root()))
    return Table(run.as_row() for run in found if not statuses or run.status in statuses)


def _jobs(directory: Path) -> Iterator[dict[str, Any]]:
    """Yield the jobs of a sweep that have ended: `run`, as `run_of_job` takes it, settings, seed, final numbers.

    Raises RunError: it is not a sweep, or none has ended.
    """
    name = directory.name if directory.parent == sweeps_root() else directory
    for row in read_rows(directory):
        numbers = {key: text for key, text in row.items() if key not in FIXED or key in ("seed", "status")}
        yield {"run": f"{name}:{row['job']}", **{key: _plain(text) for key, text in numbers.items()}}


def _plain(text: str) -> Any:
    """Return a cell of the table as a number, None where it is empty."""
    return int(text) if text.isdecimal() else text if math.isnan(number := number_of(text)) else number


def list_sweeps(root: str | Path | None = None) -> Table:
    """Return the sweeps that are kept, finished or not: path, status, jobs, how many ended in which way.

    `root` is where they are; by default `outputs/sweeps`.
    """
    folder = Path(root or sweeps_root())
    shown = ("path", "status", "jobs", "complete", "diverged", "failed", "modified")
    found = [describe_sweep(path) for path in sorted(folder.glob("*")) if is_sweep(path)]
    return Table({name: one[name] for name in shown} for one in found)


def describe_sweep(which: Sweep | str | Path) -> dict[str, Any]:
    """Return how far a sweep is: settings, jobs by how they ended, failures by message, running jobs: `dyn show SWEEP`.

    Raises RunError: it is not a sweep, or it is damaged.
    """
    directory = find_sweep(which)
    described, rows = read_sweep(directory), list[dict[str, str]]()
    try:
        rows = read_rows(directory)
    except CorruptRunError:
        raise
    except RunError:  # none has ended yet
        pass
    ended = Counter(row["status"] for row in rows)
    failures = Counter(row["message"] for row in rows if row["status"] == "failed")
    table = directory / (RESULTS if files.exists(directory / RESULTS) else SWEEP)
    sealed = "table" in described
    running = not sealed and is_locked(directory)
    return {
        "path": directory,
        "name": described["name"],
        "status": "complete" if sealed else "running" if running else "unfinished",
        "jobs": described["jobs"],
        "ended": len(rows),
        **{status: ended[status] for status in ENDINGS},
        "seeds": described["seeds"],
        "settings": {axis["key"]: axis["values"] for axis in described["axes"]},
        "computed": described.get("computed", {}),
        "failures": dict(failures.most_common()),
        "running": {} if sealed else _running(directory),
        "seconds_left": _seconds_left(directory, rows, described["jobs"]) if running else None,
        "modified": table.stat().st_mtime,
    }


def _seconds_left(directory: Path, rows: Sequence[Mapping[str, str]], jobs: int) -> float | None:
    """Return how long the rest takes at the pace since the driver began; None while none has ended."""
    began = (directory / layout.LOCK_HOLDER).stat().st_mtime
    ended = {path: _modified(directory / path / layout.INFO) for path in {row["path"] for row in rows if row["path"]}}
    since = [row for row in rows if ended.get(row["path"], 0.0) > began]
    return (time.time() - began) / len(since) * (jobs - len(rows)) if since else None


def _modified(path: Path) -> float:
    return path.stat().st_mtime if path.exists() else 0.0


def _running(directory: Path) -> dict[str, int]:
    """Return the runs that are being trained, and how far they are."""
    reached = {}
    for path in sorted([*directory.glob("batches/*"), *directory.glob("jobs/*")]):
        if is_locked(path):
            with suppress(RunError):
                reached[str(path.relative_to(directory))] = Run(path, verify=False).iterations
    return reached


@dataclass(frozen=True)
class SweepComparison:
    """Two sweeps, finished or not."""

    a: Path
    b: Path
    settings: dict[str, tuple[list[str], list[str]]]
    """Swept settings that differ: their values in each."""
    statuses: dict[str, tuple[int, int]]
    """How many jobs ended in which way."""
    common: int
    """Jobs that have ended in both: the same values of the settings that both sweep, and the same seed."""
    numbers: dict[str, dict[str, Any]]
    """Final numbers of these jobs: medians in a and b, the largest relative difference, and the job of it."""


def compare_sweeps(a: Sweep | str | Path, b: Sweep | str | Path) -> SweepComparison:
    """Compare two sweeps, finished or not, by the final numbers of the jobs that both have: `dyn compare`.

    The relative difference of two numbers is their distance divided by the larger absolute value.

    Raises:
        RunError: there is no such sweep, it is damaged, or none of its jobs has ended.
        UsageError: the settings that both sweep do not tell its jobs apart.
    """
    paths = find_sweep(a), find_sweep(b)
    tables = [read_rows(path) for path in paths]
    keys = [{*(axis["key"] for axis in read_sweep(path)["axes"])} for path in paths]
    both = sorted(keys[0] & keys[1])
    values = [
        {key: list(dict.fromkeys(row.get(key, "") for row in rows)) for key in sorted(keys[0] | keys[1])}
        for rows in tables
    ]
    settings = {key: (values[0][key], values[1][key]) for key in values[0] if values[0][key] != values[1][key]}
    jobs = [_by_place(path, rows, both) for path, rows in zip(paths, tables, strict=True)]
    common = [place for place in jobs[0] if place in jobs[1]]
    statuses = {
        status: (counted[0], counted[1])
        for status in ENDINGS
        if any(counted := [sum(row["status"] == status for row in rows) for rows in tables])
    }
    names = [name for name in tables[0][0] if name in tables[1][0] and name not in (*FIXED, *keys[0], *keys[1])]
    numbers = {}
    for name in names:
        pairs = [(jobs[0][at]["job"], number_of(jobs[0][at][name]), number_of(jobs[1][at][name])) for at in common]
        pairs = [pair for pair in pairs if math.isfinite(pair[1]) and math.isfinite(pair[2])]
        if pairs:
            apart = [abs(x - y) / (max(abs(x), abs(y)) or 1.0) for _, x, y in pairs]
            worst = max(range(len(pairs)), key=apart.__getitem__)
            numbers[name] = {
                "common": len(pairs), "a": median(x for _, x, _ in pairs), "b": median(y for _, _, y in pairs),
                "relative": apart[worst], "job": int(pairs[worst][0]),
            }  # fmt: skip
    return SweepComparison(*paths, settings, statuses, len(common), numbers)


def _by_place(path: Path, rows: list[dict[str, str]], keys: list[str]) -> Mapping[tuple[str, ...], dict[str, str]]:
    found = {(*(row[key] for key in keys), row["seed"]): row for row in rows}
    if len(found) < len(rows):
        raise UsageError(
            f"{path} sweeps more than the other: {', '.join(keys) or 'the seed'} do not tell its jobs apart"
        )
    return found

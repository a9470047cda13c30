"""Sweeps by any of their names and how far they are; and the table of runs."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dynamics_cli.errors import RunError
from dynamics_cli.runs import CorruptRunError, Run, find, is_locked
from dynamics_cli.runs.store import files, layout
from dynamics_cli.sweeps.directory import ENDINGS, RESULTS, SWEEP, is_sweep, read_rows, read_sweep
from dynamics_cli.sweeps.find import find_sweep, sweeps_root
from dynamics_cli.text import Table

if TYPE_CHECKING:
    from dynamics_cli.sweeps.sweep import Sweep


def list_runs(root: str | Path | None = None, *, statuses: Iterable[str] = ()) -> Table:
    """Return the runs that are kept, one row each; `size` in bytes, `modified` in seconds since 1970.

    Args:
        root: where they are; by default below `outputs/runs`.
        statuses: only runs of these statuses.

    Raises UsageError: there is no such status.
    """
    statuses = find.known_statuses(statuses)
    found = find.list_runs(Path(root or layout.runs_root()))
    return Table(run.as_row() for run in found if not statuses or run.status in statuses)


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

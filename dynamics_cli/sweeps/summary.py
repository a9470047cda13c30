"""Sweeps by any of their names and how far they are; and the table of runs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from dynamics_cli.errors import UsageError, did_you_mean
from dynamics_cli.runs.find import DAMAGED, runs_below, summarize
from dynamics_cli.runs.info import STATUSES
from dynamics_cli.runs.store import layout
from dynamics_cli.runs.store.locks import is_locked
from dynamics_cli.sweeps.directory import SWEEP, Sweep, is_sweep
from dynamics_cli.sweeps.find import sweep_directory, sweeps_root
from dynamics_cli.text import Table


def list_runs(root: str | Path | None = None, *, statuses: Iterable[str] = ()) -> Table:
    """See `api.list_runs`."""
    wanted, known = list(statuses), (*STATUSES, DAMAGED)
    for status in wanted:
        if status not in known:
            raise UsageError(f"no status {status!r}{did_you_mean(status, known)}; there are {', '.join(known)}")
    rows = map(summarize, runs_below(Path(root or layout.runs_root())))
    return Table(row for row in rows if not wanted or row["status"] in wanted)


def list_sweeps(root: str | Path | None = None) -> Table:
    """See `api.list_sweeps`."""
    folder = Path(root or sweeps_root())
    shown = ("path", "status", "jobs", "complete", "diverged", "failed", "modified")
    found = [describe_sweep(path) for path in sorted(folder.glob("*")) if is_sweep(path)]
    return Table({name: one[name] for name in shown} for one in found)


def describe_sweep(which: Sweep | str | Path) -> dict[str, Any]:
    """Return how far a sweep is: settings, jobs by how they ended, failures by message."""
    sweep = Sweep(sweep_directory(which, alone=True) or Path(str(which)))
    described = sweep.described
    failures = Counter(row["message"] for row in sweep.rows if row["status"] == "failed")
    return {
        "path": sweep.path,
        "name": described["name"],
        "status": "complete" if sweep.finished else "running" if is_locked(sweep.path) else "unfinished",
        "jobs": described["jobs"],
        "ended": len(sweep.rows),
        **sweep.counts(),
        "seeds": described["seeds"],
        "settings": {axis["key"]: axis["values"] for axis in described["axes"]},
        "computed": described["computed"],
        "failures": dict(failures.most_common()),
        "table": sweep.table if sweep.finished else None,
        "modified": (sweep.path / SWEEP).stat().st_mtime,
    }

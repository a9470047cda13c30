"""Finding runs below a folder, and deleting some."""

from __future__ import annotations

import math
import time
from collections.abc import Collection, Iterable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from dynamics_cli.errors import DynError, UsageError, did_you_mean
from dynamics_cli.runs.errors import LockedRunError
from dynamics_cli.runs.info import STATUSES
from dynamics_cli.runs.run import Run
from dynamics_cli.runs.store import files, layout
from dynamics_cli.runs.store.layout import clear_run, is_run
from dynamics_cli.runs.store.locks import is_locked, run_lock
from dynamics_cli.text import Table

_DEPTH = 4
DAY = 86400.0
"""Seconds."""
DAMAGED = "damaged"
"""Status, in a list of runs, of a run that cannot be read."""


@dataclass(frozen=True)
class RunSummary:
    """A line of a list of runs.

    `size` is in bytes, `modified` in seconds since 1970; `final_loss` is NaN when it is unknown or not finite.
    `problem` tells why a damaged run cannot be read.
    """

    path: Path
    name: str
    status: str
    iterations: int
    final_loss: float
    size: int
    modified: float
    problem: str = ""

    def as_row(self) -> dict[str, Any]:
        """Return the run as a row of a table; `problem` only of a damaged run."""
        return {name: value for name, value in asdict(self).items() if name != "problem" or value}


def list_runs(root: str | Path) -> list[RunSummary]:
    """Summaries of the runs below a folder, sorted by path; checksums of arrays are not read."""
    return [summarize(path) for path in _run_directories(Path(root), _DEPTH)]


def summarize(path: Path) -> RunSummary:
    """Describe a run directory; a run that cannot be read has the status `damaged`."""
    size, modified = files.used(path, without=(layout.LOCK, layout.LOCK_HOLDER))
    try:
        run = Run(path, verify=False)
        name = str(run.info.get("name", path.name))
        return RunSummary(path, name, run.status, run.iterations, run.final_loss, size, modified)
    except DynError as error:
        status = "running" if is_locked(path) else DAMAGED  # or it is being started over
        return RunSummary(path, path.name, status, 0, math.nan, size, modified, str(error))


def known_statuses(statuses: Iterable[str]) -> list[str]:
    """Return the statuses; refuse words that are no status of a run."""
    statuses, known = list(statuses), (*STATUSES, DAMAGED)
    for status in statuses:
        if status not in known:
            raise UsageError(f"no status {status!r}{did_you_mean(status, known)}; there are {', '.join(known)}")
    return statuses


def prune_runs(
    root: str | Path | None = None,
    *,
    statuses: Iterable[str] = (),
    older_than: float | None = None,
    dry_run: bool = False,
) -> Table:
    """Delete runs, and return them: `dyn runs prune`.

    Args:
        root: where they are; by default below `outputs/runs`.
        statuses: only runs of these statuses; `damaged` counts as a status.
        older_than: only runs that have not changed for so many days; 0 for all.
        dry_run: delete nothing.

    A run that another process is writing is never deleted, nor is anything that does not belong to a run.

    Raises:
        UsageError: it is not said which runs, there is no such status, or a run holds a file that is not of dyn.
        RunError: something cannot be deleted.
    """
    statuses = known_statuses(statuses)
    if not statuses and older_than is None:
        raise UsageError("say which runs: statuses, older_than (0 for all), or both")
    removed = Table()
    for summary in list_runs(root or layout.runs_root()):
        if is_locked(summary.path) or not _chosen(summary, statuses, older_than):
            continue
        if dry_run or _remove(summary.path):
            removed.append(summary.as_row())
    return removed


def _chosen(summary: RunSummary, statuses: Collection[str], older_than: float | None) -> bool:
    if statuses and summary.status not in statuses:
        return False
    # the clock may have been set back since: a change "in the future" is as new as can be
    return older_than is None or max(0.0, time.time() - summary.modified) >= older_than * DAY


def _remove(path: Path) -> bool:
    """Delete a run unless it is in use, or changed while its lock was taken."""
    before = _status_text(path)
    try:
        with files.continued_by(""), run_lock(path, wait=False):
            if _status_text(path) != before:
                return False
            clear_run(path)
            for name in (layout.LOCK_HOLDER, layout.LOCK):
                files.remove(path / name)
    except LockedRunError:
        return False
    with files.os_errors_as_run_errors(path, advice=""):
        files.remove_directory(path)
    return True


def _status_text(path: Path) -> bytes:
    try:
        return files.read(path / layout.INFO)
    except OSError:
        return b""


def _run_directories(folder: Path, depth: int) -> Iterator[Path]:
    if is_run(folder):
        yield folder
    elif depth:
        try:
            names = files.names(folder)
        except PermissionError:
            yield folder  # perhaps a run; its summary says that nobody knows
            return
        for name in names:
            below = folder / name
            if below.is_dir() and not below.is_symlink():
                yield from _run_directories(below, depth - 1)

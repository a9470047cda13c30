"""Finding runs below a folder, and deleting some."""

from __future__ import annotations

import math
import time
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import Path

from dynamics_cli.errors import DynError
from dynamics_cli.runs.errors import LockedRunError
from dynamics_cli.runs.run import Run
from dynamics_cli.runs.steady import steadily
from dynamics_cli.runs.store import files, layout
from dynamics_cli.runs.store.layout import clear_run, is_run
from dynamics_cli.runs.store.locks import is_locked, run_lock

_DEPTH = 4
DAMAGED = "damaged"
"""Status, in a list of runs, of one that cannot be read."""


@dataclass(frozen=True)
class RunSummary:
    """One line of a list of runs.

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


def list_runs(root: str | Path) -> list[RunSummary]:
    """Summaries of the runs below a folder, sorted by path; checksums of arrays are not read."""
    return [summarize(path) for path in _run_directories(Path(root), _DEPTH)]


def summarize(path: Path) -> RunSummary:
    """Describe one run directory; one that cannot be read has the status `damaged`."""
    size, modified = files.used(path, without=(layout.LOCK, layout.LOCK_HOLDER))
    try:
        run = steadily(path, lambda: Run(path, verify=False))
        name = str(run.info.get("name", path.name))
        return RunSummary(path, name, run.status, run.iterations, run.final_loss, size, modified)
    except DynError as error:
        return RunSummary(path, path.name, DAMAGED, 0, math.nan, size, modified, str(error))


def prune(
    root: str | Path, *, statuses: Collection[str] | None = None, older_than: float | None = None, dry_run: bool = False
) -> list[RunSummary]:
    """Delete runs below a folder and return them; with `dry_run` only tell which.

    Args:
        root: the folder.
        statuses: only runs of these statuses (`damaged` is one; default: all).
        older_than: only runs that have not changed for this many seconds.
        dry_run: delete nothing.

    A run in use is never deleted, nor is anything that is not a run or does not belong to one.

    Raises:
        UsageError: a folder of a run holds a file that is not of dyn.
        RunError: something cannot be deleted.
    """
    removed = []
    for summary in list_runs(root):
        if is_locked(summary.path) or not _chosen(summary, statuses, older_than):
            continue
        if dry_run or _remove(summary.path):
            removed.append(summary)
    return removed


def _chosen(summary: RunSummary, statuses: Collection[str] | None, older_than: float | None) -> bool:
    if statuses is not None and summary.status not in statuses:
        return False
    # the clock may have been set back since: what was changed "in the future" is as new as can be
    return older_than is None or max(0.0, time.time() - summary.modified) >= older_than


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

"""The runs below a folder, without knowing their names."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from dynamics_cli.errors import DynError
from dynamics_cli.runs.run import Run
from dynamics_cli.runs.store import files, layout
from dynamics_cli.runs.store.locks import is_locked

DAMAGED = "damaged"
"""Status, in a list of runs, of a run that cannot be read."""


def runs_below(folder: Path, depth: int = 4) -> Iterator[Path]:
    """Yield the run directories in and below a folder, sorted.

    Links are not followed, and runs that were moved aside are left out.
    """
    if layout.is_run(folder) or layout.was_run(folder):
        yield folder
    elif depth:
        try:
            names = files.names(folder)
        except PermissionError:
            yield folder  # perhaps a run; its summary says that nobody knows
            return
        for below in (folder / name for name in names):
            if below.is_dir() and not below.is_symlink() and not layout.is_aside(below):
                yield from runs_below(below, depth - 1)


def summarize(path: Path) -> dict[str, Any]:
    """Return a row of the list of runs: how a run ended, its `size` in bytes, when it was written.

    `modified` is in seconds since 1970. A run that cannot be read has the status `damaged`, and
    `problem` says why. Arrays are not read.
    """
    row: dict[str, Any] = {
        "path": path,
        "name": path.name,
        "status": DAMAGED,
        "iterations": 0,
        "final_loss": math.nan,
        "size": 0,
        "modified": 0.0,
    }
    for file, status in files.sizes(path).items():
        if file.name not in layout.LOCKS:
            row["size"] += status.st_size
            row["modified"] = max(row["modified"], status.st_mtime)
    try:
        run = Run(path, any_config=True)
        row["iterations"] = run.iterations  # of a damaged checkpoint this raises
        row["final_loss"] = run.final_loss
        row["status"] = run.status
        row["name"] = str(run.info.get("name", path.name))
    except DynError as error:
        row["problem"] = str(error)
        if is_locked(path):
            row["status"] = "running"  # it is being started over
    return row

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
    """Yield the run directories in a folder and in the folders below it, sorted; links are not
    followed.
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
            if below.is_dir() and not below.is_symlink():
                yield from runs_below(below, depth - 1)


def summarize(path: Path) -> dict[str, Any]:
    """Return a row of the list of runs: how a run ended, `size` in bytes, `modified` in seconds
    since 1970.

    A run that cannot be read has the status `damaged`, and `problem` says why. Arrays are not read.
    """
    held = [status for file, status in files.sizes(path).items() if file.name != layout.LOCK]
    modified = max((status.st_mtime for status in held), default=0.0)
    about = {"size": sum(status.st_size for status in held), "modified": modified}
    try:
        run = Run(path, any_config=True)
        end = {"status": run.status, "iterations": run.iterations, "final_loss": run.final_loss}
        return {"path": path, "name": str(run.info.get("name", path.name)), **end, **about}
    except DynError as error:
        status = "running" if is_locked(path) else DAMAGED  # or it is being started over
        end = {"status": status, "iterations": 0, "final_loss": math.nan}
        return {"path": path, "name": path.name, **end, **about, "problem": str(error)}

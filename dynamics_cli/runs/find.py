"""Finding runs below a folder."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from dynamics_cli.errors import DynError, UsageError, did_you_mean
from dynamics_cli.runs.info import STATUSES
from dynamics_cli.runs.run import Run
from dynamics_cli.runs.store import files, layout
from dynamics_cli.runs.store.layout import is_run
from dynamics_cli.runs.store.locks import is_locked

_DEPTH = 4
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
    found = [status for file, status in files.sizes(path).items() if file.name != layout.LOCK]
    size, modified = sum(one.st_size for one in found), max((one.st_mtime for one in found), default=0.0)
    try:
        run = Run(path)
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

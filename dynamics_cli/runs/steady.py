"""Reading a run that another process may start over meanwhile."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from dynamics_cli.errors import RunError
from dynamics_cli.runs.store import layout
from dynamics_cli.runs.store.locks import is_locked

T = TypeVar("T")
_SECONDS, _PAUSE = 20.0, 0.05
"""How long, and after which pauses, a run is read again that is being started over."""


def steadily(directory: Path, read: Callable[[], T]) -> T:
    """Return `read()` of a run as it was or as it is now, never half of each.

    A run that is started over (`--force`) loses its `run.json` first, and has none until everything else is gone:
    numbers that were read while it stayed the same file are of one run. Otherwise it is read again.
    Readers need no lock, which the writer of a run holds for hours.

    Raises RunError: as `read`, of a run that nobody has started over.
    """
    end = time.monotonic() + _SECONDS
    while True:
        before = which_file(directory)
        found, problem = [], None
        try:
            found.append(read())
        except (RunError, OSError) as error:
            problem = error
        same = before == which_file(directory) and (before or not is_locked(directory))
        if same or time.monotonic() >= end:
            if problem is not None:
                raise problem
            return found[0]
        time.sleep(_PAUSE)


def which_file(directory: Path) -> tuple[int, ...]:
    """Return which file `run.json` is: another one when a run is started over, or goes on; nothing in between."""
    try:
        status = (directory / layout.INFO).lstat()
    except OSError:
        return ()
    return status.st_ino, status.st_mtime_ns

"""One writer per directory: a lock that the operating system drops when its holder dies."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

from filelock import FileLock, Timeout

from dynamics_cli.runs.errors import LockedRunError
from dynamics_cli.runs.store import files, layout

_GRACE = 0.3
"""Seconds to try before the lock counts as held; who looks at it holds it for microseconds."""


@contextlib.contextmanager
def run_lock(
    directory: Path, *, wait: bool = True, on_wait: Callable[[str], None] | None = None
) -> Iterator[bool]:
    """Hold the lock of a directory that is written, which is made if it is missing.

    While another process holds the lock, `on_wait` is called once with a message and the call
    waits. Yields whether it did.

    Raises:
        LockedRunError: the lock is held and `wait` is false.
        RunError: the lock cannot be written.
    """
    with files.os_errors_as_run_errors(directory):
        lock, waited = _acquire(directory, wait, on_wait)
    try:
        yield waited
    finally:
        lock.release()


def _acquire(
    directory: Path, wait: bool, on_wait: Callable[[str], None] | None
) -> tuple[FileLock, bool]:
    path = directory / layout.LOCK
    waited = False
    while True:
        files.make_directory(directory)
        lock = FileLock(path)
        with contextlib.suppress(FileNotFoundError):  # deleted with its directory
            try:
                lock.acquire(timeout=_GRACE)
            except Timeout:
                message = f"{directory} is in use by another process"
                if not wait:
                    raise LockedRunError(
                        f"{message}; wait for it, or give --out another directory"
                    ) from None
                if on_wait is not None and not waited:
                    on_wait(f"{message}; waiting for it to finish")
                waited = True
                lock.acquire()
        if lock.is_locked and path.exists():
            return lock, waited
        lock.release()


def is_locked(directory: Path) -> bool:
    """Whether a living process holds the lock of a directory; nothing is written."""
    path = directory / layout.LOCK
    if sys.platform == "win32":
        try:
            with FileLock(path, timeout=0) if path.exists() else contextlib.nullcontext():
                return False
        except (Timeout, PermissionError):
            return True
    import fcntl

    try:
        with files.open_read(path) as handle:
            fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:  # no lock file, or we may not read it: then its holder is unknown
        return False
    return False

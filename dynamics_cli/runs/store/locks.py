"""One writer per directory: locks that the operating system drops when their holder dies."""

from __future__ import annotations

import contextlib
import json
import os
import socket
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

from filelock import FileLock, Timeout

from dynamics_cli.runs.errors import LockedRunError
from dynamics_cli.runs.store import files, layout

_GRACE = 0.3
"""Seconds to try before the lock counts as held; a reader that looks at the lock holds it for microseconds."""


@contextlib.contextmanager
def run_lock(directory: Path, *, wait: bool = True, on_wait: Callable[[str], None] | None = None) -> Iterator[bool]:
    """Hold the lock of a run directory, which is made if it is missing.

    While another process holds the lock, `on_wait` is called once with a message and the call waits. Yields whether it
    did.

    Raises:
        LockedRunError: the lock is held and `wait` is false; the message names the process.
        RunError: the lock cannot be written.
    """
    with files.os_errors_as_run_errors(directory):
        lock, waited = acquire(directory, layout.LOCK, wait, on_wait)
        try:
            files.remove_temporaries(directory, layout.LOCK_HOLDER)  # left by a kill in the next step
            holder = json.dumps({"pid": os.getpid(), "host": socket.gethostname()})
            files.write_atomic(directory / layout.LOCK_HOLDER, holder.encode())
        except BaseException:
            lock.release()
            raise
    try:
        yield waited
    finally:
        lock.release()


def acquire(
    directory: Path, name: str, wait: bool = True, on_wait: Callable[[str], None] | None = None
) -> tuple[FileLock, bool]:
    """Make a directory, take the lock that is the file `name` in it, and return it, and whether it was waited for.

    Raises:
        LockedRunError: the lock is held and `wait` is false; the message names the process.
        OSError: the lock cannot be written.
    """
    path, waited = directory / name, False
    while True:
        files.make_directory(directory)
        lock = FileLock(path)
        try:
            lock.acquire(timeout=_GRACE)
        except FileNotFoundError:
            continue  # deleted with its directory
        except Timeout:
            message = f"{directory} is in use by {_holder(directory)}"
            if not wait:
                raise LockedRunError(f"{message}; wait for it, or give --out another directory") from None
            if on_wait is not None and not waited:
                on_wait(f"{message}; waiting for it to finish")
            waited = True
            with contextlib.suppress(FileNotFoundError):
                lock.acquire()
        if lock.is_locked and path.exists():
            return lock, waited
        lock.release()


def is_locked(directory: Path) -> bool:
    """Whether a living process holds the lock of a run directory; nothing is written."""
    path = directory / layout.LOCK
    if sys.platform == "win32":
        if not path.exists():
            return False
        try:
            with FileLock(path, timeout=0):
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


@contextlib.contextmanager
def alone_in(folder: Path) -> Iterator[None]:
    """Let no other process that asks for the same write to a folder meanwhile; it is made if it is missing.

    The folder itself is locked, where the system can do that: no file of ours is left in it.

    Raises RunError: the folder cannot be made.
    """
    with files.os_errors_as_run_errors(folder, advice=""):
        files.make_directory(folder)
    if sys.platform == "win32":
        yield
        return
    import fcntl

    handle = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


def _holder(directory: Path) -> str:
    try:
        holder = json.loads(files.read(directory / layout.LOCK_HOLDER))
        return f"process {int(holder['pid'])} on {str(holder['host'])[:80]!r}"
    except (OSError, ValueError, KeyError, TypeError, OverflowError, RecursionError):
        return "another process"

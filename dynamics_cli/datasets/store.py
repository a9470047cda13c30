"""Where data files live on this machine, and writing there so that a file is whole or not there at all."""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import BinaryIO

from filelock import FileLock, Timeout

from dynamics_cli.errors import RunError, UsageError

ROOT_VARIABLE = "DYN_DATA"
OFFLINE_VARIABLE = "DYN_OFFLINE"

_TEMPORARY = (".", ".tmp")
"""First and last characters of the names of what is not finished yet."""
_FULL = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})
_GRACE = 0.3
"""Seconds to try before a lock counts as held."""


def data_root() -> Path:
    """Return the directory of data files: `DYN_DATA`, or `dyn` in the user's data directory (XDG).

    Raises:
        UsageError: the user has no home directory and `DYN_DATA` is not set.

    """
    if named := os.environ.get(ROOT_VARIABLE):
        return Path(named).absolute()
    shared = os.environ.get("XDG_DATA_HOME", "")
    if Path(shared).is_absolute():  # the XDG specification has relative paths ignored
        return Path(shared) / "dyn"
    try:
        return Path.home() / ".local" / "share" / "dyn"
    except RuntimeError as error:
        raise UsageError(f"there is no home directory for data files; set {ROOT_VARIABLE} to a directory") from error


def is_offline() -> bool:
    """Whether the environment forbids network access (`DYN_OFFLINE` set to anything but 0, false or no)."""
    return os.environ.get(OFFLINE_VARIABLE, "").strip().lower() not in ("", "0", "false", "no")


@contextlib.contextmanager
def told(path: Path) -> Iterator[None]:
    """Turn an error of the operating system while writing below `path` into a `RunError` that says what to do."""
    try:
        yield
    except OSError as error:
        where = error.filename if isinstance(error.filename, str) else str(path)
        if error.errno in _FULL:
            raise RunError(f"disk full while writing {where}; free space and try again") from error
        advice = f"set {ROOT_VARIABLE} to a directory that can be written"
        raise RunError(f"cannot write {where} ({error.strerror or error}); {advice}") from error


@contextlib.contextmanager
def locked(directory: Path, on_wait: Callable[[str], None] | None = None) -> Iterator[None]:
    """Make `directory` and be the only process that writes into it.

    While another process is, `on_wait` is called once with a message and the call waits. What interrupted writers left
    behind is deleted.

    Raises:
        RunError: the directory cannot be written.

    """
    with told(directory):
        directory.mkdir(parents=True, exist_ok=True)
        lock = FileLock(directory / ".lock")
        try:
            lock.acquire(timeout=_GRACE)
        except Timeout:
            if on_wait is not None:
                on_wait(f"{directory} is in use by another process; waiting for it to finish")
            lock.acquire()
    try:
        with told(directory):
            for path in directory.iterdir():
                if path.name.startswith(_TEMPORARY[0]) and path.name.endswith(_TEMPORARY[1]):
                    delete(path)
        yield
    finally:
        lock.release()


@contextlib.contextmanager
def fresh_file(path: Path) -> Iterator[BinaryIO]:
    """Yield a file to write that gets the name `path` when the block ends well, and disappears when it does not."""
    temporary = _temporary(path)
    try:
        with temporary.open("xb") as handle:
            yield handle
            sync(handle)
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


@contextlib.contextmanager
def fresh_directory(path: Path) -> Iterator[Path]:
    """Yield a directory to fill that gets the name `path` when the block ends well, and disappears when it does not."""
    temporary = _temporary(path)
    temporary.mkdir()
    try:
        yield temporary
        temporary.rename(path)
    finally:
        delete(temporary)


def sync(handle: BinaryIO) -> None:
    """Return when all that was written to a file is on the disk."""
    handle.flush()
    os.fsync(handle.fileno())


def delete(path: Path) -> None:
    """Delete a file or a directory; it may be missing, and a link is deleted, not followed."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def _temporary(path: Path) -> Path:
    return path.with_name(f"{_TEMPORARY[0]}{path.name}.{os.getpid()}{_TEMPORARY[1]}")

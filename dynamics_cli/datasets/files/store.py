"""Where data files live on this machine, and who may write there."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Protocol, TypeVar

from dynamics_cli.errors import UsageError
from dynamics_cli.runs.store import files, locks

ROOT_VARIABLE = "DYN_DATA"
OFFLINE_VARIABLE = "DYN_OFFLINE"
LOCK = ".lock"
"""Held by the process that writes into a directory of data."""


def data_root() -> Path:
    """Return the directory of data files: `DYN_DATA`, or `dyn` in the user's data directory (XDG).

    Raises UsageError: the user has no home directory and `DYN_DATA` is not set.
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


class Original(Protocol):
    """A file of a data set as it is published, with pinned contents."""

    @property
    def name(self) -> str:
        """Name of the file here."""

    @property
    def served(self) -> str:
        """Name of the file on mirrors."""

    @property
    def size(self) -> int:
        """Size of the file here, in bytes."""

    def unpacked(self, data: bytes) -> bytes:
        """Return the contents of the file here, given as a mirror sends it; ValueError: they are others."""


File = TypeVar("File", bound=Original)


def missing_files(directory: Path, files: Sequence[File]) -> list[File]:
    """Return the files that are not there, or not of the right size."""
    return [file for file in files if _size(directory / file.name) != file.size]


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return -1


def is_offline() -> bool:
    """Whether the environment forbids network access (`DYN_OFFLINE` set to anything but 0, false or no)."""
    return os.environ.get(OFFLINE_VARIABLE, "").strip().lower() not in ("", "0", "false", "no")


@contextlib.contextmanager
def locked(directory: Path, on_wait: Callable[[str], None] | None = None) -> Iterator[None]:
    """Make `directory` and be the only process that writes into it.

    While another process is, `on_wait` is called once with a message and the call waits. Unfinished files of
    interrupted writers are deleted.

    Raises RunError: the directory, or a file that the block writes into it, cannot be written.
    """
    with files.os_errors_as_run_errors(directory, f"set {ROOT_VARIABLE} to a directory that can be written"):
        lock, _ = locks.acquire(directory, LOCK, on_wait=on_wait)
        try:
            files.remove_temporaries(directory)
            yield
        finally:
            lock.release()

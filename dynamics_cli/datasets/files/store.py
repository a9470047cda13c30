"""Published files of data sets: where they live on this machine, their pinned contents, who may write there."""

from __future__ import annotations

import contextlib
import gzip
import hashlib
import io
import os
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from dynamics_cli.errors import DataMissingError, InputError, UsageError
from dynamics_cli.runs.store import files, locks

ROOT_VARIABLE = "DYN_DATA"
OFFLINE_VARIABLE = "DYN_OFFLINE"
LOCK = ".lock"
"""Held by the process that writes into a directory of data."""
SLACK = 2**20
"""Bytes by which gzip may make a file longer."""
_GZIP = b"\x1f\x8b"


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


@dataclass(frozen=True)
class Original:
    """A file of a data set as it is published; its contents are pinned."""

    name: str
    """Name of the file here."""
    sha256: str
    size: int
    """Size of the file here, in bytes."""
    zipped: bool = False
    """Whether mirrors serve it gzipped, each in its own way, and users may have it so."""

    @property
    def served(self) -> str:
        """Name of the file on mirrors."""
        return f"{self.name}.gz" if self.zipped else self.name

    def unpacked(self, data: bytes) -> bytes:
        """Return the contents of the file here, given as a mirror sends it; ValueError: they are others."""
        try:
            if self.zipped and data.startswith(_GZIP):
                data = gzip.GzipFile(fileobj=io.BytesIO(data)).read(self.size + 1)  # a bomb is not unpacked
        except (OSError, EOFError, zlib.error) as error:
            raise ValueError(f"it is a damaged gzip file ({error})") from error
        found = hashlib.sha256(data).hexdigest()
        if found != self.sha256:
            count = min(len(data), self.size + 1)
            raise ValueError(
                f"its contents have {count} bytes and SHA-256 {found}; those of {self.name} have {self.size} and "
                f"{self.sha256}"
            )
        return data

    def read(self, path: Path) -> bytes:
        """Return the contents of a file of a user; raises InputError: it cannot be read, or is another file."""
        try:
            with path.open("rb") as handle:
                return self.unpacked(handle.read(self.size + SLACK))
        except (OSError, ValueError) as error:
            raise InputError(f"{path}: {getattr(error, 'strerror', None) or error}") from error


@dataclass(frozen=True)
class Published:
    """A data set of published files, which dyn downloads, or copies from a place of the user."""

    name: str
    title: str
    images: str
    """The contents, in words."""
    files: Sequence[Original]
    mirrors: Sequence[str]
    """Addresses of directories with the files, tried in this order."""
    by_hand: str
    """Another way to get it."""
    how: str
    """How to get it, where it is not here."""

    @property
    def directory(self) -> Path:
        """Where the files are or would be."""
        return data_root() / self.name

    def missing(self) -> list[Original]:
        """Return the files that are not there, or not of the right size."""
        return [file for file in self.files if _size(self.directory / file.name) != file.size]

    def read(self, names: Sequence[str]) -> list[bytes]:
        """Return the contents of some files.

        Raises:
            DataMissingError: some are not there; the message says how to get them.
            InputError: a file is damaged.
        """
        wanted = {file.name: file for file in self.files if file.name in names}
        if any(file.name in wanted for file in self.missing()):
            raise DataMissingError(f"{self.title} is not in {self.directory}: {self.how}")
        return [wanted[name].read(self.directory / name) for name in names]

    def find(self, file: Original, path: Path) -> Path:
        """Return where a file is, in a directory of the user under its usual names, or a single file at `path` itself.

        Raises InputError: it is not there.
        """
        if len(self.files) == 1 and not path.is_dir():
            return path
        dotted = file.name.replace("-idx", ".idx")
        for name in (file.name, file.served, dotted, f"{dotted}.gz"):
            if (path / name).is_file():
                return path / name
        names = " or ".join(dict.fromkeys((file.name, file.served)))
        raise InputError(f"{path}: holds no {names}; needed are all files of {self.title} ({len(self.files)})")

    def add(self, path: Path, *, on_wait: Callable[[str], None] | None = None) -> Path:
        """Copy the files, in a directory of the user or a single file, to where dyn keeps data; return where.

        Raises:
            InputError: a file is missing, damaged or another; then nothing changes.
            RunError: the files cannot be written.
        """
        contents = {file.name: file.read(self.find(file, path)) for file in self.files}
        with locked(self.directory, on_wait):
            for name, data in contents.items():
                files.write_atomic(self.directory / name, data)
        return self.directory


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

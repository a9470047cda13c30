"""File operations of everything that is written: a few primitives, which tests make fail.

Modules that write runs call `files.name(...)` and touch no file otherwise; data files and pictures
share `replacing`. `OSError` passes through; `os_errors_as_run_errors` turns it into the message
that a user reads.
"""

from __future__ import annotations

import contextlib
import csv
import errno
import io
import os
import re
from collections.abc import Iterable, Iterator, Sequence
from contextvars import ContextVar
from pathlib import Path
from typing import Any, BinaryIO

from dynamics_cli.errors import RunError

Buffer = bytes | bytearray | memoryview

RESUME = "--resume"
_PIECE = 1 << 20
"""Bytes copied at once."""
_REMEDY = ContextVar("remedy", default="")


@contextlib.contextmanager
def os_errors_as_run_errors(path: Path, advice: str = "") -> Iterator[None]:
    """Turn an `OSError` while writing at or below `path` into a `RunError` ending with `advice`.

    By default the advice is to continue the run that is trained (see `continued_by`), if there is
    one.
    """
    try:
        yield
    except OSError as error:
        where = path
        if isinstance(error.filename, str) and Path(error.filename).is_relative_to(path):
            where = Path(error.filename)
        remedy = f"continue with {_REMEDY.get()}"
        if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
            problem = f"disk full while writing {where}"
            remedy = f"free space and {remedy}"
        elif error.errno == errno.ELOOP:
            problem = (
                f"{where} is a link, and dyn does not write through links: put a copy in its place"
            )
        elif error.errno in (errno.ENOENT, errno.ESTALE):
            problem = f"{where} is gone: was its directory deleted or moved?"
        else:
            problem = f"cannot write {where}: {error.strerror or error}"
        if not advice and _REMEDY.get():
            advice = f"what was saved is kept; {remedy}"
        raise RunError("; ".join(filter(None, (problem, advice)))) from error


@contextlib.contextmanager
def continued_by(remedy: str) -> Iterator[None]:
    """Let messages name the way to continue the run that is trained, such as `--resume`."""
    token = _REMEDY.set(remedy)
    try:
        yield
    finally:
        _REMEDY.reset(token)


# Primitives that change something.


def create(path: Path) -> BinaryIO:
    """Open a file for writing, empty at first."""
    return path.open("w+b", buffering=0)


def open_update(path: Path) -> BinaryIO:
    """Open an existing file to change it in place; another name of it may be somebody else's.

    Raises OSError: it is a link, or has hard links.
    """
    return open(path, "r+b", buffering=0, opener=_no_link)


def append(path: Path, data: Buffer) -> None:
    """Write `data` behind what a file holds, and return when it is on the disk."""
    with open(path, "ab", opener=_no_link) as handle:
        handle.write(data)
        handle.flush()
        sync(handle)


def _no_link(name: str, flags: int) -> int:
    descriptor = os.open(name, flags | getattr(os, "O_NOFOLLOW", 0), 0o666)
    if os.fstat(descriptor).st_nlink > 1:
        os.close(descriptor)
        raise OSError(errno.EMLINK, "it has hard links; put a copy in its place", name)
    return descriptor


def write_at(handle: BinaryIO, data: Buffer, offset: int) -> None:
    """Write all of `data` at byte `offset`; a failure may leave a part of it."""
    unwritten = memoryview(data).cast("B")
    handle.seek(offset)
    while len(unwritten):
        unwritten = unwritten[handle.write(unwritten) :]


def truncate(handle: BinaryIO, size: int) -> None:
    """Cut the file to `size` bytes."""
    handle.truncate(size)


def sync(handle: BinaryIO) -> None:
    """Return when the contents of the file are on the disk."""
    os.fsync(handle.fileno())


def sync_directory(path: Path) -> None:
    """Return when the names inside the directory are on the disk (where the system can do that)."""
    if os.name != "posix":
        return
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def replace(source: Path, target: Path) -> None:
    """Give `source` the name `target` in one indivisible step."""
    source.replace(target)


def make_directory(path: Path) -> None:
    """Make a directory and those above it; it may exist."""
    path.mkdir(parents=True, exist_ok=True)


def remove(path: Path) -> None:
    """Delete a file, if it is there; a link is deleted, never followed."""
    path.unlink(missing_ok=True)


# Primitives that only look.


def open_read(path: Path) -> BinaryIO:
    """Open a file for reading; a pipe in its place reads as empty: nobody waits for its writer."""
    return open(path, "rb", buffering=0, opener=_at_once)


def _at_once(name: str, flags: int) -> int:
    return os.open(name, flags | getattr(os, "O_NONBLOCK", 0))


def check_regular(path: Path) -> None:
    """Raise `OSError` for a pipe or a device, whose reader may wait for ever; not if missing."""
    if path.exists() and not path.is_file():
        raise OSError(errno.EINVAL, "it is not a regular file", str(path))


def read_at(handle: BinaryIO, offset: int, count: int) -> bytes:
    """Read `count` bytes from byte `offset` on, fewer at the end of the file."""
    handle.seek(offset)
    pieces: list[bytes] = []
    while count > 0 and (piece := handle.read(count)):
        pieces.append(piece)
        count -= len(piece)
    return b"".join(pieces)


def read(path: Path) -> bytes:
    """Read a whole file."""
    with open_read(path) as handle:
        return read_at(handle, 0, open_size(handle))


def open_size(handle: BinaryIO) -> int:
    """Size of an open file in bytes."""
    return os.fstat(handle.fileno()).st_size


def exists(path: Path) -> bool:
    """Whether something has this name (a link is something)."""
    return os.path.lexists(path)


def names(directory: Path) -> list[str]:
    """Names inside a directory, sorted; none when there is no such directory."""
    try:
        return sorted(os.listdir(directory))  # noqa: PTH208 (names, not paths)
    except (FileNotFoundError, NotADirectoryError):
        return []


def sizes(directory: Path) -> dict[Path, os.stat_result]:
    """Return the status (`st_size`, `st_mtime`) of every file below a directory."""
    statuses = {}
    for path in sorted(directory.rglob("*")):
        with contextlib.suppress(FileNotFoundError):  # a run in progress replaces files
            if path.is_symlink() or path.is_file():
                statuses[path] = path.lstat()
    return statuses


# Composites.

_TEMPORARY = re.compile(r"\.(run\.json|config\.yaml|[A-Za-z0-9_.\-]+\.(npy|npz|py))\.[0-9]+\.tmp")
"""Names of unfinished files of a run; a hidden `.tmp` of somebody else is not ours to delete."""


@contextlib.contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Yield a free name beside `path`; its file becomes `path` in one step if the block ends well.

    After an error it is deleted. The block syncs the contents if they must survive a power cut.
    """
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        yield temporary
        replace(temporary, path)
    except BaseException:
        with contextlib.suppress(OSError):  # the first error is told
            remove(temporary)
        raise
    sync_directory(path.parent)


def write_atomic(path: Path, data: Buffer) -> None:
    """Give `path` the contents `data`; after a kill or a power cut it holds the old or the new."""
    with replacing(path) as temporary, create(temporary) as handle:
        write_at(handle, data, 0)
        sync(handle)


def copy_start(source: Path, target: Path, size: int) -> None:
    """Give `target` the first `size` bytes of a file, perhaps itself, in one indivisible step."""
    with replacing(target) as temporary, create(temporary) as copy:
        with open_read(source) as handle:
            for at in range(0, size, _PIECE):
                write_at(copy, read_at(handle, at, min(_PIECE, size - at)), at)
        sync(copy)


def save(path: Path, data: Buffer) -> None:
    """Write a file by `write_atomic`, in a folder that is made if it is missing.

    Raises RunError: it cannot be written.
    """
    with os_errors_as_run_errors(path):
        make_directory(path.parent)
        write_atomic(path, data)


def save_as_named(path: Path, data: Buffer) -> None:
    """Write a file that a user names, by `save`; a link leads to its file.

    A device or a pipe gets the contents, and stays.

    Raises RunError: it cannot be written, or is a pipe that no process reads.
    """
    if path.exists() and not path.is_file():
        with os_errors_as_run_errors(path), open(path, "wb", opener=_no_wait) as stream:
            stream.write(data)
    else:
        save(Path(os.path.realpath(path)), data)


def _no_wait(name: str, flags: int) -> int:
    flags &= ~(os.O_CREAT | os.O_TRUNC)
    try:
        descriptor = os.open(name, flags | getattr(os, "O_NONBLOCK", 0))
    except OSError as error:
        if error.errno == errno.ENXIO:
            raise OSError(error.errno, "no process reads this pipe", name) from error
        raise
    os.set_blocking(descriptor, True)
    return descriptor


def csv_of(header: Sequence[str], rows: Iterable[Sequence[Any]]) -> bytes:
    """Return a table as CSV."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(header)
    writer.writerows(rows)
    return text.getvalue().encode("utf-8", "backslashreplace")


def remove_temporaries(directory: Path) -> None:
    """Delete the unfinished files of interrupted atomic writes in a directory of a run."""
    for path in map(directory.joinpath, filter(_TEMPORARY.fullmatch, names(directory))):
        if path.is_file() and not path.is_symlink():
            remove(path)

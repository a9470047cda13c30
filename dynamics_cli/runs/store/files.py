"""Every input and output of a run directory, in few primitives, so that faults can be put under all of it at once.

Modules that write runs call these functions as `files.name(...)` and touch no file otherwise; data files and pictures
share the last step of all writing, `replacing`. Errors of the operating system pass through;
`os_errors_as_run_errors` turns them into the message that a user reads.
"""

from __future__ import annotations

import contextlib
import csv
import errno
import io
import os
import re
import shutil
import stat
from collections.abc import Iterable, Iterator, Sequence
from contextvars import ContextVar
from pathlib import Path
from typing import Any, BinaryIO

from dynamics_cli.errors import RunError, UsageError

Buffer = bytes | bytearray | memoryview

_FULL = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})
_DENIED = frozenset({errno.EACCES, errno.EPERM, errno.EROFS})
_GONE = frozenset({errno.ENOENT, errno.ESTALE})

RESUME = "--resume"
_REMEDY = ContextVar("remedy", default=RESUME)


@contextlib.contextmanager
def os_errors_as_run_errors(path: Path, advice: str | None = None) -> Iterator[None]:
    """Turn an error of the operating system while writing at or below `path` into a `RunError` that says the way out.

    The file is of a run, which can be resumed (see `continued_by`), unless there is other `advice` (perhaps empty).
    """
    try:
        yield
    except OSError as error:
        remedy = _REMEDY.get()
        explained = advice is None and remedy
        text = _explain(error, path, remedy) if explained else _explain_other(error, path, advice or "")
        raise RunError(text) from error


@contextlib.contextmanager
def continued_by(remedy: str) -> Iterator[None]:
    """Let messages name the way to continue a run that cannot be written, instead of `--resume`; "" for none."""
    token = _REMEDY.set(remedy)
    try:
        yield
    finally:
        _REMEDY.reset(token)


def _explain_other(error: OSError, path: Path, advice: str) -> str:
    if error.errno in _FULL:
        return f"disk full while writing {path}; free space and try again"
    return f"cannot write {path}: {error.strerror or error}" + (f"; {advice}" if advice else "")


def _explain(error: OSError, path: Path, remedy: str) -> str:
    where = error.filename if isinstance(error.filename, str) else str(path)
    kept = "what was acknowledged is kept"
    if error.errno in _FULL:
        return f"disk full while writing {where}: {kept}; free space and continue with {remedy}"
    if error.errno in _DENIED:
        return f"{where} is not writable ({error.strerror}): {kept}; allow writing and continue with {remedy}"
    if error.errno in _GONE:
        place = ", and --out where it is now" if remedy == RESUME else " where it was"
        return f"{where} is gone: was its directory deleted or moved? Continue with {remedy}{place}"
    return f"cannot write {where} ({error.strerror or error}): {kept}; continue with {remedy}"


# Primitives that change something. Each is one call to the operating system, or a loop over one.


def create(path: Path) -> BinaryIO:
    """Open a file for reading and writing, empty at first; not through a link."""
    return open(path, "w+b", buffering=0, opener=_no_link)


def open_update(path: Path) -> BinaryIO:
    """Open an existing file for reading and writing in place; not through a link."""
    return open(path, "r+b", buffering=0, opener=_no_link)


def _no_link(name: str, flags: int) -> int:
    return os.open(name, flags | getattr(os, "O_NOFOLLOW", 0), 0o666)


def write_at(handle: BinaryIO, data: Buffer, offset: int) -> None:
    """Write all of `data` at byte `offset`; a failure may leave a part of it."""
    rest = memoryview(data).cast("B")
    handle.seek(offset)
    while len(rest):
        rest = rest[handle.write(rest) :]


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


def remove(path: Path) -> None:
    """Delete a file; it may be missing."""
    path.unlink(missing_ok=True)


def make_directory(path: Path) -> None:
    """Make a directory and those above it; it may exist."""
    path.mkdir(parents=True, exist_ok=True)


def remove_directory(path: Path) -> None:
    """Delete a directory if it is there and empty."""
    try:
        path.rmdir()
    except OSError as error:
        if error.errno not in (errno.ENOENT, errno.ENOTEMPTY, errno.EEXIST):
            raise


# Primitives that only look.


def open_read(path: Path) -> BinaryIO:
    """Open a file for reading; a pipe in its place reads as empty, instead of making us wait for its writer."""
    return open(path, "rb", buffering=0, opener=_at_once)


def _at_once(name: str, flags: int) -> int:
    return os.open(name, flags | getattr(os, "O_NONBLOCK", 0))


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
        return read_at(handle, 0, size(handle))


def ensure_named(status: os.stat_result, path: Path) -> None:
    """Raise `FileNotFoundError` unless `path` still is a name of the open file that has this status.

    Writing to a file that was deleted or moved succeeds, and the written bytes are lost.
    """
    with contextlib.suppress(FileNotFoundError, NotADirectoryError):
        if os.path.samestat(status, path.stat()):
            return
    raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(path))


def size(handle: BinaryIO) -> int:
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


def free_bytes(path: Path) -> int:
    """Free space where `path` is or will be, in bytes."""
    path = path.absolute()
    while not path.exists() and path != path.parent:
        path = path.parent
    return shutil.disk_usage(path).free


def used(directory: Path, without: tuple[str, ...] = ()) -> tuple[int, float]:
    """Total size in bytes and last change (seconds since 1970) of the files below a directory, `without` some names."""
    total, changed = 0, 0.0
    for folder, _, found in os.walk(directory):
        for name in set(found).difference(without):
            with contextlib.suppress(FileNotFoundError):  # a run in progress replaces files
                status = os.lstat(Path(folder, name))
                total, changed = total + status.st_size, max(changed, status.st_mtime)
    return total, changed


# Composites.

TEMPORARY = (".", ".tmp")
"""First and last characters of the names of files that are not finished yet."""
_TEMPORARY = re.compile(r"\..+\.([0-9]+|new)\.tmp", re.DOTALL)
"""Such names; a hidden `.tmp` of somebody else is not ours to delete."""


@contextlib.contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Yield a free name beside `path`; the file of that name becomes `path` in one step when the block ends well.

    After an error it is deleted. Its contents are synced by the block, if they must survive a power cut.
    """
    temporary = path.with_name(f"{TEMPORARY[0]}{path.name}.{os.getpid()}{TEMPORARY[1]}")
    try:
        yield temporary
        replace(temporary, path)
    except BaseException:
        with contextlib.suppress(OSError):  # the first error is told
            remove_tree(temporary)
        raise
    sync_directory(path.parent)


def write_atomic(path: Path, data: Buffer) -> None:
    """Give `path` the contents `data`: after a kill or a power cut it holds the old contents or the new contents."""
    with replacing(path) as temporary, create(temporary) as handle:
        write_at(handle, data, 0)
        sync(handle)


def save(path: Path, data: Buffer) -> None:
    """Write a file by `write_atomic`, in a folder that is made if it is missing.

    Raises RunError: it cannot be written.
    """
    with os_errors_as_run_errors(path):
        make_directory(path.parent)
        write_atomic(path, data)


def save_csv(path: Path, header: Sequence[str], rows: Iterable[Sequence[Any]]) -> Path:
    """Write a table by `save` and return its path.

    Raises RunError: it cannot be written.
    """
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(header)
    writer.writerows(rows)
    save(path, text.getvalue().encode())
    return path


def remove_temporaries(directory: Path, of: str = "") -> None:
    """Delete the unfinished files of interrupted atomic writes in a directory, `of` a single file or of all."""
    for name in names(directory):
        if _TEMPORARY.fullmatch(name) and name.startswith(f".{of}"):
            remove_tree(directory / name)


def refuse_others(directory: Path, ours: re.Pattern[str], folders: Sequence[str] = ("",)) -> None:
    """Refuse to delete folders of a directory while a file in them has a name, below the directory, that is not `ours`.

    Links are passed over: of a link its name alone is deleted.

    Raises UsageError: there is such a file; it is named.
    """
    places = (directory / name for name in folders)
    for folder, _, found in (walked for place in places if not place.is_symlink() for walked in os.walk(place)):
        for path in (Path(folder, name) for name in sorted(found)):
            known = ours.fullmatch(path.relative_to(directory).as_posix()) or _TEMPORARY.fullmatch(path.name)
            if not known and not path.is_symlink():
                raise UsageError(
                    f"{path} is not of dyn, and would be deleted: move it away, then give the command again"
                )


def remove_tree(path: Path) -> None:
    """Delete a file, or a directory with all that it holds; links are deleted, never followed."""
    try:
        is_directory = stat.S_ISDIR(os.lstat(path).st_mode)
    except FileNotFoundError:
        return
    if not is_directory:
        remove(path)
        return
    for name in names(path):
        remove_tree(path / name)
    remove_directory(path)

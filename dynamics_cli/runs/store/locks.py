"""One writer per directory.

On a local disk the writer holds a lock of the operating system, which drops it when the writer
dies. Network file systems do not promise such locks between machines. There the writer holds a
*lease*: a file with its host and process, which it touches every few seconds; who sees no touch for
`LEASE_SECONDS` seconds takes it over, and the writer before it may write no more (`Hold.check`).
"""

from __future__ import annotations

import contextlib
import errno
import os
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from filelock import BaseFileLock, FileLock, SoftFileLease, Timeout

from dynamics_cli.errors import RunError, UsageError, did_you_mean
from dynamics_cli.runs.errors import LockedRunError
from dynamics_cli.runs.store import files, layout

CHOICE = "DYN_LOCK"
"""Environment variable that chooses the kind of lock."""
LOCK_KINDS = ("auto", "system", "soft")
"""Values of `DYN_LOCK`: a lease on network file systems; the system's lock; a lease, everywhere."""
LEASE_SECONDS = 30.0
"""Seconds without a touch after which another process takes a lease over."""
NETWORK_FILE_SYSTEMS = frozenset(
    {"9p", "afs", "beegfs", "ceph", "cifs", "fuse.ceph", "fuse.glusterfs", "fuse.sshfs"}
    | {"glusterfs", "gpfs", "lustre", "ncpfs", "nfs", "nfs4", "orangefs", "smb3", "smbfs"}
)
"""Types, as the system names them, of file systems that several machines mount."""

_GRACE = 0.3
"""Seconds to try before the lock counts as held; who looks at it holds it for microseconds."""


def takes_leases(directory: Path) -> bool:
    """Whether writers in a directory hold leases: by `DYN_LOCK`, or by the type of its file system.

    Raises UsageError: `DYN_LOCK` has another value than `LOCK_KINDS`.
    """
    choice = os.environ.get(CHOICE) or "auto"
    if choice not in LOCK_KINDS:
        raise UsageError(
            f"{CHOICE} is {choice!r}: choose from"
            f" {', '.join(LOCK_KINDS)}{did_you_mean(choice, LOCK_KINDS)}"
        )
    if choice == "auto":
        return _file_system(directory) in NETWORK_FILE_SYSTEMS
    return choice == "soft"


def _file_system(directory: Path) -> str:
    """Return the type of the file system in which a directory is, or will be; empty if unknown."""
    import psutil

    place = directory.resolve()
    mounted = {
        Path(partition.mountpoint): partition.fstype
        for partition in psutil.disk_partitions(all=True)
    }
    for folder in (place, *place.parents):
        if folder in mounted:
            return mounted[folder].lower()
    return ""


class Hold:
    """A hold on a directory: the right to write there, as long as `check` raises nothing."""

    def __init__(self, directory: Path) -> None:
        """Take note of the lock that the caller holds; none where there is no lock at all."""
        self.directory = directory
        self.leased = (directory / layout.LEASE).exists()
        self._file = directory / (layout.LEASE if self.leased else layout.LOCK)
        self._stat: os.stat_result | None = None
        with contextlib.suppress(OSError):
            self._stat = self._file.stat()

    def check(self) -> None:
        """Return when the lock is still that of this process.

        Raises RunError: the directory was deleted, lock and all, or its lease was taken over:
        another process may write there now.
        """
        if self._stat is None:
            return
        with files.os_errors_as_run_errors(self.directory):
            ours = os.path.samestat(self._stat, self._file.stat())
            if not ours and not self.leased:
                raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(self._file))
        if not ours:
            raise RunError(
                f"another process has taken {self.directory} over, since this one gave no sign of"
                f" life for {LEASE_SECONDS:g} s; this one wrote nothing since"
            )


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
        UsageError: a file of the lock's name is somebody else's, or `DYN_LOCK` is misspelt.
    """
    with files.os_errors_as_run_errors(directory):
        lock, waited = _acquire(directory, wait, on_wait)
    try:
        yield waited
    finally:
        lock.release()


def _acquire(
    directory: Path, wait: bool, on_wait: Callable[[str], None] | None
) -> tuple[BaseFileLock, bool]:
    waited = False
    while True:
        files.make_directory(directory)
        lock = _lock(directory)
        with contextlib.suppress(FileNotFoundError):  # deleted with its directory
            try:
                lock.acquire(timeout=_GRACE)
            except Timeout:
                message = f"{directory} is in use by another process{_owner(lock)}"
                if not wait:
                    raise LockedRunError(
                        f"{message}; wait for it, or give --out another directory"
                    ) from None
                if on_wait is not None and not waited:
                    on_wait(f"{message}; waiting for it to finish")
                waited = True
                lock.acquire()
        if lock.is_locked and Path(lock.lock_file).exists():
            return lock, waited
        lock.release()


def _lock(directory: Path) -> BaseFileLock:
    """Return the lock of a directory, not acquired yet.

    A lease that is there binds who would take the system's lock, too: another machine holds it.
    """
    path = directory / layout.LEASE
    if not takes_leases(directory) and not path.exists():
        return FileLock(directory / layout.LOCK)

    lease = SoftFileLease(path, lease_duration=LEASE_SECONDS)
    with contextlib.suppress(FileNotFoundError):  # released meanwhile
        status = path.stat()
        # a lease is empty until its owner is written at once
        written = status.st_size > 0 or time.time() - status.st_mtime > LEASE_SECONDS
        # filelock would remove it as a lease half written
        if written and lease.owner is None and path.exists():
            raise UsageError(f"{path} is there already, and dyn did not write it: move it away")
    return lease


def _owner(lock: BaseFileLock) -> str:
    """Return the holder of a lease in words; the system tells nobody who holds its locks."""
    owner = lock.owner if isinstance(lock, SoftFileLease) else None
    return "" if owner is None else f" (process {owner.pid} on {owner.hostname})"


def is_locked(directory: Path) -> bool:
    """Whether a living process holds the lock of a directory; nothing is written.

    A lease counts as held until nobody touched it for `LEASE_SECONDS` seconds.
    """
    with contextlib.suppress(OSError):
        touched = (directory / layout.LEASE).stat().st_mtime
        return time.time() - touched < LEASE_SECONDS

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

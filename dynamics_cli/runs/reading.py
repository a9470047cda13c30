"""Which arrays `dyn verify` reads whole; of the others it checks headers and lengths."""

from __future__ import annotations

import hashlib
import os
import random
import time
from collections.abc import Iterable
from pathlib import Path

from dynamics_cli.errors import RunError, UsageError
from dynamics_cli.runs.store import files, layout
from dynamics_cli.runs.store.own import refuse_foreign
from dynamics_cli.runs.store.sealed import read_sealed, write_sealed

SETTLED = 2.0
"""Seconds after its last change from which an array is remembered: another change within the
resolution of the file system's clock would not show.
"""


class Reading:
    """Reads all arrays, and counts them.

    Attributes:
        arrays, read: numbers of arrays, and of those that were read whole.
        bytes, bytes_read: numbers of their bytes.
    """

    def __init__(self) -> None:
        """Count from 0."""
        self.arrays = 0
        self.read = 0
        self.bytes = 0
        self.bytes_read = 0

    def whole(self, array: Path, crc32: int) -> bool:
        """Count an array that should have this checksum; return whether to read it whole."""
        size = _size(array)
        asked = self._asks(array, crc32)
        self.arrays += 1
        self.bytes += size
        if asked:
            self.read += 1
            self.bytes_read += size
        return asked

    def _asks(self, array: Path, crc32: int) -> bool:
        return True

    def begin(self, run: Path) -> None:
        """Note that the arrays of a run directory follow."""

    def intact(self, array: Path) -> None:
        """Note that an array was read whole, and is intact."""

    def end(self, run: Path) -> None:
        """Note that the run directory has no more arrays."""


class Sample(Reading):
    """Reads arrays chosen at random, until they have a share of the bytes of all.

    Attributes:
        seed: of the choice.
    """

    def __init__(self, runs: Iterable[Path], share: float, seed: int | None = None) -> None:
        """Choose among the arrays of run directories; without a seed by a new one.

        Raises UsageError: the share is not above 0, or above 1.
        """
        if not 0 < share <= 1:
            raise UsageError(f"sample is a share above 0 and at most 1, not {share:g}")
        super().__init__()
        self.seed = random.randrange(2**32) if seed is None else seed
        sizes = {array: _size(array) for run in runs for array in _arrays(run)}
        order = sorted(sizes)
        random.Random(self.seed).shuffle(order)
        self._chosen: set[Path] = set()
        left = share * sum(sizes.values())
        for array in order:
            if left <= 0:
                break
            self._chosen.add(array)
            left -= sizes[array]

    def _asks(self, array: Path, crc32: int) -> bool:
        return array in self._chosen


class Incremental(Reading):
    """Reads arrays that are not as they were when they were read whole and found intact.

    Size, time of the last change and checksum are kept in the user's cache, in a file for each run
    directory. Nothing is written beside the runs: they may be read-only, or somebody else's.

    Attributes:
        problem: why something could not be remembered; empty otherwise.
    """

    def __init__(self) -> None:
        """Remember in the user's cache. Raises UsageError: there is no home directory for it."""
        super().__init__()
        self.folder = cache_root() / "verified"
        self.problem = ""
        self._kept: dict[str, list[int]] = {}
        self._marks: dict[str, list[int]] = {}
        self._intact: set[str] = set()

    def begin(self, run: Path) -> None:
        """Recall the arrays of a run; a memory that was damaged is none.

        Raises UsageError: a file of its name is somebody else's.
        """
        refuse_foreign(self._memory(run))
        self._kept = {}
        self._marks = {}
        self._intact = set()
        try:
            kept = read_sealed(self._memory(run))
        except (FileNotFoundError, NotADirectoryError, RunError):
            return
        if kept.get("run") == str(run) and isinstance(kept.get("arrays"), dict):
            self._kept = kept["arrays"]

    def _memory(self, run: Path) -> Path:
        return self.folder / f"{hashlib.sha256(os.fsencode(run)).hexdigest()[:32]}.json"

    def _asks(self, array: Path, crc32: int) -> bool:
        name = str(array)
        try:
            status = array.stat()
        except OSError:
            return True
        mark = [status.st_size, status.st_mtime_ns, crc32]
        if self._kept.get(name) == mark:
            self._marks[name] = mark
            self._intact.add(name)
            return False
        if time.time() - status.st_mtime > SETTLED:
            self._marks[name] = mark
        return True

    def intact(self, array: Path) -> None:
        """Remember an array as it was before it was read."""
        self._intact.add(str(array))

    def end(self, run: Path) -> None:
        """Write what is remembered of a run; `problem` says why, where that is not possible."""
        arrays = {name: mark for name, mark in self._marks.items() if name in self._intact}
        if arrays == self._kept:
            return
        try:
            write_sealed(self._memory(run), {"run": str(run), "arrays": arrays})
        except RunError as error:
            self.problem = str(error)


def cache_root() -> Path:
    """Return the directory of what can be made again: `dyn` in the user's cache (XDG).

    Raises UsageError: the user has no home directory and `XDG_CACHE_HOME` is not set.
    """
    missing = "there is no home directory for a cache; set XDG_CACHE_HOME to a directory"
    return layout.user_folder("XDG_CACHE_HOME", ".cache", missing)


def _arrays(run: Path) -> list[Path]:
    """Return the files below a run directory that are named as its arrays."""
    found = []
    for folder in layout.WRITTEN_FOLDERS:
        found += [run / folder / name for name in files.names(run / folder)]
    return [path for path in found if path.suffix == ".npy"]


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:  # the check of the array says so
        return 0

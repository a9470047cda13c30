"""A log of the changes that a run makes, and the directories that a kill or a power cut in its middle leaves.

A kill loses nothing that was handed to the operating system. A power cut may lose what was not synced: the contents of
a file since its last `sync`, and names (created, renamed, removed) since the last `sync_directory` of their folder.
"""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePosixPath
from typing import Any, BinaryIO
from weakref import WeakKeyDictionary

import pytest

from dynamics_cli.runs.store import files, layout
from tests.runs.faults import CHANGING

_TEAR_EVERY = 8
"""Writes up to 32 times this length, such as headers, are torn after so many bytes each; longer ones half-way."""


@dataclass(frozen=True)
class Change:
    """One change of a directory; paths are relative to it. `file` numbers the file whose contents are meant."""

    name: str
    path: str = ""
    target: str = ""
    file: int = -1
    offset: int = 0
    data: bytes = b""
    size: int = 0

    def __str__(self) -> str:
        return f"{self.name} {self.path or self.target}"

    @property
    def folder(self) -> str:
        parent = str(PurePosixPath(self.path).parent)
        return "" if parent == "." else parent


@dataclass
class Disk:
    """Names and contents of the files below a directory."""

    contents: dict[int, bytes] = field(default_factory=dict)
    names: dict[str, int] = field(default_factory=dict)
    folders: set[str] = field(default_factory=set)

    @classmethod
    def of(cls, directory: Path) -> Disk:
        disk = cls()
        for path in sorted(directory.rglob("*")) if directory.exists() else []:
            name = path.relative_to(directory).as_posix()
            if path.is_dir():
                disk.folders.add(name)
            elif name != layout.LOCK:  # the system drops the lock, whatever becomes of its file
                disk.names[name] = len(disk.names)
                disk.contents[disk.names[name]] = path.read_bytes()
        return disk

    def copy(self) -> Disk:
        return Disk(dict(self.contents), dict(self.names), set(self.folders))

    def apply(self, change: Change) -> None:
        if change.name in ("write_at", "truncate", "empty"):
            self.contents[change.file] = changed(self.contents[change.file], change)
        else:
            if change.name == "create":
                self.contents[change.file] = b""
            self.rename(change)

    def rename(self, change: Change) -> None:
        """Apply a change of names."""
        if change.name == "create":
            self.names[change.path] = change.file
        elif change.name == "replace" and change.path in self.names:
            self.names[change.target] = self.names.pop(change.path)
        elif change.name == "remove":
            self.names.pop(change.path, None)
        elif change.name == "make_directory" and change.path:
            self.folders.add(change.path)
        elif change.name == "remove_directory":
            self.folders.discard(change.path)

    def digest(self) -> bytes:
        total = hashlib.blake2b(repr(sorted(self.folders)).encode())
        for name in sorted(self.names):
            total.update(f"{name} {len(self.contents[self.names[name]])} ".encode())
            total.update(self.contents[self.names[name]])
        return total.digest()

    def write(self, directory: Path) -> None:
        """Make the directory hold exactly this."""
        shutil.rmtree(directory, ignore_errors=True)
        directory.mkdir(parents=True)
        for folder in sorted(self.folders):
            (directory / folder).mkdir(exist_ok=True)
        for name, file in self.names.items():
            if name.rpartition("/")[0] in {"", *self.folders}:
                (directory / name).write_bytes(self.contents[file])


def changed(content: bytes, change: Change) -> bytes:
    if change.name == "empty":
        return b""
    if change.name == "truncate":
        return content[: change.size].ljust(change.size, b"\0")
    end = change.offset + len(change.data)
    return content[: change.offset].ljust(change.offset, b"\0") + change.data + content[end:]


def torn(change: Change) -> list[Change]:
    """Return a write that ends early: at several bytes for short ones, else half-way."""
    if change.name != "write_at":
        return []
    length = len(change.data)
    cuts = range(_TEAR_EVERY, length, _TEAR_EVERY) if length <= 32 * _TEAR_EVERY else [length // 2]
    return [replace(change, data=change.data[:k]) for k in cuts]


class Log:
    """Writes down all changes below `root` while they are made; syncs are noted and not done, which costs time only."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, root: Path) -> None:
        self.root, self.start = root, Disk.of(root)
        self.changes: list[Change] = []
        self._disk = self.start.copy()
        self._numbers: WeakKeyDictionary[BinaryIO, int] = WeakKeyDictionary()
        for name in (*CHANGING, "open_update"):
            monkeypatch.setattr(files, name, self._wrap(name, getattr(files, name)))

    def _relative(self, path: Path) -> str:
        name = path.relative_to(self.root).as_posix()
        return "" if name == "." else name

    def _wrap(self, name: str, real: Callable[..., Any]) -> Callable[..., Any]:
        def wrapped(*arguments: Any) -> Any:
            result = None if name in ("sync", "sync_directory") else real(*arguments)
            if name in ("create", "open_update"):
                self._opened(result, *arguments, created=name == "create")
            elif isinstance(arguments[0], Path):
                self._note(Change(name, *map(self._relative, arguments)))
            else:
                self._written(name, *arguments)
            return result

        return wrapped

    def _note(self, change: Change) -> None:
        self._disk.apply(change)
        self.changes.append(change)

    def _opened(self, handle: BinaryIO, path: Path, *, created: bool) -> None:
        name = self._relative(path)
        there = self._disk.names.get(name)
        self._numbers[handle] = len(self._disk.contents) if there is None else there
        if created:
            self._note(Change("create" if there is None else "empty", name, file=self._numbers[handle]))

    def _written(self, name: str, handle: BinaryIO, what: Any = b"", offset: int = 0) -> None:
        """Note a write of bytes, a truncation to a size, or a sync."""
        change = Change(name, self._relative(Path(str(handle.name))), file=self._numbers[handle], offset=offset)
        truncated = name == "truncate"
        self._note(replace(change, size=what) if truncated else replace(change, data=bytes(memoryview(what))))


def killed(start: Disk, changes: list[Change]) -> Iterator[tuple[int, str, Disk]]:
    """Yield what a kill leaves: the number of whole changes made, what happened, and the disk.

    Kills come before the first change, after every one, and in the middle of every write.
    """
    disk = start.copy()
    yield 0, "before everything", disk
    for k, change in enumerate(changes):
        for part in torn(change):
            broken = disk.copy()
            broken.apply(part)
            yield k, f"change {k}: {change} torn after {len(part.data)} bytes", broken
        disk.apply(change)
        yield k + 1, f"after change {k}: {change}", disk


class _Cut:
    """What is on the disk for sure, and what was changed since."""

    def __init__(self, start: Disk) -> None:
        self.live, self.safe = start.copy(), start.copy()
        self.writes: dict[int, list[Change]] = {}
        self.renames: list[Change] = []

    def apply(self, change: Change) -> None:
        self.live.apply(change)
        if change.name == "sync":
            self.safe.contents[change.file] = self.live.contents[change.file]
            self.writes.pop(change.file, None)
        elif change.name == "sync_directory":
            for rename in self.renames:
                if rename.folder == change.path:
                    self.safe.rename(rename)
            self.renames = [rename for rename in self.renames if rename.folder != change.path]
        elif change.name in ("write_at", "truncate", "empty"):
            self.writes.setdefault(change.file, []).append(change)
        else:
            self.renames.append(change)
            if change.name == "create":
                self.safe.contents[change.file] = b""

    def states(self) -> Iterator[tuple[str, Disk]]:
        """Yield disks on which different parts of what was not synced are lost."""
        everything, zeros = self.live.contents, dict(self.live.contents)
        for file in self.writes:
            zeros[file] = self._zeros(file)
        for names in range(len(self.renames) + 1):  # a journal keeps names in order
            for how, contents in (("no data", self.safe.contents), ("all data", everything), ("zeros", zeros)):
                yield f"{names} of {len(self.renames)} names, {how}", self._disk(names, contents)
        for k, rename in enumerate(self.renames):  # without a journal
            disk = self._disk(0, everything)
            for other in [*self.renames[:k], *self.renames[k + 1 :]]:
                disk.rename(other)
            yield f"all data and names but {rename}", disk
        for file, writes in self.writes.items():
            for how, content in self._alternatives(file, writes):
                yield f"all but {how} of {writes[0]}", self._disk(len(self.renames), {**everything, file: content})
                yield (
                    f"nothing but {how} of {writes[0]}",
                    self._disk(len(self.renames), {**self.safe.contents, file: content}),
                )
            only = {**self.safe.contents, file: everything[file]}
            yield f"nothing but {writes[0]}", self._disk(len(self.renames), only)

    def _disk(self, names: int, contents: dict[int, bytes]) -> Disk:
        disk = Disk(dict(contents), dict(self.safe.names), set(self.safe.folders))
        for rename in self.renames[:names]:
            disk.rename(rename)
        return disk

    def _zeros(self, file: int) -> bytes:
        """The file has its new length, and zeros where its new bytes ought to be."""
        return self.safe.contents[file][: len(self.live.contents[file])].ljust(len(self.live.contents[file]), b"\0")

    def _alternatives(self, file: int, writes: list[Change]) -> Iterator[tuple[str, bytes]]:
        yield "all writes", self.safe.contents[file]
        yield "the bytes", self._zeros(file)
        chosen = range(len(writes)) if len(writes) <= 6 else (0, 1, 2, -3, -2, -1)
        for k in chosen:
            content = self.safe.contents[file]
            for write in [*writes[:k], *writes[k + 1 :]] if k != -1 else writes[:-1]:
                content = changed(content, write)
            yield f"write {k}", content
        content = self.safe.contents[file]
        for k, write in enumerate(writes):
            if k >= len(writes) - 2:
                half = replace(write, data=write.data[: (len(write.data) + 1) // 2])
                yield f"the second half of write {k}", changed(content, half)
            content = changed(content, write)


def power_cut(start: Disk, changes: list[Change]) -> Iterator[tuple[int, str, Disk]]:
    """Yield what power cuts may leave: the number of changes made, what is lost, and the disk."""
    cut = _Cut(start)
    for k in range(len(changes) + 1):
        if k:
            cut.apply(changes[k - 1])
        for how, disk in cut.states():
            yield k, f"after {k} changes: {how}", disk

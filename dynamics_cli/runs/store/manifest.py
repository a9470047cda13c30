"""Which files of a folder `dyn` wrote: its manifest has the name, size and CRC-32 of each.

A file under a name that `dyn` chooses is overwritten only as it is listed. Each line is appended
before its file is written, so that a kill leaves no file of `dyn` that is not listed, and processes
that write at once lose no line of each other.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Self

from pydantic import BaseModel, ValidationError

from dynamics_cli.errors import UsageError
from dynamics_cli.runs.errors import unreadable_as_corrupt
from dynamics_cli.runs.store import files

MANIFEST = ".dyn.jsonl"
_BREAK = b"\n"
"""Begins each entry, and so ends a line that a kill has cut."""


class Entry(BaseModel, frozen=True):
    """A file as `dyn` wrote it; its name is compared with names, and never followed."""

    name: str
    size: int
    crc32: int

    @classmethod
    def of(cls, name: str, contents: bytes) -> Self:
        """Return the entry of a file, named below its folder."""
        return cls(name=name, size=len(contents), crc32=zlib.crc32(contents))


def write_listed(folder: Path, contents: Mapping[str, bytes]) -> list[Path]:
    """Write files by name into a folder, list them in its manifest, and return their paths.

    Raises:
        UsageError: one is there, and is not as `dyn` wrote it; then no file is written.
        RunError: one cannot be written.
    """
    listed = refuse_foreign(folder, contents)
    entries = dict.fromkeys(Entry.of(name, data) for name, data in contents.items())
    lines = [entry.model_dump_json().encode() for entry in entries if entry not in listed]
    with files.os_errors_as_run_errors(folder / next(iter(contents))):
        files.make_directory(folder)
        files.append(folder / MANIFEST, b"".join(_BREAK + line for line in lines))
    for name, data in contents.items():
        files.save(folder / name, data)
    return [folder / name for name in contents]


def refuse_foreign(folder: Path, contents: Mapping[str, bytes] | Iterable[str]) -> set[Entry]:
    """Return what a manifest lists; refuse where a file is to be written that is somebody else's.

    Files that have their new contents already are not.

    Raises UsageError: a file is there, and is not as it is listed; or a folder of it is a link.
    """
    new = contents if isinstance(contents, Mapping) else dict.fromkeys(contents)
    listed = _listed(folder)
    for name, data in new.items():
        path = folder / name
        refuse_links(*(folder / inside for inside in Path(name).parents if inside.name))
        if not files.exists(path):
            continue
        regular = path.is_file() and not path.is_symlink()
        if not regular or not ((now := files.read(path)) == data or Entry.of(name, now) in listed):
            raise _foreign(path)
    return listed


def _listed(folder: Path) -> set[Entry]:
    path = folder / MANIFEST
    if not files.exists(path):
        return set()
    if path.is_symlink() or not path.is_file():
        raise _foreign(path)
    with unreadable_as_corrupt(path):
        contents = files.read(path)
    if contents and not contents.startswith(_BREAK):
        raise _foreign(path)
    entries = set()
    for line in contents.splitlines():
        with suppress(ValidationError):  # empty, or cut: then its file was not written
            entries.add(Entry.model_validate_json(line))
    return entries


def _foreign(path: Path) -> UsageError:
    return UsageError(
        f"{path} is there already, and dyn did not write it so: move it away, or choose another"
        " folder"
    )


def refuse_links(*folders: Path) -> None:
    """Raise `UsageError` when a folder of a run in which files are to be written is a link."""
    for folder in folders:
        if folder.is_symlink():
            raise UsageError(
                f"{folder} is a link, and dyn does not write through links: put a folder in its"
                " place, or name another"
            )

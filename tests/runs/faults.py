"""Errors of the operating system, and power cuts, under every change of a run directory."""

import os
from pathlib import Path

from dynamics_cli.runs.store import files

CHANGING = (
    "create",
    "open_update",
    "write_at",
    "truncate",
    "replace",
    "make_directory",
    "remove",
    "sync",
    "sync_directory",
)
"""The primitives of `runs/store/files.py` that change something."""


class Faults:
    """Counts the changes made through `files`, and lets one of them fail with an errno.

    `when` is `before`, `half` (a write that stops in the middle) or `after`.
    """

    def __init__(self, monkeypatch):
        self.changes = []
        self.plan(-1)
        for name in CHANGING:
            monkeypatch.setattr(files, name, self._wrap(name, getattr(files, name)))

    def plan(self, at, when="before", code=0):
        self.at = at
        self.when = when
        self.code = code
        self.changes.clear()

    def _fail(self):
        raise OSError(self.code, os.strerror(self.code))

    def _wrap(self, name, real):
        def wrapped(*args):
            now = len(self.changes) == self.at
            self.changes.append(name)
            if now and self.when == "before":
                self._fail()
            if now and self.when == "half" and name == "write_at":
                handle, data, offset = args
                view = memoryview(data).cast("B")
                real(handle, view[: len(view) // 2], offset)
                self._fail()
            # What is on the disk cannot be told from what is in the page cache here, so nothing is
            # waited for.
            result = None if name in ("sync", "sync_directory") else real(*args)
            if now:
                if result is not None:
                    result.close()
                self._fail()
            return result

        return wrapped


class PowerCut(BaseException):
    """The power is cut."""


class Disk:
    """What is on the disk for sure: contents since the last `sync` of a file, names since that
    of their folder.
    """

    def __init__(self, monkeypatch, cut_at):
        self._contents = {}
        self._names = {}
        self._cut_at = cut_at
        self._count = 0
        for name in CHANGING:
            monkeypatch.setattr(files, name, self._wrap(name, getattr(files, name)))

    def _wrap(self, name, real):
        def wrapped(*args):
            if self._count == self._cut_at:
                raise PowerCut
            self._count += 1
            if name == "sync":
                self._contents[os.fstat(args[0].fileno()).st_ino] = Path(args[0].name).read_bytes()
            elif name == "sync_directory":
                inside = [path for path in args[0].iterdir() if path.name != ".lock"]
                self._names[args[0]] = {
                    p.name: None if p.is_dir() else p.stat().st_ino for p in inside
                }
            else:
                return real(*args)
            return None

        return wrapped

    def write(self, run, place):
        """Write what is left of a run to another place."""
        place.mkdir()
        for name, file in self._names.get(run, {}).items():
            if file is None:
                self.write(run / name, place / name)
            else:
                (place / name).write_bytes(self._contents.get(file, b""))

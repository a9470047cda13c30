"""Errors of the operating system under every change of a run directory."""

from __future__ import annotations

import errno
from collections.abc import Callable
from typing import Any

import pytest

from dynamics_cli.runs.store import files

CHANGING = (
    "create", "write_at", "truncate", "replace", "remove", "make_directory", "remove_directory",
    "sync", "sync_directory",
)  # fmt: skip
"""The primitives of `runs/files.py` that change something."""
_NEED_ROOM = ("create", "write_at", "make_directory")
_FULL = (errno.ENOSPC, errno.EDQUOT)


class Faults:
    """Counts the changes made through `files`, and lets one of them fail.

    `when` is `before`, `half` (a write that stops in the middle) or `after`; `code` is an errno. A `lasting` error
    meets all later changes, too; on a full disk those that need room.
    """

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.plan(-1)
        for name in CHANGING:
            monkeypatch.setattr(files, name, self._wrap(name, getattr(files, name)))

    def plan(self, at: int, when: str = "before", code: int = errno.EIO, lasting: bool = False) -> None:
        self.count, self.at, self.when, self.code, self.lasting = 0, at, when, code, lasting

    def _fail(self) -> None:
        raise OSError(self.code, "injected", "somewhere")

    def _wrap(self, name: str, real: Callable[..., Any]) -> Callable[..., Any]:
        def wrapped(*args: Any) -> Any:
            now, later = self.count == self.at, self.lasting and 0 <= self.at < self.count
            if later and (name in _NEED_ROOM or self.code not in _FULL):
                self._fail()
            self.count += 1
            if now and self.when == "before":
                self._fail()
            if now and self.when == "half" and name == "write_at":
                handle, data, offset = args
                view = memoryview(data).cast("B")
                real(handle, view[: len(view) // 2], offset)
                self._fail()
            # What is on the disk cannot be told from what is in the page cache here, so nothing is waited for.
            result = None if name in ("sync", "sync_directory") else real(*args)
            if now:
                if result is not None:
                    result.close()
                self._fail()
            return result

        return wrapped

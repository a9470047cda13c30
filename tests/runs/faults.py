"""Faults under every change of a run directory: kills, and errors of the operating system."""

from __future__ import annotations

import errno
import inspect
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


class Killed(BaseException):
    """Stands for SIGKILL: nothing reaches the disk after it."""


class Faults:
    """Counts the changes made through `files`, and fails or dies at one of them.

    `when` is `before`, `half` (a write that stops in the middle) or `after`; `how` is `kill` or an errno. A `lasting`
    error meets everything after it, too: on a full disk what needs room, on a broken one all changes.
    """

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.count, self.at, self.when, self.how, self.dead = 0, -1, "before", "kill", False
        self.lasting = False
        self.log: list[str] = []
        self.last = ""  # the change at which the last kill came
        for name in CHANGING:
            monkeypatch.setattr(files, name, self._wrap(name, getattr(files, name)))

    def plan(self, at: int, when: str = "before", how: Any = "kill", lasting: bool = False) -> None:
        self.count, self.at, self.when, self.how, self.dead, self.lasting = 0, at, when, how, False, lasting
        self.log = []

    def dies(self, action: Callable[[], object]) -> bool:
        """Do something, and tell whether the planned kill came in the middle of it; no fault is planned after that."""
        try:
            action()
        except Killed:
            return True
        finally:
            last = self.log[-1] if self.log else ""
            self.plan(-1)
            self.last = last
        return False

    def _fail(self) -> None:
        if self.how == "kill":
            self.dead = True
            raise Killed
        raise OSError(self.how, "injected", "somewhere")

    def _meets_lasting(self, name: str) -> bool:
        return self.lasting and 0 <= self.at < self.count and (name in _NEED_ROOM or self.how not in _FULL)

    def _wrap(self, name: str, real: Callable[..., Any]) -> Callable[..., Any]:
        def wrapped(*args: Any) -> Any:
            if self.dead:
                raise Killed
            now = self.count == self.at
            if self._meets_lasting(name):
                self._fail()
            self.count += 1
            self.log.append(name)
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

        assert list(inspect.signature(real).parameters)
        return wrapped

"""SIGINT, SIGTERM and SIGUSR1: a command stops.

Training finishes the call of its stepper and saves first.
"""

from __future__ import annotations

import signal
import sys
import threading
from types import FrameType
from typing import Any, Self

from dynamics_cli.errors import DynError

EXIT_CODES = {signal.SIGINT: 130, signal.SIGTERM: 143}
if sys.platform != "win32":
    EXIT_CODES[signal.SIGUSR1] = 138  # as clusters send before the time of a job is over


class Interrupted(DynError):  # noqa: N818 - it is no error of anybody's
    """A run was stopped by the signal `number`; its state is saved."""

    def __init__(self, message: str, number: int) -> None:
        super().__init__(
            message, number
        )  # both, so that it can be sent from one process to another
        self.number = number
        self.exit_code = EXIT_CODES[signal.Signals(number)]

    def __str__(self) -> str:
        return str(self.args[0])


class SignalWatch:
    """Notes the first of these signals while it is entered, so that work is finished and saved.

    A second acts at once.

    Only the main thread watches; ignored signals stay ignored.
    """

    received: int | None = None
    """The signal that came."""

    def __init__(self) -> None:
        self._before: dict[signal.Signals, Any] = {}

    def __enter__(self) -> Self:
        if threading.current_thread() is threading.main_thread():
            for number in EXIT_CODES:
                if (
                    signal.getsignal(number) is not signal.SIG_IGN
                ):  # as of a command in the background
                    self._before[number] = signal.signal(number, self._note)
        return self

    def _note(self, number: int, frame: FrameType | None) -> None:
        self._restore()
        self.received = number

    def _restore(self) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)
        self._before = {}

    def __exit__(self, *error: object) -> None:
        self._restore()


class SignalStop(SignalWatch):
    """Raises `KeyboardInterrupt` at each signal, so that temporary files are removed."""

    def _note(self, number: int, frame: FrameType | None) -> None:
        self.received = number
        raise KeyboardInterrupt

"""SIGINT and SIGTERM: a command stops, training finishes the call of its stepper and saves first."""

from __future__ import annotations

import signal
import threading
from types import FrameType
from typing import Any, Self

from dynamics_cli.errors import DynError

EXIT_CODES = {signal.SIGINT: 130, signal.SIGTERM: 143}


class Interrupted(DynError):  # noqa: N818 - it is no error of anybody's
    """A run was stopped by a signal; its state is saved.

    Attributes:
        number: the signal.
        exit_code: of the program.
    """

    def __init__(self, message: str, number: int) -> None:
        super().__init__(message, number)  # both, so that it can be sent from one process to another
        self.number = number
        self.exit_code = EXIT_CODES[signal.Signals(number)]

    def __str__(self) -> str:
        return str(self.args[0])


class _Handler:
    """Handles SIGINT and SIGTERM while it is entered, in the main thread alone; ignored signals stay ignored."""

    def __init__(self) -> None:
        self._before: dict[signal.Signals, Any] = {}

    def __enter__(self) -> Self:
        if threading.current_thread() is threading.main_thread():
            for number in EXIT_CODES:
                if signal.getsignal(number) is not signal.SIG_IGN:  # as of a command in the background
                    self._before[number] = signal.signal(number, self._note)
        return self

    def _note(self, number: int, frame: FrameType | None) -> None:
        raise NotImplementedError

    def _restore(self) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)
        self._before = {}

    def __exit__(self, *error: object) -> None:
        self._restore()


class SignalWatch(_Handler):
    """Notes the first signal, so that the work under way can be finished and saved; a second one acts at once."""

    received: int | None = None
    """The signal that came."""

    def _note(self, number: int, frame: FrameType | None) -> None:
        self._restore()
        self.received = number


class SignalStop(_Handler):
    """Raises `KeyboardInterrupt` at each signal, so that a command ends with temporary files removed."""

    number: int = signal.SIGINT
    """The signal that came."""

    def _note(self, number: int, frame: FrameType | None) -> None:
        self.number = number
        raise KeyboardInterrupt

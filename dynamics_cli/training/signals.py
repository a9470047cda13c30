"""SIGINT and SIGTERM during training: finish the call of the stepper, save, leave."""

from __future__ import annotations

import signal
import threading
from types import FrameType, TracebackType

from dynamics_cli.errors import DynError

EXIT_CODES = {signal.SIGINT: 130, signal.SIGTERM: 143}


class Interrupted(DynError):  # noqa: N818 - it is no error of anybody's
    """A run was stopped by a signal; its state is saved.

    Attributes:
        number: the signal.
        exit_code: that of the program.
    """

    def __init__(self, message: str, number: int) -> None:
        super().__init__(message, number)  # both, so that it can be sent from one process to another
        self.number = number
        self.exit_code = EXIT_CODES[signal.Signals(number)]

    def __str__(self) -> str:
        return str(self.args[0])


class SignalWatch:
    """Notes the first SIGINT or SIGTERM instead of dying of it; a second one acts at once.

    Signals reach the main thread only: elsewhere the watch sees nothing and changes nothing.

    Attributes:
        received: the signal that came, or None.
    """

    def __init__(self) -> None:
        self.received: int | None = None
        self._before: dict[signal.Signals, object] = {}

    def __enter__(self) -> SignalWatch:
        if threading.current_thread() is threading.main_thread():
            for number in EXIT_CODES:
                self._before[number] = signal.signal(number, self._note)
        return self

    def _note(self, number: int, frame: FrameType | None) -> None:
        self._restore()
        self.received = number

    def _restore(self) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)  # type: ignore[arg-type]
        self._before = {}

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._restore()

"""SIGINT and SIGTERM during training: finish the chunk, save, leave."""

from __future__ import annotations

import signal
import threading
from types import FrameType, TracebackType

from dynamics_cli.errors import DynError

EXIT_CODES = {signal.SIGINT: 130, signal.SIGTERM: 143}


class Interrupted(DynError):  # noqa: N818 - it is no error of anybody's
    """A run was stopped by a signal; its state is saved."""

    def __init__(self, message: str, number: int) -> None:
        super().__init__(message)
        self.exit_code = EXIT_CODES[signal.Signals(number)]


class SignalWatch:
    """Notes SIGINT and SIGTERM instead of dying of them; a second one acts at once.

    Signals reach the main thread only: elsewhere the watch sees nothing and changes nothing.
    """

    def __init__(self) -> None:
        self.received: int | None = None
        self._former: dict[signal.Signals, object] = {}

    def __enter__(self) -> SignalWatch:
        if threading.current_thread() is threading.main_thread():
            for number in EXIT_CODES:
                self._former[number] = signal.signal(number, self._note)
        return self

    def _note(self, number: int, frame: FrameType | None) -> None:
        self.received = number
        self._restore()

    def _restore(self) -> None:
        for number, handler in self._former.items():
            signal.signal(number, handler)  # type: ignore[arg-type]
        self._former = {}

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._restore()

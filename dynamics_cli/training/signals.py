"""SIGINT and SIGTERM during training: finish the chunk, save, leave."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType, TracebackType

from dynamics_cli.errors import DynError

EXIT_CODES = {signal.SIGINT: 130, signal.SIGTERM: 143}
PATIENCE_SECONDS = 0.5
"""How long slow work goes on after a signal before it is given up, to be done again on resumption."""


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


class GivenUp(BaseException):
    """Work inside `SignalWatch.patience` took too long after a signal."""


class SignalWatch:
    """Notes SIGINT and SIGTERM instead of dying of them; a second one acts at once.

    Signals reach the main thread only: elsewhere the watch sees nothing and changes nothing.

    Attributes:
        received: the signal that came, or None.
    """

    def __init__(self) -> None:
        self.received: int | None = None
        self._former: dict[signal.Signals, object] = {}
        self._inside = self._late = False

    def __enter__(self) -> SignalWatch:
        if threading.current_thread() is threading.main_thread():
            for number in EXIT_CODES:
                self._former[number] = signal.signal(number, self._note)
        return self

    @contextmanager
    def patience(self) -> Iterator[None]:
        """Do something that may be given up in the middle.

        Raises:
            GivenUp: a signal came, and `PATIENCE_SECONDS` have gone by since.
        """
        self._inside = True
        try:
            if self._late:
                raise GivenUp
            yield
        finally:
            self._inside = False

    def _note(self, number: int, frame: FrameType | None) -> None:
        self._restore()
        self.received = number
        if hasattr(signal, "setitimer"):
            self._former[signal.SIGALRM] = signal.signal(signal.SIGALRM, self._ring)
            signal.setitimer(signal.ITIMER_REAL, PATIENCE_SECONDS)

    def _ring(self, number: int, frame: FrameType | None) -> None:
        self._late = True
        if self._inside:
            raise GivenUp

    def _restore(self) -> None:
        if self.received is not None and hasattr(signal, "setitimer"):
            signal.setitimer(signal.ITIMER_REAL, 0.0)
        for number, handler in self._former.items():
            signal.signal(number, handler)  # type: ignore[arg-type]
        self._former = {}

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._restore()

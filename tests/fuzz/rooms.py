"""What can be fuzzed."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any, Protocol

from dynamics_cli.errors import DynError

LONGEST_MESSAGE = 800_000
"""Characters; a message may name many problems, but is not a copy of the input."""


class Room(Protocol):
    """Makes cases and runs them."""

    memory: int
    """Bytes that a worker may take beyond what it has after `prepare`."""
    seconds: float
    """CPU seconds that a case may take."""

    def prepare(self, place: Path) -> None:
        """Import and make what all cases need; `place` is an empty directory."""

    def case(self, seed: int, i: int) -> Any:
        """Return case i; the same one for the same seed."""

    def run(self, case: Any) -> str:
        """Return what came of it; whatever should not be is raised."""

    def describe(self, case: Any) -> str:
        """Return what is needed to see it again."""


def _room(place: str) -> Callable[[], Room]:
    module, _, name = place.partition(":")

    def make() -> Room:
        room: Room = getattr(import_module(f"tests.fuzz.{module}"), name or "Room")()
        return room

    return make


ROOMS: dict[str, Callable[[], Room]] = {
    "configs": _room("configs"), "large-configs": _room("configs:LargeRoom"), "plans": _room("plans"),
    "tables": _room("tables"), "arrays": _room("arrays"), "pictures": _room("pictures"),
    "run-directories": _room("run_directories"),
}  # fmt: skip
"""name -> makes the room."""


def refused(error: DynError, codes: tuple[int, ...] = (2, 3, 4)) -> str:
    """Return the outcome of an input that was refused, after looking at how it was."""
    message = str(error)
    assert error.exit_code in codes, f"exit code {error.exit_code}: {message}"
    assert message.strip(), "an empty message"
    assert len(message) <= LONGEST_MESSAGE, f"a message of {len(message)} characters"
    assert "Traceback" not in message
    problems = getattr(error, "problems", [])
    assert all(problem.message.strip() for problem in problems)
    return f"refused, exit {error.exit_code}"

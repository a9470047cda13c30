"""The readers that are attacked, and the limits under which they answer."""

from __future__ import annotations

import contextlib
import faulthandler
import resource
import signal
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any, NoReturn

import pytest
from hypothesis import HealthCheck, given, seed, settings
from hypothesis import strategies as st

from dynamics_cli.errors import DynError

LONGEST_MESSAGE = 800_000
"""Characters; a message may name many problems, but is not a copy of the input."""
WALL = 40.0
"""Seconds of wall time after which a case counts as hanging, on a machine that others use too."""
PIECE = 1000
"""Cases that are drawn with one seed: hypothesis remembers all of them."""


@dataclass(frozen=True)
class Room:
    """A reader: cases for it, and how it is given one."""

    cases: st.SearchStrategy[Any]
    look: Callable[[Any], str]
    """Gives a case to the reader and returns the answer, such as `refused, exit 3`; raises what should not be."""
    fixed: Sequence[Any] = ()
    """Cases that come first, each time."""
    seconds: float = 2.0
    """CPU seconds that a case may take."""
    memory: int = 500 * 10**6
    """Bytes that all cases together may take."""


ROOMS = {
    "configs": "configs:room", "large-configs": "configs:large_room", "plans": "plans:room", "tables": "tables:room",
    "arrays": "arrays:room", "run-directories": "run_directories:room",
}  # fmt: skip
"""Name -> `module:function`; the function makes the room in an empty directory."""


@contextlib.contextmanager
def opened(name: str, place: Path) -> Iterator[Room]:
    """Make a room in an empty directory, which is the working directory meanwhile."""
    module, _, function = ROOMS[name].partition(":")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(place)
        patch.setenv("DYN_OUTPUTS", str(place / "outputs"))
        patch.setenv("DYN_DATA", str(place / "data"))
        yield getattr(import_module(f"tests.fuzz.{module}"), function)(place, patch)


def attack(room: Room, count: int, number: int = 0, *, fixed: bool = True) -> Counter[str]:
    """Give the reader its fixed cases and so many drawn ones; return the answers. The same number draws the same."""
    answers: Counter[str] = Counter()

    def look(case: Any) -> None:
        with watched(room.seconds):
            answers[room.look(case)] += 1

    quiet = settings(deadline=None, database=None, suppress_health_check=list(HealthCheck))
    with limited_memory(room.memory), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # as a user's interpreter, for which warnings are no errors
        for case in room.fixed if fixed else ():
            try:
                look(case)
            except Exception as error:
                error.add_note(f"case: {case!r:.3000}")
                raise
        for k in range(0, count, PIECE):
            seed(f"{number}-{k}")(settings(quiet, max_examples=min(PIECE, count - k))(given(case=room.cases)(look)))()
    return answers


class TooSlow(BaseException):
    """A case took too long; no reader that catches `Exception` swallows it."""


def _stop(number: int, frame: object) -> NoReturn:
    raise TooSlow(f"more than its seconds of {'CPU' if number == signal.SIGPROF else 'wall'} time")


@contextlib.contextmanager
def watched(seconds: float) -> Iterator[None]:
    """Fail after so many CPU seconds, or if nothing happens for long; end the process where C code hangs."""
    timers = ((signal.ITIMER_PROF, signal.SIGPROF, seconds), (signal.ITIMER_REAL, signal.SIGALRM, WALL))
    former = [signal.signal(number, _stop) for _, number, _ in timers]
    faulthandler.dump_traceback_later(3 * WALL, exit=True)
    try:
        for timer, _, limit in timers:
            signal.setitimer(timer, limit)
        yield
    except TooSlow as error:
        raise AssertionError(f"the case takes {error}") from error
    finally:
        for (timer, number, _), handler in zip(timers, former, strict=True):
            signal.setitimer(timer, 0)
            signal.signal(number, handler)
        faulthandler.cancel_dump_traceback_later()


@contextlib.contextmanager
def limited_memory(more: int) -> Iterator[None]:
    """Let this process take so many bytes of address space more than it has."""
    before = resource.getrlimit(resource.RLIMIT_AS)
    taken = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (taken + more, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, before)


def refused(error: DynError, codes: tuple[int, ...] = (2, 3, 4)) -> str:
    """Return the answer to an input that was refused, after looking at how it was."""
    message = str(error)
    assert error.exit_code in codes, f"exit code {error.exit_code}: {message}"
    assert message.strip(), "an empty message"
    assert len(message) <= LONGEST_MESSAGE, f"a message of {len(message)} characters"
    assert "Traceback" not in message
    assert all(problem.message.strip() for problem in getattr(error, "problems", []))
    return f"refused, exit {error.exit_code}"

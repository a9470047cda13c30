"""Runs cases one after the other under limits, and says on stdout what came of them (see `cage`)."""

from __future__ import annotations

import json
import resource
import signal
import sys
import time
import traceback
from collections import Counter
from pathlib import Path
from typing import Any, NoReturn

from tests.fuzz.rooms import ROOMS, Room

WALL = 40.0
"""Seconds of wall time after which a case counts as hanging, on a machine that others use too."""
TOLD = 50
"""Cases between two reports."""
SILENT = 1.0
"""Seconds after which a worker gives a sign of life between reports, so that slow cases are not taken for a hang."""


_ignored: list[str] = []
"""Exceptions that Python could only print."""


class TooSlow(BaseException):
    """A case took too long."""


def _alarm(number: int, frame: object) -> NoReturn:
    raise TooSlow("CPU" if number == signal.SIGPROF else "wall")


def main(name: str, seed: int, first: int, last: int, place: Path) -> None:
    room = ROOMS[name]()
    room.prepare(place)
    signal.signal(signal.SIGPROF, _alarm)
    signal.signal(signal.SIGALRM, _alarm)
    limit = _virtual_memory() + room.memory
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    sys.unraisablehook = lambda told: _ignored.append(f"{told.err_msg or 'ignored'}: {told.exc_value!r}")
    before = _peak()
    for start in range(first, last, TOLD):
        _say(begun=start)
        outcomes: Counter[str] = Counter()
        failures, slowest, told = [], 0.0, time.monotonic()
        for i in range(start, min(start + TOLD, last)):
            if time.monotonic() - told > SILENT:
                _say(begun=i)
                told = time.monotonic()
            outcome, failure, seconds = _run(room, seed, i)
            outcomes[outcome] += 1
            slowest = max(slowest, seconds)
            if failure is not None:
                failures.append(f"{name} case {i} of seed {seed}: {failure}")
        _say(outcomes=outcomes, failures=failures, slowest=slowest, growth=_peak() - before)


def _run(room: Room, seed: int, i: int) -> tuple[str, str | None, float]:
    case = room.case(seed, i)
    began = time.process_time()
    signal.setitimer(signal.ITIMER_PROF, room.seconds)
    signal.setitimer(signal.ITIMER_REAL, WALL)
    try:
        outcome, failure = room.run(case), None
        assert not _ignored, _ignored
    except TooSlow as error:
        outcome, failure = f"FAILED: too slow ({error} time)", _told(room, case)
    except MemoryError:
        outcome, failure = "FAILED: too much memory", _told(room, case)
    except BaseException as error:
        outcome, failure = f"FAILED: {type(error).__name__}", _told(room, case)
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.setitimer(signal.ITIMER_REAL, 0)
        _ignored.clear()
    return outcome, failure, time.process_time() - began


def _told(room: Room, case: Any) -> str:
    return f"{room.describe(case)}\n{traceback.format_exc(limit=-8)}"


def _say(**news: Any) -> None:
    print(json.dumps(news), flush=True)


def _virtual_memory() -> int:
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    return pages * resource.getpagesize()


def _peak() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


if __name__ == "__main__":
    main(sys.argv[1], *map(int, sys.argv[2:5]), Path(sys.argv[5]))

"""A cage for cases: processes with a limit on memory, on the time of each case, and on what they may write."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).parents[2]
WORKER = ["-m", "tests.fuzz.worker"]
PATIENCE = 120.0
"""Seconds that a worker may be silent: what hangs in C code is not reached by its own alarm."""


@dataclass
class Report:
    """What came of many cases."""

    outcomes: Counter[str] = field(default_factory=Counter)
    failures: list[str] = field(default_factory=list)
    """What should not be: the case, and what it did."""
    slowest: float = 0.0
    """Most CPU seconds that one case took."""
    growth: int = 0
    """Bytes by which the peak memory of a worker grew while it worked."""


def run_cases(room: str, seed: int, count: int, place: Path, *, first: int = 0, report: Report | None = None) -> Report:
    """Run cases `first .. first + count - 1` of a room; a worker that dies is replaced."""
    report = Report() if report is None else report
    at = first
    while at < first + count:
        at = _run_worker(room, seed, at, first + count, place, report)
    return report


def _run_worker(room: str, seed: int, first: int, last: int, place: Path, report: Report) -> int:
    """Let one worker run; return the case at which the next one goes on."""
    place.mkdir(parents=True, exist_ok=True)
    command = [sys.executable, *WORKER, room, str(seed), str(first), str(last), str(place)]
    environment = {
        **{name: value for name, value in os.environ.items() if not name.startswith("DYN_")},
        "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1",
        "DYN_OUTPUTS": str(place / "outputs"), "DYN_DATA": str(place / "data"),
    }  # fmt: skip
    errors = place / "stderr.txt"
    with (
        errors.open("wb") as stderr,
        subprocess.Popen(
            command, cwd=ROOT, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=stderr
        ) as worker,
    ):
        assert worker.stdout is not None
        at: int | None = None
        watch = _Watch(worker)
        for line in worker.stdout:
            watch.reset()
            news = json.loads(line)
            if "begun" in news:
                at = news["begun"]
                continue
            report.outcomes.update(news["outcomes"])
            report.failures += news["failures"]
            report.slowest = max(report.slowest, news["slowest"])
            report.growth = max(report.growth, news["growth"])
        watch.stop()
        code = worker.wait()
    if code != 0:
        words = errors.read_text(errors="replace")[-2000:]
        report.outcomes["worker died"] += 1
        if at is None:  # before its first case: the next worker would do the same
            report.failures.append(f"{room}: the worker could not begin, exit status {code}\n{words}")
            return last
        report.failures.append(f"{room} case {at} of seed {seed} or one soon after: exit status {code}\n{words}")
        return at + 1
    return last


class _Watch:
    """Kills a worker that has been silent for too long."""

    def __init__(self, worker: subprocess.Popen[bytes]) -> None:
        import threading

        self._worker, self._make = worker, lambda: threading.Timer(PATIENCE, worker.kill)
        self._timer = self._make()
        self._timer.start()

    def reset(self) -> None:
        self.stop()
        self._timer = self._make()
        self._timer.start()

    def stop(self) -> None:
        self._timer.cancel()

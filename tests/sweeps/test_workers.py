"""Processes that train: killed ones, faults, order."""

import os
import signal
import time
from pathlib import Path

import pytest

from dynamics_cli.training.many.workers import KILLED, Processes, run_by_executor


def dies(directory, name, times, report):
    """Kill this process the first few times."""
    tries = Path(directory) / name
    done = len(tries.read_text()) if tries.exists() else 0
    tries.write_text("x" * (done + 1))
    if done < times:
        os.kill(os.getpid(), signal.SIGKILL)
    return ""


def fails(report):
    raise ZeroDivisionError("of this task")


def test_a_killed_task_is_tried_once_more_and_costs_no_other(tmp_path):
    times = [9, 1, 0]
    todo = [(str(tmp_path), str(k), count) for k, count in enumerate(times)]
    with Processes(2) as executor:
        ended = dict(run_by_executor(todo, call=dies, executor=executor))
    assert ended == {0: KILLED, 1: "", 2: ""}
    assert [len((tmp_path / str(k)).read_text()) for k in range(3)] == [2, 2, 1]


def waits(file, report):
    """Report a number, and wait until somebody has seen it."""
    report(0.5)
    for _ in range(6000):
        if Path(file).exists():
            return ""
        time.sleep(0.01)
    return "nobody has seen it"


def test_a_process_reports_before_it_has_ended(tmp_path):
    with Processes(1) as executor:

        def look():
            if 0.5 in executor.reports.values():
                (tmp_path / "seen").touch()

        todo = [(str(tmp_path / "seen"),)]
        assert [*run_by_executor(todo, call=waits, executor=executor, look=look)] == [(0, "")]
        assert [*executor.reports.values()] == [0.0]


class Job:
    """What submitit returns: no future of `concurrent.futures`."""

    def __init__(self, ended):
        self._ended = ended
        self._asked = 0

    def done(self):
        self._asked += 1
        return self._asked > 2

    def result(self):
        if isinstance(self._ended, Exception):
            raise self._ended
        return self._ended


def test_an_executor_needs_no_futures_of_the_standard_library():
    class UncompletedJobError(Exception):
        pass

    class Submitting:
        def submit(self, call, *arguments):
            return Job(UncompletedJobError() if arguments == ("lost",) else call(*arguments))

    ended = run_by_executor([("a",), ("lost",), ("b",)], call=str.upper, executor=Submitting())
    assert dict(ended) == {0: "A", 1: KILLED, 2: "B"}


def test_a_fault_of_the_program_is_raised():
    with pytest.raises(ZeroDivisionError, match="of this task"), Processes(1) as executor:
        list(run_by_executor([()], call=fails, executor=executor))

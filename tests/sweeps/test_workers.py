"""Processes that train: killed ones, faults, order."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from dynamics_cli.training.many.workers import KILLED, Processes, run_by_executor


def dies(directory: str, name: str, times: int) -> str:
    """Kill this process the first few times."""
    tries = Path(directory) / name
    done = len(tries.read_text()) if tries.exists() else 0
    tries.write_text("x" * (done + 1))
    if done < times:
        os.kill(os.getpid(), signal.SIGKILL)
    return ""


def fails() -> str:
    raise ZeroDivisionError("of this task")


def test_a_killed_task_is_tried_once_more_and_costs_no_other(tmp_path):
    times = [9, 0, 1, 0, 1, 0]
    todo = [(str(tmp_path), str(k), count) for k, count in enumerate(times)]
    with Processes(2) as executor:
        ended = dict(run_by_executor(todo, call=dies, executor=executor))
    assert ended == {0: KILLED, **dict.fromkeys(range(1, 6), "")}
    assert [len((tmp_path / str(k)).read_text()) for k in range(6)] == [2, 1, 2, 1, 2, 1]


def test_a_fault_of_the_program_is_raised():
    with pytest.raises(ZeroDivisionError, match="of this task"), Processes(1) as executor:
        list(run_by_executor([()], call=fails, executor=executor))

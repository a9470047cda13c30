"""Interruption: SIGKILL and SIGINT at random moments, then resumption, give the bits of an uninterrupted run."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from dynamics_cli.config import load_config
from dynamics_cli.errors import UsageError
from dynamics_cli.runs import load_run
from dynamics_cli.training import loop
from dynamics_cli.training.session import obtain_run, plan_run
from dynamics_cli.training.signals import Interrupted
from tests.training.kill_script import BASE, RUNS, arrays

SCRIPT = Path(__file__).with_name("kill_script.py")


def kill_runs(folder: Path, kills: int, number: int, seed: int = 0) -> dict[str, int]:
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, str(SCRIPT), str(folder), str(kills), str(number), str(seed)]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    assert done.returncode == 0, done.stderr
    counts: dict[str, int] = json.loads(done.stdout)
    return counts


@pytest.mark.parametrize(
    "number",
    [
        pytest.param(signal.SIGKILL, id="SIGKILL"),
        pytest.param(signal.SIGINT, id="SIGINT", marks=pytest.mark.long),  # signals have tests of their own
        pytest.param(signal.SIGTERM, id="SIGTERM", marks=pytest.mark.long),
    ],
)
def test_killed_and_resumed_runs_have_the_same_bits(tmp_path, number):
    counts = kill_runs(tmp_path, 2 * len(RUNS), number)
    assert min(counts.values()) >= 2


@pytest.mark.long
def test_three_hundred_kills(tmp_path):
    counts = kill_runs(tmp_path, 300, signal.SIGKILL, seed=1)
    print(counts)
    assert sum(counts.values()) >= 300
    assert min(counts.values()) >= 300 // len(RUNS)


def interrupt_at(iteration: int, number: int):
    def progress(reached: int, loss: float) -> None:
        if reached >= iteration:
            os.kill(os.getpid(), number)

    return progress


@pytest.mark.parametrize(
    ("name", "number", "code"),
    [*((name, signal.SIGINT, 130) for name in RUNS), ("compiled", signal.SIGTERM, 143)],  # one handler for both
)
def test_a_signal_saves_the_state_and_resumption_goes_on(tmp_path, monkeypatch, name, number, code):
    monkeypatch.setattr(loop, "CALL_SECONDS", 0.002)
    config = load_config({**BASE, **RUNS[name], "name": name})
    obtain_run(plan_run(config, tmp_path / "whole"))
    plan = plan_run(config, tmp_path / "stopped")
    with pytest.raises(Interrupted, match="interrupted at iteration .*--resume continues it") as stop:
        obtain_run(plan, progress=interrupt_at(300, number))
    assert stop.value.exit_code == code
    run = load_run(tmp_path / "stopped")
    assert run.status == "interrupted"
    assert 300 <= run.iterations < plan.problem.iterations
    whole = load_run(tmp_path / "whole")
    np.testing.assert_array_equal(run.losses, whole.losses[: len(run.losses)])
    with pytest.raises(UsageError, match="unfinished run at iteration .*--resume continues it, --force starts over"):
        obtain_run(plan)
    obtain_run(plan, resume=True)
    assert arrays(tmp_path / "stopped") == arrays(tmp_path / "whole")


SHORTER = {"sgd": "optimizer.epochs=100", "gradient_flow": "optimizer.points=100"}


def test_chunk_lengths_do_not_change_a_bit(tmp_path, monkeypatch):
    for name in RUNS:
        for seconds in (0.0, 0.001, 10.0):
            monkeypatch.setattr(loop, "CALL_SECONDS", seconds)
            monkeypatch.setattr(loop, "CHECKPOINT_SECONDS", 0.02)
            shorter = SHORTER.get(name, "optimizer.iterations=100")
            config = load_config({**BASE, **RUNS[name], "name": name}, [shorter])
            obtain_run(plan_run(config, tmp_path / f"{name}-{seconds}"))
        assert (
            arrays(tmp_path / f"{name}-0.0") == arrays(tmp_path / f"{name}-10.0") == arrays(tmp_path / f"{name}-0.001")
        )

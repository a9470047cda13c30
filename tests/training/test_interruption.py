"""Signals, and kills of every kind, then resumption, give the bits of an uninterrupted run."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from numpy.testing import assert_array_equal

from dynamics_cli.config import load_config
from dynamics_cli.errors import UsageError
from dynamics_cli.runs.run import Run, final_measures
from dynamics_cli.training import loop
from dynamics_cli.training.session import obtain_run, plan_run
from dynamics_cli.training.signals import Interrupted
from tests.runs.damage import arrays_of
from tests.training.kill_script import BASE, RUNS


@pytest.mark.long
def test_kinds_resume_bit_for_bit(tmp_path):
    """A run of every kind that is registered, killed twice by SIGKILL in its middle."""
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, str(Path(__file__).with_name("kinds_script.py")), str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    wrong = {
        name: what
        for name, what in found.items()
        if what != "same" and not what.startswith("no data")
    }
    print(
        f"{sum(what == 'same' for what in found.values())} of {len(found)} kinds, each killed twice"
    )
    assert wrong == {}
    assert sum(what == "same" for what in found.values()) >= 100


def interrupt_at(iteration, number):
    def progress(reached, loss):
        if reached >= iteration:
            os.kill(os.getpid(), number)

    return progress


@pytest.mark.parametrize(
    ("name", "number", "code"),
    [
        ("compiled", signal.SIGTERM, 143),
        ("adam", signal.SIGINT, 130),
        *(pytest.param(name, signal.SIGINT, 130, marks=pytest.mark.long) for name in RUNS),
    ],
)
def test_a_signal_saves_the_state_and_resumption_goes_on(tmp_path, monkeypatch, name, number, code):
    """In shorter calls than those of the whole run, and with more checkpoints, which change no
    bit either.
    """
    config = load_config({**BASE, **RUNS[name], "name": name})
    obtain_run(plan_run(config, tmp_path / "whole"))
    monkeypatch.setattr(loop, "CALL_SECONDS", 0.002)
    monkeypatch.setattr(loop, "CHECKPOINT_SECONDS", 0.02)
    plan = plan_run(config, tmp_path / "stopped")
    with pytest.raises(
        Interrupted, match="interrupted at iteration .*--resume continues it"
    ) as stop:
        obtain_run(plan, progress=interrupt_at(100, number))
    assert stop.value.exit_code == code
    run = Run(tmp_path / "stopped")
    assert run.status == "interrupted"
    assert 100 <= run.iterations < plan.problem.iterations
    whole = Run(tmp_path / "whole")
    assert_array_equal(run.losses, whole.losses[: len(run.losses)])
    with pytest.raises(
        UsageError, match="unfinished run at iteration .*--resume continues it, --force starts over"
    ):
        obtain_run(plan)
    obtain_run(plan, resume=True)
    assert arrays_of(tmp_path / "stopped") == arrays_of(tmp_path / "whole")


def test_a_measure_that_was_not_due_again_ends_with_its_last_number(tmp_path, monkeypatch):
    monkeypatch.setattr(loop, "CALL_SECONDS", 0.002)
    settings = {**BASE, **RUNS["compiled"], "name": "early"}
    seldom = {"kind": "weight_norm", "at": {"kind": "list", "include": [100]}}
    config = load_config({**settings, "record": {"measures": [seldom]}})
    with pytest.raises(Interrupted):
        obtain_run(plan_run(config, tmp_path / "r"), progress=interrupt_at(300, signal.SIGINT))
    run = Run(tmp_path / "r")
    at_100 = run.measures["weight_norm"][run.snapshot_iterations == 100]
    assert final_measures(run) == {"weight_norm": at_100[0]}

"""The first signal and the second one: nothing is torn, and going on gives the same bits."""

import math
import os
import signal

import pytest

from dynamics_cli.config import load_config
from dynamics_cli.runs.run import Run
from dynamics_cli.runs.store import files
from dynamics_cli.runs.verify import verify_run
from dynamics_cli.training import loop
from dynamics_cli.training.session import obtain_run, plan_run
from dynamics_cli.training.signals import Interrupted
from tests.runs.damage import arrays_of
from tests.training.kill_script import BASE, RUNS

SHORT = {
    "sgd": ["optimizer.epochs=20", "record.loss_every=7"],
    "gradient_flow": ["optimizer.points=60"],
}


def short(name, *more):
    changes = SHORT.get(name, ["optimizer.iterations=60"])
    every = ["record.snapshots={kind: every, interval: 20}"]
    return load_config({**BASE, **RUNS[name], "name": name}, [*changes, *every, *more])


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGUSR1])
def test_a_second_signal_leaves_at_once_with_nothing_torn(tmp_path, monkeypatch, number):
    """The second one comes after a change of the disk that follows the first one."""
    monkeypatch.setattr(loop, "_next_chunk", lambda chunk, done, seconds: 9)
    monkeypatch.setattr(loop, "HELD_SECONDS", -1.0)
    config = short("compiled")
    obtain_run(plan_run(config, tmp_path / "whole"))
    left = math.inf  # changes until the second signal

    def counted(real):
        def change(*arguments):
            nonlocal left
            done = real(*arguments)
            left -= 1
            if left == -1:
                os.kill(os.getpid(), signal.SIGINT)
            return done

        return change

    for name in ("create", "write_at", "replace", "sync", "sync_directory"):
        monkeypatch.setattr(files, name, counted(getattr(files, name)))

    def progress(reached, loss):
        nonlocal left
        if reached >= 30 and left == math.inf:
            left = at
            os.kill(os.getpid(), number)

    for at in (0, 1, 2, 4, 7, 10):
        left = math.inf
        directory = tmp_path / f"run-{at}"
        with pytest.raises(KeyboardInterrupt):
            obtain_run(plan_run(config, directory), progress=progress)
        left = -math.inf  # no more signals
        assert verify_run(directory) == [], at
        obtain_run(plan_run(config, directory), resume=True)
        assert arrays_of(directory) == arrays_of(tmp_path / "whole"), at


def test_a_signal_in_the_last_moment_is_not_forgotten(tmp_path):
    """What comes after the training, such as the drawing of a figure, must not begin."""

    def progress(reached, loss):
        if reached == 60:
            os.kill(os.getpid(), signal.SIGTERM)

    plan = plan_run(short("compiled"), tmp_path / "run")
    with pytest.raises(Interrupted, match="interrupted; the run in .* had come to its end") as stop:
        obtain_run(plan, progress=progress)
    assert stop.value.exit_code == 143
    assert Run(tmp_path / "run").status == "complete"
    assert obtain_run(plan).reused

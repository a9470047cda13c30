"""Processes that are started together on one config: one trains, the others wait and reuse."""

import json
import signal
import subprocess
import sys
from pathlib import Path

from dynamics_cli.runs.run import Run
from dynamics_cli.runs.verify import verify_run
from tests.runs.damage import arrays_of

from .conftest import environment, start, wait_until

SCRIPT = Path(__file__).with_name("together_script.py")
LONG = [
    "--set",
    "optimizer.iterations=400000",
    "--set",
    "record.snapshots={kind: every, interval: 20000}",
]
REUSED = "this run was finished before and is reused; --force trains it again\n"


def together(place, count, *arguments):
    """Run commands in `count` processes at once, all of which must end well; return what each of
    them said.
    """
    command = [sys.executable, str(SCRIPT), str(count), *map(str, arguments)]
    done = subprocess.run(
        command, cwd=place, env=environment(), capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    said = [path.read_text() for path in sorted(place.glob("*.err"))]
    assert set(json.loads(done.stdout)) == {0}, (json.loads(done.stdout), said)
    return said


def torn(folder):
    return [path for path in folder.rglob("*") if path.name.endswith(".tmp")]


def test_one_trains_and_the_others_reuse(place):
    said = together(place, 3, "train", "toy.yaml", *LONG)
    assert sum(REUSED in text for text in said) == 2
    (run,) = (place / "outputs/runs").iterdir()
    assert Run(run).status == "complete"
    assert "resumptions" not in Run(run).info
    assert verify_run(run) == []
    assert torn(place) == []


def test_who_waited_for_a_killed_process_goes_on_where_it_was(place, dyn):
    settings = ["--set", "optimizer.iterations=2000000", "--set", "record.loss_every=100000"]
    settings += ["--set", "record.snapshots={kind: every, interval: 100000}"]
    command = ["train", "toy.yaml", *settings, "--out", "run"]
    first = start(place, *command, "--quiet")
    wait_until((place / "run/trajectory/iterations.npy").exists, first)
    first.send_signal(signal.SIGSTOP)  # in the middle, however long the second takes to start
    second = start(place, *command, stdout=subprocess.DEVNULL)
    assert "waiting for it to finish" in second.stderr.readline()
    first.kill()
    first.communicate()
    assert first.returncode == -signal.SIGKILL
    second.communicate()
    assert second.returncode == 0
    assert Run(place / "run").status == "complete"
    assert Run(place / "run").info["resumptions"]
    assert dyn("train", "toy.yaml", *settings, "--out", "whole").code == 0
    assert arrays_of(place / "run") == arrays_of(place / "whole")

"""What a sweep shows on a terminal."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import signal
import struct
import subprocess
import sys
import termios
import time
from pathlib import Path

import pytest
import yaml

from tests.sweeps.test_grid import BASE

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="no pseudo-terminals, no /proc")

ENDLESS = {
    **BASE,
    "optimizer": {"kind": "gd", "lr": 0.01, "iterations": 2_000_000_000},
    "record": {"loss_every": 1_000_000},
}


@pytest.fixture
def sweep(tmp_path):
    """Start a sweep of a short job, which ends at once, and of one that never does; kill it at the end."""
    started = []

    def start(*more, **options):
        (tmp_path / "c.yaml").write_text(yaml.safe_dump(ENDLESS))
        command = ["sweep", "c.yaml", "--grid", "optimizer.iterations=10,2000000000", "--out", "s", *more]
        python = [sys.executable, "-m", "dynamics_cli"]
        started.append(subprocess.Popen([*python, *command], cwd=tmp_path, start_new_session=True, **options))
        return started[-1]

    yield start
    for process in started:
        process.kill()


def lines_of(terminal, until, seconds=120.0):
    """Return what a terminal shows, line by line, as soon as `until` is there or the terminal is closed."""
    text, end = "", time.monotonic() + seconds
    while time.monotonic() < end and until not in text:
        try:
            text += os.read(terminal, 4096).decode(errors="replace")
        except OSError:  # Linux says so when the other end is closed
            break
    return re.split(r"[\r\n]+", text)


def test_the_bar_tells_jobs_rate_and_time_left_and_leaves_at_ctrl_c(sweep):
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
    threads = os.environ | {"OMP_NUM_THREADS": "1"}
    process = sweep("--seeds", "3", stdin=theirs, stdout=theirs, stderr=theirs, env=threads)
    os.close(theirs)
    shown = lines_of(ours, "3/6")
    bar = next((line for line in shown if "3/6" in line), "")
    assert re.search(r"50%.*3/6 \[\d+:\d+<\d+:\d+, +[\d.]+(job/s|s/job)\]", bar), shown
    os.killpg(process.pid, signal.SIGINT)
    left = lines_of(ours, "never shown")
    os.close(ours)
    assert process.wait(60) == 130, left
    assert any("the same command goes on" in line for line in left), left
    assert not any("Traceback" in line for line in left)
    assert all(len(line) <= 80 for line in shown if "job" in line)


def test_ctrl_c_while_the_first_worker_begins_leaves_without_a_traceback(sweep):
    process = sweep(stderr=subprocess.PIPE, text=True)
    tasks, workers = f"/proc/{process.pid}/task/{process.pid}/children", []
    while not workers:
        workers = Path(tasks).read_text().split()
        assert process.poll() is None
    time.sleep(0.2)
    os.killpg(process.pid, signal.SIGINT)
    said = process.communicate(timeout=60)[1]
    assert process.returncode == 130, said
    assert "Traceback" not in said, said

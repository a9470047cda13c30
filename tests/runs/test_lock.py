import subprocess
import sys
import threading
import time
from contextlib import suppress

import pytest

from dynamics_cli.errors import DynError, RunError
from dynamics_cli.runs.errors import LockedRunError
from dynamics_cli.runs.store.locks import is_locked, run_lock

HOLD = """
import sys, pathlib
from dynamics_cli.runs.store.locks import run_lock
with run_lock(pathlib.Path(sys.argv[1])):
    print("held", flush=True)
    sys.stdin.readline()
"""


@pytest.mark.parametrize("platform", [sys.platform, "win32"])
def test_the_lock_makes_the_directory_and_is_dropped(tmp_path, monkeypatch, platform):
    """Also where files can only be locked as a whole."""
    monkeypatch.setattr(sys, "platform", platform)
    run = tmp_path / "a" / "run"
    assert not is_locked(run)
    assert not run.exists()
    with suppress(KeyError), run_lock(run):
        assert is_locked(run)
        raise KeyError
    assert not is_locked(run)


def test_another_process_is_refused_or_waited_for(tmp_path):
    process = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(tmp_path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout.readline() == "held\n"
    with (
        pytest.raises(LockedRunError, match="is in use by another process"),
        run_lock(tmp_path, wait=False),
    ):
        pass
    told = []
    threading.Timer(0.8, process.communicate, ["\n"]).start()
    began = time.monotonic()
    with run_lock(tmp_path, on_wait=told.append) as waited:
        assert waited
        assert time.monotonic() - began > 0.5
    assert [text.partition("; ")[2] for text in told] == ["waiting for it to finish"]


def test_a_reader_that_looks_does_not_disturb(tmp_path):
    stop = threading.Event()

    def look():
        while not stop.is_set():
            is_locked(tmp_path)

    watcher = threading.Thread(target=look)
    watcher.start()
    try:
        for _ in range(30):
            with run_lock(tmp_path, wait=False):
                pass
    finally:
        stop.set()
        watcher.join()


def test_a_directory_deleted_while_waiting_is_made_again(tmp_path):
    run = tmp_path / "run"
    with run_lock(run):
        waiting = threading.Event()
        entered = []

        def wait_for_it():
            with run_lock(run, on_wait=lambda _: waiting.set()):
                entered.append((run / ".lock").exists())

        waiter = threading.Thread(target=wait_for_it)
        waiter.start()
        assert waiting.wait(10)
        (run / ".lock").unlink()
    waiter.join(10)
    assert entered == [True]


def test_a_lock_that_cannot_be_made_or_is_a_link(tmp_path):
    (tmp_path / "file").write_text("mine")
    with pytest.raises(RunError, match="cannot write"), run_lock(tmp_path / "file" / "run"):
        pass
    (tmp_path / ".lock").symlink_to(tmp_path / "file")
    with pytest.raises(DynError), run_lock(tmp_path, wait=False):
        pass
    assert (tmp_path / "file").read_text() == "mine"
    (tmp_path / ".lock").unlink()
    (tmp_path / ".lock").write_text("somebody else's")
    with run_lock(tmp_path):
        pass
    assert (tmp_path / ".lock").read_text() == "somebody else's"

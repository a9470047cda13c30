from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest
from filelock import FileLock

from dynamics_cli.errors import RunError
from dynamics_cli.runs import LockedRunError, is_locked, run_lock

HOLD = """
import sys, pathlib
from dynamics_cli.runs import run_lock
with run_lock(pathlib.Path(sys.argv[1])):
    print("held", flush=True)
    sys.stdin.readline()
"""


def holder(directory: Path) -> subprocess.Popen[str]:
    process = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(directory)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "held\n"
    return process


def end(process: subprocess.Popen[str]) -> None:
    process.communicate("\n")


@pytest.mark.parametrize("platform", [sys.platform, "win32"])
def test_the_lock_makes_the_directory_and_is_dropped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, platform: str
) -> None:
    """Also where files can only be locked as a whole."""
    monkeypatch.setattr(sys, "platform", platform)
    run = tmp_path / "a" / "run"
    assert not is_locked(run)
    assert not run.exists()
    with run_lock(run):
        assert is_locked(run)
        assert str(os.getpid()) in (run / "lock.json").read_text()
    assert not is_locked(run)
    with pytest.raises(KeyError), run_lock(run):
        raise KeyError
    assert not is_locked(run)


def test_without_waiting_the_holder_is_named(tmp_path: Path) -> None:
    process = holder(tmp_path)
    assert is_locked(tmp_path)
    with pytest.raises(LockedRunError, match=rf"is in use by process {process.pid} on"), run_lock(tmp_path, wait=False):
        pass
    (tmp_path / "lock.json").write_text("{")
    with pytest.raises(LockedRunError, match="is in use by another process"), run_lock(tmp_path, wait=False):
        pass
    end(process)


def test_waiting_is_told_once_and_ends(tmp_path: Path) -> None:
    process = holder(tmp_path)
    told: list[str] = []
    threading.Timer(0.8, end, [process]).start()
    began = time.monotonic()
    with run_lock(tmp_path, on_wait=told.append):
        assert time.monotonic() - began > 0.5
    assert len(told) == 1
    assert f"process {process.pid}" in told[0]
    assert "waiting" in told[0]


def test_what_a_killed_holder_was_writing_is_deleted(tmp_path: Path) -> None:
    for name in (".lock.json.4711.tmp", ".other.4711.tmp", ".lock.json.mine.tmp"):
        (tmp_path / name).write_text("")
    with run_lock(tmp_path):
        assert not (tmp_path / ".lock.json.4711.tmp").exists()
    assert len(list(tmp_path.glob(".*.tmp"))) == 2


def test_a_reader_that_looks_does_not_disturb(tmp_path: Path) -> None:
    stop = threading.Event()

    def look() -> None:
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


def test_a_directory_deleted_while_waiting_is_made_again(tmp_path: Path) -> None:
    run = tmp_path / "run"
    with run_lock(run):
        waiting = threading.Event()
        entered: list[bool] = []

        def wait_for_it() -> None:
            with run_lock(run, on_wait=lambda _: waiting.set()):
                entered.append((run / "lock").exists())

        waiter = threading.Thread(target=wait_for_it)
        waiter.start()
        assert waiting.wait(10)
        (run / "lock").unlink()
        (run / "lock.json").unlink()
    waiter.join(10)
    assert entered == [True]


def test_a_directory_and_a_file_that_cannot_be_made(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    (tmp_path / "lock.json").mkdir()
    for run, what in ((tmp_path / "file" / "run", "cannot write"), (tmp_path, r"cannot write .*lock\.json")):
        with pytest.raises(RunError, match=what), run_lock(run):
            pass
    assert not is_locked(tmp_path)


def test_a_directory_deleted_while_the_lock_is_opened_is_made_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run, acquire, tries = tmp_path / "run", FileLock.acquire, []

    def deleted_first(lock: FileLock, *arguments: Any, **options: Any) -> Any:
        tries.append(run.exists())
        if len(tries) > 1:
            return acquire(lock, *arguments, **options)
        run.rmdir()
        raise FileNotFoundError(run / "lock")

    monkeypatch.setattr(FileLock, "acquire", deleted_first)
    with run_lock(run):
        assert is_locked(run)
    assert tries == [True, True]

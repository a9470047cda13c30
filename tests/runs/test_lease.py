"""Leases, which writers hold on network file systems: no array ever holds rows of two writers."""

import os
import shutil
import signal
import subprocess
import sys
import time
from contextlib import contextmanager
from types import SimpleNamespace

import numpy as np
import psutil
import pytest

from dynamics_cli.errors import RunError, UsageError
from dynamics_cli.runs.errors import LockedRunError
from dynamics_cli.runs.store import layout, locks
from dynamics_cli.runs.store.locks import Hold, is_locked, run_lock, takes_leases
from dynamics_cli.runs.verify import verify_run
from dynamics_cli.runs.writer import RunWriter

SHORT = 0.6
"""Seconds of a lease in these tests."""

WRITER = """
import sys
from pathlib import Path
from dynamics_cli.config import RunConfig
from dynamics_cli.errors import RunError
from dynamics_cli.runs.store import locks
from dynamics_cli.runs.writer import RunWriter

directory = Path(sys.argv[1])
locks.LEASE_SECONDS = float(sys.argv[2])
config = RunConfig.model_validate_json(sys.argv[3])
with locks.run_lock(directory):
    writer = RunWriter.create(directory, config)
    writer.append_losses([0], [1.0])
    writer.checkpoint({}, {"iteration": 0})
    print("writes", flush=True)
    for i, _ in enumerate(sys.stdin, start=1):
        try:
            writer.append_losses([i], [1.0])
        except RunError as error:
            print(error, flush=True)
        else:
            print("written", flush=True)
"""
"""A process that writes the loss 1 each time it reads a line."""


@pytest.fixture(autouse=True)
def soft(monkeypatch):
    monkeypatch.setenv(locks.CHOICE, "soft")
    monkeypatch.setattr(locks, "LEASE_SECONDS", SHORT)


@contextmanager
def writing(run, config, *on):
    """Yield a process that writes a run; `on` is the command that starts it elsewhere."""
    arguments = [str(run), str(SHORT), config.model_dump_json()]
    process = subprocess.Popen(
        [*on, sys.executable, "-c", WRITER, *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout.readline() == "writes\n"
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def ask(process):
    """Let the process write a row; return what it says."""
    process.stdin.write("\n")
    process.stdin.flush()
    return process.stdout.readline().strip()


def go_on(run):
    """Go on with the run as another writer, which writes the loss 2."""
    writer = RunWriter.reopen(run)
    writer.append_losses([1, 2], [2.0, 2.0])
    return writer


def finish(writer):
    writer.finish("complete", iterations=2, final_loss=2.0, seconds=0.0)
    np.testing.assert_array_equal(np.load(writer.directory / "losses.npy"), [1.0, 2.0, 2.0])
    assert verify_run(writer.directory) == []


def test_a_paused_owner_that_comes_back_writes_no_more(tmp_path, config):
    with writing(tmp_path, config) as owner:
        assert is_locked(tmp_path)
        with pytest.raises(LockedRunError, match=f"process {owner.pid} on "):
            run_lock(tmp_path, wait=False).__enter__()
        assert ask(owner) == "written"
        owner.send_signal(signal.SIGSTOP)

        with run_lock(tmp_path) as waited:
            assert waited
            writer = go_on(tmp_path)
            owner.send_signal(signal.SIGCONT)
            assert f"another process has taken {tmp_path} over" in ask(owner)
            finish(writer)


def test_a_pause_between_check_and_write_reaches_no_array(tmp_path, config, monkeypatch):
    """The writer stands still for longer than its lease after it looked at the lock."""
    with run_lock(tmp_path):
        before = RunWriter.create(tmp_path, config)
        before.append_losses([0], [1.0])
        before.checkpoint({}, {"iteration": 0})
        held = before.arrays[layout.LOSSES]
        with held._open() as handle:
            writer = go_on(tmp_path)
            handle.seek(0, os.SEEK_END)
            handle.write(np.array([1.0]).tobytes())
        monkeypatch.setattr(before._hold, "check", lambda: None)
        with pytest.raises(RunError, match="is gone"):
            before.append_losses([1], [1.0])
        finish(writer)


def kill_and_take_over(run, config):
    with writing(run, config) as owner:
        assert ask(owner) == "written"
        owner.kill()
        owner.wait()
        with run_lock(run):
            finish(go_on(run))


def test_the_lease_of_a_killed_owner_is_taken_over(tmp_path, config):
    kill_and_take_over(tmp_path, config)


@pytest.mark.long
def test_fifty_killed_owners(tmp_path, config):
    for kill in range(50):
        kill_and_take_over(tmp_path / str(kill), config)


def other_host():
    """Return a command that runs another on a host of another name, with processes of its own."""
    command = ["unshare", "--uts", "--pid", "--fork", "--kill-child", "--mount-proc"]
    command += ["sh", "-c", 'hostname elsewhere && exec "$@"', "sh"]
    if (
        shutil.which("unshare") is None
        or subprocess.run([*command, "true"], check=False).returncode
    ):
        pytest.skip("this system lets us make no name spaces of hosts and processes")
    return command


@pytest.mark.skipif(sys.platform != "linux", reason="name spaces are Linux's")
def test_a_dead_owner_on_another_host_is_waited_out(tmp_path, config):
    """From here nobody can tell that the process is dead, or whether its number is ours."""
    with writing(tmp_path, config, *other_host()) as owner:
        with pytest.raises(LockedRunError, match="on elsewhere"):
            run_lock(tmp_path, wait=False).__enter__()
        time.sleep(2 * SHORT)  # it lives, and touches its lease
        assert is_locked(tmp_path)

        owner.kill()
        began = time.monotonic()
        with run_lock(tmp_path):
            assert time.monotonic() - began > SHORT / 2
            finish(go_on(tmp_path))


def test_who_looks_sees_a_lease_until_it_is_old(tmp_path):
    with run_lock(tmp_path):
        lease = tmp_path / layout.LEASE
        assert is_locked(tmp_path)
        now = time.time()
        os.utime(lease, (now, now - 10 * SHORT))
        assert not is_locked(tmp_path)
    assert not lease.exists()
    assert not is_locked(tmp_path)


def test_the_system_lock_minds_a_lease(tmp_path, monkeypatch):
    with run_lock(tmp_path):
        monkeypatch.setenv(locks.CHOICE, "system")
        with pytest.raises(LockedRunError):
            run_lock(tmp_path, wait=False).__enter__()


@pytest.mark.parametrize("age", [0.0, 1e9])
def test_somebody_elses_file_is_no_lease(tmp_path, age):
    lease = tmp_path / layout.LEASE
    lease.write_text("my own notes")
    os.utime(lease, (time.time() - age,) * 2)
    with pytest.raises(UsageError, match="dyn did not write it"):
        run_lock(tmp_path, wait=False).__enter__()
    assert lease.read_text() == "my own notes"


@pytest.mark.parametrize(
    ("choice", "kind", "leases"),
    [
        ("auto", "nfs4", True),
        ("", "CIFS", True),
        ("auto", "ext4", False),
        ("system", "nfs4", False),
        ("soft", "ext4", True),
    ],
)
def test_network_file_systems_take_leases(tmp_path, monkeypatch, choice, kind, leases):
    monkeypatch.setenv(locks.CHOICE, choice)
    mounted = [
        SimpleNamespace(mountpoint="/", fstype="ext4"),
        SimpleNamespace(mountpoint=str(tmp_path), fstype=kind),
    ]
    monkeypatch.setattr(psutil, "disk_partitions", lambda all: mounted)
    assert takes_leases(tmp_path / "not" / "there yet") is leases


def test_a_misspelt_choice_is_refused(tmp_path, monkeypatch):
    monkeypatch.setenv(locks.CHOICE, "sotf")
    with pytest.raises(UsageError, match="did you mean 'soft'"):
        run_lock(tmp_path).__enter__()


def test_a_hold_on_nothing_checks_nothing(tmp_path):
    Hold(tmp_path).check()

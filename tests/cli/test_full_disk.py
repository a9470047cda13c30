"""What stops `dyn train` from writing is told in one message, with exit code 7; `--resume` ends with the same bits."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from dynamics_cli.training import loop
from tests.cli.full_disk_script import Case, vanishing

from .conftest import environment

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="limits, mounts and rights are those of Linux")
SCRIPT = Path(__file__).with_name("full_disk_script.py")
WAYS_OUT = ("continue with --resume", "Continue with --resume", "give --out")


def stopped(folder: Path, mode: str, *before: str) -> list[Case]:
    """Run the script, `before` it a command that takes or gives rights, and check what holds in every mode."""
    command = [*before, sys.executable, str(SCRIPT), str(folder), mode]
    done = subprocess.run(command, env=environment(), cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return checked(json.loads(done.stdout))


def checked(cases: list[Case]) -> list[Case]:
    for case in cases:
        assert case["code"] in (0, 7), case
        assert case["message"].count("\n") == (case["code"] == 7), case
        assert case["code"] == 0 or any(way in case["message"] for way in WAYS_OUT), case
        assert (case["resumed"], case["same"]) == (0, True), case
    return cases


def needs(*command: str) -> None:
    """Skip where a command that the system may lack or forbid does not work."""
    if shutil.which(command[0]) is None:
        pytest.skip(f"there is no {command[0]} here")
    done = subprocess.run([*command, "true"], capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip(f"{' '.join(command)} is not allowed here: {done.stderr.strip()}")


def test_files_that_may_not_grow(in_memory: Path) -> None:
    cases = stopped(in_memory, "limits")
    stops = [case for case in cases if case["code"] == 7]
    assert len(stops) >= 10
    assert all("disk full while writing" in case["message"] for case in stops)


def test_a_disk_that_is_full_at_some_moment(in_memory: Path) -> None:
    own_mounts = ("unshare", "--mount") if os.geteuid() == 0 else ("unshare", "--user", "--map-root-user", "--mount")
    needs(*own_mounts)
    cases = stopped(in_memory, "small disk", *own_mounts)
    stops = [case for case in cases if case["code"] == 7]
    assert len(stops) >= 10
    assert {case["code"] for case in cases[-3:]} == {0}
    for case in stops:
        assert "disk full while writing" in case["message"] or "free space, record less" in case["message"], case


def test_a_directory_that_may_not_be_written(in_memory: Path) -> None:
    before: tuple[str, ...] = ()
    if os.geteuid() == 0:  # root, without root's right to write everywhere
        before = ("setpriv", "--bounding-set=-dac_override,-dac_read_search")
        needs(*before)
    cases = stopped(in_memory, "closed", *before)
    assert {case["code"] for case in cases} == {7}
    assert all("cannot be made" in case["message"] or "is not writable" in case["message"] for case in cases)


def test_a_directory_that_vanishes(in_memory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loop, "_next_chunk", lambda *_: 70)
    monkeypatch.setattr(loop, "CHECKPOINT_SECONDS", -1.0)
    cases = checked(list(vanishing(in_memory)))
    assert {case["code"] for case in cases} == {7}
    assert all("is gone: was its directory deleted or moved?" in case["message"] for case in cases)

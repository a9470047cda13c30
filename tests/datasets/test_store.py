from __future__ import annotations

import errno
import os
import subprocess
import sys
from pathlib import Path

import pytest

from dynamics_cli.datasets.files import store
from dynamics_cli.errors import RunError, UsageError
from dynamics_cli.runs.store import files

ROOT = Path(__file__).parents[2]


def test_the_root_follows_the_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("DYN_DATA", str(tmp_path / "here"))
    assert store.data_root() == tmp_path / "here"
    monkeypatch.delenv("DYN_DATA")
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "xdg"))
    assert store.data_root() == tmp_path / "xdg" / "dyn"
    monkeypatch.setenv("HOME", str(tmp_path))
    for ignored in ("", "not/absolute"):
        monkeypatch.setenv("XDG_DATA_HOME", ignored)
        assert store.data_root() == tmp_path / ".local" / "share" / "dyn"


def test_no_home_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("DYN_DATA")
    monkeypatch.delenv("XDG_DATA_HOME", raising=False)

    def no_home() -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.setattr(Path, "home", no_home)
    with pytest.raises(UsageError, match="set DYN_DATA"):
        store.data_root()


@pytest.mark.parametrize(("value", "offline"), [("1", True), ("yes", True), ("", False), ("0", False), ("No", False)])
def test_offline(value: str, offline: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DYN_OFFLINE", value)
    assert store.is_offline() is offline


def test_the_lock_makes_others_wait_and_clears_what_a_kill_left(tmp_path: Path) -> None:
    left = tmp_path / "place" / ".file.123.tmp"
    left.parent.mkdir()
    left.write_bytes(b"half a download")
    code = "import sys, time; from pathlib import Path; from dynamics_cli.datasets.files.store import locked\n"
    code += "with locked(Path(sys.argv[1])): print('held', flush=True); sys.stdin.readline()"
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    with subprocess.Popen(
        [sys.executable, "-c", code, left.parent], stdin=-1, stdout=-1, text=True, env=environment
    ) as other:
        assert other.stdin is not None
        assert other.stdout is not None
        assert other.stdout.readline() == "held\n"
        assert not left.exists()
        said: list[str] = []

        def on_wait(message: str) -> None:
            said.append(message)
            other.communicate("go\n")

        with store.locked(left.parent, on_wait):
            assert other.wait() == 0
    assert said == [f"{left.parent} is in use by another process; waiting for it to finish"]


def test_links_are_deleted_not_followed(tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "file").write_bytes(b"kept")
    (tmp_path / "link").symlink_to(tmp_path / "mine")
    files.remove_tree(tmp_path / "link")
    files.remove_tree(tmp_path / "never there")
    assert not (tmp_path / "link").is_symlink()
    assert (tmp_path / "mine" / "file").read_bytes() == b"kept"


def test_errors_of_the_system_are_told(tmp_path: Path) -> None:
    full = pytest.raises(RunError, match="disk full while writing .*place; free space")
    with full, store.locked(tmp_path / "place"):
        raise OSError(errno.ENOSPC, "No space left on device")
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(RunError, match="cannot write .*file.*; set DYN_DATA"), store.locked(tmp_path / "file" / "x"):
        pass

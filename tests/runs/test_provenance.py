from __future__ import annotations

import os
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import pytest

from dynamics_cli import __version__
from dynamics_cli.runs.info import commit, provenance, threads


def test_what_is_described() -> None:
    found = provenance()
    assert found["versions"]["dyn"] == __version__
    assert found["versions"]["numpy"] == np.__version__
    assert found["versions"]["python"].split(".")[0] == str(sys.version_info.major)
    assert datetime.now(UTC) - datetime.fromisoformat(found["started"]) < timedelta(minutes=1)
    assert found["cpus"] == os.cpu_count()
    assert found["platform"]


def test_threads_without_torch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "torch", raising=False)
    monkeypatch.setenv("OMP_NUM_THREADS", "3")
    assert threads() == 3
    monkeypatch.setenv("OMP_NUM_THREADS", "all")
    assert threads() is None


def test_the_commit_of_a_checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert commit(tmp_path) is None

    def git(*command: str) -> str:
        identity = ["-c", "user.name=n", "-c", "user.email=e"]
        done = subprocess.run(["git", *identity, *command], cwd=tmp_path, check=True, capture_output=True, text=True)
        return done.stdout.strip()

    git("init", "-q")
    assert commit(tmp_path) is None
    (tmp_path / "file").write_text("a")
    git("add", "file")
    git("commit", "-qm", "m")
    assert commit(tmp_path) == git("rev-parse", "HEAD")
    (tmp_path / "file").write_text("b")
    assert commit(tmp_path) == git("rev-parse", "HEAD") + "-dirty"
    monkeypatch.setenv("PATH", "")
    assert commit(tmp_path) is None


def test_runs_import_nothing_heavy() -> None:
    code = "import sys, dynamics_cli.runs; sys.exit(any(m in sys.modules for m in ('torch', 'scipy', 'matplotlib')))"
    subprocess.run([sys.executable, "-c", code], check=True)

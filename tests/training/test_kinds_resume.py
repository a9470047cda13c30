"""A run of every kind that is registered, killed by SIGKILL in its middle: it goes on to the same bits."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).with_name("kinds_script.py")
FEW = ("measure.sharpness", "dataset.teacher, fresh")


def outcomes(folder: Path, *names: str) -> dict[str, str]:
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, str(SCRIPT), str(folder), *names]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    assert done.returncode == 0, done.stderr
    found: dict[str, str] = json.loads(done.stdout)
    return found


def test_some_kinds_resume_bit_for_bit(tmp_path: Path) -> None:
    assert outcomes(tmp_path, *FEW) == dict.fromkeys(FEW, "same")


@pytest.mark.long
def test_every_kind_resumes_bit_for_bit(tmp_path: Path) -> None:
    found = outcomes(tmp_path)
    wrong = {name: what for name, what in found.items() if what != "same" and not what.startswith("no data")}
    print(f"{sum(what == 'same' for what in found.values())} of {len(found)} kinds, each killed twice")
    assert wrong == {}
    assert sum(what == "same" for what in found.values()) >= 100

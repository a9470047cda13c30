"""Other programs are called with a list of arguments, never through a shell."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from dynamics_cli.plotting.animation import Pixels, animate
from dynamics_cli.runs.info import provenance

from .conftest import Harm

FAKE = """#!{python}
import json, sys
json.dump(sys.argv, open({log!r}, "w"))
sys.stdin.buffer.read()
open(sys.argv[-1], "wb").write(b"film")
"""


@pytest.fixture
def ffmpeg(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An `ffmpeg` that writes down how it was called."""
    folder = tmp_path / "bin"
    folder.mkdir()
    (folder / "ffmpeg").write_text(FAKE.format(python=sys.executable, log=str(tmp_path / "log.json")))
    (folder / "ffmpeg").chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:/usr/bin:/bin")
    return tmp_path / "log.json"


def shoot(frame: int) -> Pixels:
    return np.full((32, 32, 3), frame, dtype=np.uint8)


def test_a_film_in_a_folder_with_a_shell_command_as_its_name(harm: Harm, place: Path, ffmpeg: Path) -> None:
    name = f"films; touch {harm.path.name} #"
    subprocess.run(f"cd {harm.path.parent} && true {name}", shell=True, check=True)
    assert harm.done
    for folder in (name, "$(touch ../pwned)", "-y"):
        animate(shoot, [1], place / folder / "film", 10)
        called = json.loads(ffmpeg.read_text())
        assert Path(called[-1]).parent == place / folder
        assert (place / folder / "film.mp4").read_bytes() == b"film"
        assert not harm.path.exists()


def test_git_is_asked_about_a_folder_with_a_shell_command_as_its_name(harm: Harm, tmp_path: Path) -> None:
    import importlib

    module = importlib.import_module(provenance.__module__)
    folder = tmp_path / f"$(touch {harm.path.name})"
    (folder / ".git").mkdir(parents=True)
    subprocess.run(f"cd {harm.path.parent} && true {folder.name}", shell=True, check=True)
    assert harm.done
    assert module.commit(folder) is None

"""Animations: files, frames and their states, what cannot move, and ffmpeg."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from dynamics_cli.analysis.animation import animate_run
from dynamics_cli.errors import RunError
from dynamics_cli.runs.run import Run

from .conftest import Write


@pytest.fixture(autouse=True)
def no_ffmpeg(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shutil.which", lambda name: None)
    monkeypatch.setattr("dynamics_cli.analysis.animation.FRAMES", 7)


def test_a_gif_of_the_recorded_states(orthogonal: Run, tmp_path: Path) -> None:
    run = orthogonal
    told: list[tuple[int, int]] = []
    (file,) = animate_run(run, tmp_path / "moving", lambda done, of: told.append((done, of)))
    assert file == tmp_path / "moving.gif"
    assert told == [(k, len(told)) for k in range(1, len(told) + 1)]
    assert 3 < len(told) <= 7
    with Image.open(file) as picture:
        assert 2 < picture.n_frames <= len(told)  # equal pictures are one frame
        first = np.asarray(picture.convert("RGB")).astype(int)
        picture.seek(picture.n_frames - 1)
        moved = np.abs(first - np.asarray(picture.convert("RGB"))).max(axis=2) > 60
    middle = moved.shape[1] // 2
    assert moved[40:, :middle].sum() > 200  # the network
    assert 20 < moved[40:, middle:].sum() < 600  # only the marker on the loss


@pytest.mark.parametrize("losses", [[], [1.0, 1e30, np.inf]])
def test_a_run_moves_up_to_its_last_finite_state(
    losses: list[float], write: Write, layer: dict[str, object], tmp_path: Path
) -> None:
    broken = {name: np.multiply(value, np.nan) for name, value in layer.items()}
    run = write(losses, {0: layer, 1: layer, 2: broken}, status="diverged" if losses else None)
    (file,) = animate_run(run, tmp_path / "moving")
    with Image.open(file) as picture:
        assert picture.n_frames == 2


FFMPEG = """#!/bin/sh
for last; do :; done
cat > "$last"
[ -z "{failing}" ] || {{ echo 'Unknown encoder' >&2; exit 3; }}
"""


@pytest.mark.parametrize("failing", ["", "yes"])
def test_an_mp4_where_there_is_ffmpeg(
    failing: str, orthogonal: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / "bin" / "ffmpeg"
    program.parent.mkdir()
    program.write_text(FFMPEG.format(failing=failing))
    program.chmod(0o755)
    monkeypatch.undo()
    monkeypatch.setenv("PATH", str(program.parent), prepend=":")
    monkeypatch.setattr("dynamics_cli.analysis.animation.FRAMES", 4)
    if failing:
        with pytest.raises(RunError, match=r"a\.mp4 \(exit status 3\)"):
            animate_run(orthogonal, tmp_path / "a")
        assert sorted(path.name for path in tmp_path.iterdir()) == ["a.gif", "bin"]
    else:
        assert [path.name for path in animate_run(orthogonal, tmp_path / "a")] == ["a.gif", "a.mp4"]
        with Image.open(tmp_path / "a.gif") as picture:
            width, height = (side // 2 * 2 for side in picture.size)  # the codec takes even sides
        assert (tmp_path / "a.mp4").stat().st_size % (4 * width * height) == 0  # whole frames, RGBA

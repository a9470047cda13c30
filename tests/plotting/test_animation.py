from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from PIL import Image

from dynamics_cli.errors import RunError
from dynamics_cli.plotting.animation import Film, animate
from dynamics_cli.plotting.style import new_figure, style

FFMPEG = """#!/bin/sh
for last; do :; done
echo "$@" > "{log}"
cat > "$last"
"""


def film_of(dpi: float = 100):
    """Return a figure, its film, and the function that moves the end of a red line to height k and shoots."""
    figure, (axes,) = new_figure(width=2.0)
    (line,) = axes.plot([0, 1], [0, 1], color="#CC3311")
    axes.set(xlim=(0, 1), ylim=(-1, 10))
    film = Film(figure, [line], dpi)

    def shoot(k):
        line.set_ydata([0, k])
        return film.shot()

    return figure, shoot


@pytest.fixture
def shoot():
    return film_of()[1]


@pytest.fixture
def no_ffmpeg(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path / "nothing"))


@pytest.mark.usefixtures("no_ffmpeg")
def test_gif_has_the_frames_size_timing_and_pixels_asked_for(tmp_path, shoot):
    frames, told = [0, 1, 2, 3, 4], []
    paths = animate(shoot, frames, tmp_path / "run-0.1", fps=8, progress=lambda *done: told.append(done))
    assert paths == [tmp_path / "run-0.1.gif"]
    assert told == [(1, 5), (2, 5), (3, 5), (4, 5), (5, 5)]
    with Image.open(paths[0]) as gif:
        assert gif.n_frames == 5
        assert gif.size == (200, 144)
        assert gif.info["loop"] == 0
        durations = []
        for k in frames:
            gif.seek(k)
            durations.append(gif.info["duration"])
            shown = np.asarray(gif.convert("RGB"))
            assert shown[0, 0].tolist() == [255, 255, 255]
            assert np.abs(shown.astype(int) - shoot(k)).max() < 60  # 256 colours
            assert (np.abs(shown.astype(int) - [204, 51, 17]).sum(axis=-1) < 12).any()
    assert durations == [120] * 4 + [1120]  # 8 a second, in the format's hundredths


@pytest.mark.usefixtures("no_ffmpeg")
def test_the_same_frames_give_the_same_bytes(tmp_path):
    first, second = (animate(film_of()[1], range(3), tmp_path / name, 10)[0].read_bytes() for name in "ab")
    assert first == second


def test_only_what_moves_is_drawn_again():
    figure, shoot = film_of()
    first = shoot(0).copy()
    figure.axes[0].set_title("not seen any more")
    moved = np.abs(shoot(5).astype(int) - first).max(axis=-1) > 0
    assert np.array_equal(shoot(0), first)
    box = figure.axes[0].get_window_extent()
    rows, columns = np.flatnonzero(moved.any(axis=1)), np.flatnonzero(moved.any(axis=0))
    assert columns[0] >= box.x0 - 1
    assert columns[-1] <= box.x1 + 1
    assert rows[0] >= first.shape[0] - box.y1 - 1
    assert rows[-1] <= first.shape[0] - box.y0 + 1


def test_a_film_looks_like_its_figure():
    figure, shoot = film_of(dpi=80)
    canvas = FigureCanvasAgg(figure)
    picture = shoot(3)
    with style():
        canvas.draw()
    assert picture.dtype == np.uint8
    assert np.abs(np.asarray(canvas.buffer_rgba())[..., :3].astype(int) - picture).mean() < 1  # spines cover lines


def test_mp4_is_piped_through_ffmpeg_when_there_is_one(tmp_path, monkeypatch, shoot):
    program = tmp_path / "bin" / "ffmpeg"
    program.parent.mkdir()
    program.write_text(FFMPEG.format(log=tmp_path / "log"))
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(program.parent), prepend=":")
    gif, mp4 = animate(shoot, range(4), tmp_path / "a", fps=10)
    with Image.open(gif) as picture:
        width, height = picture.size
    assert mp4 == tmp_path / "a.mp4"
    assert mp4.stat().st_size == 4 * width * height * 3
    assert np.array_equal(np.frombuffer(mp4.read_bytes()[: width * height * 3], dtype=np.uint8), shoot(0).ravel())
    assert f"-s {width}x{height} -r 10 -i -" in (tmp_path / "log").read_text()


def test_ffmpeg_failing_is_told_and_the_gif_stays(tmp_path, monkeypatch, shoot):
    program = tmp_path / "bin" / "ffmpeg"
    program.parent.mkdir()
    program.write_text("#!/bin/sh\necho 'Unknown encoder' >&2\nexit 3\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(program.parent), prepend=":")
    with pytest.raises(RunError, match=r"a\.mp4 \(exit status 3\): Unknown encoder"):
        animate(shoot, range(3), tmp_path / "a", 10)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["a.gif", "bin"]


def test_a_folder_that_cannot_be_made_is_told(tmp_path, shoot):
    with pytest.raises(RunError, match="cannot write"):
        animate(shoot, [0], Path(__file__) / "a", 10)
    assert list(tmp_path.iterdir()) == []


def test_one_frame_is_an_animation_too(tmp_path, shoot):
    with Image.open(animate(shoot, [0], tmp_path / "a", 10)[0]) as gif:
        assert getattr(gif, "n_frames", 1) == 1

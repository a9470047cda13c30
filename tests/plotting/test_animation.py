from __future__ import annotations

import gc
import weakref
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from dynamics_cli.errors import RunError
from dynamics_cli.plotting.animation import animate, nearest, render, shared_palette
from dynamics_cli.plotting.style import new_figure

FFMPEG = """#!/bin/sh
for last; do :; done
echo "$@" > "{log}"
cat > "$last"
"""


def draw(k):
    figure, axes = new_figure(width=2.0)
    axes[0].plot([0, 1], [0, 10.0**k], color="#CC3311")
    return figure


@pytest.fixture
def no_ffmpeg(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path / "nothing"))


@pytest.mark.usefixtures("no_ffmpeg")
def test_gif_has_the_frames_size_timing_and_pixels_asked_for(tmp_path):
    frames = [0, 1, 2, 3, 3]
    paths = animate(draw, frames, tmp_path / "run-0.1", fps=8, dpi=100)
    assert paths == [tmp_path / "run-0.1.gif"]
    size = tuple((draw(0).get_size_inches() * 100).astype(int))
    with Image.open(paths[0]) as gif:
        assert gif.n_frames == 5
        assert gif.size == size
        assert gif.info["loop"] == 0
        durations = []
        for k in range(5):
            gif.seek(k)
            durations.append(gif.info["duration"])
            shown = np.asarray(gif.convert("RGB"))
            assert shown[0, 0].tolist() == [255, 255, 255]
            assert (np.abs(shown.astype(int) - [204, 51, 17]).sum(axis=-1) < 12).any()
    assert sum(durations[:4]) == 500  # 4 frames at 8 a second, in the format's hundredths
    assert durations[4] >= 1000


@pytest.mark.usefixtures("no_ffmpeg")
def test_the_same_frames_give_the_same_bytes_and_panels_do_not_move(tmp_path):
    first = animate(draw, range(3), tmp_path / "a")[0].read_bytes()
    assert animate(draw, range(3), tmp_path / "b")[0].read_bytes() == first
    boxes = []

    def watched(k):
        figure = draw(k)
        boxes.append(figure.axes[0])
        return figure

    animate(watched, range(3), tmp_path / "c")
    extents = np.array([axes.get_position(original=True).extents for axes in boxes])
    assert np.ptp(extents, axis=0).max() == 0


@pytest.mark.usefixtures("no_ffmpeg")
def test_frames_are_forgotten(tmp_path):
    alive = []

    def watched(k):
        gc.collect()
        assert sum(reference() is not None for reference in alive[:-3]) == 0
        figure = draw(0)
        alive.append(weakref.ref(figure))
        return figure

    animate(watched, range(8), tmp_path / "a")
    assert len(alive) == 11


def test_mp4_is_piped_through_ffmpeg_when_there_is_one(tmp_path, monkeypatch):
    program = tmp_path / "bin" / "ffmpeg"
    program.parent.mkdir()
    program.write_text(FFMPEG.format(log=tmp_path / "log"))
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(program.parent), prepend=":")
    gif, mp4 = animate(draw, range(4), tmp_path / "a", fps=10, dpi=100)
    with Image.open(gif) as picture:
        width, height = picture.size
    assert mp4 == tmp_path / "a.mp4"
    assert mp4.stat().st_size == 4 * width * height * 3
    first = np.frombuffer(mp4.read_bytes()[: width * height * 3], dtype=np.uint8)
    assert first[:3].tolist() == [255, 255, 255]
    assert f"-s {width}x{height} -r 10 -i -" in (tmp_path / "log").read_text()


def test_ffmpeg_failing_is_told_and_the_gif_stays(tmp_path, monkeypatch):
    program = tmp_path / "bin" / "ffmpeg"
    program.parent.mkdir()
    program.write_text("#!/bin/sh\necho 'Unknown encoder' >&2\nexit 3\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(program.parent), prepend=":")
    with pytest.raises(RunError, match=r"a\.mp4 \(exit status 3\): Unknown encoder"):
        animate(draw, range(3), tmp_path / "a")
    assert sorted(p.name for p in tmp_path.iterdir()) == ["a.gif", "bin"]


def test_wrong_calls_are_refused(tmp_path):
    with pytest.raises(ValueError, match="at least one frame"):
        animate(draw, [], tmp_path / "a")
    with pytest.raises(ValueError, match="fps must be"):
        animate(draw, [0], tmp_path / "a", fps=0)
    with pytest.raises(ValueError, match="same number of panels"):
        animate(lambda k: new_figure(1 + k)[0], [0, 1], tmp_path / "a")
    with pytest.raises(ValueError, match="among frames of"):
        animate(lambda k: new_figure(width=2.0 + (k == 1))[0], range(5), tmp_path / "a", dpi=50)
    with pytest.raises(RunError, match="cannot write"):
        animate(draw, [0], Path(__file__) / "a")
    assert list(tmp_path.iterdir()) == []


def test_one_frame_is_an_animation_too(tmp_path):
    with Image.open(animate(draw, [0], tmp_path / "a")[0]) as gif:
        assert getattr(gif, "n_frames", 1) == 1


def test_palette_keeps_frequent_colours_and_nearest_finds_them():
    rng = np.random.default_rng(0)
    noise = rng.integers(0, 256, (30, 30, 3)).astype(np.uint8)
    flat = np.full((30, 30, 3), (12, 200, 7), dtype=np.uint8)
    colors = shared_palette([noise, flat])
    assert colors.shape == (256, 3)
    assert [255, 255, 255] in colors.tolist()
    assert np.array_equal(colors[nearest(flat, colors)], flat)
    brute = ((noise.reshape(-1, 1, 3).astype(int) - colors.astype(int)) ** 2).sum(axis=-1)
    chosen = nearest(noise, colors).ravel()
    assert (brute[np.arange(900), chosen] == brute.min(axis=1)).all()


def test_render_gives_pixels():
    pixels = render(draw(0), 50)
    assert pixels.shape == (72, 100, 3)
    assert pixels.dtype == np.uint8

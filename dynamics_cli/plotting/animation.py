"""Moving pictures: artists that stay are drawn once, artists that move on top of them for every frame."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
from matplotlib.artist import Artist
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from numpy.typing import NDArray
from PIL import Image

from dynamics_cli.errors import RunError
from dynamics_cli.plotting.style import figure_path, replacing, settle, styled

Pixels = NDArray[np.uint8]
Progress = Callable[[int, int], None]
"""Called with the number of frames done and of all frames."""
LAST = 1000
"""Milliseconds that the last frame of a GIF stays longer."""


class Film:
    """A figure of which a few artists move; the rest is drawn once and lies behind every frame.

    A frame takes a tenth of the time of `matplotlib.animation`, whose writers draw the whole figure for each.
    """

    @styled
    def __init__(self, figure: Figure, moving: Sequence[Artist], dpi: float) -> None:
        """Fix the layout of `figure` and draw it without the artists `moving`, which cover each other in this order."""
        self._figure, self._moving = figure, list(moving)
        figure.set_dpi(dpi)
        settle(figure)
        self._canvas = FigureCanvasAgg(figure)
        for artist in self._moving:
            artist.set_visible(False)
        self._canvas.draw()  # type: ignore[no-untyped-call]
        self._behind = self._canvas.copy_from_bbox(figure.bbox)  # type: ignore[no-untyped-call]
        for artist in self._moving:
            artist.set_visible(True)

    @styled
    def shot(self) -> Pixels:
        """Return the picture (height, width, 3) with the moving artists as they are now."""
        self._canvas.restore_region(self._behind)  # type: ignore[no-untyped-call]
        for artist in self._moving:
            artist.draw(self._canvas.get_renderer())  # type: ignore[no-untyped-call]
        return np.array(self._canvas.buffer_rgba(), dtype=np.uint8)[..., :3]  # type: ignore[no-untyped-call]


def animate(
    shoot: Callable[[int], Pixels], frames: Sequence[int], stem: Path, fps: float, progress: Progress | None = None
) -> list[Path]:
    """Write `<stem>.gif`, and `<stem>.mp4` where an ffmpeg executable is found; return the paths.

    `shoot` gives the picture (height, width, 3) of every element of `frames`, at least one. Same frames, same bytes.

    Raises RunError: a file cannot be written, or ffmpeg fails (the GIF is there then).
    """
    pictures = []
    for number, frame in enumerate(frames, 1):
        pictures.append(Image.fromarray(np.ascontiguousarray(shoot(frame))))
        if progress is not None:
            progress(number, len(frames))
    gif, mp4 = figure_path(stem, "gif"), figure_path(stem, "mp4")
    durations = [round(1000 / fps)] * len(frames)
    durations[-1] += LAST
    with replacing(gif) as temporary:
        pictures[0].save(temporary, "GIF", save_all=True, append_images=pictures[1:], duration=durations, loop=0)
    ffmpeg = shutil.which("ffmpeg")
    if ffmpeg is None:
        return [gif]
    width, height = pictures[0].size
    with replacing(mp4) as temporary:
        command = [ffmpeg, "-y", "-loglevel", "error", "-f", "rawvideo", "-pix_fmt", "rgb24"]
        command += ["-s", f"{width}x{height}", "-r", f"{fps:g}", "-i", "-", "-an", "-threads", "1"]
        command += ["-vf", "pad=ceil(iw/2)*2:ceil(ih/2)*2:color=white", "-pix_fmt", "yuv420p"]
        command += ["-map_metadata", "-1", "-fflags", "+bitexact", "-flags:v", "+bitexact", "-f", "mp4", str(temporary)]
        pixels = b"".join(picture.tobytes() for picture in pictures)
        done = subprocess.run(command, input=pixels, capture_output=True, check=False)
        if done.returncode != 0:
            words = done.stderr.decode(errors="replace").strip().splitlines() or ["no message"]
            raise RunError(f"ffmpeg could not make {mp4} (exit status {done.returncode}): {words[-1]}")
    return [gif, mp4]

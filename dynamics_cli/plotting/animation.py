"""Moving pictures: what stays is drawn once, what moves is drawn on top of it for every frame."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
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
"""Told how many frames are done, and of how many."""


class Film:
    """A figure of which a few artists move; the rest is drawn once and lies behind every frame."""

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
    shoot: Callable[[int], Pixels],
    frames: Sequence[int],
    stem: Path,
    fps: float = 12.0,
    *,
    progress: Progress | None = None,
) -> list[Path]:
    """Write `<stem>.gif`, and `<stem>.mp4` where an ffmpeg executable is found; return the paths.

    `shoot` gives the picture (height, width, 3) of every element of `frames`; it is called with three of them
    beforehand, from which the palette of the GIF is taken, so that colours do not flicker. The last frame stays one
    second longer. Same frames, same bytes. `progress` is called after every frame. Raises ValueError without frames,
    and RunError when a file cannot be written or ffmpeg fails (the GIF is there then).
    """
    if len(frames) == 0:
        raise ValueError("an animation needs at least one frame")
    if not 0 < fps <= 100:
        raise ValueError(f"fps must be above 0 and at most 100, not {fps}")
    first_pictures = [shoot(frames[k]) for k in sorted({0, len(frames) // 2, len(frames) - 1})]
    palette, shape = Palette(first_pictures), first_pictures[0].shape
    gif, mp4 = figure_path(Path(stem), "gif"), figure_path(Path(stem), "mp4")
    ffmpeg = shutil.which("ffmpeg")
    with ExitStack() as stack:
        movie = stack.enter_context(_movie(ffmpeg, mp4, shape, fps)) if ffmpeg else None
        pictures = []
        for number, frame in enumerate(frames):
            pixels = shoot(frame)
            pictures.append(palette.picture(pixels))
            if movie is not None:
                movie(pixels)
            if progress is not None:
                progress(number + 1, len(frames))
        ends = np.round(np.arange(len(frames) + 1) * 100 / fps)  # in the format's hundredths, so that the sum is exact
        durations = (10 * np.maximum(np.diff(ends), 1)).astype(int).tolist()
        durations[-1] += 1000
        with replacing(gif) as temporary:
            look = {"append_images": pictures[1:], "duration": durations, "loop": 0, "optimize": False}
            pictures[0].save(temporary, "GIF", save_all=True, **look)
    return [gif, mp4] if ffmpeg else [gif]


class Palette:
    """256 colours that suit some pictures; white and the most frequent colours are exact."""

    def __init__(self, pictures: Sequence[Pixels]) -> None:
        """Choose the colours (256, 3) for pictures (height, width, 3)."""
        stacked = np.concatenate([picture.reshape(-1, 3) for picture in pictures])
        colors, counts = np.unique(_packed(stacked), return_counts=True)
        frequent = colors[np.lexsort((colors, -counts))][:64]
        rest = Image.fromarray(stacked[None]).quantize(191, method=Image.Quantize.MEDIANCUT, dither=Image.Dither.NONE)
        averages = np.array((rest.getpalette() or [])[: 191 * 3], dtype=np.uint8).reshape(-1, 3)
        chosen = list(dict.fromkeys([0xFFFFFF, *frequent.tolist(), *_packed(averages).tolist()]))[:256]
        self.colors = _unpacked(np.array(chosen + [0xFFFFFF] * (256 - len(chosen)), dtype=np.uint32))
        self._index = np.full(1 << 24, -1, dtype=np.int16)  # of every colour that was met, that of the nearest

    def picture(self, pixels: Pixels) -> Image.Image:
        """Return the picture (height, width, 3) with the nearest colours of the palette."""
        packed = _packed(pixels)
        new = np.unique(packed[self._index[packed] < 0])
        colors = self.colors.astype(np.float64)
        # |p - c|^2 without |p|^2, which is the same for all c: (number of new colours, 256), exact in float64
        distance = (colors**2).sum(axis=1) - 2.0 * _unpacked(new).astype(np.float64) @ colors.T
        self._index[new] = distance.argmin(axis=1)
        picture = Image.fromarray(self._index[packed].astype(np.uint8), "P")
        picture.putpalette(self.colors.tobytes())
        return picture


def _packed(colors: Pixels) -> NDArray[np.uint32]:
    """Return each colour (..., 3) as one number (...,)."""
    red, green, blue = np.moveaxis(colors.astype(np.uint32), -1, 0)
    return np.asarray(red << 16 | green << 8 | blue, dtype=np.uint32)


def _unpacked(numbers: NDArray[np.uint32]) -> Pixels:
    return np.stack([numbers >> 16, numbers >> 8 & 255, numbers & 255], axis=-1).astype(np.uint8)


@contextmanager
def _movie(ffmpeg: str, target: Path, shape: tuple[int, ...], fps: float) -> Iterator[Callable[[Pixels], None]]:
    """Give a function that sends a frame to ffmpeg; at the end the MP4 takes its place at `target`.

    Raises RunError with ffmpeg's last words when it fails.
    """
    with replacing(target) as temporary, tempfile.TemporaryFile() as errors:
        command = [ffmpeg, "-y", "-loglevel", "error", "-f", "rawvideo", "-pix_fmt", "rgb24"]
        command += ["-s", f"{shape[1]}x{shape[0]}", "-r", f"{fps:g}", "-i", "-", "-an", "-threads", "1"]
        command += ["-vf", "pad=ceil(iw/2)*2:ceil(ih/2)*2:color=white", "-pix_fmt", "yuv420p"]
        command += ["-map_metadata", "-1", "-fflags", "+bitexact", "-flags:v", "+bitexact", "-f", "mp4", str(temporary)]
        process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=errors)
        pipe = process.stdin
        assert pipe is not None

        def add(pixels: Pixels) -> None:
            with suppress(BrokenPipeError):  # ffmpeg has given up: its exit status says so below
                pipe.write(np.ascontiguousarray(pixels).tobytes())
                pipe.flush()

        try:
            yield add
            with suppress(BrokenPipeError):
                pipe.close()
            status = process.wait()
        finally:
            if process.poll() is None:
                process.kill()
                process.wait()
            with suppress(BrokenPipeError):
                pipe.close()
        if status != 0:
            errors.seek(0)
            words = errors.read().decode(errors="replace").strip().splitlines()
            raise RunError(
                f"ffmpeg could not make {target} (exit status {status}): {words[-1] if words else 'no message'}"
            )

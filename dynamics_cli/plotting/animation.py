"""Moving pictures: every frame is drawn once, passed on, and forgotten."""

from __future__ import annotations

import shutil
import struct
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import IO

import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.transforms import Bbox
from numpy.typing import NDArray
from PIL import GifImagePlugin, Image

from dynamics_cli.errors import RunError
from dynamics_cli.plotting.style import figure_path, replacing, settle, style

Pixels = NDArray[np.uint8]


def animate(
    draw_frame: Callable[[int], Figure], frames: Sequence[int], stem: Path, fps: float = 12.0, *, dpi: float = 150.0
) -> list[Path]:
    """Write `<stem>.gif`, and `<stem>.mp4` where an ffmpeg executable is found; return the paths.

    `draw_frame` is called with every element of `frames` in order, and once more beforehand for three of them, from
    which the layout of all frames and the palette of the GIF are taken: panels do not jitter, colours do not flicker.
    One frame at a time is in memory. The last frame stays one second longer. Same frames, same bytes. Raises ValueError
    without frames or when frames differ in size or number of panels, and RunError when a file cannot be written or
    ffmpeg fails (the GIF is there then).
    """
    if len(frames) == 0:
        raise ValueError("an animation needs at least one frame")
    if not 0 < fps <= 100:
        raise ValueError(f"fps must be above 0 and at most 100, not {fps}")
    layout, palette, shape = _prepare(
        [draw_frame(frames[k]) for k in sorted({0, len(frames) // 2, len(frames) - 1})], dpi
    )
    gif, mp4 = figure_path(Path(stem), "gif"), figure_path(Path(stem), "mp4")
    ffmpeg = shutil.which("ffmpeg")
    with ExitStack() as stack:
        movie = stack.enter_context(_movie(ffmpeg, mp4, shape, fps)) if ffmpeg else None
        with replacing(gif) as temporary, temporary.open("wb") as stream:
            writer = GifWriter(stream, palette, (shape[1], shape[0]), fps)
            for number, frame in enumerate(frames):
                pixels = render(draw_frame(frame), dpi, layout)
                writer.add(pixels, hold=1.0 if number == len(frames) - 1 else 0.0)
                if movie is not None:
                    movie(pixels)
            writer.close()
    return [gif, mp4] if ffmpeg else [gif]


def _prepare(figures: Sequence[Figure], dpi: float) -> tuple[list[Bbox], Pixels, tuple[int, ...]]:
    """Return a layout with room for the labels of all `figures`, a palette for them, and the shape of a frame."""
    boxes = [settle(figure) for figure in figures]
    if len({len(row) for row in boxes}) > 1:
        raise ValueError("the frames of an animation must have the same number of panels")
    corners = np.array([[box.extents for box in row] for row in boxes])  # (figures, panels, 4)
    common = np.concatenate([corners[..., :2].max(axis=0), corners[..., 2:].min(axis=0)], axis=-1)
    layout = [Bbox.from_extents(*row) for row in common]
    pictures = [render(figure, dpi, layout) for figure in figures]
    return layout, shared_palette(pictures), pictures[0].shape


def render(figure: Figure, dpi: float, layout: Sequence[Bbox] | None = None) -> Pixels:
    """Return the picture (height, width, 3) of `figure` at `dpi` dots an inch, its panels in the boxes `layout`."""
    if layout is None:
        layout = settle(figure)
    figure.set_layout_engine("none")
    for axes, box in zip(figure.axes, layout, strict=True):
        axes.set_position(box)
    with style():
        figure.set_dpi(dpi)
        canvas = FigureCanvasAgg(figure)
        canvas.draw()  # type: ignore[no-untyped-call]
        pixels: Pixels = np.array(canvas.buffer_rgba(), dtype=np.uint8)  # type: ignore[no-untyped-call]
    return pixels[..., :3]


def shared_palette(pictures: Sequence[Pixels]) -> Pixels:
    """Return 256 colours (256, 3) that suit all `pictures`; white and the most frequent colours are exact."""
    stacked = np.concatenate([picture.reshape(-1, 3) for picture in pictures])
    colors, counts = np.unique(_packed(stacked), return_counts=True)
    frequent = colors[np.lexsort((colors, -counts))][:64]
    rest = Image.fromarray(stacked[None]).quantize(191, method=Image.Quantize.MEDIANCUT, dither=Image.Dither.NONE)
    averages = np.array((rest.getpalette() or [])[: 191 * 3], dtype=np.uint8).reshape(-1, 3)
    chosen = list(dict.fromkeys([0xFFFFFF, *frequent.tolist(), *_packed(averages).tolist()]))[:256]
    chosen += [0xFFFFFF] * (256 - len(chosen))
    return _unpacked(np.array(chosen))


def nearest(pixels: Pixels, colors: Pixels) -> Pixels:
    """Return for every pixel of (height, width, 3) the index (height, width) of the nearest of `colors` (256, 3)."""
    packed, inverse = np.unique(_packed(pixels).ravel(), return_inverse=True)
    palette = colors.astype(np.float64)
    # |p - c|^2 without |p|^2, which is the same for all c: (number of distinct colours, 256), exact in float64
    distance = (palette**2).sum(axis=1) - 2.0 * _unpacked(packed).astype(np.float64) @ palette.T
    index: Pixels = distance.argmin(axis=1).astype(np.uint8)[inverse]
    return index.reshape(pixels.shape[:2])


def _packed(colors: Pixels) -> NDArray[np.int64]:
    """Return each colour (..., 3) as one number (...,)."""
    red, green, blue = np.moveaxis(colors.astype(np.int64), -1, 0)
    return np.asarray(red * 65536 + green * 256 + blue, dtype=np.int64)


def _unpacked(numbers: NDArray[np.int64]) -> Pixels:
    return np.stack([numbers >> 16, numbers >> 8 & 255, numbers & 255], axis=-1).astype(np.uint8)


class GifWriter:
    """Writes frames to a GIF89a stream one by one; each frame stores only the rectangle that changed."""

    def __init__(self, stream: IO[bytes], colors: Pixels, size: tuple[int, int], fps: float) -> None:
        self._stream = stream
        self._colors = colors
        self._size = size
        self._fps = fps
        self._last: Pixels | None = None
        self._count = 0
        stream.write(b"GIF89a" + struct.pack("<HHBBB", *size, 0xF7, 0, 0) + colors.tobytes())
        stream.write(b"!\xff\x0bNETSCAPE2.0\x03\x01" + struct.pack("<H", 0) + b"\0")

    def add(self, pixels: Pixels, hold: float = 0.0) -> None:
        """Append a frame, shown for 1/fps seconds (rounded so that the sum stays exact) and `hold` seconds more."""
        if (pixels.shape[1], pixels.shape[0]) != self._size:
            raise ValueError(f"a frame of {pixels.shape[1]} x {pixels.shape[0]} pixels among frames of {self._size}")
        indices = nearest(pixels, self._colors)
        top, bottom, left, right = _changed(self._last, indices)
        start, stop = round(self._count * 100 / self._fps), round((self._count + 1) * 100 / self._fps)
        part = Image.frombytes("P", (right - left, bottom - top), indices[top:bottom, left:right].tobytes())
        duration = 10 * max(stop - start, 1) + 1000 * hold
        for block in GifImagePlugin.getdata(part, (left, top), duration=duration, disposal=1):
            self._stream.write(block)
        self._last = indices
        self._count += 1

    def close(self) -> None:
        """Write the trailer; the stream stays open."""
        self._stream.write(b";")


def _changed(before: Pixels | None, after: Pixels) -> tuple[int, int, int, int]:
    """Return top, bottom, left, right of the rectangle in which two frames differ; one pixel when they do not."""
    if before is None:
        return 0, after.shape[0], 0, after.shape[1]
    rows = np.flatnonzero((before != after).any(axis=1))
    columns = np.flatnonzero((before != after).any(axis=0))
    if len(rows) == 0:
        return 0, 1, 0, 1
    return int(rows[0]), int(rows[-1]) + 1, int(columns[0]), int(columns[-1]) + 1


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

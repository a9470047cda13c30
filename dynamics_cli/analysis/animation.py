"""A run as a moving picture, as Boursier et al. 2022 released them: the network, and where it is on the loss curve."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.animation import AbstractMovieWriter, FFMpegWriter, FuncAnimation, PillowWriter
from matplotlib.artist import Artist

from dynamics_cli.analysis.curves import losses
from dynamics_cli.analysis.panels import PANELS
from dynamics_cli.analysis.view import PRINT, View, spread
from dynamics_cli.errors import RunError, UsageError
from dynamics_cli.measures.arrays import Floats, Ints
from dynamics_cli.plotting.chart import draw_chart
from dynamics_cli.plotting.layout import figure_legend, format_number
from dynamics_cli.plotting.scene import Scene, draw_scene
from dynamics_cli.plotting.style import (
    MARKER,
    PALETTE,
    TEXT_WIDTH,
    figure_path,
    new_figure,
    replacing,
    settle,
    styled,
)
from dynamics_cli.runs.run import Run

Progress = Callable[[int, int], object]
"""Receives the number of frames drawn, and of all frames."""

FPS = 12.5
"""Frames a second: a GIF counts hundredths of a second."""
DPI = 130.0
FRAMES = 100
"""Frames of an animation at most."""
FRAME_STATES = 60
"""States from which the axes that all frames share are taken."""


@styled
def animate_run(run: Run, stem: Path, progress: Progress | None = None) -> list[Path]:
    """Write `<stem>.gif`, and `<stem>.mp4` where ffmpeg exists: the network at up to 100 recorded states of `run`.

    Inputs of one dimension: the learned function, data and neurons; else the neurons as rays. Beside it is
    the loss with a marker that moves. Returns the files. Raises UsageError when nothing of the run can be animated, and
    RunError when a file cannot be written or ffmpeg fails (the GIF is written then).
    """
    view = View(run)
    if not view.states:
        raise UsageError("nothing of this run can be animated: no finite parameters are recorded")
    scene, aspect = _scene(view)
    last, with_loss = view.states - 1, len(run.losses) > 0
    figure, axes = new_figure(2 if with_loss else 1, width=TEXT_WIDTH, aspect=aspect, extra_height=0.25)
    title = figure.suptitle(_title(view, last), fontsize=9)
    moving = draw_scene(axes[0], scene, last)
    figure_legend(figure, moving.handles, columns=4)
    if with_loss:
        draw_chart(axes[1], replace(losses(view)[0], plateaus=()))
        places = _marker_places(view, axes[1].get_ylim())
        look: dict[str, Any] = {"marker": MARKER, "ms": 6.5, "mfc": PALETTE.highlight, "mec": PALETTE.theory}
        (marker,) = axes[1].plot(*places[last][:, None], mew=0.8, zorder=5, clip_on=False, **look)
    settle(figure)

    def show(i: int) -> list[Artist]:
        moving.move(i)
        title.set_text(_title(view, i))
        if with_loss:
            marker.set_data(*places[i][:, None])
        return []

    writers: dict[str, AbstractMovieWriter] = {"gif": PillowWriter(fps=FPS)}  # type: ignore[arg-type]
    if shutil.which("ffmpeg") is not None:
        writers["mp4"] = FFMpegWriter(fps=FPS)  # type: ignore[arg-type]
    told = None if progress is None else lambda k, of: progress(k + 1, of)
    paths = []
    for extension, writer in writers.items():
        path, film = (
            figure_path(stem, extension),
            FuncAnimation(figure, show, frames=view.curve_states(1, FRAMES).tolist(), init_func=list),
        )
        with replacing(path) as temporary, tempfile.TemporaryDirectory() as folder:
            written = Path(folder) / f"film.{extension}"  # both writers look at the ending
            try:
                film.save(written, writer, dpi=DPI, progress_callback=told)
            except subprocess.CalledProcessError as error:
                words = str(error.stderr or error.output or "no message").strip().splitlines()
                raise RunError(f"ffmpeg could not make {path} (exit status {error.returncode}): {words[-1]}") from error
            shutil.copyfile(written, temporary)
        paths.append(path)
    return paths


def _title(view: View, i: int) -> str:
    return f"iteration {format_number(int(view.iterations[i]))}"


def _scene(view: View) -> tuple[Scene, float]:
    """Return the moving picture of a run, on axes that contain `FRAME_STATES` of its states, and its aspect.

    Raises UsageError, with the reasons, for a run that has nothing of the kind.
    """
    states: Ints = spread(view.states, FRAME_STATES)
    reasons = []
    for name, aspect in (("function", 0.8), ("rays", 1.0)):
        if (why := PANELS[name].missing(view)) is None and (describe := PANELS[name].scene) is not None:
            return describe(view, [int(i) for i in states], PRINT), aspect
        reasons.append(f"{name}: {why}")
    raise UsageError(f"nothing of this run can be animated ({'; '.join(reasons)})")


def _marker_places(view: View, limits: tuple[float, float]) -> Floats:
    """Return iteration and loss (K, 2) of every state, a loss that is not finite or outside `limits` at their edge."""
    at, losses = np.asarray(view.run.loss_iterations), np.asarray(view.run.losses, dtype=np.float64)
    k = np.searchsorted(at, view.iterations).clip(max=len(at) - 1)
    heights = np.nan_to_num(losses[k], nan=limits[1], posinf=limits[1]).clip(*limits)
    return np.column_stack([view.iterations, heights]).astype(np.float64)

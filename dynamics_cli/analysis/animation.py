"""A run as a moving picture, as Boursier et al. 2022 released it: network and loss."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from io import BytesIO
from pathlib import Path
from typing import Any, cast

import numpy as np
from PIL import Image

from dynamics_cli.analysis.curves import losses
from dynamics_cli.analysis.panels import PANELS
from dynamics_cli.analysis.view import PRINT, View, spread
from dynamics_cli.errors import UsageError
from dynamics_cli.measures.arrays import Floats
from dynamics_cli.plotting.chart import draw_chart
from dynamics_cli.plotting.labels import figure_legend, format_number
from dynamics_cli.plotting.scene import Scene, draw_scene
from dynamics_cli.plotting.style import (
    MADE_BY,
    MARKER,
    PALETTE,
    TEXT_WIDTH,
    new_figure,
    settle,
    styled,
)
from dynamics_cli.runs.run import Run
from dynamics_cli.runs.store import manifest

Progress = Callable[[int, int], object]
"""Receives the number of frames drawn, and of all frames."""

MILLISECONDS = 80
DPI = 130.0
FRAMES = 100
"""Frames of an animation at most."""
FRAME_STATES = 60
"""States from which the axes that all frames share are taken."""


@styled
def animate_run(run: Run, file: Path, progress: Progress | None = None) -> Path:
    """Write a GIF of up to `FRAMES` recorded states of `run`, and return its path.

    Inputs of one dimension: the learned function, data and neurons; else the neurons as rays.
    Beside it is the loss with a marker that moves.

    Raises:
        UsageError: nothing of the run can be animated, or somebody else's file has this name.
        RunError: the file cannot be written.
    """
    manifest.refuse_foreign(file.parent, [file.name])
    view = View(run)
    if not view.states:
        raise UsageError("nothing of this run can be animated: no finite parameters are recorded")
    scene, aspect = _scene(view)
    last = view.states - 1
    with_loss = len(run.losses) > 0
    figure, axes = new_figure(1 + with_loss, width=TEXT_WIDTH, aspect=aspect, extra_height=0.25)
    figure.set_dpi(DPI)
    title = figure.suptitle(" ", fontsize=9)
    moving = draw_scene(axes[0], scene, last)
    figure_legend(figure, moving.handles, columns=4)
    if with_loss:
        draw_chart(axes[1], replace(losses(view)[0], plateaus=()))
        places = _marker_places(view, axes[1].get_ylim())
        look: dict[str, Any] = {
            "marker": MARKER,
            "ms": 6.5,
            "mfc": PALETTE.highlight,
            "mec": PALETTE.theory,
        }
        (marker,) = axes[1].plot(*places[last][:, None], mew=0.8, zorder=5, clip_on=False, **look)
    settle(figure)
    states = view.curve_states(1, FRAMES)

    def frames() -> Iterator[Image.Image]:
        canvas = cast(Any, figure.canvas)
        for k, i in enumerate(states):
            moving.move(i)
            title.set_text(f"iteration {format_number(int(view.iterations[i]))}")
            if with_loss:
                marker.set_data(*places[i][:, None])
            canvas.draw()
            yield Image.fromarray(np.asarray(canvas.buffer_rgba())).convert("RGB")
            if progress is not None:
                progress(k + 1, len(states))

    contents = BytesIO()
    first, *others = frames()
    first.save(
        contents,
        format="GIF",
        save_all=True,
        append_images=others,
        duration=MILLISECONDS,
        loop=0,
        comment=MADE_BY.encode(),
    )
    manifest.write_listed(file.parent, {file.name: contents.getvalue()})
    return file


def _scene(view: View) -> tuple[Scene, float]:
    """Return the moving picture of a run on axes of `FRAME_STATES` of its states, and its aspect.

    Raises UsageError, with the reasons, for a run that has nothing of the kind.
    """
    states = [int(i) for i in spread(view.states, FRAME_STATES)]
    reasons = []
    for name, aspect in (("function", 0.8), ("rays", 1.0)):
        panel = PANELS[name]
        why = panel.missing(view)
        if why is None:
            assert panel.scene is not None
            return panel.scene(view, states, PRINT), aspect
        reasons.append(f"{name}: {why}")
    raise UsageError(f"nothing of this run can be animated ({'; '.join(reasons)})")


def _marker_places(view: View, limits: tuple[float, float]) -> Floats:
    """Return iteration and loss (K, 2) of every state, losses outside `limits` at their edge."""
    at = np.asarray(view.run.loss_iterations)
    losses = np.asarray(view.run.losses, dtype=np.float64)
    k = np.searchsorted(at, view.iterations).clip(max=len(at) - 1)
    heights = np.nan_to_num(losses[k], nan=limits[1], posinf=limits[1]).clip(*limits)
    return np.column_stack([view.iterations, heights]).astype(np.float64)

"""A run as a moving picture, as Boursier et al. 2022 released them: the network, and where it is on the loss curve."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.transforms import IdentityTransform

from dynamics_cli.analysis.frames import choose_frames
from dynamics_cli.analysis.panels.loss import draw_run_loss
from dynamics_cli.analysis.scenes import Scene, scene_of
from dynamics_cli.analysis.view import View, spread
from dynamics_cli.errors import UsageError
from dynamics_cli.measures.arrays import Floats
from dynamics_cli.plotting.animation import animate, render
from dynamics_cli.plotting.layout import figure_legend, format_number
from dynamics_cli.plotting.style import PALETTE, TEXT_WIDTH, new_figure, settle, styled
from dynamics_cli.runs import Run

FPS = 12.0
DPI = 130.0
FRAME_STATES = 60
"""States from which the axes that all frames share are taken."""


def animate_run(run: Run, stem: Path) -> list[Path]:
    """Write `<stem>.gif`, and `<stem>.mp4` where ffmpeg exists: the network at about 100 recorded states of `run`.

    Inputs of one dimension: the learned function, data and neurons; a GAN in the plane: data and samples; else the
    neurons in polar coordinates. Beside it is the loss with a marker that moves. Returns the files. Raises UsageError
    when nothing of the run can be animated, and RunError when a file cannot be written.
    """
    view = View(run)
    if not view.states:
        raise UsageError("nothing of this run can be animated: no finite parameters are recorded")
    scene = scene_of(view, [int(i) for i in spread(view.states, FRAME_STATES)])
    stage = Stage(view, scene)
    frames = choose_frames(view.iterations[: view.states], lambda i: [*scene.seen(i), *stage.marker(i)])
    return animate(stage.draw, frames, stem, FPS, dpi=DPI)


class Stage:
    """Frames of an animation. What does not move - the loss, the legend - is drawn once and put behind every frame."""

    def __init__(self, view: View, scene: Scene) -> None:
        """Draw what stays, and work out where everything goes."""
        self._view, self._scene = view, scene
        self._draw_template()

    @styled
    def _draw_template(self) -> None:
        view, last = self._view, self._view.states - 1
        with_loss = len(view.run.losses) > 0
        figure, axes = new_figure(2 if with_loss else 1, width=TEXT_WIDTH, aspect=self._scene.aspect, extra_height=0.25)
        figure.set_dpi(DPI)
        title = figure.suptitle(self._title(last), fontsize=9)
        if with_loss:
            draw_run_loss(axes[1], view, plateaus=False)
        handles = self._scene.draw(axes[0], last)
        figure_legend(figure, handles, columns=4)
        self._box, *_ = settle(figure)
        self._size = tuple(figure.get_size_inches())
        self._title_at = title.get_position()
        self._markers = _marker_places(axes[1], view) if with_loss else None
        for moving in figure.axes:
            moving.set_visible(with_loss and moving is axes[1])
        title.set_visible(False)
        self._behind = render(figure, DPI)

    def _title(self, i: int) -> str:
        return f"iteration {format_number(int(self._view.iterations[i]))}"

    def marker(self, i: int) -> list[Floats]:
        """Return where the marker of state `i` is, in shares of the figure; an empty list without a loss."""
        return [] if self._markers is None else [self._markers[i] / (DPI * np.array(self._size))]

    @styled
    def draw(self, i: int) -> Figure:
        """Draw state `i` in front of what stays, with its iteration as title and a marker on the loss."""
        figure = Figure(figsize=self._size, dpi=DPI)
        FigureCanvasAgg(figure)
        figure.figimage(self._behind, zorder=-1)
        axes = figure.add_axes(self._box.bounds)
        axes.patch.set_visible(False)
        self._scene.draw(axes, i)
        figure.text(*self._title_at, self._title(i), fontsize=9, ha="center", va="top")
        if self._markers is not None:
            dot: dict[str, Any] = {
                "marker": "o",
                "ms": 6.5,
                "mfc": PALETTE.highlight,
                "mec": PALETTE.theory,
                "mew": 0.8,
            }
            x, y = self._markers[i]
            figure.add_artist(Line2D([x], [y], transform=IdentityTransform(), zorder=5, **dot))
        return figure


def _marker_places(axes: Axes, view: View) -> Floats:
    """Return in pixels the place (K, 2) of every state on the loss curve; not finite or 0: at the panel's edge."""
    at, losses = np.asarray(view.run.loss_iterations), np.asarray(view.run.losses, dtype=np.float64)
    k = np.searchsorted(at, view.iterations).clip(max=len(at) - 1)
    low, high = axes.get_ylim()
    heights = np.nan_to_num(losses[k], nan=high, posinf=high).clip(low, high)
    return np.asarray(axes.transData.transform(np.column_stack([view.iterations, heights])), dtype=np.float64)

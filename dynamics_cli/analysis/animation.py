"""A run as a moving picture, as Boursier et al. 2022 released them: the network, and where it is on the loss curve."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.transforms import IdentityTransform

from dynamics_cli.analysis.panels.inputs import function_scene, samples_scene
from dynamics_cli.analysis.panels.neurons import stars_scene
from dynamics_cli.analysis.panels.training import draw_run_loss
from dynamics_cli.analysis.registry import PANELS, PRINT
from dynamics_cli.analysis.view import View, spread
from dynamics_cli.errors import UsageError
from dynamics_cli.measures.arrays import Floats
from dynamics_cli.plotting.animation import Film, Pixels, Progress, animate
from dynamics_cli.plotting.layout import figure_legend, format_number
from dynamics_cli.plotting.scene import DrawnScene, Numbers, Scene, SceneLayer, draw_scene
from dynamics_cli.plotting.style import MARKER, PALETTE, TEXT_WIDTH, new_figure, styled
from dynamics_cli.runs import Run

FPS = 12.5
"""Frames a second: a GIF counts hundredths of a second."""
DPI = 130.0
FRAMES = 100
"""Frames of an animation."""
FRAME_STATES = 60
"""States from which the axes that all frames share are taken."""
COARSE = PRINT._replace(points=64)
"""Detail at which motion is followed when frames are chosen."""
CANDIDATES = 1000
"""States that are looked at when frames are chosen, evenly spread, and as many in geometric progression."""

Seen = Callable[[int], Sequence[Floats]]
"""Index of a state -> groups of positions, in shares of the picture: of curves, of neurons, of the marker."""


@styled
def animate_run(run: Run, stem: Path, progress: Progress | None = None) -> list[Path]:
    """Write `<stem>.gif`, and `<stem>.mp4` where ffmpeg exists: the network at about 100 recorded states of `run`.

    Inputs of one dimension: the learned function, data and neurons; a GAN in the plane: data and samples; else the
    neurons in polar coordinates. Beside it is the loss with a marker that moves. `progress` is told how many frames are
    drawn, and of how many. Returns the files. Raises UsageError when nothing of the run can be animated, and RunError
    when a file cannot be written.
    """
    view = View(run)
    if not view.states:
        raise UsageError("nothing of this run can be animated: no finite parameters are recorded")
    stage = Stage(view, shot_of(view))
    return animate(stage.shoot, choose_frames(view.states, stage.seen), stem, FPS, progress)


class Stage:
    """The figure of an animation: a moving panel, its iteration as title, and beside it a marker on the loss."""

    @styled
    def __init__(self, view: View, shot: Shot) -> None:
        """Draw the last state and the artists that stay."""
        self._view, self._shot = view, shot
        last, with_loss = view.states - 1, len(view.run.losses) > 0
        figure, axes = new_figure(2 if with_loss else 1, width=TEXT_WIDTH, aspect=shot.aspect, extra_height=0.25)
        self._title = figure.suptitle(self._name(last), fontsize=9)
        self._moving = shot.draw(axes[0])
        figure_legend(figure, self._moving.handles, columns=4)
        self._marker = Line2D([], [], transform=IdentityTransform(), marker=MARKER, ms=6.5, mfc=PALETTE.highlight)
        self._marker.set(mec=PALETTE.theory, mew=0.8, zorder=5)
        if with_loss:
            draw_run_loss(axes[1], view, plateaus=False)
            figure.add_artist(self._marker)
        self._film = Film(figure, [*self._moving.artists, self._title, *([self._marker] if with_loss else [])], DPI)
        self._places = _marker_places(axes[1], view) if with_loss else None
        self._size = DPI * figure.get_size_inches()

    def _name(self, i: int) -> str:
        return f"iteration {format_number(int(self._view.iterations[i]))}"

    def seen(self, i: int) -> list[Floats]:
        """Return the positions of the moving artists in state `i`, in shares of the picture; the marker is the last."""
        return [*self._shot.seen(i), *([] if self._places is None else [self._places[i] / self._size])]

    @styled
    def shoot(self, i: int) -> Pixels:
        """Return the picture (height, width, 3) of state `i`."""
        self._moving.move(i)
        self._title.set_text(self._name(i))
        if self._places is not None:
            self._marker.set_data(*self._places[i][:, None])
        return self._film.shot()


def _marker_places(axes: Axes, view: View) -> Floats:
    """Return in pixels the place (K, 2) of every state on the loss curve; not finite or 0: at the panel's edge."""
    at, losses = np.asarray(view.run.loss_iterations), np.asarray(view.run.losses, dtype=np.float64)
    k = np.searchsorted(at, view.iterations).clip(max=len(at) - 1)
    low, high = axes.get_ylim()
    heights = np.nan_to_num(losses[k], nan=high, posinf=high).clip(low, high)
    return np.asarray(axes.transData.transform(np.column_stack([view.iterations, heights])), dtype=np.float64)


# What moves ---------------------------------------------------------------------------------------------------------


class Shot(NamedTuple):
    """A panel whose axes stay while the state changes."""

    draw: Callable[[Axes], DrawnScene]
    seen: Seen
    aspect: float
    """Height of the panel divided by its width, about."""


def shot_of(view: View) -> Shot:
    """Return the moving picture of a run, on axes that contain `FRAME_STATES` of its states.

    Raises UsageError, with the reasons, for a run that has nothing of the kind.
    """
    states = [int(i) for i in spread(view.states, FRAME_STATES)]
    reasons = {name: PANELS[name].missing(view) for name in ("function", "polar", "samples")}
    if reasons["function"] is None:
        return _of_scene(function_scene(view, states, PRINT), function_scene(view, states, COARSE), view, 0.8)
    if reasons["polar"] is None:
        scene = stars_scene(view, states, PRINT)
        return _of_scene(scene, scene, view, 1.0)
    if reasons.pop("samples") is None:
        scene = samples_scene(view, states, PRINT)
        return _of_scene(scene, scene, view, 1.0)
    why = "; ".join(f"{name}: {reason}" for name, reason in reasons.items())
    raise UsageError(f"nothing of this run can be animated ({why})")


def _of_scene(scene: Scene, coarse: Scene, view: View, aspect: float) -> Shot:
    """Return the moving picture of a scene; a `coarse` one is looked at to choose the frames."""
    moving = [layer for layer in coarse.layers if layer.moves]
    return Shot(
        lambda axes: draw_scene(axes, scene, view.states - 1),
        lambda i: [_positions(coarse, layer, layer.at(i)) for layer in moving],
        aspect,
    )


def _positions(scene: Scene, layer: SceneLayer, rows: Numbers) -> Floats:
    """Return where a curve, at equal places, and where points stand, in shares of the window."""
    left, right, low, high = (*scene.window[:2], *(scene.right if layer.right and scene.right else scene.window[2:]))
    x, y = (rows[:, 0] - left) / (right - left), (rows[:, 1] - low) / (high - low)
    return np.interp(np.linspace(0, 1, COARSE.points), x, y) if layer.form == "line" else np.column_stack([x, y])


# Which states become frames: many where much moves, few where nothing does ------------------------------------------


def choose_frames(states: int, seen: Seen, count: int = FRAMES) -> list[int]:
    """Return `count` (>= 4) of so many states, first and last included: half at equal change, the others spread evenly.

    The change between two states is the sum over the groups of positions of their root mean square changes.
    """
    if states <= count:
        return list(range(states))
    candidates = np.union1d(spread(states, CANDIDATES), np.geomspace(1, states, CANDIDATES).astype(np.int64) - 1)
    changes = [sum(map(_change, before, after)) for before, after in pairwise(seen(int(i)) for i in candidates)]
    walked = np.concatenate([[0.0], np.cumsum(changes)])
    reached = np.searchsorted(walked, np.linspace(0, walked[-1], count // 2)).clip(max=len(walked) - 1)
    moving = np.unique(candidates[reached])
    others = np.setdiff1d(np.arange(states), moving)
    return np.union1d(moving, others[spread(len(others), count - len(moving))]).tolist()  # type: ignore[no-any-return]


def _change(before: Floats, after: Floats) -> float:
    """Return the root mean square change of a group; a position moves by 1 at most, and by 0 if not finite."""
    with np.errstate(invalid="ignore"):
        moved = np.abs(after - before)
    moved = np.where(np.isfinite(moved), moved, 0.0).clip(max=1.0)
    return float(np.sqrt(np.mean(moved**2))) if moved.size else 0.0

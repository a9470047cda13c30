"""A run as a moving picture, as Boursier et al. 2022 released them: the network, and where it is on the loss curve."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.transforms import IdentityTransform

from dynamics_cli.analysis.panels import inputs
from dynamics_cli.analysis.panels.neurons import common_limit, draw_plane, plane_of, sign_handles
from dynamics_cli.analysis.panels.training import draw_run_loss
from dynamics_cli.analysis.registry import PANELS
from dynamics_cli.analysis.view import View, spread
from dynamics_cli.errors import UsageError
from dynamics_cli.measures.arrays import Floats
from dynamics_cli.plotting.animation import Film, Pixels, Progress, animate
from dynamics_cli.plotting.layout import figure_legend, format_number
from dynamics_cli.plotting.panels.inputs import data_window, draw_samples
from dynamics_cli.plotting.style import PALETTE, TEXT_WIDTH, new_figure, styled
from dynamics_cli.runs import Run

FPS = 12.5
"""Frames a second: a GIF counts hundredths of a second."""
DPI = 130.0
FRAMES = 100
"""Frames of an animation."""
FRAME_STATES = 60
"""States from which the axes that all frames share are taken."""
GRID = 64
"""Points of a function whose motion is followed when frames are chosen."""
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
    stage = Stage(view, scene_of(view))
    return animate(stage.shoot, choose_frames(view.states, stage.seen), stem, FPS, progress)


class Stage:
    """The figure of an animation: a scene, its iteration as title, and beside it a marker on the loss."""

    @styled
    def __init__(self, view: View, scene: Scene) -> None:
        """Draw the last state and what stays."""
        self._view, self._scene = view, scene
        last, with_loss = view.states - 1, len(view.run.losses) > 0
        figure, axes = new_figure(2 if with_loss else 1, width=TEXT_WIDTH, aspect=scene.aspect, extra_height=0.25)
        self._title = figure.suptitle(self._name(last), fontsize=9)
        self._motion = scene.draw(axes[0], last)
        figure_legend(figure, self._motion.handles, columns=4)
        self._marker = Line2D([], [], transform=IdentityTransform(), marker="o", ms=6.5, mfc=PALETTE.highlight)
        self._marker.set(mec=PALETTE.theory, mew=0.8, zorder=5)
        if with_loss:
            draw_run_loss(axes[1], view, plateaus=False)
            figure.add_artist(self._marker)
        self._film = Film(figure, [*self._motion.artists, self._title, *([self._marker] if with_loss else [])], DPI)
        self._places = _marker_places(axes[1], view) if with_loss else None
        self._size = DPI * figure.get_size_inches()

    def _name(self, i: int) -> str:
        return f"iteration {format_number(int(self._view.iterations[i]))}"

    def seen(self, i: int) -> list[Floats]:
        """Return the positions of what moves in state `i`, in shares of the picture; the marker is the last."""
        return [*self._scene.seen(i), *([] if self._places is None else [self._places[i] / self._size])]

    @styled
    def shoot(self, i: int) -> Pixels:
        """Return the picture (height, width, 3) of state `i`."""
        self._motion.move(i)
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


class Motion(NamedTuple):
    """A panel that has been drawn, and how it shows another state."""

    artists: Sequence[Artist]
    """What moves, from back to front."""
    handles: Sequence[Artist]
    """For a legend."""
    move: Callable[[int], None]
    """Shows a state, by its index."""


class Scene(NamedTuple):
    """A panel whose axes stay while the state changes."""

    draw: Callable[[Axes, int], Motion]
    """Draws a state, by its index."""
    seen: Seen
    aspect: float
    """Height of the panel divided by its width, about."""


def scene_of(view: View) -> Scene:
    """Return what moves in a run, on axes that contain `FRAME_STATES` of its states.

    Raises UsageError, with the reasons, for a run that has nothing of the kind.
    """
    states = [int(i) for i in spread(view.states, FRAME_STATES)]
    reasons = {name: PANELS[name].missing(view) for name in ("function", "polar", "samples")}
    if reasons["function"] is None:
        return _outputs(view, states) if view.outputs > 1 else _function(view, states)
    if reasons["polar"] is None:
        return _polar(view, states)
    if reasons.pop("samples") is None:
        return _samples(view)
    why = "; ".join(f"{name}: {reason}" for name, reason in reasons.items())
    raise UsageError(f"nothing of this run can be animated ({why})")


def _function(view: View, states: Sequence[int]) -> Scene:
    frame = inputs.common_frame(view, states)
    low, high = frame.window
    grid, heights = np.linspace(low, high, GRID), [top - bottom for bottom, top in (frame.limits, frame.neuron_limits)]

    def draw(axes: Axes, i: int) -> Motion:
        panel, layers, handles = inputs.draw_state(axes, view, i, frame)
        layers.append(axes.xaxis.label)  # it counts the neurons outside
        return Motion(layers, handles, lambda i: panel.move(view.line_function(i), *inputs.neurons(view, i)))

    def seen(i: int) -> list[Floats]:
        places, outputs = inputs.neurons(view, i)
        kinks = np.where((places > low) & (places < high), places, np.nan) / (high - low)
        return [view.line_function(i)(grid) / heights[0], np.concatenate([kinks, outputs / heights[1]])]

    return Scene(draw, seen, 0.8)


def _outputs(view: View, states: Sequence[int]) -> Scene:
    limits = inputs.output_limits(view, states)

    def draw(axes: Axes, i: int) -> Motion:
        lines = inputs.draw_outputs(axes, view, i, limits)

        def move(i: int) -> None:
            for line, values in zip(lines, inputs.outputs_on_line(view, i)[1].T, strict=True):
                line.set_ydata(values)

        return Motion(lines, lines, move)

    return Scene(draw, lambda i: [inputs.outputs_on_line(view, i, GRID)[1]], 0.8)


def _polar(view: View, states: Sequence[int]) -> Scene:
    plane, names = plane_of(view)
    limit = common_limit([plane(i) for i in states])
    handles = sign_handles(np.concatenate([view.signs(i) for i in states]))

    def draw(axes: Axes, i: int) -> Motion:
        panel = draw_plane(axes, plane(i), view.signs(i), limit, names)
        return Motion([panel.stars], handles, lambda i: panel.move(plane(i), view.signs(i)))

    def seen(i: int) -> list[Floats]:
        w = plane(i)
        norm = np.hypot(*w.T)[:, None]
        directed = np.divide(w, norm, out=np.zeros_like(w), where=norm > 0)
        return [directed * (0.15 + 0.35 * norm / limit)]

    return Scene(draw, seen, 1.0)


def _samples(view: View) -> Scene:
    data, samples = inputs.some_data(view), inputs.sampler(view)
    window = data_window(data)

    def draw(axes: Axes, i: int) -> Motion:
        panel = draw_samples(axes, data, samples(i), window)
        return Motion([panel.samples], panel.handles, lambda i: panel.samples.set_data(*samples(i).T))

    return Scene(draw, lambda i: [samples(i) / (window[1] - window[0])], 1.0)


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

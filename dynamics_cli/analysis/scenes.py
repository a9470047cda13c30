"""What moves in an animation: the learned function with its neurons, samples, or the neurons in the plane."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes

from dynamics_cli.analysis.frames import Seen
from dynamics_cli.analysis.panels.classes import draw_classes, softmax
from dynamics_cli.analysis.panels.function import common_frame, draw_state, function_missing, neurons
from dynamics_cli.analysis.panels.polar import common_limit, draw_plane, plane_of, polar_missing, sign_handles
from dynamics_cli.analysis.panels.samples import sampler, samples_missing, some_data
from dynamics_cli.analysis.view import View
from dynamics_cli.errors import UsageError
from dynamics_cli.measures.arrays import Floats
from dynamics_cli.plotting.panels.decision_regions import data_window
from dynamics_cli.plotting.panels.function_1d import default_window
from dynamics_cli.plotting.panels.samples import draw_samples

GRID = 64


class Scene(NamedTuple):
    """A panel whose axes stay while the state changes."""

    draw: Callable[[Axes, int], list[Artist]]
    """Draws a state, by its index, and returns the handles of a legend."""
    seen: Seen
    """Gives what is seen of a state, in shares of the panel."""
    aspect: float
    """Height of the panel divided by its width, about."""


def scene_of(view: View, states: Sequence[int]) -> Scene:
    """Return what moves in a run, on axes that contain all `states`.

    Raises UsageError, with the reasons, for a run that has nothing of the kind.
    """
    reasons = {"function": function_missing(view), "polar": polar_missing(view)}
    if reasons["function"] is None:
        return _classes(view) if view.outputs > 1 else _function(view, states)
    if reasons["polar"] is None:
        return _polar(view, states)
    if samples_missing(view) is None:
        return _samples(view)
    why = "; ".join(f"{name}: {reason}" for name, reason in reasons.items())
    raise UsageError(f"nothing of this run can be animated ({why})")


def _function(view: View, states: Sequence[int]) -> Scene:
    frame = common_frame(view, states)
    grid, width = np.linspace(*frame.window, GRID), frame.window[1] - frame.window[0]
    heights = [limits[1] - limits[0] for limits in (frame.limits, frame.neuron_limits)]

    def seen(i: int) -> list[Floats]:
        places, outputs = neurons(view, i)
        inside = (places > frame.window[0]) & (places < frame.window[1])
        kinks, stars = np.where(inside, places, np.nan) / width, outputs / heights[1]
        return [view.line_function(i)(grid) / heights[0], np.concatenate([kinks, stars])]

    return Scene(lambda axes, i: draw_state(axes, view, i, frame), seen, 0.8)


def _classes(view: View) -> Scene:
    grid = np.linspace(*default_window(view.dataset.x[:, 0]), GRID)

    def seen(i: int) -> list[Floats]:
        return [softmax(view.line_function(i)(grid))]

    return Scene(lambda axes, i: draw_classes(axes, view, i), seen, 0.8)


def _samples(view: View) -> Scene:
    data, samples = some_data(view), sampler(view)
    window = data_window(data)

    def seen(i: int) -> list[Floats]:
        return [samples(i) / (window[1] - window[0])]

    return Scene(lambda axes, i: [*draw_samples(axes, data, samples(i), window).handles], seen, 1.0)


def _polar(view: View, states: Sequence[int]) -> Scene:
    plane, names = plane_of(view)
    limit = common_limit([plane(i) for i in states])
    handles = sign_handles(np.concatenate([view.signs(i) for i in states]))

    def draw(axes: Axes, i: int) -> list[Artist]:
        draw_plane(axes, plane(i), view.signs(i), limit, names)
        return handles

    def seen(i: int) -> list[Floats]:
        w = plane(i)
        norm = np.hypot(*w.T)
        directed = np.divide(w, norm[:, None], out=np.zeros_like(w), where=norm[:, None] > 0)
        return [directed * (0.15 + 0.35 * norm[:, None] / limit)]

    return Scene(draw, seen, 1.0)

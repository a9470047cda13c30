"""Pictures of a state as data: layers of numbers with roles, drawn here and in browsers.

A `Scene` names colours by their roles in the palette and gives sizes in points. It holds functions
of a state's index, so that a figure computes four states, an animation a hundred, and a page all
that its slider goes through.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np
from contourpy import contour_generator
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.colors import to_rgb
from matplotlib.image import AxesImage
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from numpy.typing import NDArray

from dynamics_cli.plotting.labels import note, set_axis_label
from dynamics_cli.plotting.style import MARKER, PALETTE, Floats, styled

Numbers = NDArray[Any]
"""float64, or uint8 of pixels."""
Limits = tuple[float, float]
Window = tuple[float, float, float, float]
"""x from, x to, y from, y to."""

ZERO = 128
"""The level of a field where it is exactly 0; 255 is the largest absolute value, 1 its negative."""
RIM = 2.0
"""Markers larger than this in points, unless pale, have a rim in the colour of the ground."""
HANDLE = 4.5
"""Size of a marker in a legend at least, in points."""
RASTERED = 1000
"""More markers or segments of one layer are pixels in a vector graphic."""
DASHES: dict[str, Any] = {"": "-", "dashed": (0, (4, 1.5)), "dotted": (0, (1, 1.2))}


class Role(NamedTuple):
    """A colour by its role in the palette, its name in the legend (mathtext), and a marker."""

    color: str
    name: str = ""
    marker: str = MARKER


@dataclass(frozen=True, kw_only=True)
class SceneLayer:
    """Numbers of a state that are drawn in one way."""

    form: Literal["line", "points", "segments", "field", "classes"]
    roles: Sequence[Role]
    """The look of the rows; of several roles the last column of a row has the number of its own."""
    name: str = ""
    """The name of all rows together in the legend, in place of the names of the roles."""
    at: Callable[[int], Numbers]
    """Index of a state -> rows: x, y of a line or of points; x, y, x, y of segments; or pixels
    (rows, columns), uint8, from the bottom up: levels about `ZERO` of a field between the first
    role and the second, or numbers of roles.
    """
    moves: bool = True
    """Whether states differ."""
    z: float = 0.0
    """Larger lies on top; layers stand in the order of the legend."""
    right: bool = False
    """Whether y belongs to the axis on the right."""
    rim: bool = False
    """Whether x and y are shares of the half-width of a window about 0."""
    size: float = 1.6
    """Diameter of markers, or width of lines, in points."""
    hollow: bool = False
    alpha: float = 1.0
    dash: str = ""
    """A key of `DASHES`."""
    shade: tuple[float, float] = (1.0, 0.0)
    """Strength of colours of pixels: its least, and how much the largest absolute value adds."""

    def seen(self, rows: NDArray[Any]) -> list[bool]:
        """Return which of the roles the rows of a state have."""
        if self.form == "field":
            numbers = np.select([rows > ZERO, rows < ZERO], [0, 1], 2)
            return [k in numbers for k in range(3)]
        if self.form != "classes":
            if len(self.roles) == 1:
                return [len(rows) > 0]
            rows = rows[:, -1]
        return [bool((rows == k).any()) for k in range(len(self.roles))]

    def legend(self, seen: Sequence[bool]) -> list[Role]:
        """Return the entries of a legend, of roles that are `seen`."""
        if self.name:
            return [Role("theory", self.name, self.roles[0].marker)] * any(seen)
        return [
            role for role, present in zip(self.roles, seen, strict=False) if present and role.name
        ]


@dataclass(frozen=True, kw_only=True)
class Scene:
    """A picture of any state of a run on axes that stay."""

    title: str
    alternative: str
    """A sentence that stands for the picture where it cannot be seen."""
    layers: Sequence[SceneLayer]
    window: Window
    xlabel: str = "$x_1$"
    ylabel: str = "$x_2$"
    window_of: Callable[[int], Window] | None = None
    """The window that suits a single state."""
    right: Limits | None = None
    """Limits of an axis on the right."""
    right_label: str = ""
    square: bool = True
    """Whether both axes have the same scale."""
    zero: str = ""
    """The axes, of x and y, on which a pale line marks 0."""
    remark: Callable[[int], str] = lambda _: ""
    """A few words on a state, such as how much of it lies outside of the window."""


def fixed(rows: Numbers) -> Callable[[int], Numbers]:
    """Return the function that gives every state the same rows."""
    return lambda _: rows


def level_set(values: Floats, window: Window, level: float = 0.0) -> Floats:
    """Return segments (k, 4) on which the interpolation of `values` (rows, columns) has a level.

    The rows go through the window from the bottom up.
    """
    x = np.linspace(*window[:2], values.shape[1])
    y = np.linspace(*window[2:], values.shape[0])
    lines: Any = contour_generator(x=x, y=y, z=np.ma.masked_invalid(values)).lines(level)
    return np.concatenate(
        [np.zeros((0, 4)), *(np.column_stack([line[:-1], line[1:]]) for line in lines)]
    )


def levels(values: Floats) -> NDArray[np.uint8]:
    """Return the levels of a field, 1 to 255, of the exact sign; 0 stands for non-finite values."""
    finite = np.nan_to_num(values, nan=0.0, posinf=0.0, neginf=0.0)
    share = 127 * finite / (np.abs(finite).max(initial=0.0) or 1.0)
    return (ZERO + np.sign(finite) * np.ceil(np.abs(share))).astype(np.uint8)


def tint(color: Any, strength: float = 0.3) -> tuple[float, float, float]:
    """Return a colour mixed with white."""
    r, g, b = (1 - strength + strength * channel for channel in to_rgb(color))
    return r, g, b


class DrawnScene:
    """The artists of a scene; `move` shows another state."""

    def __init__(self, axes: Axes, scene: Scene, right: Axes | None, window: Window) -> None:
        """Add the artists of all layers, without a state, on the axes of a window."""
        self.axes = axes
        self.scene = scene
        self.right = right
        self.window = window
        axes.set(xlim=window[:2], ylim=window[2:])
        set_axis_label(axes.xaxis, scene.xlabel, window[:2])
        set_axis_label(axes.yaxis, scene.ylabel, window[2:])
        self._xlabel = axes.get_xlabel()
        self._drawn = [
            (layer, self._add(layer)) for layer in sorted(scene.layers, key=lambda layer: layer.z)
        ]
        self.handles: list[Artist] = []
        """For a legend, of the first state that is shown."""

    def _add(self, layer: SceneLayer) -> list[Artist]:
        top = self.right or self.axes
        z = 2 + layer.z / 10
        look: dict[str, Any] = {"zorder": z}
        if layer.alpha != 1:
            look["alpha"] = layer.alpha
        if self.right is not None and not layer.right:
            look["transform"] = self.axes.transData
        if layer.form in ("field", "classes"):
            extent = self.scene.window
            image = AxesImage(
                self.axes, extent=extent, origin="lower", interpolation="nearest", zorder=z - 2
            )
            image.set_data(np.ones((1, 1, 3)))
            image.set_clip_path(self.axes.patch)
            return [self.axes.add_image(image)]
        if layer.form == "segments":
            colors = [PALETTE.color(role.color) for role in layer.roles]
            lines = [
                LineCollection([], colors=c, linewidths=layer.size, capstyle="round", **look)
                for c in colors
            ]
            for collection in lines:
                top.add_collection(collection, autolim=False)
            return [*lines]
        return [top.plot([], [], **_look(layer, role), **look)[0] for role in layer.roles]

    @styled
    def move(self, i: int) -> None:
        """Show state `i`."""
        handles: dict[int, list[Artist]] = {}
        half = self.window[1]
        for layer, artists in self._drawn:
            rows = layer.at(i)
            if layer.form in ("field", "classes"):
                _paint(artists[0], layer, rows)
            elif layer.rim:
                _put(artists, layer, rows * [half, half, 1][: rows.shape[1]])
            else:
                _put(artists, layer, rows)
            handles[id(layer)] = [_handle(layer, role) for role in layer.legend(layer.seen(rows))]
        self.handles = [handle for layer in self.scene.layers for handle in handles[id(layer)]]
        self.axes.set_xlabel(self._xlabel)
        if words := self.scene.remark(i):
            note(self.axes, words)


def _look(layer: SceneLayer, role: Role) -> dict[str, Any]:
    """Return the look of a line or of the markers of a role."""
    color = PALETTE.color(role.color)
    if layer.form != "points":
        return {"color": color, "lw": layer.size, "ls": DASHES[layer.dash]}
    rim = {"mfc": color, "mec": "white", "mew": 0.4}
    if layer.hollow:
        rim = {"mfc": "white", "mec": color, "mew": 0.9}
    elif layer.size <= RIM or layer.alpha < 1:
        rim["mew"] = 0.0
    return {"ls": "none", "marker": role.marker, "ms": layer.size, **rim}


def _handle(layer: SceneLayer, role: Role) -> Artist:
    """Return the handle of a role in a legend, which is never pale nor tiny."""
    if layer.form in ("field", "classes"):
        edge = PALETTE.unsigned if role.color == "ground" else "none"
        fill = tint(PALETTE.color(role.color), sum(layer.shade) / 2 + 0.1)
        return Patch(facecolor=fill, edgecolor=edge, lw=0.5, label=role.name)
    look = _look(layer, role)
    if layer.form == "points":
        look["ms"] = max(layer.size, HANDLE)
    return Line2D([], [], label=role.name, **look)


def _put(artists: Sequence[Any], layer: SceneLayer, rows: NDArray[Any]) -> None:
    """Give the rows of a state to the artists of their roles."""
    for k, artist in enumerate(artists):
        mine = rows if len(artists) == 1 else rows[rows[:, -1] == k]
        if layer.form == "segments":
            artist.set_segments(mine[:, :4].reshape(-1, 2, 2))
        else:
            artist.set_data(mine[:, 0], np.where(np.isfinite(mine[:, 1]), mine[:, 1], np.nan))
        artist.set_rasterized(layer.form != "line" and len(mine) > RASTERED)


def _paint(image: Any, layer: SceneLayer, pixels: NDArray[Any]) -> None:
    """Colour the pixels of a state."""
    weak, more = layer.shade
    colors = [PALETTE.color(role.color) for role in layer.roles]
    if layer.form == "classes":
        image.set_data(np.array([tint(color, weak) for color in colors])[pixels])
    else:
        shades = []
        for level in range(256):
            share = abs(level - ZERO) / (ZERO - 1)
            shades.append(tint(colors[level < ZERO], weak + more * share))
        shades[ZERO] = tint(colors[0], 0.0)
        image.set_data(np.array(shades)[pixels])


@styled
def draw_scene(axes: Axes, scene: Scene, i: int, *, fitted: bool = False) -> DrawnScene:
    """Draw state `i` of a scene, where asked for on the window that suits this state."""
    for name, line in (("y", axes.axhline), ("x", axes.axvline)):
        if name in scene.zero:
            line(0, color=PALETTE.faint, lw=0.7, zorder=0)
    right = None
    if scene.right is not None:
        right = axes.twinx()
        right.set_ylim(*scene.right)
        set_axis_label(right.yaxis, scene.right_label, scene.right)
        right.spines["right"].set_visible(True)
        right.spines["right"].set_color(PALETTE.neurons)
        right.tick_params(axis="y", colors=PALETTE.neurons)
        right.yaxis.label.set_color(PALETTE.neurons)
    if scene.square:
        axes.set_aspect("equal")
    window = scene.window
    if fitted and scene.window_of is not None:
        window = scene.window_of(i)
    drawn = DrawnScene(axes, scene, right, window)
    drawn.move(i)
    return drawn

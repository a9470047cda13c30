"""What several figures draw: curves against epochs, decision regions with data, and neurons."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from matplotlib.lines import Line2D

from dynamics_cli import kit
from dynamics_cli.measures.linear_pieces import LevelSets, level_sets, two_layer_pieces
from dynamics_cli.plotting.panels.inputs import Window, data_window, draw_regions
from dynamics_cli.plotting.panels.neurons import draw_rays
from dynamics_cli.plotting.time_axis import visible

from .groups import Groups

DASHED = (0, (3, 1.5))
"""Line style of held-out data, and of neurons u."""
RATIO = r"ratio $2r/\|\bar w-\bar u\|$"


class Curve(NamedTuple):
    """One curve of a panel."""

    epochs: kit.Floats
    values: kit.Floats
    label: str
    color: str = kit.SERIES[0]
    style: Any = "-"


@kit.styled
def draw_over_epochs(
    axes: Sequence[kit.Axes], panel: int, title: str, curves: Sequence[Curve], ylabel: str, *, log: bool = False,
    share: bool = False,
) -> list[Line2D]:  # fmt: skip
    """Draw curves over epochs in the panel of that number and return them; a `share` has an axis from 0 to 1."""
    here = axes[panel]
    log = kit.set_value_axis(here, np.concatenate([curve.values for curve in curves]), ylabel, log=log)
    lines = [
        kit.draw_curve(
            here, c.epochs, visible(c.values, log=log), log_time=True, color=c.color, ls=c.style, label=c.label
        )
        for c in curves
    ]
    kit.set_time_axis(here, curves[0].epochs, "log", "epoch")
    _round_ticks(here, curves[0].epochs)
    if share:
        here.set(ylim=(-0.04, 1.04), yticks=[0, 0.5, 1])
    kit.panel_label(here, panel, title)
    return lines


def _round_ticks(axes: kit.Axes, epochs: kit.Floats) -> None:
    """Tick 0 and the powers of ten from the first recorded epoch on; gray and // where the axis is linear, below it."""
    positive = epochs[epochs > 0]
    if len(positive) and epochs[0] == 0:
        look: dict[str, Any] = {"ha": "center", "va": "center", "fontsize": kit.SMALL, "clip_on": False}
        white = {"facecolor": "white", "edgecolor": "none", "pad": 0.4}
        axes.text(0.5 * positive[0], 0.0, "//", transform=axes.get_xaxis_transform(), bbox=white, zorder=5, **look)
        axes.axvspan(0.0, positive[0], color=kit.PALETTE.muted, alpha=0.12, lw=0, zorder=0)
    if len(positive) > 1:
        powers = np.arange(np.ceil(np.log10(positive[0]) + 0.2), np.floor(np.log10(positive[-1])) + 1)
        axes.set_xticks([0.0, *(10.0**powers)])


@dataclass(frozen=True)
class Plane:
    """A trained network of two inputs, and the part of the plane around its data."""

    groups: Groups
    window: Window
    regions: LevelSets
    """Where its output is negative and positive."""

    @property
    def signs(self) -> kit.Floats:
        """Signs (m,) of the output weights."""
        return np.sign(self.groups.network[1])


def plane(groups: Groups, margin: float = 0.25) -> Plane:
    """Return the decision regions of the last state, in a window wider than the data by a share `margin`."""
    window = data_window(groups.data.x, margin)
    return Plane(groups, window, level_sets(two_layer_pieces(*groups.network), groups.alpha, window))


def draw_decisions(axes: kit.Axes, found: Plane) -> list[kit.Artist]:
    """Draw decision regions and data; return the handles."""
    regions, data = found.regions, found.groups.data
    segments = regions.segments[0]
    return draw_regions(axes, regions.polygons, regions.bands, segments, found.window, x=data.x, y=data.y).handles


def draw_neurons(axes: kit.Axes, H: kit.Floats, signs: kit.Floats, what: str, **look: Any) -> list[kit.Artist]:
    """Draw neurons (m, 2) as rays; return the handles. The axes are called `<what> 1` and `<what> 2`."""
    rays = draw_rays(axes, H, signs, xlabel=f"{what} 1", ylabel=f"{what} 2", **look)
    handles = [kit.sign_handle(sign) for sign in rays.rays]
    for handle, sign in zip(handles, rays.rays, strict=True):
        handle.set_label("neurons $w_i$" if sign > 0 else "neurons $u_i$")  # the paper's names of the two groups
    return [*handles]

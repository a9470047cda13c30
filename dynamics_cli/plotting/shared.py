"""What the figures of several papers draw in one way."""

from __future__ import annotations

from matplotlib.artist import Artist
from matplotlib.axes import Axes

DASHED = (0, (4, 2))
"""The line style of what is predicted."""


def labelled(*panels: Axes) -> list[Artist]:
    """Return the handles of what has a label in these panels, panel by panel, for a legend."""
    handles: list[Artist] = []
    for panel in panels:
        handles += panel.get_legend_handles_labels()[0]
    return handles

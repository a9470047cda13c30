"""Where labels of points on a line go so that none touches another or the line that leads to it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

OFFSET = 2.5
"""Distance between a label and its leader, in points."""
GAP = 4.0
"""Least distance between two labels of a row, in points."""


class Flag(NamedTuple):
    """A label beside its leader: to the right (`side` +1) or left (-1) of `at`, in row `level`, 0 nearest the line."""

    at: float
    width: float
    side: int
    level: int

    @property
    def left(self) -> float:
        """Left end of the label."""
        return self.at + OFFSET if self.side > 0 else self.at - OFFSET - self.width

    @property
    def right(self) -> float:
        """Right end of the label."""
        return self.left + self.width


def place_flags(positions: Sequence[float], widths: Sequence[float], low: float, high: float) -> list[Flag]:
    """Return a flag for every label of `widths` at `positions` (points), within [low, high] where that is possible.

    Labels never overlap. Leaders cross no label unless there is no other way. Taken from right to left, each label gets
    the lowest row that is free, and flies to the right where both sides are; it leaves the way up open for the rest.
    """
    placed: dict[int, Flag] = {}
    order = sorted(range(len(positions)), key=lambda i: (-positions[i], i))
    for turn, k in enumerate(order):
        options = [Flag(positions[k], widths[k], side, level) for level in range(len(positions)) for side in (1, -1)]
        inside = [flag for flag in options if low <= flag.left and flag.right <= high] or options
        apart = [flag for flag in inside if not any(_overlap(flag, other) for other in placed.values())]
        clear = [flag for flag in apart if not any(_crossed(flag, other) for other in placed.values())]
        waiting = [positions[i] for i in order[turn + 1 :]]
        polite = [flag for flag in clear if not any(flag.left - 1 < at < flag.right + 1 for at in waiting)]
        placed[k] = (polite or clear or apart)[0]
    return [placed[k] for k in range(len(positions))]


def _overlap(a: Flag, b: Flag) -> bool:
    """Tell whether two labels share a row and come closer than `GAP`."""
    return a.level == b.level and a.left < b.right + GAP and b.left < a.right + GAP


def _crossed(a: Flag, b: Flag) -> bool:
    """Tell whether the leader of the higher label runs through the lower one."""
    low, high = (a, b) if a.level <= b.level else (b, a)
    return low.left - 1 < high.at < low.right + 1

"""Which recorded states become the frames of an animation: many where much moves, few where nothing does."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise

import numpy as np
from numpy.typing import ArrayLike

from dynamics_cli.analysis.view import spread
from dynamics_cli.measures.arrays import Floats, Ints

FRAMES = 100
"""Frames of an animation."""
CANDIDATES = 1000
"""States that are looked at when frames are chosen."""
EVEN = 0.4
"""Weight of frames that are spread evenly over the recorded states, where each group that moves weighs 1 at most."""

Seen = Callable[[int], Sequence[Floats]]
"""Index of a state -> groups of positions, in shares of the picture: of curves, of neurons, of the marker."""


def choose_frames(iterations: ArrayLike, seen: Seen, count: int = FRAMES) -> list[int]:
    """Return at most `count` (>= 2) indices into `iterations` (K,), first and last included, at equal visible change.

    The change of a group between two states is the root mean square over its positions. Every group weighs as much as
    any other when it moves across the picture, and less when it moves less.
    """
    steps = np.asarray(iterations, dtype=np.float64)
    if len(steps) <= count:
        return list(range(len(steps)))
    candidates = _candidates(steps)
    pictures = [seen(int(i)) for i in candidates]
    changes = np.array([_changes(a, b) for a, b in pairwise(pictures)])  # (c - 1, groups)
    totals = np.maximum(changes.sum(axis=0), 1e-12)
    pace = (changes / totals * np.minimum(totals, 1.0)).sum(axis=1) + EVEN / len(changes)
    walked = np.concatenate([[0.0], np.cumsum(pace)])
    chosen = np.array([0, len(steps) - 1])
    for points in range(
        count - 1, 6 * count, max(count // 10, 1)
    ):  # where a step is long, several points fall on its end
        reached = np.searchsorted(walked, np.linspace(0, walked[-1], points)).clip(max=len(walked) - 1)
        finer = np.union1d(candidates[reached], [0, len(steps) - 1])
        if len(finer) > count:
            break
        chosen = finer
    return [int(i) for i in chosen]


def _candidates(steps: Floats) -> Ints:
    """Return at most `CANDIDATES` indices: half evenly spread over the states, half geometrically."""
    if len(steps) <= CANDIDATES:
        return np.arange(len(steps))
    growing = np.searchsorted(steps, np.geomspace(1, max(steps[-1], 1), CANDIDATES // 2)).clip(max=len(steps) - 1)
    return np.union1d(spread(len(steps), CANDIDATES // 2), growing)


def _changes(before: Sequence[Floats], after: Sequence[Floats]) -> list[float]:
    """Return the root mean square change of every group; a position moves by 1 at most, and by 0 if not finite."""
    return [_change(a, b) for a, b in zip(before, after, strict=True)]


def _change(before: Floats, after: Floats) -> float:
    with np.errstate(invalid="ignore"):
        moved = np.abs(after - before)
    moved = np.where(np.isfinite(moved), moved, 0.0).clip(max=1.0)
    return float(np.sqrt(np.mean(moved**2))) if moved.size else 0.0

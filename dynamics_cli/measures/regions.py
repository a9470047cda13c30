"""The cones S_+, S_- and S_dead of Min et al. 2024 (Section 3), and which neurons are in them when."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from dynamics_cli.measures.activation import activation_patterns
from dynamics_cli.measures.arrays import Bools, Floats, Ints, as_floats

OUTSIDE, PLUS, MINUS, DEAD = 0, 1, -1, 2
"""Codes of the regions that `regions` gives."""


def regions(x: ArrayLike, y: ArrayLike, W: ArrayLike) -> Ints:
    """Return the region `(..., m)` of the neurons `W (..., m, d)` for inputs `x (n, d)` and labels `y (n,)`.

    `PLUS`: active on exactly the positive data; `MINUS`: on exactly the negative data; `DEAD`: on none; else `OUTSIDE`.
    Where there are no positive (negative) data, S_+ (S_-) is S_dead, and such neurons are `DEAD`.
    """
    active = activation_patterns(x, W)  # (..., n, m)
    positive = (as_floats(y, "y", axes=1) > 0)[:, None]
    result = np.full(active.shape[:-2] + active.shape[-1:], OUTSIDE, dtype=np.int64)
    result[(active == positive).all(axis=-2)] = PLUS
    result[(active != positive).all(axis=-2)] = MINUS
    result[~active.any(axis=-2)] = DEAD
    return result


def activation_counts(x: ArrayLike, y: ArrayLike, W: ArrayLike) -> Ints:
    """Return `(k_+, k_-)` `(..., m, 2)`: on how many positive and negative data each of `W (..., m, d)` is active.

    These are the coordinates of the paths of Appendix C (Figures 14 to 17).
    """
    active = activation_patterns(x, W)
    positive = as_floats(y, "y", axes=1) > 0
    return np.stack([active[..., positive, :].sum(axis=-2), active[..., ~positive, :].sum(axis=-2)], axis=-1)


def pattern_changes(times: ArrayLike, patterns: ArrayLike) -> tuple[Floats, Bools]:
    """Return the times (c,) at which a neuron's activation `patterns (T, n)` changed, and the patterns `(c + 1, n)`.

    The first pattern is the one at the first time; a change carries the time at which it is first seen.
    """
    seen, moments = np.asarray(patterns, dtype=bool), as_floats(times, "times", axes=1)
    if seen.ndim != 2 or len(seen) != len(moments) or not len(seen):
        raise ValueError(f"{len(moments)} times do not belong to patterns of shape {seen.shape}")
    changed = np.flatnonzero((seen[1:] != seen[:-1]).any(axis=1)) + 1
    return moments[changed], seen[np.concatenate([[0], changed])]


def departures(found: ArrayLike, region: int) -> int:
    """Return how often a neuron left `region` for another, given regions `(T, m)` over time."""
    inside = np.asarray(found) == region
    return int(np.count_nonzero(inside[:-1] & ~inside[1:]))

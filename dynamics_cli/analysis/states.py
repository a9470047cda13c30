"""Which recorded states a figure shows, and the plateaus of the loss that they are chosen by."""

from __future__ import annotations

import numpy as np

from dynamics_cli.analysis.view import View, spread
from dynamics_cli.measures.arrays import Floats
from dynamics_cli.measures.curves import Plateau, find_plateaus

LOSSES = 20_000
"""Losses that plateaus are looked for in at most."""
FLOOR = 1e-3
"""A plateau below this share of the first loss is the end of training."""
SHORTEST = 0.02
"""Share of the iterations that a plateau covers at least."""
DROP = 0.8
"""After a plateau the loss falls at least to this share of it."""
STILL = 1e-3
"""Relative change of the loss over the second half of a plateau that lasts to the end, at most."""


def story(view: View) -> list[int]:
    """Return the indices of the first state, two on the way, and the last with finite weights.

    Those on the way are late on the loss's two longest plateaus; without two plateaus, spaced
    geometrically.
    """
    last = max(view.states - 1, 0)
    if last < 4:
        return list(range(last + 1))
    steps = view.iterations[: last + 1]
    before = [plateau for plateau in plateaus_of(view) if 0 < plateau.last < steps[-1]]
    longest = sorted(before, key=lambda plateau: -plateau.length)[:2]
    wanted = [0.25 * plateau.first + 0.75 * plateau.last for plateau in longest]
    wanted += [float(steps[-1]) ** share for share in (2 / 3, 1 / 3, 1 / 2)]
    middle: list[int] = []
    for iteration in wanted:
        guess = int(np.argmin(np.abs(steps - iteration)))
        if len(middle) < 2 and 0 < guess < last and guess not in middle:
            middle.append(guess)
    return sorted({0, *middle, last})


def plateaus_of(view: View) -> list[Plateau]:
    """Return the plateaus of the loss in order: where it rests before it falls on, or for good.

    A slow decay, which never rests, is cut into stretches by `find_plateaus`; here those do not
    count.
    """
    kept = spread(len(view.run.losses), LOSSES)
    iterations = np.asarray(view.run.loss_iterations[kept], dtype=np.float64)
    losses = np.asarray(view.run.losses[kept], dtype=np.float64)
    if len(losses) < 2 or not np.isfinite(losses[0]):
        return []
    plateaus = find_plateaus(iterations, losses, minimum_fraction=SHORTEST, floor=FLOOR)
    return [plateau for plateau in plateaus if _rests(plateau, iterations, losses)]


def _rests(plateau: Plateau, iterations: Floats, losses: Floats) -> bool:
    """Whether the loss falls by `DROP` after a plateau, or stays to the end and hardly moves."""
    later = losses[iterations > plateau.last]
    if len(later):
        lowest = later.min(where=np.isfinite(later), initial=np.inf)
        return bool(lowest < DROP * plateau.value)
    middle, end = np.interp([(plateau.first + plateau.last) / 2, plateau.last], iterations, losses)
    return bool(abs(middle - end) < STILL * plateau.value)

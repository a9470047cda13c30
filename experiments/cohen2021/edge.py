"""What a run shows of the edge of stability: sharpness against its bound, the loss before and
after the crossing.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from dynamics_cli import kit
from dynamics_cli.recording.curvature import stability_threshold

NAN = np.nan
WINDOWS = 10
""""In the long run" is over this many equal parts of the time after the crossing."""
BAND = kit.Interval(0.95, 1.15)
""""Hovers at, or just above": the median of the sharpness over its bound."""


def edge(run: kit.Run) -> Edge:
    """Describe a run that recorded its sharpness and every loss; the bound belongs to its first
    step.
    """
    optimizer: Any = run.config.optimizer
    plain = optimizer.model_copy(update={"schedule": None})
    bound = stability_threshold(plain)
    top = run.measures["sharpness"].reshape(len(run.snapshot_iterations), -1)
    steps = run.snapshot_iterations
    losses = run.losses
    return described(
        float(optimizer.lr), bound[1] if bound is not None else NAN, steps, top[:, 0], losses
    )


@dataclass(frozen=True)
class Edge:
    """What a run shows of the edge of stability.

    `first` is the first record above the bound, K where there is none, `crossing` its iteration.
    The run is `unstable` when the loss rose after the crossing, and sharpness fell: a run that ends
    before has reached the bound, but says nothing about staying there. `band` is the median of the
    sharpness from the crossing on, over the bound, `rises_before` and `rises_after` are shares of
    steps that raise the loss, before the last record below the bound and after the crossing. Of the
    mean losses of `WINDOWS` equal parts of the time after the crossing `falls` counts those below
    the one before, and `share_left` is the last over the loss at the crossing. NaN where there is
    no such time.
    """

    lr: float
    bound: float
    iterations: kit.Ints
    sharpness: kit.Floats
    losses: kit.Floats
    first: int
    crossing: float
    unstable: bool
    band: float
    rises_before: float
    rises_after: float
    falls: float
    share_left: float


def described(
    lr: float, bound: float, iterations: kit.Ints, sharpness: kit.Floats, losses: kit.Floats
) -> Edge:
    """Describe gradient descent by its sharpness (K,) at `iterations` (K,), and its loss (L,) at
    every iteration.
    """
    above = np.flatnonzero(sharpness >= bound)
    first = int(above[0]) if len(above) else len(sharpness)
    crossing = float(iterations[first]) if len(above) else NAN
    before = losses[: iterations[first - 1] + 1] if len(above) and first else losses[:0]
    after = losses[int(crossing) :] if len(above) else losses[:0]
    rises_before, rises_after = (
        float(np.mean(np.diff(x) > 0)) if len(x) > 1 else NAN for x in (before, after)
    )
    unstable = rises_after > 0 and bool((np.diff(sharpness[first:]) < 0).any())
    band = NAN
    falls = NAN
    share_left = NAN
    if unstable:
        band = float(np.median(sharpness[first:])) / bound
    if unstable and len(after) >= WINDOWS:
        windows = np.array([part.mean() for part in np.array_split(after, WINDOWS)])
        falls = float(np.sum(np.diff(windows) < 0))
        share_left = float(windows[-1] / after[0])
    return Edge(
        lr,
        bound,
        iterations,
        sharpness,
        losses,
        first,
        crossing,
        unstable,
        band,
        rises_before,
        rises_after,
        falls,
        share_left,
    )


def sharpness(x: ArrayLike, descent: Edge, color: str, name: str = "") -> list[kit.Line]:
    """Return the sharpness over `x` (K,), and its bound as a dashed line of the same colour."""
    return [
        kit.line(x, descent.sharpness, name, f"{color} 1.0"),
        kit.level(descent.bound, look=f"{color} dashed 0.8"),
    ]

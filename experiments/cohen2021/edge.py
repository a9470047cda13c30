"""What a run shows of the edge of stability: sharpness against its bound, the loss before and after the crossing."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from dynamics_cli import kit
from dynamics_cli.recording.curvature import stability_threshold

NAN = float("nan")
WINDOWS = 10
""""In the long run" is over this many equal parts of the time after the crossing."""
BAND = kit.Interval(0.95, 1.15)
""""Hovers at, or just above": the median of the sharpness over its bound."""


@dataclass(frozen=True)
class Edge:
    """Loss and sharpness of a run by gradient descent."""

    lr: float
    bound: float
    """2 / lr, or that of its momentum."""
    iterations: kit.Ints
    """(K,) at which sharpness was measured."""
    top: kit.Floats
    """(K, k) largest eigenvalues of the Hessian."""
    losses: kit.Floats
    """(L,) of every iteration."""

    @property
    def sharpness(self) -> kit.Floats:
        """The largest eigenvalue (K,)."""
        return np.asarray(self.top[:, 0])

    @property
    def first(self) -> int:
        """The first record above the bound; K where there is none."""
        above = np.flatnonzero(self.sharpness >= self.bound)
        return int(above[0]) if len(above) else len(self.sharpness)

    @property
    def crossing(self) -> float:
        """Iteration of `first`; NaN without."""
        return float(self.iterations[self.first]) if self.first < len(self.iterations) else NAN

    @property
    def band(self) -> float:
        """Median of the sharpness from the crossing on, over the bound; NaN without instability."""
        return float(np.median(self.sharpness[self.first :])) / self.bound if self.unstable else NAN

    @property
    def rises_before(self) -> float:
        """Share of the steps before the last record below the bound that raise the loss; NaN without a crossing."""
        crossed = np.isfinite(self.crossing) and self.first
        before = self.losses[: self.iterations[self.first - 1] + 1] if crossed else self.losses[:0]
        return float(np.mean(np.diff(before) > 0)) if len(before) > 1 else NAN

    @property
    def after(self) -> kit.Floats:
        """The losses from the crossing on."""
        return self.losses[int(self.crossing) :] if np.isfinite(self.crossing) else self.losses[:0]

    @property
    def rises_after(self) -> float:
        """Share of the steps after the crossing that raise the loss."""
        return float(np.mean(np.diff(self.after) > 0)) if len(self.after) > 1 else NAN

    @property
    def unstable(self) -> bool:
        """Whether the run showed an instability: after the crossing the loss rose, and sharpness fell.

        A run that ends before has reached the bound, but says nothing about staying there.
        """
        return self.rises_after > 0 and bool((np.diff(self.sharpness[self.first :]) < 0).any())

    @property
    def windows(self) -> kit.Floats:
        """Mean losses of the equal parts of the time after the crossing; empty without instability."""
        enough = self.unstable and len(self.after) >= WINDOWS
        return np.array([part.mean() for part in np.array_split(self.after, WINDOWS)]) if enough else np.empty(0)

    @property
    def falls(self) -> float:
        """How many of the mean losses are below the one before."""
        return float(np.sum(np.diff(self.windows) < 0)) if len(self.windows) else NAN

    @property
    def share_left(self) -> float:
        """Mean loss of the last part over the loss at the crossing."""
        return float(self.windows[-1] / self.after[0]) if len(self.windows) else NAN


def edge(run: kit.Run) -> Edge:
    """Read a run that recorded its sharpness and every loss; the bound belongs to its first step."""
    optimizer: Any = run.config.optimizer
    plain = optimizer.model_copy(update={"schedule": None})
    bound = stability_threshold({**dict(run.config), "optimizer": plain})
    top = np.asarray(run.measures["sharpness"], np.float64)
    return Edge(
        lr=float(optimizer.lr),
        bound=bound[1] if bound is not None else NAN,
        iterations=np.asarray(run.measure_iterations),
        top=top.reshape(len(top), -1),
        losses=np.asarray(run.losses),
    )


def draw_sharpness(axes: kit.Axes, x: ArrayLike, descent: Edge, color: str, label: str = "", **look: Any) -> None:
    """Draw the sharpness over `x` (K,), and its bound as a dashed line of the same colour."""
    axes.plot(x, descent.sharpness, color=color, label=label, **{"lw": 1.0, **look})
    axes.axhline(descent.bound, color=color, ls=(0, (4, 2)), lw=0.8)

"""The distance of a run in rescaled time to the limit of Theorem 1."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dynamics_cli.measures.arrays import Floats
from dynamics_cli.runs import Run
from dynamics_cli.theory.canonical_neurons import CanonicalNeurons, distance_to_limit
from dynamics_cli.theory.extremal_sectors import predicted_sector, sector_of

LATE = 50.0
"""`log t` from which the rate is fitted; everything is asymptotic there."""


@dataclass(frozen=True)
class LimitPath:
    """The distance to the limit along one run in rescaled time."""

    scale: float
    log_times: Floats
    """(K,) logarithm of the time of gradient flow."""
    distances: Floats
    """(K,)"""
    outside: int
    """Neurons of the last state that are neither dead nor in the extremal sector of their sign."""
    share: float
    """`||W_+||_F^2 / ||W||_F^2` of the last state."""
    function_error: float
    """Largest `|f(x_i) / ||theta||^2 - limit|` on the data over the largest limit (Corollary 1)."""
    imbalance: float
    """Largest `| |a_j| / ||a|| - ||w_j|| / ||W||_F |` of the last state (Eq. 9)."""

    @property
    def rate(self) -> float:
        """Power of `log t` with which the distance falls at late times."""
        late = self.log_times > LATE
        if late.sum() < 3:
            return float("nan")
        return float(np.polyfit(np.log(self.log_times[late]), np.log(self.distances[late]), 1)[0])

    @property
    def rises(self) -> int:
        """States after `log t = 2` at which the distance is larger than at the state before."""
        after = self.distances[self.log_times > 2.0]
        return int((np.diff(after) > 0).sum())


def limit_path(run: Run, limit: CanonicalNeurons) -> LimitPath:
    """Measure one run; an update of step lr divided by the loss takes the time lr / loss."""
    data = run.dataset()
    W, a = (np.asarray(run.parameters[key], np.float64) for key in ("hidden_weight", "output_weight"))
    steps, losses = np.array(run.snapshot_iterations), np.array(run.losses)
    lr = float(getattr(run.config.optimizer, "lr", np.nan))
    times = np.concatenate([[0.0], np.cumsum(lr / losses[:-1])])
    kept = steps > 0
    last, out = W[-1], a[-1]
    signs = np.where(out > 0, 1, -1)
    sectors = sector_of(data.x, last)
    own = np.stack([predicted_sector(data.x, data.y, int(s)) for s in signs])
    size = float(np.sum(last**2) + np.sum(out**2))
    predicted = limit.function(data.x)
    measured = np.maximum(data.x @ last.T, 0.0) @ out / size
    norms = np.linalg.norm(last, axis=1)
    return LimitPath(
        scale=initial_scale(run),
        log_times=np.log(times[steps[kept]]),
        distances=distance_to_limit(W[kept], limit.plus.w, limit.minus.w),
        outside=int((~(sectors <= 0).all(axis=1) & ~(sectors == own).all(axis=1)).sum()),
        share=float(np.sum(last[out > 0] ** 2) / np.sum(last**2)),
        function_error=float(np.abs(measured - predicted).max() / np.abs(predicted).max()),
        imbalance=float(np.abs(np.abs(out) / np.linalg.norm(out) - norms / np.linalg.norm(norms)).max()),
    )


def initial_scale(run: Run) -> float:
    """Return the scale of the initial weights, NaN where they have none."""
    return float(getattr(run.config.initialization, "scale", np.nan))

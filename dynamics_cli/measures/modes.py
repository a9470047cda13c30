"""How well samples cover the modes of a mixture of Gaussians."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dynamics_cli.measures.arrays import Floats, Ints


@dataclass(frozen=True)
class Coverage:
    """Samples against modes."""

    counts: Ints
    """(modes,) good samples of each mode."""
    good: float
    """Share of samples within the distance of a mode."""
    covered: int
    """Modes that have at least the least share of the samples."""


def coverage(
    samples: Floats, centres: Floats, deviation: float, *, sigmas: float = 3.0, least: float = 0.01
) -> Coverage:
    """Return how samples (n, d) cover modes at `centres` (modes, d).

    A sample is good within `sigmas` deviations of its nearest mode; a mode is covered when at least the share `least`
    of all samples are good and nearest to it.
    """
    distances = np.linalg.norm(samples[:, None] - centres[None], axis=2)  # (n, modes)
    nearest = distances.argmin(axis=1)
    good = distances.min(axis=1) <= sigmas * deviation
    counts = np.bincount(nearest[good], minlength=len(centres))
    return Coverage(counts, float(good.mean()), int(np.sum(counts >= max(1.0, least * len(samples)))))

"""Equal Gaussians on a ring or a grid: data with several modes (Tachet des Combes et al. 2018, Appendix E.1)."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Literal

import numpy as np

from dynamics_cli.kinds import Dataset, Floats, Samples, Sizes, Streams, check_size, make_samples
from dynamics_cli.kinds.base import Finding, Positive, PositiveInt, Sections


class Mixture(Dataset, kind="mixture"):
    """Points of equal Gaussians on a ring or a square grid in the plane, all labelled 1, for a generator to imitate."""

    layout: Literal["ring", "grid"] = "ring"
    """`ring`: evenly around a circle, from angle 0 on; `grid`: a square lattice from -radius to radius."""
    modes: PositiveInt = 8
    """Number of Gaussians; a square number for the grid."""
    radius: Positive = 1.0
    """Radius of the ring, half the side of the grid."""
    deviation: Positive = 0.05
    """Standard deviation of each Gaussian in every direction."""
    n: PositiveInt = 10_000
    """Number of points; each belongs to a random mode."""

    def check(self, sections: Sections) -> Iterator[Finding]:
        """Yield a number of modes that is no square, for a grid."""
        if self.layout == "grid" and math.isqrt(self.modes) ** 2 != self.modes:
            yield ("dataset", "modes"), f"must be a square number for the layout grid, not {self.modes}"

    def centres(self) -> Floats:
        """Return the means of the Gaussians (modes, 2)."""
        if self.layout == "ring":
            angles = 2 * np.pi * np.arange(self.modes) / self.modes
            return self.radius * np.stack([np.cos(angles), np.sin(angles)], axis=1)
        side = math.isqrt(self.modes)
        ticks = np.linspace(-self.radius, self.radius, side) if side > 1 else np.zeros(1)
        return np.stack(np.meshgrid(ticks, ticks), axis=-1).reshape(-1, 2)

    def sizes(self) -> Sizes:
        """Return the sizes of what is drawn."""
        return Sizes(self.n, 2, labels=1.0)

    def load(self, streams: Streams) -> Samples:
        """Draw the points from the data stream of `seed`; all are labelled 1, real.

        Raises InputError: they do not fit into memory.
        """
        check_size(self.n + self.modes, 2)
        rng = streams.rng("data")
        modes = rng.integers(0, self.modes, self.n)  # (n,)
        x = self.centres()[modes] + self.deviation * rng.standard_normal((self.n, 2))
        return make_samples(x, np.ones(self.n))

"""Equal Gaussians on a ring for a generator to imitate."""

from __future__ import annotations

import numpy as np

from dynamics_cli.kinds import (
    Dataset,
    Floats,
    Positive,
    PositiveInt,
    Samples,
    Streams,
    check_size,
    make_samples,
)


class Mixture(Dataset, kind="mixture"):
    """Points of equal Gaussians on a ring in the plane, all labelled 1, for a generator to
    imitate.
    """

    modes: PositiveInt = 8
    """Number of Gaussians."""
    radius: Positive = 1.0
    """Radius of the ring."""
    deviation: Positive = 0.05
    """Standard deviation of each Gaussian in every direction."""
    n: PositiveInt = 10_000
    """Number of points; each belongs to a random mode."""

    def centres(self) -> Floats:
        """Return the means of the Gaussians (modes, 2)."""
        angles = 2 * np.pi * np.arange(self.modes) / self.modes
        return self.radius * np.stack([np.cos(angles), np.sin(angles)], axis=1)

    def load(self, streams: Streams) -> Samples:
        """Draw the points from the data stream of `seed`; all are labelled 1, real."""
        check_size(self.n, 2)
        rng = streams.rng("data")
        modes = rng.integers(0, self.modes, self.n)  # (n,)
        x = self.centres()[modes] + self.deviation * rng.standard_normal((self.n, 2))
        return make_samples(x, np.ones(self.n))

"""Clusters of two classes on the places of a grid."""

from __future__ import annotations

from typing import Annotated

import numpy as np
from pydantic import Field

from dynamics_cli.kinds import Dataset, Floats, Samples, Streams, check_size, make_samples
from dynamics_cli.kinds.base import PositiveInt


class Clusters(Dataset, kind="clusters"):
    """Points around the `k^2` places of a grid, half of them labelled -1, with noise in further
    dimensions.

    The first two inputs are a place of `[-1/2, 1/2]^2` and a shift of uniform length up to `1 / (3
    k - 1)`, a third of the distance between places, in a uniform direction; the others are uniform
    in `[-1/2, 1/2]` (Chizat and Bach 2020).
    """

    example = "{kind: clusters, n: 100, dim: 10, n_test: 500, append_bias: true}"
    endless = True
    n: PositiveInt
    """Number of training samples."""
    dim: Annotated[int, Field(ge=2)] = 2
    """Input dimension; the label depends on the first two inputs alone."""
    k: Annotated[int, Field(ge=2)] = 3
    """Places in a row of the grid; `floor(k^2 / 2)` of all, drawn by the seed, are labelled -1,
    the others 1.
    """
    n_test: PositiveInt | None = None
    """Number of held-out samples."""
    append_bias: bool = False
    """Append a constant 1 to every input, so that the last hidden weight is a bias."""

    def centres(self) -> Floats:
        """Return the places (k^2, 2)."""
        ticks = 3 * np.arange(self.k) / (3 * self.k - 1) - 0.5
        return np.stack(np.meshgrid(ticks, ticks), axis=-1).reshape(-1, 2)

    def load(self, streams: Streams) -> Samples:
        """Draw the points; held-out samples follow the training samples."""
        count = self.n + (self.n_test or 0)
        check_size(count, self.dim + 1)
        labels = np.ones(self.k**2)
        labels[streams.rng("teacher").permutation(self.k**2)[: self.k**2 // 2]] = -1
        rng = streams.rng("data")
        place = rng.integers(0, self.k**2, count)
        angle = rng.uniform(0, 2 * np.pi, count)
        shift = rng.uniform(0, 1 / (3 * self.k - 1), count)[:, None] * np.stack(
            [np.cos(angle), np.sin(angle)], 1
        )
        x = np.concatenate(
            [self.centres()[place] + shift, rng.uniform(-0.5, 0.5, (count, self.dim - 2))], axis=1
        )
        return make_samples(x, labels[place], trained=self.n, append_bias=self.append_bias)

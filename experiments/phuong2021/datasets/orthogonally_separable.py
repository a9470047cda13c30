"""Points of two opposite orthants."""

from __future__ import annotations

from typing import Annotated

import numpy as np
from numpy.random import Generator
from pydantic import Field

from dynamics_cli.errors import InputError
from dynamics_cli.kinds import (
    Dataset,
    Floats,
    PositiveInt,
    Samples,
    Streams,
    check_size,
    make_samples,
)

_DRAWS = 10_000
"""Points drawn at once, at most."""


class OrthogonallySeparable(Dataset, kind="orthogonally_separable"):
    """Gaussian points of the positive orthant (+1) and its opposite (-1) (Phuong and Lampert 2021,
    Section 5.1).

    So `<x_i, x_j> > 0` within a class and `<= 0` across.
    """

    example = "{kind: orthogonally_separable, n: 20, dim: 10}"
    n: Annotated[int, Field(ge=2, lt=2**63)]
    """Number of samples, both classes together; each has at least one."""
    dim: PositiveInt
    """Input dimension."""

    def load(self, streams: Streams) -> Samples:
        """Draw `n` points `s |g|`, `g` Gaussian and `s` a fair sign, the label; keep those with
        `<x, z> >= 0`.

        `z = (1, -1, 1, -1, ...)`. Should all signs agree, the last label is turned until both
        classes are there.

        Raises InputError: in one dimension no negative point is kept.
        """
        if self.dim == 1:
            raise InputError(
                "dataset.dim must be at least 2: in one dimension no point is kept of class -1"
            )
        check_size(self.n, self.dim)
        rng = streams.rng("data")
        z = np.where(np.arange(self.dim) % 2 == 0, 1.0, -1.0)
        x = np.empty((0, self.dim))
        y = np.empty(0)
        while len(x) < self.n:
            more, labels = _draw(rng, min(max(3 * (self.n - len(x)), 16), _DRAWS), z)
            x = np.concatenate([x, more])
            y = np.concatenate([y, labels])
        x = x[: self.n]
        y = y[: self.n]
        while abs(y.sum()) == self.n:
            more, labels = _draw(rng, 64, z)
            opposite = np.flatnonzero(labels != y[0])
            if len(opposite):
                x[-1], y[-1] = more[opposite[0]], labels[opposite[0]]
        return make_samples(x, y)


def _draw(rng: Generator, count: int, z: Floats) -> tuple[Floats, Floats]:
    """Return the kept points of `count` draws: inputs (k, dim) and labels (k,)."""
    s = rng.choice([-1.0, 1.0], count)
    x = s[:, None] * np.abs(rng.standard_normal((count, len(z))))
    kept = x @ z >= 0
    return x[kept], s[kept]

"""Orthogonally separable Gaussian data (Phuong and Lampert 2021, Section 5.1), drawn directly."""

from __future__ import annotations

import numpy as np
from numpy.random import Generator

from dynamics_cli.config.dataset import OrthogonallySeparableDataset
from dynamics_cli.datasets.dataset import Dataset, Floats, check_size, make_dataset
from dynamics_cli.datasets.streams import stream
from dynamics_cli.errors import InputError

_DRAWS = 10_000


def load(config: OrthogonallySeparableDataset, seed: int) -> Dataset:
    """Draw `n` points `s |g|`, `g` Gaussian and `s` a fair sign, the label; keep those with `<x, z> >= 0`.

    Gaussian points, of which only those of two orthants are kept, have this law; a rejection by orthant would keep one
    in `2^(dim - 1)`. Should all signs agree, the last label is turned until both classes are there.

    Raises:
        InputError: in one dimension with `filtered`, no negative point is kept; or the points do not fit into memory.

    """
    if config.dim == 1 and config.filtered:
        raise InputError("dataset.dim must be at least 2 with filtered: in one dimension no point is kept of class -1")
    check_size(config.n + min(3 * config.n, _DRAWS) + 64, config.dim)
    rng = stream(seed, "data")
    z = np.where(np.arange(config.dim) % 2 == 0, 1.0, -1.0)
    x, y = np.empty((0, config.dim)), np.empty(0)
    while len(x) < config.n:
        more, labels = _draw(rng, min(max(3 * (config.n - len(x)), 16), _DRAWS), z, filtered=config.filtered)
        x, y = np.concatenate([x, more]), np.concatenate([y, labels])
    x, y = x[: config.n], y[: config.n]
    while abs(y.sum()) == config.n:
        more, labels = _draw(rng, 64, z, filtered=config.filtered)
        other = np.flatnonzero(labels != y[0])
        if len(other):
            x[-1], y[-1] = more[other[0]], labels[other[0]]
    return make_dataset(x, y)


def _draw(rng: Generator, count: int, z: Floats, *, filtered: bool) -> tuple[Floats, Floats]:
    """Return what is kept of `count` draws: inputs (k, dim) and labels (k,)."""
    s = rng.choice([-1.0, 1.0], count)
    x = s[:, None] * np.abs(rng.standard_normal((count, len(z))))
    kept = x @ z >= 0 if filtered else np.ones(count, bool)
    return x[kept], s[kept]

"""Orthonormal inputs (Boursier et al. 2022, Assumption 1)."""

from __future__ import annotations

import numpy as np

from dynamics_cli.config.dataset import OrthonormalDataset
from dynamics_cli.datasets.dataset import Dataset, check_size, make_dataset
from dynamics_cli.datasets.streams import stream


def load(config: OrthonormalDataset, seed: int) -> Dataset:
    """Draw `n` uniformly distributed orthonormal rows in `dim` dimensions, and labels where none are given.

    Raises:
        InputError: they do not fit into memory.

    """
    check_size(config.n, config.dim)
    rng = stream(seed, "data")
    q, r = np.linalg.qr(rng.standard_normal((config.dim, config.n)))  # (dim, n)
    x = (q * np.sign(np.diag(r))).T  # signs make the distribution uniform (Mezzadri 2007)
    y = rng.standard_normal(config.n) if config.y is None else np.array(config.y, dtype=np.float64)
    return make_dataset(x, y)

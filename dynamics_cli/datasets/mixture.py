"""Equal Gaussians on a ring or a grid: data with several modes (Tachet des Combes et al. 2018, Appendix E.1)."""

from __future__ import annotations

import math

import numpy as np

from dynamics_cli.config.dataset import MixtureDataset
from dynamics_cli.datasets.dataset import Dataset, Floats, check_size, make_dataset
from dynamics_cli.datasets.streams import stream


def centres(config: MixtureDataset) -> Floats:
    """Return the means of the Gaussians (modes, 2)."""
    if config.layout == "ring":
        angles = 2 * np.pi * np.arange(config.modes) / config.modes
        return config.radius * np.stack([np.cos(angles), np.sin(angles)], axis=1)
    side = math.isqrt(config.modes)
    ticks = np.linspace(-config.radius, config.radius, side) if side > 1 else np.zeros(1)
    return np.stack(np.meshgrid(ticks, ticks), axis=-1).reshape(-1, 2)


def load(config: MixtureDataset, seed: int) -> Dataset:
    """Draw the points from the data stream of `seed`; all are labelled 1, real.

    Raises:
        InputError: they do not fit into memory.

    """
    check_size(config.n + config.modes, 2)
    rng = stream(seed, "data")
    modes = rng.integers(0, config.modes, config.n)  # (n,)
    x = centres(config)[modes] + config.deviation * rng.standard_normal((config.n, 2))
    return make_dataset(x, np.ones(config.n))

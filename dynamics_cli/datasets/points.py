"""Points that are written in the config."""

from __future__ import annotations

import numpy as np

from dynamics_cli.config.dataset import PointsDataset
from dynamics_cli.datasets.dataset import Dataset, make_dataset


def load(config: PointsDataset, seed: int) -> Dataset:
    """Return the points of the config; `seed` plays no part."""
    return make_dataset(
        np.array(config.x, dtype=np.float64),
        np.array(config.y, dtype=np.float64),
        x_test=None if config.x_test is None else np.array(config.x_test, dtype=np.float64),
        y_test=None if config.y_test is None else np.array(config.y_test, dtype=np.float64),
        append_bias=config.append_bias,
    )

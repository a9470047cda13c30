"""A user's own data: `.npz` or `.csv` files."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from dynamics_cli.config.dataset import FileDataset
from dynamics_cli.datasets.dataset import Dataset, make_dataset
from dynamics_cli.datasets.files.tables import read_samples
from dynamics_cli.datasets.streams import stream
from dynamics_cli.errors import InputError


def load(config: FileDataset, seed: int) -> Dataset:
    """Read the file and, where asked for, hold samples out.

    Raises:
        DataMissingError: the file is not there.
        InputError: it is not a data set; the message says where.
    """
    arrays = read_samples(Path(config.path))
    x, y = arrays["x"], arrays["y"]
    x_test, y_test = arrays.get("x_test"), arrays.get("y_test")
    if config.test_path is not None:
        held_out = read_samples(Path(config.test_path))
        x_test, y_test = held_out["x"], held_out["y"]
    elif config.test_fraction is not None:
        # checked before the split, so that messages speak of the file and not of a part of it
        make_dataset(x, y, origin=config.path)
        count = round(config.test_fraction * len(x))
        if not 0 < count < len(x):
            raise InputError(
                f"{config.path}: test_fraction {config.test_fraction} of {len(x)} samples leaves a part empty"
            )
        order = stream(seed, "data").permutation(len(x))
        test, train = np.sort(order[:count]), np.sort(order[count:])
        x, y, x_test, y_test = x[train], y[train], x[test], y[test]
    return make_dataset(x, y, x_test=x_test, y_test=y_test, append_bias=config.append_bias, origin=config.path)

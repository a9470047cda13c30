"""The data set of cats and dogs, with the light effect or untouched (Tachet des Combes et al. 2018, Appendix E.2)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dynamics_cli.config.dataset import DogsVsCatsDataset
from dynamics_cli.datasets.dataset import Dataset, Floats, check_size
from dynamics_cli.datasets.files.dogs_vs_cats import ImageSet, find_place, load_images, split_per_class
from dynamics_cli.datasets.light import light_effect
from dynamics_cli.errors import InputError


def resolve(config: DogsVsCatsDataset) -> DogsVsCatsDataset:
    """Say which images are there.

    Raises:
        DataMissingError: none were added.

    """
    return config if config.images is not None else config.model_copy(update={"images": find_place().key})


def load(config: DogsVsCatsDataset, seed: int) -> Dataset:
    """Return images as rows of 3 size^2 numbers from 0 to 1, training and held-out ones.

    Rows are float32, half the memory of float64: 25 000 images of 64 x 64 pixels take 1.2 GB.

    Raises:
        DataMissingError: the images were not added, or are gone.
        InputError: other images are there than the config names, a part would be empty, or the images do not fit into
            memory.

    """
    check_size(len(find_place().names), config.size**2)  # three colours in float32, and the bytes
    found = load_images(config.size)
    if config.images not in (None, found.key):
        raise InputError(f"dataset.images names other images than those added, whose SHA-256 is {found.key}")
    train, test = split_per_class(found.labels, config.test_fraction, seed)
    y = 1.0 - 2.0 * found.labels.astype(np.float64)  # (n,)
    return Dataset(_rows(found, train, config), y[train], _rows(found, test, config), y[test])


def _rows(found: ImageSet, chosen: NDArray[np.int64], config: DogsVsCatsDataset) -> Floats:
    """Return the chosen images, flat, colour by colour (n, 3 size^2)."""
    pixels = found.images[chosen]  # (n, size, size, 3)
    if config.light_effect:
        pixels = light_effect(pixels, found.labels[chosen] == 1)
    rows = np.moveaxis(pixels, -1, 1).reshape(len(pixels), -1).astype(np.float32)
    rows /= np.float32(255)
    return rows  # type: ignore[return-value]

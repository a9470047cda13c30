"""Data sets made of MNIST's digits: a pair for binary classification, or all ten."""

from __future__ import annotations

import numpy as np

from dynamics_cli.config.dataset import MnistDataset, MnistPairDataset
from dynamics_cli.datasets.dataset import Dataset, Floats, make_dataset
from dynamics_cli.datasets.files.mnist import HOW_TO_GET, SUBSET_COUNTS, Bytes, is_there, load_mnist
from dynamics_cli.datasets.light import light_effect
from dynamics_cli.errors import DataMissingError, InputError

Config = MnistDataset | MnistPairDataset


def resolve(config: Config) -> Config:
    """Replace source `auto`: the subset when it holds all that is asked for, else the full set if it is there.

    Raises:
        DataMissingError: more images are asked for than the subset holds, and the full set is not there.

    """
    if config.source != "auto":
        return config
    asked = [(config.per_class, SUBSET_COUNTS["train"])]
    if config.test:
        asked.append((config.test_per_class, SUBSET_COUNTS["test"]))
    if all(count is not None and count <= most for count, most in asked):
        return config.model_copy(update={"source": "subset"})
    if is_there():
        return config.model_copy(update={"source": "full"})
    if any(count is not None and count > most for count, most in asked):
        raise DataMissingError(f"dataset: so many images of a digit need the full MNIST set: {HOW_TO_GET}")
    return config.model_copy(update={"source": "subset"})


def load(config: Config, seed: int) -> Dataset:
    """Return images as rows of 784 numbers, ordered by class; `seed` plays no part.

    Raises:
        DataMissingError: the full set is needed and not there.
        InputError: a digit has fewer images than asked for, or a file is damaged.

    """
    config = resolve(config)
    digits = config.digits if isinstance(config, MnistPairDataset) else list(range(10))
    mnist = load_mnist(config.source, digits=digits, parts=("train", "test") if config.test else ("train",))
    x, y = _rows(_first(mnist.train, config.per_class, "per_class", mnist.source), config)
    x_test, y_test = None, None
    if config.test:
        x_test, y_test = _rows(_first(mnist.test, config.test_per_class, "test_per_class", mnist.source), config)
    if config.center:
        mean = x.mean(axis=0)  # (784,)
        x -= mean
        if x_test is not None:
            x_test -= mean
    return make_dataset(x, y, x_test=x_test, y_test=y_test, append_bias=config.append_bias)


def _first(images: dict[int, Bytes], count: int | None, key: str, source: str) -> list[Bytes]:
    """Return the first `count` images (count, 28, 28) of each digit; all for None."""
    for digit, found in images.items():
        if count is not None and len(found) < count:
            raise InputError(f"dataset.{key} is {count}, source {source} has {len(found)} such images of digit {digit}")
    return [found[:count] for found in images.values()]


def _rows(images: list[Bytes], config: Config) -> tuple[Floats, Floats]:
    """Return pixels (n, 784) and labels (n,) of images (., 28, 28) sorted by class."""
    pixels = np.concatenate(images)  # (n, 28, 28)
    classes = np.repeat(np.arange(len(images), dtype=np.float64), [len(found) for found in images])  # (n,)
    if isinstance(config, MnistPairDataset) and config.light_effect:
        pixels = light_effect(pixels, classes == 1)
    x = pixels.reshape(len(pixels), -1).astype(np.float64)
    if config.scale == "unit":
        x /= 255
    signs = isinstance(config, MnistPairDataset) and config.labels == "signs"
    y: Floats = 1.0 - 2.0 * classes if signs else classes
    return x, y

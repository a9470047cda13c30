"""Data sets made of MNIST's digits: a pair for binary classification, or all ten."""

from __future__ import annotations

from typing import TypeVar

import numpy as np

from dynamics_cli.config.dataset import MnistDataset, MnistPairDataset
from dynamics_cli.data.dataset import Dataset, Floats, make_dataset
from dynamics_cli.data.idx import Bytes
from dynamics_cli.data.light import light_effect
from dynamics_cli.data.mnist import HOW_TO_GET, is_there, load_mnist
from dynamics_cli.data.mnist_subset import COUNTS
from dynamics_cli.errors import DataMissingError, InputError

Config = TypeVar("Config", MnistDataset, MnistPairDataset)


def resolve(config: Config) -> Config:
    """Replace source `auto`: the subset when it holds all that is asked for, else the full set if it is there.

    Raises:
        DataMissingError: more images are asked for than the subset holds, and the full set is not there.

    """
    if config.source != "auto":
        return config
    asked = [(config.per_class, COUNTS["train"])]
    if config.test:
        asked.append((config.test_per_class, COUNTS["test"]))
    if all(count is not None and count <= most for count, most in asked):
        return config.model_copy(update={"source": "subset"})
    if is_there():
        return config.model_copy(update={"source": "full"})
    if any(count is not None and count > most for count, most in asked):
        raise DataMissingError(f"dataset: so many images a digit need the full MNIST set, which is not here: {HOW_TO_GET}")
    return config.model_copy(update={"source": "subset"})


def load(config: MnistDataset | MnistPairDataset, seed: int) -> Dataset:
    """Return images as rows of 784 numbers, ordered by class; `seed` plays no part.

    Raises:
        DataMissingError: the full set is needed and not there.
        InputError: a digit has fewer images than asked for, or a file is damaged.

    """
    config = resolve(config)
    digits = config.digits if isinstance(config, MnistPairDataset) else list(range(10))
    mnist = load_mnist(config.source, digits=digits, parts=("train", "test") if config.test else ("train",))
    x, classes = _rows(mnist.train, digits, config.per_class, "per_class", config)
    x_test, classes_test = _rows(mnist.test, digits, config.test_per_class, "test_per_class", config)
    if config.center:
        mean = x.mean(axis=0)  # (784,)
        x -= mean
        x_test -= mean
    return make_dataset(
        x,
        _labels(classes, config),
        x_test=x_test if config.test else None,
        y_test=_labels(classes_test, config) if config.test else None,
        append_bias=config.append_bias,
    )


def _rows(
    images: dict[int, Bytes],
    digits: list[int],
    count: int | None,
    key: str,
    config: MnistDataset | MnistPairDataset,
) -> tuple[Floats, Floats]:
    """Return pixels (n, 784) and class numbers (n,): the place of each image's digit in `digits`."""
    chosen = [images.get(digit, np.empty((0, 28, 28), np.uint8))[:count] for digit in digits]
    for digit, found in zip(digits, chosen, strict=True):
        if images and count is not None and len(found) < count:
            raise InputError(
                f"dataset.{key} is {count}, but source {config.source} has {len(found)} such images of digit {digit}"
            )
    pixels = np.concatenate(chosen)  # (n, 28, 28)
    classes = np.repeat(np.arange(len(digits)), [len(found) for found in chosen])  # (n,)
    if isinstance(config, MnistPairDataset) and config.light_effect:
        pixels = light_effect(pixels, classes == 1)
    x = pixels.reshape(len(pixels), -1).astype(np.float64)
    if config.scale == "unit":
        x /= 255
    return x, classes.astype(np.float64)


def _labels(classes: Floats, config: MnistDataset | MnistPairDataset) -> Floats:
    if isinstance(config, MnistPairDataset) and config.labels == "signs":
        return 1 - 2 * classes
    return classes

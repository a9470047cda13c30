"""MNIST: the full set where it was fetched or added, and the subset that comes with dyn.

The subset (CC BY-SA 3.0) has the first images of each digit, 1 000 to train and 200 to test, in an
uncompressed `.npz`. For each digit and part it has two arrays: `train_3_ink` (1000, 98), the bits
of the pixels that are not 0, and `train_3_values`, those pixels in their order: 3 MB instead of
9.4. `tests/datasets/build_subset.py` makes it.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from dynamics_cli.datasets.files.store import Original, Published
from dynamics_cli.datasets.files.tables import read_npz
from dynamics_cli.errors import DynError, InputError

Bytes = NDArray[np.uint8]

SUBSET = Path(__file__).parents[1] / "assets" / "mnist_subset.npz"
_SIDE = 28
FILES = {
    "train": ("train-images-idx3-ubyte", "train-labels-idx1-ubyte"),
    "test": ("t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte"),
}
"""Images and labels of each part."""
MNIST = Published(
    "mnist",
    "MNIST",
    (
        Original(
            FILES["train"][0],
            "ba891046e6505d7aadcbbe25680a0738ad16aec93bde7f9b65e87a2fc25776db",
            47040016,
            True,
        ),
        Original(
            FILES["train"][1],
            "65a50cbbf4e906d70832878ad85ccda5333a97f0f4c3dd2ef09a8a9eef7101c5",
            60008,
            True,
        ),
        Original(
            FILES["test"][0],
            "0fa7898d509279e482958e8ce81c8e77db3f2f8254e26661ceb7762c4d494ce7",
            7840016,
            True,
        ),
        Original(
            FILES["test"][1],
            "ff7bcfd416de33731a308c3f266cc351222c34898ecbeaf847f06e48f7ec33f2",
            10008,
            True,
        ),
    ),
    "https://ossci-datasets.s3.amazonaws.com/mnist",
    "`dyn data fetch mnist` downloads it (11 MB), `dyn data add mnist PATH` takes files that you"
    " have; the first 1 000 images of each digit come with dyn: dataset.source subset",
)
"""The full set: its files without gzip have a header and unsigned bytes."""


def load_mnist(
    source: Literal["subset", "full"], part: str, digits: Iterable[int] = range(10)
) -> dict[int, Bytes]:
    """Return the images (n, 28, 28) of each digit, background 0 and ink 255, in MNIST's order.

    Args:
        source: `subset`: that which comes with dyn; `full`: the full set, whose contents are
            checked.
        part: `train` or `test`.
        digits: the digits wanted.

    Raises:
        DataMissingError: the full set is not there; the message says how to get it.
        InputError: a file is damaged.
    """
    if source == "subset":
        return read_subset(part, digits)
    images, labels = map(values_of, MNIST.read(FILES[part]))
    return {digit: images[labels == digit] for digit in digits}


def values_of(contents: bytes) -> Bytes:
    """Return the values of an original file, of the shape that its header has."""
    axes = contents[3]
    shape = np.frombuffer(contents, ">u4", axes, 4)
    return np.frombuffer(contents, np.uint8, offset=4 + 4 * axes).reshape(shape)


def read_subset(part: str, digits: Iterable[int], path: Path = SUBSET) -> dict[int, Bytes]:
    """Return the images (n, 28, 28) of each digit, in the order of MNIST's `part` (train or test).

    Raises InputError: the file is missing or damaged.
    """
    names = {d: (f"{part}_{d}_ink", f"{part}_{d}_values") for d in digits}
    try:
        arrays = read_npz(path, required=[name for both in names.values() for name in both])
        return {d: _unpack(arrays[ink], arrays[values]) for d, (ink, values) in names.items()}
    except (DynError, ValueError, TypeError) as error:  # the arrays are not those that were built
        raise InputError(
            f"{path}: this MNIST subset is damaged ({error}); install dyn again"
        ) from error


def _unpack(ink: Bytes, values: Bytes) -> Bytes:
    flat = np.zeros((len(ink), _SIDE * _SIDE), dtype=np.uint8)  # (n, 784)
    flat[np.unpackbits(ink, axis=1, count=_SIDE * _SIDE).astype(bool)] = values
    return flat.reshape(-1, _SIDE, _SIDE)

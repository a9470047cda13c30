"""CIFAR-10 in its published binary form: an archive of five batches to train on, one to test."""

from __future__ import annotations

import io
import tarfile
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from dynamics_cli.datasets.files.store import Original, Published

CIFAR10 = Published(
    "cifar10",
    "CIFAR-10",
    [
        Original(
            "cifar-10-binary.tar.gz",
            "c4a38c50a1bc5f3a1c5537f2155ab9d68f9f25eb1ed8d9ddda3db29a59bca1dd",
            170052171,
        )
    ],
    "https://www.cs.toronto.edu/~kriz",
    "`dyn data fetch cifar10` downloads it (170 MB), `dyn data add cifar10 PATH` takes an archive"
    " that you have",
)
RECORD = 1 + 3 * 32 * 32
"""Bytes of an image: its class, then the red, the green and the blue plane."""
MEMBERS = {"train": tuple(f"data_batch_{k}.bin" for k in range(1, 6)), "test": ("test_batch.bin",)}


def load_cifar10(part: str) -> dict[int, NDArray[np.uint8]]:
    """Return the images (n, 3072) of each class in a part (train or test), in their order.

    Raises:
        DataMissingError: the archive is not there; the message says how to get it.
        InputError: it is damaged.
    """
    (contents,) = CIFAR10.read([file.name for file in CIFAR10.files])
    with tarfile.open(fileobj=io.BytesIO(contents), mode="r:gz") as opened:
        members = {Path(member.name).name: member for member in opened if member.isfile()}
        batches = [opened.extractfile(members[name]).read() for name in MEMBERS[part]]  # type: ignore[union-attr]
    records = np.frombuffer(b"".join(batches), np.uint8).reshape(-1, RECORD)
    return {label: records[records[:, 0] == label, 1:] for label in range(10)}

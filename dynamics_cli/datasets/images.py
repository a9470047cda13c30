"""Dogs vs. Cats as arrays: decoded once at a chosen size into a file that is memory-mapped from then on."""

from __future__ import annotations

import io
import json
import math
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from dynamics_cli.datasets import store
from dynamics_cli.datasets.dogs_vs_cats import Place, Progress, decode_all, directory, find_place
from dynamics_cli.datasets.jpeg import decode_jpeg, quiet_pillow
from dynamics_cli.datasets.streams import stream
from dynamics_cli.errors import InputError

MAX_SIZE = 1024
_PIXELS, _RECORD = "images.npy", "record.json"
_VERSION = 1
"""Raised when images are decoded in another way, so that older caches are not used."""
_BLOCK = 2**24

Shape = tuple[int, int, int, int]


@dataclass(frozen=True)
class ImageSet:
    """Images and what they show."""

    images: NDArray[np.uint8]
    """(n, size, size, 3), memory-mapped and read-only: red, green, blue from 0 to 255."""
    labels: NDArray[np.int64]
    """(n,): 0 a cat, 1 a dog."""
    names: list[str]
    """File names such as `cat.0.jpg`."""
    key: str
    """SHA-256 over names and contents of the files."""


def load_images(
    size: int, *, progress: Progress | None = None, on_wait: Callable[[str], None] | None = None
) -> ImageSet:
    """Return all images scaled to `size` x `size` pixels, decoding them when that has not been done before.

    Raises:
        DataMissingError: the images were not added, or are gone.
        InputError: the size makes no sense, or the images have changed.
        RunError: the decoded images cannot be written.

    """
    if not 1 <= size <= MAX_SIZE:
        raise InputError(f"images can be scaled to 1 to {MAX_SIZE} pixels, not to {size}")
    place = find_place()
    cache = directory() / "cache" / f"{place.key[:16]}-{size}-v{_VERSION}"
    shape = (len(place.names), size, size, 3)
    images = _intact(cache, shape)
    if images is None:
        with store.locked(cache.parent, on_wait):
            if (images := _intact(cache, shape)) is None:
                store.delete(cache)
                _decode_into(cache, place, shape, progress)
                images = _map(cache, shape)
    labels = np.array([name.startswith("dog.") for name in place.names], dtype=np.int64)
    return ImageSet(images, labels, place.names, place.key)


def split_per_class(
    labels: NDArray[np.int64], test_fraction: float, seed: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return indices to train on and indices held out, sorted, drawn class by class from the data stream of `seed`.

    Raises:
        InputError: a part would have no image of some class.

    """
    rng = stream(seed, "data")
    train, test = [], []
    for label in np.unique(labels):
        members = rng.permutation(np.flatnonzero(labels == label))
        count = round(test_fraction * len(members))
        if not 0 < count < len(members):
            raise InputError(f"test_fraction {test_fraction:g} of {len(members)} images of a class leaves a part empty")
        test.append(members[:count])
        train.append(members[count:])
    return np.sort(np.concatenate(train)), np.sort(np.concatenate(test))


def _decode_into(cache: Path, place: Place, shape: Shape, progress: Progress | None) -> None:
    with quiet_pillow(), store.told(cache.parent), store.fresh_directory(cache) as folder:
        checksum = 0
        with (folder / _PIXELS).open("xb") as handle:
            handle.write(_header(shape))
            for _, pixels in decode_all(place, partial(decode_jpeg, size=shape[1]), progress):
                data = pixels.tobytes()
                checksum = zlib.crc32(data, checksum)
                handle.write(data)
            store.sync(handle)
        with (folder / _RECORD).open("xb") as handle:
            handle.write(json.dumps({"crc32": checksum, "shape": shape}).encode())
            store.sync(handle)


def _header(shape: Shape) -> bytes:
    """Return how a `.npy` file of images begins."""
    header = io.BytesIO()
    np.lib.format.write_array_header_1_0(header, {"descr": "|u1", "fortran_order": False, "shape": shape})
    return header.getvalue()


def _map(cache: Path, shape: Shape) -> NDArray[np.uint8]:
    """Map decoded images into memory; that the file begins as it should is known."""
    return np.memmap(cache / _PIXELS, np.uint8, "r", len(_header(shape)), shape)


def _intact(cache: Path, shape: Shape) -> NDArray[np.uint8] | None:
    """Return decoded images when they are there and are what was written; nothing in the file is interpreted."""
    header = _header(shape)
    try:
        record = json.loads((cache / _RECORD).read_bytes())
        with (cache / _PIXELS).open("rb") as handle:
            whole = handle.read(len(header)) == header and handle.seek(0, 2) == len(header) + math.prod(shape)
    except (OSError, ValueError, RecursionError):
        return None
    if not whole or not isinstance(record, dict) or list(shape) != record.get("shape"):
        return None
    images = _map(cache, shape)
    flat, checksum = images.reshape(-1), 0
    for k in range(0, len(flat), _BLOCK):
        checksum = zlib.crc32(flat[k : k + _BLOCK].data, checksum)
    return images if checksum == record.get("crc32") else None

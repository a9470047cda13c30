"""Kaggle's Dogs vs. Cats: checked once where the user keeps it, remembered, never copied.

As arrays, the images are decoded once at a chosen size into an `.npz`.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path
from threading import Lock

import numpy as np
from numpy.typing import NDArray

from dynamics_cli.datasets.files import store
from dynamics_cli.datasets.files.pictures import PictureError, decode_jpeg, open_pictures, quiet_pillow
from dynamics_cli.datasets.files.tables import read_npz
from dynamics_cli.errors import DataMissingError, InputError
from dynamics_cli.kinds import stream
from dynamics_cli.runs.store import files as disk

CLASSES = ("cat", "dog")
PER_CLASS = 12_500
"""Images of each class in Kaggle's set."""
HOW_TO_GET = (
    "download train.zip from https://www.kaggle.com/c/dogs-vs-cats/data (a free account is needed), then "
    "`dyn data add dogs-vs-cats PATH` with the archive or the folder it unpacks to"
)
MAX_SIZE = 1024
"""Pixels of the side of the largest square to which images are scaled."""

Progress = Callable[[int, int], None]
"""Called with the number of images done and of all images."""

_NAME = re.compile(r"(?:train/)?((cat|dog)\.(0|[1-9][0-9]{0,5})\.jpg)")
_PLACE = "place.json"
_SHOWN = 20
"""Broken images that are named."""
OURS = rf"{_PLACE}|cache/(\.lock|[^/]+(\.npz|/images\.npy|/record\.json))"
"""Pattern of the names of all that dyn keeps of the data set; folders of the cache are those of earlier versions."""


@dataclass(frozen=True)
class Collection:
    """Where the user's images are, and which were found there."""

    path: str
    key: str
    """SHA-256 over the names and contents of all images: the same for the archive and the folder."""
    names: list[str]
    """File names such as `cat.0.jpg`, cats first, by number."""

    @property
    def labels(self) -> NDArray[np.int64]:
        """Of each image, (n,): 0 a cat, 1 a dog."""
        return np.array([name.startswith("dog.") for name in self.names], dtype=np.int64)


def directory() -> Path:
    """Return where dyn keeps the files of this data set."""
    return store.data_root() / "dogs-vs-cats"


def add_dogs_vs_cats(
    path: Path, *, progress: Progress | None = None, on_wait: Callable[[str], None] | None = None
) -> Collection:
    """Check every image of `train.zip` or of the folder it unpacks to, and remember where they are.

    Raises:
        InputError: not such an archive or folder, or images are broken (they are named); then nothing changes.
        RunError: the place cannot be written down.
    """
    place, _ = _decode(path.absolute(), 1, progress)
    with store.locked(directory(), on_wait):
        disk.write_atomic(directory() / _PLACE, json.dumps(asdict(place)).encode())
    return place


def remembered() -> Collection | None:
    """Return the place that was added; None when there is none.

    Raises InputError: the note of it is damaged.
    """
    file = directory() / _PLACE
    try:
        place = Collection(**json.loads(file.read_bytes()))
        texts = [place.path, place.key, *place.names]
        good = isinstance(place.names, list) and place.names and all(isinstance(text, str) for text in texts)
        if not good or not re.fullmatch("[0-9a-f]{64}", place.key) or not all(map(_NAME.fullmatch, place.names)):
            raise TypeError("dyn writes a path, a SHA-256 and names of images")
    except FileNotFoundError:
        return None
    except (OSError, ValueError, TypeError, RecursionError) as error:
        raise InputError(f"{file}: is damaged ({error}); `dyn data add dogs-vs-cats PATH` writes it anew") from error
    return place


def find_place() -> Collection:
    """Return the place that was added.

    Raises DataMissingError: none was; the message says how to get the data.
    """
    place = remembered()
    if place is None:
        raise DataMissingError(f"the images of Dogs vs. Cats are not here: {HOW_TO_GET}")
    return place


def is_there(place: Collection) -> bool:
    """Whether the images still are where they were."""
    return os.path.exists(place.path)  # noqa: PTH110 - `Path.exists` raises for a name that is too long


def _decode(path: Path, size: int, progress: Progress | None) -> tuple[Collection, list[NDArray[np.uint8]]]:
    """Return all images (size, size, 3) of an archive or a folder, and which they are.

    Raises InputError: it holds other files than images, or images that cannot be decoded.
    """
    digest, decoded, broken, reading = hashlib.sha256(), [], [], Lock()
    with open_pictures(path) as pictures, quiet_pillow(), ThreadPoolExecutor(min(8, os.cpu_count() or 1)) as pool:
        files = _images(path, pictures.names)

        def decode(name: str) -> tuple[str, NDArray[np.uint8] | PictureError]:
            try:
                with reading:  # a `ZipFile` counts its open files without a lock
                    content = pictures.read(files[name])
                return hashlib.sha256(content).hexdigest(), decode_jpeg(content, size)
            except PictureError as error:
                return "", error

        for name, (checksum, image) in zip(files, pool.map(decode, files), strict=True):
            digest.update(f"{name} {checksum}\n".encode())
            if isinstance(image, PictureError):
                broken.append(f"  {files[name]}: {image}")
            else:
                decoded.append(image)
            if progress is not None:
                progress(len(decoded) + len(broken), len(files))
    if broken:
        more = [f"  and {len(broken) - _SHOWN} more"] if len(broken) > _SHOWN else []
        listed = "\n".join(broken[:_SHOWN] + more)
        raise InputError(f"{path}: {len(broken)} of {len(files)} images cannot be used:\n{listed}")
    return Collection(str(path), digest.hexdigest(), list(files)), decoded


def _images(path: Path, names: list[str]) -> dict[str, str]:
    """Return file name -> name in the folder or archive of every image, cats first, by number."""
    matches = [(name, _NAME.fullmatch(name)) for name in names]
    strange = [name for name, match in matches if match is None]
    if "train.zip" in (Path(name).name for name in strange):
        raise InputError(f"{path}: holds Kaggle's train.zip among others; unpack it and give train.zip")
    if strange:
        listed = ", ".join(map(repr, strange[:5])) + (f" and {len(strange) - 5} more" if len(strange) > 5 else "")
        raise InputError(f"{path}: images are called cat.0.jpg or dog.0.jpg (in train/ or not), but there is {listed}")
    found: dict[str, str] = {}
    for name, match in matches:
        assert match is not None
        if match[1] in found:
            raise InputError(f"{path}: {match[1]} is there twice")
        found[match[1]] = name
    for kind in CLASSES:
        if not any(name.startswith(f"{kind}.") for name in found):
            raise InputError(f"{path}: holds no image of a {kind} ({kind}.0.jpg ...); both classes are needed")
    order = sorted(found, key=lambda name: (name.split(".")[0], int(name.split(".")[1])))
    return {name: found[name] for name in order}


def load_images(
    place: Collection, size: int, *, progress: Progress | None = None, on_wait: Callable[[str], None] | None = None
) -> NDArray[np.uint8]:
    """Return all images (n, size, size, 3), red, green, blue from 0 to 255, decoded when they have not been before.

    Raises:
        DataMissingError: the images are gone.
        InputError: the size makes no sense, or the images have changed.
        RunError: the decoded images cannot be written.
    """
    if not 1 <= size <= MAX_SIZE:
        raise InputError(f"images can be scaled to 1 to {MAX_SIZE} pixels, not to {size}")
    cache = directory() / "cache" / f"{place.key[:16]}-{size}-v1.npz"  # v1: the way of decoding
    images = _cached(cache, (len(place.names), size, size, 3))
    if images is not None:
        return images
    with store.locked(cache.parent, on_wait):
        if (images := _cached(cache, (len(place.names), size, size, 3))) is not None:
            return images
        if not is_there(place):
            raise DataMissingError(f"the images of Dogs vs. Cats are no longer at {place.path}; {HOW_TO_GET}")
        found, decoded = _decode(Path(place.path), size, progress)
        if found != place:
            raise InputError(
                f"{place.path}: has changed since it was added; `dyn data add dogs-vs-cats PATH` checks it again"
            )
        images = np.stack(decoded)
        with disk.replacing(cache) as temporary, temporary.open("wb") as handle:
            np.savez(handle, images=images)
            handle.flush()
            disk.sync(handle)
        return images


def _cached(cache: Path, shape: tuple[int, ...]) -> NDArray[np.uint8] | None:
    """Return decoded images when they are there and intact: the archive has a checksum of them."""
    try:
        images = read_npz(cache, required=("images",))["images"]
    except InputError:
        return None
    return images if images.shape == shape and images.dtype == np.uint8 else None


def split_per_class(
    labels: NDArray[np.int64], test_fraction: float, seed: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return indices to train on and indices held out, sorted, drawn class by class from the data stream of `seed`.

    Raises InputError: a part would have no image of some class.
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

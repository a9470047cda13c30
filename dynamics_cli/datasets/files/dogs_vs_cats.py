"""Kaggle's Dogs vs. Cats: checked once where the user keeps it, remembered, never copied.

As arrays, the images are decoded once at a chosen size into a file that is memory-mapped from then on.
"""

from __future__ import annotations

import hashlib
import io
import json
import math
import os
import re
import zlib
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from dynamics_cli.datasets.files import store
from dynamics_cli.datasets.files.pictures import (
    NotAPictureError,
    Pictures,
    UnreadablePictureError,
    check_jpeg,
    decode_jpeg,
    open_pictures,
    quiet_pillow,
)
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
Result = TypeVar("Result")
Shape = tuple[int, int, int, int]
"""Of decoded images: (n, size, size, 3)."""

_NAME = re.compile(r"(?:train/)?((cat|dog)\.(0|[1-9][0-9]{0,5})\.jpg)")
_KEY = re.compile(r"[0-9a-f]{64}")
_PLACE = "place.json"
_CHUNK = 64
"""Images whose contents are in memory at once."""
_SHOWN = 20
"""Broken images that are named."""
_PIXELS, _RECORD = "images.npy", "record.json"
OURS = rf"{_PLACE}|cache/[^/]+/({_PIXELS}|{_RECORD})"
"""Pattern of the names of all that dyn keeps of the data set."""
_VERSION = 1
"""Raised when images are decoded in another way, so that older caches are not used."""
_BLOCK = 2**24
"""Bytes of decoded images that are checked at once."""


@dataclass(frozen=True)
class Place:
    """Where the user's images are, and what was found there."""

    path: str
    key: str
    """SHA-256 over the names and contents of all images: the same for the archive and the folder."""
    names: list[str]
    """File names such as `cat.0.jpg`, cats first, by number."""

    @property
    def counts(self) -> dict[str, int]:
        """Number of images of each class."""
        return {kind: sum(name.startswith(f"{kind}.") for name in self.names) for kind in CLASSES}


def directory() -> Path:
    """Return where dyn keeps what belongs to this data set."""
    return store.data_root() / "dogs-vs-cats"


def add_dogs_vs_cats(
    path: Path, *, progress: Progress | None = None, on_wait: Callable[[str], None] | None = None
) -> Place:
    """Check every image of `train.zip` or of the folder it unpacks to, and remember where they are.

    Raises:
        InputError: not such an archive or folder, or images are broken (they are named); then nothing changes.
        RunError: the place cannot be written down.
    """
    path = path.absolute()
    broken: list[str] = []
    with open_pictures(path) as pictures, quiet_pillow():
        files = _images(path, pictures)
        digest = hashlib.sha256()
        for done, (name, content, problem) in enumerate(read_all(pictures, files, check_jpeg), 1):
            if problem is not None:
                broken.append(f"  {files[name]}: {problem}")
            digest.update(_line(name, content))
            if progress is not None:
                progress(done, len(files))
    if broken:
        more = [f"  and {len(broken) - _SHOWN} more"] if len(broken) > _SHOWN else []
        listed = "\n".join(broken[:_SHOWN] + more)
        raise InputError(f"{path}: {len(broken)} of {len(files)} images cannot be used:\n{listed}")
    place = Place(str(path), digest.hexdigest(), list(files))
    with store.locked(directory(), on_wait):
        disk.write_atomic(directory() / _PLACE, json.dumps(asdict(place)).encode())
    return place


def remembered() -> Place | None:
    """Return the place that was added; None when there is none.

    Raises InputError: what was written down cannot be read.
    """
    file = directory() / _PLACE
    try:
        found = json.loads(file.read_bytes())
        place = Place(**found)
        _check(place)
    except FileNotFoundError:
        return None
    except (OSError, ValueError, TypeError, RecursionError) as error:
        raise InputError(f"{file}: is damaged ({error}); `dyn data add dogs-vs-cats PATH` writes it anew") from error
    return place


def _check(place: Place) -> None:
    """Raise TypeError unless a place that was read is one that could have been written: files are named after it."""
    if not isinstance(place.path, str) or not isinstance(place.key, str) or not _KEY.fullmatch(place.key):
        raise TypeError("path and key must be texts, the key a SHA-256")
    if not isinstance(place.names, list) or not all(isinstance(n, str) and _NAME.fullmatch(n) for n in place.names):
        raise TypeError("names must be a list of names of images")
    if not place.names:
        raise TypeError("there is no image")


def find_place() -> Place:
    """Return the place that was added.

    Raises DataMissingError: none was; the message says how to get the data.
    """
    place = remembered()
    if place is None:
        raise DataMissingError(f"the images of Dogs vs. Cats are not here: {HOW_TO_GET}")
    return place


def is_there(place: Place) -> bool:
    """Whether the images still are where they were."""
    return os.path.exists(place.path)  # noqa: PTH110 - `Path.exists` raises for a name that is too long


def decode_all(
    place: Place, decode: Callable[[bytes], Result], progress: Progress | None = None
) -> Iterator[tuple[str, Result]]:
    """Yield name and decoded content of every image in order, checking that they still are what was added.

    Raises:
        DataMissingError: they are no longer there.
        InputError: they have changed; this may be raised after the last image.
    """
    path = Path(place.path)
    if not is_there(place):
        raise DataMissingError(f"the images of Dogs vs. Cats are no longer at {path}; {HOW_TO_GET}")
    changed = f"{path}: has changed since it was added; `dyn data add dogs-vs-cats PATH` checks it again"
    with open_pictures(path) as pictures:
        files = _images(path, pictures)
        if list(files) != place.names:
            raise InputError(changed)
        digest = hashlib.sha256()
        for done, (name, content, result) in enumerate(read_all(pictures, files, decode), 1):
            if isinstance(result, Problem):
                raise InputError(f"{path}: {files[name]}: {result}")
            digest.update(_line(name, content))
            yield name, result
            if progress is not None:
                progress(done, len(files))
        if digest.hexdigest() != place.key:
            raise InputError(changed)


class Problem(str):
    """Why an image cannot be used."""

    __slots__ = ()


def read_all(
    pictures: Pictures, files: dict[str, str], work: Callable[[bytes], Result]
) -> Iterator[tuple[str, bytes, Result | Problem]]:
    """Yield name, content and `work(content)`, or the problem, of each file in order; the work is done by threads."""

    def attempt(content: bytes | Problem) -> Result | Problem:
        try:
            return content if isinstance(content, Problem) else work(content)
        except NotAPictureError as error:
            return Problem(error)

    every = list(files)
    with ThreadPoolExecutor(min(8, os.cpu_count() or 1)) as pool:
        for first in range(0, len(every), _CHUNK):
            names = every[first : first + _CHUNK]
            contents = [_content(pictures, files[name]) for name in names]
            for name, content, result in zip(names, contents, pool.map(attempt, contents), strict=True):
                yield name, b"" if isinstance(content, Problem) else content, result


def _content(pictures: Pictures, file: str) -> bytes | Problem:
    try:
        return pictures.read(file)
    except UnreadablePictureError as error:
        return Problem(error)


def _images(path: Path, pictures: Pictures) -> dict[str, str]:
    """Return file name -> name in the folder or archive of every image, cats first, by number."""
    found: dict[str, str] = {}
    strange = []
    for name in pictures.names:
        match = _NAME.fullmatch(name)
        if match is None:
            strange.append(name)
        elif match[1] in found:
            raise InputError(f"{path}: {match[1]} is there twice")
        else:
            found[match[1]] = name
    if "train.zip" in (Path(name).name for name in strange):
        raise InputError(f"{path}: holds Kaggle's train.zip among others; unpack it and give train.zip")
    if strange:
        listed = ", ".join(map(repr, strange[:5])) + (f" and {len(strange) - 5} more" if len(strange) > 5 else "")
        raise InputError(f"{path}: images are called cat.0.jpg or dog.0.jpg (in train/ or not), but there is {listed}")
    for kind in CLASSES:
        if not any(name.startswith(f"{kind}.") for name in found):
            raise InputError(f"{path}: holds no image of a {kind} ({kind}.0.jpg ...); both classes are needed")
    order = sorted(found, key=lambda name: (name.split(".")[0], int(name.split(".")[1])))
    return {name: found[name] for name in order}


def _line(name: str, content: bytes) -> bytes:
    return f"{name} {hashlib.sha256(content).hexdigest()}\n".encode()


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
                disk.remove_tree(cache)
                _decode_into(cache, place, shape, progress)
                images = _map(cache, shape)
    labels = np.array([name.startswith("dog.") for name in place.names], dtype=np.int64)
    return ImageSet(images, labels, place.names, place.key)


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


def _decode_into(cache: Path, place: Place, shape: Shape, progress: Progress | None) -> None:
    with quiet_pillow(), store.fresh_directory(cache) as folder:
        checksum = 0
        with store.synced(folder / _PIXELS) as handle:
            handle.write(_header(shape))
            for _, pixels in decode_all(place, partial(decode_jpeg, size=shape[1]), progress):
                data = pixels.tobytes()
                checksum = zlib.crc32(data, checksum)
                handle.write(data)
        with store.synced(folder / _RECORD) as handle:
            handle.write(json.dumps({"crc32": checksum, "shape": shape}).encode())


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

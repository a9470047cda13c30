"""Kaggle's Dogs vs. Cats: checked where the user keeps it, its place remembered, its images decoded once a size."""

from __future__ import annotations

import contextlib
import hashlib
import io
import json
import os
import re
import warnings
import zipfile
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path
from threading import Lock

import numpy as np
from numpy.typing import NDArray
from PIL import Image, UnidentifiedImageError

from dynamics_cli.datasets.files import store
from dynamics_cli.datasets.files.tables import read_npz
from dynamics_cli.errors import DataMissingError, InputError
from dynamics_cli.kinds import stream
from dynamics_cli.runs.errors import ARCHIVE_DAMAGE
from dynamics_cli.runs.store import files

NAME = "dogs-vs-cats"
HOW_TO_GET = (
    "download train.zip from https://www.kaggle.com/c/dogs-vs-cats/data (a free account is needed), then "
    "`dyn data add dogs-vs-cats PATH` with the archive or the folder it unpacks to"
)
MAX_BYTES = 4 * 2**20
"""Size of the largest picture that is read."""
MAX_PIXELS = 2**22
"""Pixels of the largest picture that is decoded."""

Progress = Callable[[int, int], None]
"""Called with the number of images done and of all images."""

_IMAGE = re.compile(r"(cat|dog)\.(0|[1-9]\d{0,5})\.jpg", re.ASCII)


@dataclass(frozen=True)
class Collection:
    """Where the user's images are, and which were found there."""

    path: str
    key: str
    """SHA-256 over the names and contents of all images: the same for the archive and the folder."""
    cats: int
    dogs: int

    @property
    def labels(self) -> NDArray[np.int64]:
        """Of each image, (n,): 0 a cat, 1 a dog; cats come first."""
        return np.repeat([0, 1], [self.cats, self.dogs])


def directory() -> Path:
    """Return where dyn keeps the files of this data set."""
    return store.data_root() / NAME


def add_dogs_vs_cats(path: Path, progress: Progress | None = None) -> Collection:
    """Check every image of `train.zip` or of the folder it unpacks to, and remember where they are.

    Raises:
        InputError: not such an archive or folder, or an image is broken (it is named); then nothing changes.
        RunError: the place cannot be written down.
    """
    place, _ = _decode(path.absolute(), 1, progress)
    with files.os_errors_as_run_errors(directory(), store.ADVICE):
        files.make_directory(directory())
        files.write_atomic(directory() / "place.json", json.dumps(asdict(place)).encode())
    return place


def find_place() -> Collection:
    """Return the place that was added.

    Raises:
        DataMissingError: none was; the message says how to get the data.
        InputError: the note of it is damaged.
    """
    file = directory() / "place.json"
    try:
        place = Collection(**json.loads(file.read_bytes()))
        if not re.fullmatch("[0-9a-f]{64}", place.key) or not min(place.cats, place.dogs) > 0 or not Path(place.path):
            raise ValueError("dyn writes a path, a SHA-256 and two numbers")
    except FileNotFoundError as error:
        raise DataMissingError(f"the images of Dogs vs. Cats are not here: {HOW_TO_GET}") from error
    except (OSError, ValueError, TypeError, RecursionError) as error:
        raise InputError(f"{file}: is damaged ({error}); `dyn data add {NAME} PATH` writes it anew") from error
    return place


def load_images(place: Collection, size: int, progress: Progress | None = None) -> NDArray[np.uint8]:
    """Return all images (n, size, size, 3), red, green, blue from 0 to 255, decoded when they have not been before.

    Raises:
        DataMissingError: the images are gone.
        InputError: the images have changed.
        RunError: the decoded images cannot be written.
    """
    cache = directory() / "cache" / f"{place.key[:16]}-{size}-v1.npz"  # v1: the way of decoding
    with contextlib.suppress(InputError):  # a checksum in the archive tells damage, and they are decoded again
        cached: NDArray[np.uint8] = read_npz(cache, required=("images",))["images"]
        if cached.shape == (place.cats + place.dogs, size, size, 3) and cached.dtype == np.uint8:
            return cached
    if not os.path.exists(place.path):  # noqa: PTH110 - `Path.exists` raises for a name that is too long
        raise DataMissingError(f"the images of Dogs vs. Cats are no longer at {place.path}; {HOW_TO_GET}")
    found, images = _decode(Path(place.path), size, progress)
    if found != place:
        raise InputError(f"{place.path}: has changed since it was added; `dyn data add {NAME} PATH` checks it again")
    with files.os_errors_as_run_errors(cache, store.ADVICE):
        files.make_directory(cache.parent)
        with files.replacing(cache) as temporary, temporary.open("wb") as handle:
            np.savez(handle, images=images)
            handle.flush()
            files.sync(handle)
    return images


def _decode(path: Path, size: int, progress: Progress | None) -> tuple[Collection, NDArray[np.uint8]]:
    """Return which images an archive or a folder holds, and all of them, (n, size, size, 3)."""
    reading = Lock()

    def decode(file: Path | zipfile.Path) -> tuple[str, NDArray[np.uint8]]:
        try:
            with reading, file.open("rb") as handle:  # a `ZipFile` counts its open files without a lock
                data = handle.read(MAX_BYTES + 1)
            return hashlib.sha256(data).hexdigest(), decode_jpeg(data, size)
        except UnidentifiedImageError as error:
            raise InputError(f"{path}: {file.name} is not a JPEG") from error
        except (*ARCHIVE_DAMAGE, Image.DecompressionBombError) as error:
            raise InputError(f"{path}: {file.name} cannot be used: {error or type(error).__name__}") from error

    digest, decoded = hashlib.sha256(), []
    with _opened(path) as found, warnings.catch_warnings(), ThreadPoolExecutor(min(8, os.cpu_count() or 1)) as pool:
        warnings.filterwarnings("ignore", module=r"PIL\.")  # of odd metadata, which do not matter for pixels
        for file, (checksum, image) in zip(found, pool.map(decode, found), strict=True):
            digest.update(f"{file.name} {checksum}\n".encode())
            decoded.append(image)
            if progress is not None:
                progress(len(decoded), len(found))
    cats = sum(file.name.startswith("cat") for file in found)
    return Collection(str(path), digest.hexdigest(), cats, len(found) - cats), np.stack(decoded)


@contextlib.contextmanager
def _opened(path: Path) -> Iterator[list[Path | zipfile.Path]]:
    """Yield the images of an archive or a folder, in `train/` or not, cats first, by number; other files do not count.

    Raises InputError: it is neither, or lacks one class.
    """
    with contextlib.ExitStack() as stack:
        try:
            root = path if path.is_dir() else zipfile.Path(stack.enter_context(zipfile.ZipFile(path)))
        except ARCHIVE_DAMAGE as error:
            raise InputError(f"{path}: is neither a folder nor a complete zip archive ({error})") from error
        inner = root / "train"
        found = {file.name: file for file in (inner if inner.is_dir() else root).iterdir()}
        named = [match for match in map(_IMAGE.fullmatch, found) if match]
        if {match[1] for match in named} != {"cat", "dog"}:
            raise InputError(f"{path}: holds no cat.0.jpg, dog.0.jpg ... of both classes: Kaggle's train.zip does")
        yield [found[match[0]] for match in sorted(named, key=lambda match: (match[1], int(match[2])))]


def decode_jpeg(data: bytes, size: int) -> NDArray[np.uint8]:
    """Decode a JPEG to its end and scale it to a square, whatever its aspect ratio: (size, size, 3), red, green, blue.

    Raises ValueError, OSError or what else Pillow raises: it cannot be decoded, or is too large.
    """
    if len(data) > MAX_BYTES:
        raise ValueError(f"more than {MAX_BYTES} bytes")
    with Image.open(io.BytesIO(data), formats=("JPEG",)) as image:  # Pillow's other decoders stay out of reach
        if image.width * image.height > MAX_PIXELS:
            raise ValueError(f"{image.width} x {image.height} pixels are too many")
        # the format scales by 1/2, 1/4 or 1/8 while it decodes; twice the size is left for a good reduction
        image.draft("RGB", (2 * size, 2 * size))
        return np.asarray(image.convert("RGB").resize((size, size), Image.Resampling.BILINEAR), dtype=np.uint8)


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

"""Kaggle's Dogs vs. Cats, read by Pillow from the user's archive, or the folder it unpacks to."""

from __future__ import annotations

import contextlib
import hashlib
import io
import json
import re
import zipfile
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Lock

import numpy as np
from numpy.typing import NDArray
from PIL import Image, UnidentifiedImageError

from dynamics_cli.datasets.files import store
from dynamics_cli.errors import DataMissingError, InputError, UsageError
from dynamics_cli.kinds import check_size
from dynamics_cli.process import cores, ignored_warnings
from dynamics_cli.runs.errors import ARCHIVE_DAMAGE
from dynamics_cli.runs.store import files

NAME = "dogs-vs-cats"
HOW_TO_GET = (
    "download train.zip from https://www.kaggle.com/c/dogs-vs-cats/data (a free account is needed),"
    " then `dyn data add dogs-vs-cats PATH` with the archive or the folder it unpacks to"
)
MAX_BYTES = 4 * 2**20
"""Size of the largest picture that is read."""
MAX_PIXELS = 2**22
"""Pixels of the largest picture that is decoded."""

Progress = Callable[[int, int], None]
"""Called with the number of images done and of all images."""

_NOTE = re.compile(rb'\{"path": "')
"""How the note of the place of the images begins."""
_IMAGE = re.compile(r"(cat|dog)\.(0|[1-9]\d{0,5})\.jpg", re.ASCII)


def add_dogs_vs_cats(path: Path, progress: Progress | None = None) -> Path:
    """Check every image of `train.zip` or its unpacked folder; remember and return where it is.

    Raises:
        InputError: not such an archive or folder, or an image is broken (it is named); then nothing
            changes.
        UsageError: somebody's file is where the place is written down.
        RunError: the place cannot be written down.
    """
    place = path.absolute()
    key = read_images(place, 1, progress)[0]
    directory = store.data_root() / NAME
    note = directory / "place.json"
    if files.exists(note) and not _NOTE.match(files.read(note)):
        raise UsageError(f"{note} is there already, and dyn did not write it: move it away")
    with files.os_errors_as_run_errors(directory, store.ADVICE):
        files.make_directory(directory)
        files.write_atomic(note, json.dumps({"path": str(place), "key": key}).encode())
    return place


def find_images() -> tuple[Path, str]:
    """Return where the images are, and their SHA-256.

    Raises:
        DataMissingError: none were added, or they are gone; the message says how to get them.
        InputError: the note of their place is damaged.
    """
    file = store.data_root() / NAME / "place.json"
    try:
        note = json.loads(file.read_bytes())
        path = Path(note["path"])
        key = str(note["key"])
    except FileNotFoundError as error:
        raise DataMissingError(f"the images of Dogs vs. Cats are not here: {HOW_TO_GET}") from error
    except (OSError, ValueError, TypeError, KeyError) as error:
        raise InputError(
            f"{file}: is damaged ({error}): move it away, and `dyn data add {NAME} PATH` writes it"
            " anew"
        ) from error
    if not path.exists():
        raise DataMissingError(f"the images of Dogs vs. Cats are no longer at {path}; {HOW_TO_GET}")
    return path, key


def read_images(
    path: Path, size: int, progress: Progress | None = None
) -> tuple[str, NDArray[np.uint8], NDArray[np.bool_]]:
    """Return the images of an archive or a folder as squares, cats first, each class by number.

    Returns:
        The SHA-256 of names and contents, the same for an archive and its folder; the images (n,
        size, size, 3), red, green, blue from 0 to 255; and whether each is a dog (n,).

    Raises InputError: it is neither an archive nor a folder of both classes, or an image is broken
    (it is named).
    """
    reading = Lock()

    def decode(file: Path | zipfile.Path) -> tuple[str, NDArray[np.uint8]]:
        try:
            if isinstance(file, Path):
                files.check_regular(file)
            # a `ZipFile` counts its open files without a lock
            with reading, file.open("rb") as handle:
                data = handle.read(MAX_BYTES + 1)
            return hashlib.sha256(data).hexdigest(), _decoded(data, size)
        except UnidentifiedImageError as error:
            raise InputError(f"{path}: {file.name} is not a JPEG") from error
        except (*ARCHIVE_DAMAGE, Image.DecompressionBombError) as error:
            raise InputError(
                f"{path}: {file.name} cannot be used: {error or type(error).__name__}"
            ) from error

    digest = hashlib.sha256()
    with (
        _opened(path) as pictures,
        ignored_warnings(module=r"PIL\."),  # of odd metadata, not of pixels
        ThreadPoolExecutor(min(8, cores())) as pool,
    ):
        check_size(len(pictures), size**2)  # three colours in float32, and the bytes
        images = np.empty((len(pictures), size, size, 3), np.uint8)
        for k, (file, (checksum, image)) in enumerate(
            zip(pictures, pool.map(decode, pictures), strict=True)
        ):
            digest.update(f"{file.name} {checksum}\n".encode())
            images[k] = image
            if progress is not None:
                progress(k + 1, len(pictures))
    return digest.hexdigest(), images, np.array([file.name.startswith("dog") for file in pictures])


@contextlib.contextmanager
def _opened(path: Path) -> Iterator[list[Path | zipfile.Path]]:
    """Yield the images of an archive or a folder, in `train/` or not, in order."""
    with contextlib.ExitStack() as stack:
        root: Path | zipfile.Path = path
        try:
            if not path.is_dir():
                files.check_regular(path)
                root = zipfile.Path(stack.enter_context(zipfile.ZipFile(path)))
        except ARCHIVE_DAMAGE as error:
            raise InputError(
                f"{path}: is neither a folder nor a complete zip archive ({error})"
            ) from error
        if (root / "train").is_dir():
            root = root / "train"
        by_name = {file.name: file for file in root.iterdir()}
        named = [match for match in map(_IMAGE.fullmatch, by_name) if match]
        if {match[1] for match in named} != {"cat", "dog"}:
            raise InputError(
                f"{path}: holds no cat.0.jpg, dog.0.jpg ... of both classes: Kaggle's train.zip"
                " does"
            )
        yield [
            by_name[match[0]]
            for match in sorted(named, key=lambda match: (match[1], int(match[2])))
        ]


def _decoded(data: bytes, size: int) -> NDArray[np.uint8]:
    """Return a JPEG, decoded to its end and scaled to a square: (size, size, 3)."""
    if len(data) > MAX_BYTES:
        raise ValueError(f"more than {MAX_BYTES} bytes")
    # Pillow's other decoders stay out of reach
    with Image.open(io.BytesIO(data), formats=("JPEG",)) as image:
        if image.width * image.height > MAX_PIXELS:
            raise ValueError(f"{image.width} x {image.height} pixels are too many")
        # the format scales by 1/2, 1/4 or 1/8 while it decodes; twice the size is left for a good
        # reduction
        image.draft("RGB", (2 * size, 2 * size))
        return np.asarray(
            image.convert("RGB").resize((size, size), Image.Resampling.BILINEAR), dtype=np.uint8
        )

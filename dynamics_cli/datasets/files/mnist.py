"""MNIST: the full set where it was fetched or added, and the subset that comes with dyn.

The subset has the first images of each digit, 1 000 to train and 200 to test, in an uncompressed `.npz`. For each digit
and part it has two arrays: `train_3_ink` (1000, 98), the bits of the pixels that are not 0, and `train_3_values`, those
pixels in their order. This takes 3 MB instead of 9.4; `tests/datasets/build_subset.py` makes it.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import math
import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from dynamics_cli.datasets.files import store
from dynamics_cli.datasets.files.tables import read_npz
from dynamics_cli.errors import DataMissingError, InputError
from dynamics_cli.runs.store import files as disk

Bytes = NDArray[np.uint8]

SUBSET = Path(__file__).parents[1] / "assets" / "mnist_subset.npz"
SUBSET_COUNTS = {"train": 1000, "test": 200}
"""Images of each digit in each part of the subset."""
ATTRIBUTION = (
    "MNIST by Yann LeCun and Corinna Cortes (CC BY-SA 3.0): the first 1 000 training and 200 test images of each digit"
)
SLACK = 2**20
"""Bytes by which gzip may make a file longer."""
_SIDE = 28
_GZIP = b"\x1f\x8b"


@dataclass(frozen=True)
class IdxFile:
    """An original file of MNIST, as it is without gzip: a header and unsigned bytes.

    Its contents are pinned, not the .gz around them: mirrors compress differently.
    """

    name: str
    shape: tuple[int, ...]
    sha256: str

    @property
    def served(self) -> str:
        """Name of the file on mirrors."""
        return f"{self.name}.gz"

    @property
    def size(self) -> int:
        """Size in bytes: a magic number, the length of every axis, the values."""
        return 4 + 4 * len(self.shape) + math.prod(self.shape)

    def unpacked(self, data: bytes) -> bytes:
        """Return the contents of this file, given gzipped or not.

        Raises ValueError: the data are not this file.
        """
        try:
            if data.startswith(_GZIP):
                data = gzip.GzipFile(fileobj=io.BytesIO(data)).read(self.size + 1)  # a bomb is not unpacked
        except (OSError, EOFError, zlib.error) as error:
            raise ValueError(f"it is a damaged gzip file ({error})") from error
        found = hashlib.sha256(data).hexdigest()
        if found != self.sha256:
            raise ValueError(
                f"its contents have {min(len(data), self.size + 1)} bytes and SHA-256 {found}; those of MNIST's "
                f"{self.name} have {self.size} and {self.sha256}"
            )
        return data


FILES = {
    "train": (
        IdxFile("train-images-idx3-ubyte", (60000, 28, 28),
                "ba891046e6505d7aadcbbe25680a0738ad16aec93bde7f9b65e87a2fc25776db"),
        IdxFile("train-labels-idx1-ubyte", (60000,),
                "65a50cbbf4e906d70832878ad85ccda5333a97f0f4c3dd2ef09a8a9eef7101c5"),
    ),
    "test": (
        IdxFile("t10k-images-idx3-ubyte", (10000, 28, 28),
                "0fa7898d509279e482958e8ce81c8e77db3f2f8254e26661ceb7762c4d494ce7"),
        IdxFile("t10k-labels-idx1-ubyte", (10000,),
                "ff7bcfd416de33731a308c3f266cc351222c34898ecbeaf847f06e48f7ec33f2"),
    ),
}  # fmt: skip
"""Images and labels of each part."""
ALL_FILES = (*FILES["train"], *FILES["test"])

HOW_TO_GET = (
    "`dyn data fetch mnist` downloads it (11 MB), `dyn data add mnist PATH` takes files that you have; "
    "the first 1 000 images of each digit come with dyn: dataset.source subset"
)


def mnist_directory() -> Path:
    """Return where the full set is or would be."""
    return store.data_root() / "mnist"


def is_there(files: Sequence[IdxFile] = ALL_FILES) -> bool:
    """Whether the full set was fetched or added; sizes are looked at, contents when they are read."""
    return not store.missing_files(mnist_directory(), files)


def load_mnist(
    source: Literal["subset", "full"], part: str, digits: Iterable[int] = range(10),
    files: Mapping[str, tuple[IdxFile, IdxFile]] = FILES,
) -> dict[int, Bytes]:  # fmt: skip
    """Return the images (n, 28, 28) of each digit, 0 the background and 255 the ink, in the order of MNIST.

    Args:
        source: `subset`: that which comes with dyn; `full`: the full set, whose contents are checked.
        part: `train` or `test`.
        digits: the digits wanted.
        files: images and labels of each part of the full set.

    Raises:
        DataMissingError: the full set is not there; the message says how to get it.
        InputError: a file is damaged.
    """
    if source == "subset":
        return read_subset(part, digits)
    directory = mnist_directory()
    if store.missing_files(directory, files[part]):
        raise DataMissingError(f"the full MNIST set is not in {directory}: {HOW_TO_GET}")
    images, labels = (read_values(directory / file.name, file) for file in files[part])
    return {digit: images[labels == digit] for digit in digits}


def read_values(path: Path, file: IdxFile) -> Bytes:
    """Return the values, of the file's shape, of an original file, gzipped or not.

    Raises InputError: it cannot be read, or is another file.
    """
    return np.frombuffer(_read(path, file), np.uint8, offset=4 + 4 * len(file.shape)).reshape(file.shape)


def _read(path: Path, file: IdxFile) -> bytes:
    try:
        with path.open("rb") as handle:
            return file.unpacked(handle.read(file.size + SLACK))
    except (OSError, ValueError) as error:
        raise InputError(f"{path}: {getattr(error, 'strerror', None) or error}") from error


def find_file(directory: Path, file: IdxFile) -> Path:
    """Return the path of an original file in a directory, gzipped or not, under either of its usual names.

    Raises InputError: it is not there.
    """
    dotted = file.name.replace("-idx", ".idx")
    for name in (file.name, f"{file.name}.gz", dotted, f"{dotted}.gz"):
        if (directory / name).is_file():
            return directory / name
    raise InputError(f"{directory}: holds no {file.name} or {file.name}.gz; the four IDX files of MNIST are needed")


def add_mnist(
    directory: Path, *, files: Sequence[IdxFile] = ALL_FILES, on_wait: Callable[[str], None] | None = None
) -> Path:
    """Copy MNIST's four files from a directory to where dyn keeps data, checked and without gzip; return where.

    Args:
        directory: holds the IDX files, gzipped or not.
        files: those needed.
        on_wait: called with a message when another process is writing there.

    Raises:
        InputError: a file is missing, damaged or not MNIST's; then nothing changes.
        RunError: the files cannot be written.
    """
    contents = {file.name: _read(find_file(directory, file), file) for file in files}
    target = mnist_directory()
    with store.locked(target, on_wait):
        for name, data in contents.items():
            disk.write_atomic(target / name, data)
    return target


def read_subset(part: str, digits: Iterable[int], path: Path = SUBSET) -> dict[int, Bytes]:
    """Return the images (n, 28, 28) of each digit, in the order in which MNIST's `part` (train or test) has them.

    Raises InputError: the file is missing or damaged.
    """
    names = {d: (f"{part}_{d}_ink", f"{part}_{d}_values") for d in digits}
    try:
        arrays = read_npz(path, required=[name for both in names.values() for name in both])
        return {d: _unpack(arrays[ink], arrays[values]) for d, (ink, values) in names.items()}
    except (InputError, ValueError, TypeError) as error:  # the arrays are not those that were built
        raise InputError(f"{path}: this MNIST subset is damaged ({error}); install dyn again") from error


def _unpack(ink: Bytes, values: Bytes) -> Bytes:
    flat = np.zeros((len(ink), _SIDE * _SIDE), dtype=np.uint8)  # (n, 784)
    flat[np.unpackbits(ink, axis=1, count=_SIDE * _SIDE).astype(bool)] = values
    return flat.reshape(-1, _SIDE, _SIDE)

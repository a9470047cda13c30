"""MNIST: the embedded subset, and the full set where it was fetched or added."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from dynamics_cli.datasets import mnist_subset, store
from dynamics_cli.datasets.idx import Bytes, header, read_idx
from dynamics_cli.errors import DataMissingError, InputError

Source = Literal["subset", "full"]


@dataclass(frozen=True)
class IdxFile:
    """One of MNIST's files, as it is without gzip."""

    name: str
    shape: tuple[int, ...]
    sha256: str

    @property
    def size(self) -> int:
        """Size in bytes."""
        return len(header(self.shape)) + math.prod(self.shape)


@dataclass(frozen=True)
class Part:
    """The two files of the training or of the test set."""

    images: IdxFile
    labels: IdxFile


# The contents are pinned, not the .gz around them: mirrors compress differently.
FILES = {
    "train": Part(
        IdxFile(
            "train-images-idx3-ubyte",
            (60000, 28, 28),
            "ba891046e6505d7aadcbbe25680a0738ad16aec93bde7f9b65e87a2fc25776db",
        ),
        IdxFile(
            "train-labels-idx1-ubyte", (60000,), "65a50cbbf4e906d70832878ad85ccda5333a97f0f4c3dd2ef09a8a9eef7101c5"
        ),
    ),
    "test": Part(
        IdxFile(
            "t10k-images-idx3-ubyte",
            (10000, 28, 28),
            "0fa7898d509279e482958e8ce81c8e77db3f2f8254e26661ceb7762c4d494ce7",
        ),
        IdxFile("t10k-labels-idx1-ubyte", (10000,), "ff7bcfd416de33731a308c3f266cc351222c34898ecbeaf847f06e48f7ec33f2"),
    ),
}
"""The original files; SHA-256 of their contents."""
ALL_FILES = tuple(file for part in FILES.values() for file in (part.images, part.labels))

HOW_TO_GET = (
    "`dyn data fetch mnist` downloads it (11 MB), `dyn data add mnist PATH` takes files that you have; "
    "the first 1 000 images of each digit come with dyn: dataset.source subset"
)


@dataclass(frozen=True)
class Mnist:
    """Images (n, 28, 28) of each digit, 0 the background and 255 the ink, in the order of the original files."""

    source: Source
    train: dict[int, Bytes]
    test: dict[int, Bytes]


def mnist_directory() -> Path:
    """Return where the full set is or would be."""
    return store.data_root() / "mnist"


def is_there(files: Sequence[IdxFile] = ALL_FILES) -> bool:
    """Whether the full set was fetched or added; sizes are looked at, contents when they are read."""
    return not missing_files(mnist_directory(), files)


def missing_files(directory: Path, files: Sequence[IdxFile]) -> list[IdxFile]:
    """Return the files that are not there, or not of the right size."""
    return [file for file in files if _size(directory / file.name) != file.size]


def load_mnist(
    which: Literal["auto", "subset", "full"] = "auto",
    *,
    digits: Sequence[int] = range(10),
    parts: Sequence[str] = ("train", "test"),
) -> Mnist:
    """Return the images of the given digits.

    Args:
        which: `subset`: the embedded one; `full`: the full set; `auto`: the full set if it is there.
        digits: the digits wanted.
        parts: `train`, `test` or both; one that is not asked for comes back empty.

    Raises:
        DataMissingError: the full set is not there; the message says how to get it.
        InputError: a file is damaged.

    """
    source: Source = ("full" if is_there() else "subset") if which == "auto" else which
    read = read_full if source == "full" else mnist_subset.read_subset
    found = {part: read(part, digits) for part in parts}
    return Mnist(source, found.get("train", {}), found.get("test", {}))


def read_full(part: str, digits: Sequence[int], files: Mapping[str, Part] = FILES) -> dict[int, Bytes]:
    """Return the images (n, 28, 28) of each digit in the full set's `part`, train or test; contents are checked.

    Raises:
        DataMissingError: the full set is not there.
        InputError: a file is damaged.

    """
    directory, chosen = mnist_directory(), files[part]
    if missing_files(directory, [chosen.images, chosen.labels]):
        raise DataMissingError(f"the full MNIST set is not in {directory}: {HOW_TO_GET}")
    labels = read_file(directory / chosen.labels.name, chosen.labels)
    images = read_file(directory / chosen.images.name, chosen.images)
    return {digit: images[labels == digit] for digit in digits}


def read_file(path: Path, file: IdxFile) -> Bytes:
    """Read one of MNIST's files, gzipped or not, and check that it is the original.

    Raises:
        InputError: it is not; the message says why.

    """
    values = read_idx(path, shape=file.shape)
    digest = hashlib.sha256(header(file.shape))
    digest.update(values)  # type: ignore[arg-type]  # arrays are buffers
    if digest.hexdigest() != file.sha256:
        raise InputError(
            f"{path}: its contents are not those of MNIST's {file.name} (SHA-256 {digest.hexdigest()}, "
            f"not {file.sha256}); for other data use dataset.kind file"
        )
    return values


def find_files(directory: Path, files: Sequence[IdxFile] = ALL_FILES) -> dict[str, Path]:
    """Return name -> path of MNIST's files in a directory, gzipped or not, under either of their usual names.

    Raises:
        InputError: one of them is not there.

    """
    if not directory.is_dir():
        raise InputError(f"{directory}: is not a directory; needed is the one that holds MNIST's four IDX files")
    found = {}
    for file in files:
        spellings = [file.name + end for end in ("", ".gz")]
        spellings += [name.replace("-idx", ".idx") for name in spellings]
        paths = [path for path in (directory / name for name in spellings) if path.is_file()]
        if not paths:
            raise InputError(f"{directory}: holds no {file.name} or {file.name}.gz")
        found[file.name] = paths[0]
    return found


def add_mnist(
    directory: Path, *, files: Sequence[IdxFile] = ALL_FILES, on_wait: Callable[[str], None] | None = None
) -> Path:
    """Copy MNIST's four files from a directory to where dyn keeps data, checked and without gzip.

    Args:
        directory: holds the IDX files, gzipped or not.
        files: what the files must be.
        on_wait: called with a message when another process is writing there.

    Returns:
        Where they are now.

    Raises:
        InputError: a file is missing, damaged or not MNIST's; then nothing changes.
        RunError: the files cannot be written.

    """
    found = find_files(directory, files)
    target = mnist_directory()
    contents = {file.name: (file, read_file(found[file.name], file)) for file in files}
    with store.locked(target, on_wait), store.told(target):
        for name, (file, values) in contents.items():
            with store.fresh_file(target / name) as handle:
                handle.write(header(file.shape))
                handle.write(values.data)
    return target


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return -1

"""MNIST: its file format (IDX), the full set where it was fetched or added, and the subset that comes with dyn.

The subset has the first images of each digit, 1 000 to train and 200 to test, in an uncompressed `.npz`. For each digit
and part it has two arrays: `train_3_ink` (1000, 98), the bits of the pixels that are not 0, and `train_3_values`, those
pixels one after the other. This takes 3 MB instead of 9.4, reads in milliseconds, and comes out the same byte for byte
wherever it is built, whatever compression library there is:

    python -m dynamics_cli.datasets.files.mnist DIRECTORY_OF_IDX_FILES OUTPUT.npz
"""

from __future__ import annotations

import gzip
import hashlib
import io
import math
import sys
import zipfile
import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Literal

import numpy as np
from numpy.typing import NDArray

from dynamics_cli.datasets.files import store
from dynamics_cli.datasets.files.tables import read_npz
from dynamics_cli.errors import DataMissingError, InputError

Bytes = NDArray[np.uint8]
Handle = IO[bytes] | gzip.GzipFile

MAX_VALUES = 2**28
"""More values than this in one file are refused: a header can claim anything."""
SUBSET = Path(__file__).parents[1] / "assets" / "mnist_subset.npz"
SUBSET_COUNTS = {"train": 1000, "test": 200}
"""Images of each digit in each part of the subset."""
ATTRIBUTION = (
    "MNIST by Yann LeCun and Corinna Cortes (CC BY-SA 3.0): the first 1 000 training and 200 test images of each digit"
)

_SIDE = 28
_GZIP = b"\x1f\x8b"
_UNSIGNED_BYTE = 8
_MAX_DIMENSIONS = 3


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
        IdxFile("train-images-idx3-ubyte", (60000, 28, 28),
                "ba891046e6505d7aadcbbe25680a0738ad16aec93bde7f9b65e87a2fc25776db"),
        IdxFile("train-labels-idx1-ubyte", (60000,),
                "65a50cbbf4e906d70832878ad85ccda5333a97f0f4c3dd2ef09a8a9eef7101c5"),
    ),
    "test": Part(
        IdxFile("t10k-images-idx3-ubyte", (10000, 28, 28),
                "0fa7898d509279e482958e8ce81c8e77db3f2f8254e26661ceb7762c4d494ce7"),
        IdxFile("t10k-labels-idx1-ubyte", (10000,),
                "ff7bcfd416de33731a308c3f266cc351222c34898ecbeaf847f06e48f7ec33f2"),
    ),
}  # fmt: skip
"""The original files; SHA-256 of their contents."""
ALL_FILES = tuple(file for part in FILES.values() for file in (part.images, part.labels))

HOW_TO_GET = (
    "`dyn data fetch mnist` downloads it (11 MB), `dyn data add mnist PATH` takes files that you have; "
    "the first 1 000 images of each digit come with dyn: dataset.source subset"
)


@dataclass(frozen=True)
class Mnist:
    """Images (n, 28, 28) of each digit, 0 the background and 255 the ink, in the order of the original files."""

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
    source: Literal["subset", "full"], *, digits: Sequence[int] = range(10), parts: Sequence[str] = ("train", "test")
) -> Mnist:
    """Return the images of the given digits.

    Args:
        source: `subset`: the embedded one; `full`: the full set.
        digits: the digits wanted.
        parts: `train`, `test` or both; one that is not asked for comes back empty.

    Raises:
        DataMissingError: the full set is not there; the message says how to get it.
        InputError: a file is damaged.
    """
    read = read_full if source == "full" else read_subset
    found = {part: read(part, digits) for part in parts}
    return Mnist(found.get("train", {}), found.get("test", {}))


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

    Raises InputError: it is not; the message says why.
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

    Raises InputError: one of them is not there.
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
    with store.locked(target, on_wait):
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


def read_idx(path: Path, *, shape: tuple[int, ...] | None = None) -> Bytes:
    """Read an IDX file of unsigned bytes, gzipped or not.

    Args:
        path: the file.
        shape: the shape that it must have; by default any of one to three dimensions.

    Returns:
        The values, of the shape that the header says: (n, 28, 28) for MNIST's images, (n,) for its labels.

    Raises InputError: the file is missing, damaged, too short, too long, or holds something else.
    """
    try:
        with path.open("rb") as raw:
            zipped = raw.read(2) == _GZIP
            raw.seek(0)
            if not zipped:
                return _parse_idx(raw, path, shape)
            with gzip.GzipFile(fileobj=raw) as handle:
                return _parse_idx(handle, path, shape)
    except (OSError, EOFError, zlib.error) as error:
        reason = getattr(error, "strerror", None) or error
        raise InputError(f"{path}: cannot be read as an IDX file ({reason})") from error


def header(shape: tuple[int, ...]) -> bytes:
    """Return the header of an IDX file of unsigned bytes."""
    sizes = b"".join(length.to_bytes(4, "big") for length in shape)
    return bytes([0, 0, _UNSIGNED_BYTE, len(shape)]) + sizes


def _parse_idx(handle: Handle, path: Path, shape: tuple[int, ...] | None) -> Bytes:
    found = _idx_shape(handle, path, None if shape is None else len(shape))
    if shape is not None and found != shape:
        raise InputError(f"{path}: holds {_times(found)} values, not {_times(shape)}")
    count = math.prod(found)
    if count > MAX_VALUES:
        raise InputError(f"{path}: its header claims {_times(found)} values, too many to be read")
    data = handle.read(count)
    if len(data) < count:
        raise InputError(f"{path}: is cut short: its header claims {count} values, there are {len(data)}")
    if handle.read(1):
        raise InputError(f"{path}: goes on after the {count} values that its header claims")
    return np.frombuffer(data, dtype=np.uint8).reshape(found)


def _idx_shape(handle: Handle, path: Path, dimensions: int | None) -> tuple[int, ...]:
    magic = handle.read(4)
    if len(magic) < 4:
        raise InputError(f"{path}: is cut short: {len(magic)} bytes are no IDX file")
    allowed = range(1, _MAX_DIMENSIONS + 1) if dimensions is None else (dimensions,)
    if magic[:3] != bytes([0, 0, _UNSIGNED_BYTE]) or magic[3] not in allowed:
        needed = " or ".join(str(2048 + number) for number in allowed)
        raise InputError(f"{path}: wrong magic number {int.from_bytes(magic, 'big')}, {needed} is needed")
    sizes = handle.read(4 * magic[3])
    if len(sizes) < 4 * magic[3]:
        raise InputError(f"{path}: is cut short in its header")
    return tuple(int.from_bytes(sizes[k : k + 4], "big") for k in range(0, len(sizes), 4))


def _times(shape: tuple[int, ...]) -> str:
    return " x ".join(map(str, shape))


def read_subset(part: str, digits: Iterable[int], path: Path = SUBSET) -> dict[int, Bytes]:
    """Return the images (n, 28, 28) of each digit, in the order in which MNIST's `part` (train or test) has them.

    Raises InputError: the file is missing or damaged.
    """
    names = {d: (f"{part}_{d}_ink", f"{part}_{d}_values") for d in digits}
    try:
        arrays = read_npz(path, required=[name for both in names.values() for name in both])
        return {d: _unpack(arrays[ink], arrays[values]) for d, (ink, values) in names.items()}
    except (InputError, ValueError, TypeError) as error:  # what the arrays hold is not what was built
        raise InputError(f"{path}: this MNIST subset is damaged ({error}); install dyn again") from error


def write_subset(path: Path, images: Mapping[str, Mapping[int, Bytes]]) -> None:
    """Write images (n, 28, 28), given as `images[part][digit]`; the same images give the same bytes."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_STORED) as archive:
        for part, of_digits in images.items():
            for digit, pixels in of_digits.items():
                flat = pixels.reshape(len(pixels), -1)
                ink = flat > 0
                _write(archive, f"{part}_{digit}_ink", np.packbits(ink, axis=1))
                _write(archive, f"{part}_{digit}_values", flat[ink])


def build_subset(directory: Path, path: Path) -> None:
    """Write the subset from the directory of MNIST's four IDX files, gzipped or not.

    Raises InputError: a file is missing or is not MNIST's.
    """
    found = find_files(directory)
    chosen: dict[str, dict[int, Bytes]] = {}
    for part, count in SUBSET_COUNTS.items():
        images = read_file(found[FILES[part].images.name], FILES[part].images)
        labels = read_file(found[FILES[part].labels.name], FILES[part].labels)
        chosen[part] = {digit: images[labels == digit][:count] for digit in range(10)}
    write_subset(path, chosen)


def _unpack(ink: Bytes, values: Bytes) -> Bytes:
    flat = np.zeros((len(ink), _SIDE * _SIDE), dtype=np.uint8)  # (n, 784)
    flat[np.unpackbits(ink, axis=1, count=_SIDE * _SIDE).astype(bool)] = values
    return flat.reshape(-1, _SIDE, _SIDE)


def _write(archive: zipfile.ZipFile, name: str, array: Bytes) -> None:
    content = io.BytesIO()
    np.lib.format.write_array(content, np.ascontiguousarray(array), version=(1, 0), allow_pickle=False)
    entry = zipfile.ZipInfo(f"{name}.npy")  # dated 1980, so that no date is in the file
    entry.create_system = 3  # as Unix says it, on any system
    archive.writestr(entry, content.getvalue())


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(f"usage: python -m {__spec__.name} DIRECTORY_OF_IDX_FILES OUTPUT.npz (now {SUBSET})")
    build_subset(Path(sys.argv[1]), Path(sys.argv[2]))

"""CIFAR-10 in its published binary form: one archive with five batches to train on and one to test."""

from __future__ import annotations

import hashlib
import io
import tarfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from dynamics_cli.datasets.files import store
from dynamics_cli.errors import DataMissingError, InputError
from dynamics_cli.runs.store import files as disk

HOW_TO_GET = (
    "`dyn data fetch cifar10` downloads it (170 MB), `dyn data add cifar10 PATH` takes an archive that you have"
)
RECORD = 1 + 3 * 32 * 32
"""Bytes of an image: its class, then the red, the green and the blue plane."""
MEMBERS = {"train": tuple(f"data_batch_{k}.bin" for k in range(1, 6)), "test": ("test_batch.bin",)}


@dataclass(frozen=True)
class Archive:
    """The published archive."""

    name: str = "cifar-10-binary.tar.gz"
    size: int = 170052171
    sha256: str = "c4a38c50a1bc5f3a1c5537f2155ab9d68f9f25eb1ed8d9ddda3db29a59bca1dd"

    @property
    def served(self) -> str:
        """Name of the file on mirrors."""
        return self.name

    def unpacked(self, data: bytes) -> bytes:
        """Return the archive as it is; ValueError: it is another file."""
        found = hashlib.sha256(data).hexdigest()
        if found != self.sha256:
            raise ValueError(
                f"it has {len(data)} bytes and SHA-256 {found}, {self.name} has {self.size} and {self.sha256}"
            )
        return data


ARCHIVE = Archive()


def cifar10_directory() -> Path:
    """Return where the archive is or would be."""
    return store.data_root() / "cifar10"


def load_cifar10(part: str, archive: Archive = ARCHIVE) -> dict[int, NDArray[np.uint8]]:
    """Return the images (n, 3072) of each class, the red, the green, then the blue plane, in the order of the archive.

    Args:
        part: `train` or `test`.
        archive: which archive is the right one.

    Raises:
        DataMissingError: the archive is not there; the message says how to get it.
        InputError: it is damaged.
    """
    directory = cifar10_directory()
    if store.missing_files(directory, [archive]):
        raise DataMissingError(f"CIFAR-10 is not in {directory}: {HOW_TO_GET}")
    contents = io.BytesIO(_read(directory / archive.name, archive))
    with tarfile.open(fileobj=contents, mode="r:gz") as opened:
        members = {Path(member.name).name: member for member in opened if member.isfile()}
        batches = [opened.extractfile(members[name]).read() for name in MEMBERS[part]]  # type: ignore[union-attr]
    records = np.frombuffer(b"".join(batches), np.uint8).reshape(-1, RECORD)
    return {label: records[records[:, 0] == label, 1:] for label in range(10)}


def add_cifar10(path: Path, *, archive: Archive = ARCHIVE, on_wait: Callable[[str], None] | None = None) -> Path:
    """Copy the archive, at `path` or in that directory, to where dyn keeps data; return where.

    Raises:
        InputError: it is not there, or another file; then nothing changes.
        RunError: it cannot be written.
    """
    data = _read(path / archive.name if path.is_dir() else path, archive)
    target = cifar10_directory()
    with store.locked(target, on_wait):
        disk.write_atomic(target / archive.name, data)
    return target


def _read(path: Path, archive: Archive) -> bytes:
    try:
        with path.open("rb") as handle:
            return archive.unpacked(handle.read(archive.size + 1))
    except (OSError, ValueError) as error:
        raise InputError(f"{path}: {getattr(error, 'strerror', None) or error}") from error

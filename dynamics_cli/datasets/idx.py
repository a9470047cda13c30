"""The IDX format of MNIST's files: a header that says the shape, then one byte a value."""

from __future__ import annotations

import gzip
import math
import zlib
from pathlib import Path
from typing import IO

import numpy as np
from numpy.typing import NDArray

from dynamics_cli.errors import InputError

Bytes = NDArray[np.uint8]
Handle = IO[bytes] | gzip.GzipFile

MAX_VALUES = 2**28
"""More values than this in one file are refused: a header can claim anything."""

_GZIP = b"\x1f\x8b"
_UNSIGNED_BYTE = 8
_MAX_DIMENSIONS = 3


def read_idx(path: Path, *, shape: tuple[int, ...] | None = None) -> Bytes:
    """Read an IDX file of unsigned bytes, gzipped or not.

    Args:
        path: the file.
        shape: the shape that it must have; by default any of one to three dimensions.

    Returns:
        The values, of the shape that the header says: (n, 28, 28) for MNIST's images, (n,) for its labels.

    Raises:
        InputError: the file is missing, damaged, too short, too long, or holds something else.

    """
    try:
        with path.open("rb") as raw:
            zipped = raw.read(2) == _GZIP
            raw.seek(0)
            if not zipped:
                return _parse(raw, path, shape)
            with gzip.GzipFile(fileobj=raw) as handle:
                return _parse(handle, path, shape)
    except (OSError, EOFError, zlib.error) as error:
        reason = getattr(error, "strerror", None) or error
        raise InputError(f"{path}: cannot be read as an IDX file ({reason})") from error


def header(shape: tuple[int, ...]) -> bytes:
    """Return the header of an IDX file of unsigned bytes."""
    sizes = b"".join(length.to_bytes(4, "big") for length in shape)
    return bytes([0, 0, _UNSIGNED_BYTE, len(shape)]) + sizes


def _parse(handle: Handle, path: Path, shape: tuple[int, ...] | None) -> Bytes:
    found = _read_shape(handle, path, None if shape is None else len(shape))
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


def _read_shape(handle: Handle, path: Path, dimensions: int | None) -> tuple[int, ...]:
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

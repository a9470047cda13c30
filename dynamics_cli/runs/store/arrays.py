"""Append-only arrays in plain `.npy` files.

Rows are appended behind a header of fixed length. The header is rewritten, with the number of rows,
when a checkpoint counts them and when the run ends: until then the rows behind are there, and
nobody relies on them. So `np.load(path, mmap_mode="r")` works at any moment, and shows the rows of
the last checkpoint or more. The number of rows and their CRC-32, by which a reader knows that an
array is whole, stand in the checkpoint and in `run.json`.

The header is version 1.0 of NumPy's format. Reading is strict: only headers written here are
accepted, and nothing in them is evaluated.
"""

from __future__ import annotations

import contextlib
import errno
import math
import os
import re
import struct
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, BinaryIO, NamedTuple, Self

import numpy as np
from numpy.typing import DTypeLike, NDArray
from pydantic import AfterValidator, BaseModel, Field, model_validator

from dynamics_cli.errors import RunError
from dynamics_cli.runs.errors import CorruptRunError, unreadable_as_corrupt
from dynamics_cli.runs.store import files, layout

Array = NDArray[Any]

_NPY = b"\x93NUMPY\x01\x00"
_TEXT_AT = len(_NPY) + 2
_ALIGNMENT = 64
_COUNT_DIGITS = 20
LONGEST_HEADER = 4096
"""Bytes in which the header of an array ends."""
_PIECE = 1 << 20
"""Bytes read at once."""
_PATTERN = re.compile(
    rb"\{'descr': '([<>|][fiub][0-9]{1,2})', 'fortran_order': False, "
    rb"'shape': \( *([0-9]{1,20}),((?: [0-9]{1,18},)* [0-9]{1,18})?\), \} *\n",
)


class Header(NamedTuple):
    """The header of an array."""

    dtype: np.dtype[Any]
    row_shape: tuple[int, ...]
    rows: int = 0

    @property
    def row_bytes(self) -> int:
        """Bytes of one row."""
        return self.dtype.itemsize * math.prod(self.row_shape)

    def end(self, rows: int) -> int:
        """Return the offset of the byte behind `rows` rows."""
        return len(self.encode()) + rows * self.row_bytes

    def encode(self) -> bytes:
        """Return the bytes of the header; their number does not depend on the number of rows."""
        columns = "".join(f" {n}," for n in self.row_shape).removesuffix(",")
        shape = f"({self.rows:{_COUNT_DIGITS}d},{columns})"
        text = f"{{'descr': '{self.dtype.str}', 'fortran_order': False, 'shape': {shape}, }}"
        text += " " * (-(_TEXT_AT + len(text) + 1) % _ALIGNMENT) + "\n"
        return _NPY + struct.pack("<H", len(text)) + text.encode()

    def crc32(self) -> int:
        """Return the checksum of an array without rows, taken from its header."""
        return zlib.crc32(f"{self.dtype.str} {self.row_shape}".encode())


def decode_header(start: bytes) -> Header | None:
    """Read a header from the first bytes of a file; None when dyn does not write such a header."""
    length = int.from_bytes(start[len(_NPY) : _TEXT_AT], "little")
    match = _PATTERN.fullmatch(start[_TEXT_AT : _TEXT_AT + length])
    if match is None:
        return None
    try:
        dtype = np.dtype(match[1].decode())
    except TypeError:  # such as 'f3'
        return None
    header = Header(dtype, tuple(int(n) for n in (match[3] or b"").split(b",") if n), int(match[2]))
    if not header.row_bytes or not start.startswith(header.encode()):
        return None
    return header


def is_array(path: Path) -> bool:
    """Whether a file begins as an array that dyn writes."""
    with files.open_read(path) as handle:
        return decode_header(files.read_at(handle, 0, LONGEST_HEADER)) is not None


class ArrayWriter:
    """Appends rows of one shape and dtype to an array; `reopen` goes on with an existing array.

    Attributes:
        path: the `.npy` file.
        rows, crc32: the rows that count, and the checksum of the form and these rows.
    """

    def __init__(self, path: Path, row_shape: tuple[int, ...], dtype: DTypeLike) -> None:
        """Create an empty array `(0, *row_shape)`, in place of any array of that name.

        Raises:
            ValueError: rows without bytes, or a dtype that is not a plain number.
            RunError: it cannot be written, or a file of that name is there that dyn did not write.
        """
        self._header = Header(np.dtype(dtype), tuple(row_shape))
        if decode_header(self._header.encode()) != self._header:
            raise ValueError(f"cannot store rows of shape {row_shape} and dtype {np.dtype(dtype)}")
        self.path, self.rows, self.crc32 = path, 0, self._header.crc32()
        with files.os_errors_as_run_errors(path):
            if files.exists(path) and not is_array(path):
                raise RunError(f"{path} is there already, and dyn did not write it: move it away")
            files.write_atomic(path, self._header.encode())
            self._file = path.stat()

    @classmethod
    def reopen(cls, path: Path, rows: int, crc32: int, *, source: Path | None = None) -> Self:
        """Cut an array to its first `rows` rows, which must have this checksum, for appending.

        With `source` they are copied from there, perhaps from the array itself into a new file:
        where a writer that stood still lost its lease, it may still hold the file before open, and
        what it writes must not come here.

        Raises:
            CorruptRunError: the array cannot be read, or its rows do not fit the checksum.
            RunError: it cannot be written.
        """
        writer = cls.__new__(cls)
        writer._header = check_array(source or path, rows, crc32)
        writer.path = path
        writer.rows = rows
        writer.crc32 = crc32
        with files.os_errors_as_run_errors(path):
            if source is not None:
                files.copy_start(source, path, writer._header.end(rows))
            writer._file = path.stat()
            with writer._open() as handle:
                files.truncate(handle, writer._header.end(rows))
        writer.write_header()
        return writer

    def append(self, rows: Array) -> tuple[int, int]:
        """Write a block `(k, *row_shape)` behind the rows; return `rows` and `crc32` with it.

        The caller sets both once all arrays of a group have the block: until then the next append
        overwrites it.

        Raises:
            ValueError: shape or dtype differ from the array's.
            RunError: the disk is full, not writable or failing.
        """
        dtype = self._header.dtype
        row_shape = self._header.row_shape
        if rows.dtype != dtype or rows.shape[1:] != row_shape or rows.ndim != len(row_shape) + 1:
            expected = f"(k, {', '.join(map(str, row_shape))}) {dtype}"
            raise ValueError(
                f"{self.path.name}: rows {rows.shape} {rows.dtype} instead of {expected}"
            )
        block = np.ascontiguousarray(rows).reshape(-1).view(np.uint8).data
        with files.os_errors_as_run_errors(self.path), self._open() as handle:
            files.write_at(handle, block, self._header.end(self.rows))
        return self.rows + len(rows), zlib.crc32(block, self.crc32)

    def write_header(self) -> None:
        """Let the header count the rows, and return when they are on the disk."""
        with files.os_errors_as_run_errors(self.path), self._open() as handle:
            files.write_at(handle, self._header._replace(rows=self.rows).encode(), 0)
            files.sync(handle)

    @contextlib.contextmanager
    def _open(self) -> Iterator[BinaryIO]:
        """Open the file, which must be the one that this writer made or reopened."""
        with files.open_update(self.path) as handle:
            if not os.path.samestat(os.fstat(handle.fileno()), self._file):
                raise OSError(errno.ESTALE, os.strerror(errno.ESTALE), str(self.path))
            yield handle


_Counts = dict[Annotated[str, AfterValidator(layout.check_array_name)], Annotated[int, Field(ge=0)]]


class Counted(BaseModel, frozen=True, strict=True):
    """The rows of the arrays of a run that count, and their CRC-32, by name of the array."""

    rows: _Counts = {}
    crc32: _Counts = {}

    @model_validator(mode="after")
    def _of_the_same_arrays(self) -> Self:
        if self.rows.keys() != self.crc32.keys():
            raise ValueError("rows and checksums are of different arrays")
        return self

    def check(self, directory: Path, name: str, *, ended: bool = False) -> Header:
        """Compare an array of a run directory with its checksum; see `check_array`."""
        file = layout.array_file(directory, name)
        return check_array(file, self.rows[name], self.crc32[name], ended=ended)

    def short(self, directory: Path) -> Path | None:
        """Return an array of a run directory that does not have all these rows; None without one.

        Headers and lengths alone are read; an array whose header is damaged is not short.
        """
        for name, count in self.rows.items():
            path = layout.array_file(directory, name)
            try:
                with files.open_read(path) as handle:
                    header = decode_header(files.read_at(handle, 0, LONGEST_HEADER))
                    size = files.open_size(handle)
            except OSError:
                return path
            if header is not None and (header.rows < count or size < header.end(count)):
                return path
        return None


def check_array(path: Path, rows: int, crc32: int, *, ended: bool = False) -> Header:
    """Compare the first `rows` rows of an array with their checksum; return its header.

    `ended` says that the array must hold nothing else.

    Raises CorruptRunError: the file is missing or damaged.
    """
    with unreadable_as_corrupt(path), files.open_read(path) as handle:
        header = decode_header(files.read_at(handle, 0, LONGEST_HEADER))
        if header is None:
            raise CorruptRunError(path, "its header is not one that dyn writes")
        checksum = header.crc32()
        at = header.end(0)
        end = header.end(rows)
        while at < end and (piece := files.read_at(handle, at, min(end - at, _PIECE))):
            checksum = zlib.crc32(piece, checksum)
            at = at + len(piece)
        size = files.open_size(handle)
    if header.rows < rows or (ended and header.rows != rows):
        raise CorruptRunError(path, f"it counts {header.rows} rows instead of {rows}")
    if at < end:
        raise CorruptRunError(path, f"it ends before row {rows}: was it half copied?")
    if checksum != crc32:
        raise CorruptRunError(path, "its rows do not fit their checksum")
    if ended and size != end:
        raise CorruptRunError(path, "it is longer than it was when the run ended")
    return header


def map_array(path: Path, header: Header, rows: int) -> Array:
    """Map the first `rows` rows of a checked array read-only into memory.

    Raises CorruptRunError: the file has changed meanwhile.
    """
    if rows == 0:
        return np.empty((0, *header.row_shape), header.dtype)  # nothing to map
    with unreadable_as_corrupt(path):
        try:
            return np.memmap(path, header.dtype, "r", header.end(0), (rows, *header.row_shape))
        except ValueError as error:  # a shorter file has taken its place
            raise CorruptRunError(path, f"it cannot be mapped ({error})") from error

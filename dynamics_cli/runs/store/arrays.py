"""Append-only arrays in plain `.npy` files that survive a kill at any moment.

One append writes the rows, then the header with the new number of rows and the running CRC-32 of all rows. The header
acknowledges the rows: before it nobody sees them, and the bytes behind the acknowledged rows are a torn tail, which is
dropped when the array is opened for appending. `np.load(path, mmap_mode="r")` works at any moment. Nothing is forced to
the disk before `sync`.

The header is version 1.0 of NumPy's format. A comment in its padding, which NumPy skips, holds two CRC-32: that of the
array's owner (a run and the name of the array), by which the file of another array is refused, and that of its dtype,
row shape and rows. Row count and checksums have fixed places, so that nothing else of a header ever changes. Reading is
strict: only headers written here are accepted, and nothing in them is evaluated.
"""

from __future__ import annotations

import math
import os
import re
import struct
import zlib
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple, Self

import numpy as np
from numpy.typing import DTypeLike, NDArray

from dynamics_cli.runs.errors import CorruptRunError, unreadable_as_corrupt
from dynamics_cli.runs.store import files

Array = NDArray[Any]

_NPY = b"\x93NUMPY\x01\x00"
_TEXT_AT = len(_NPY) + 2
_ALIGNMENT = 64
_COUNT_DIGITS = 20
_LONGEST = 4096
"""Bytes of a header."""
_PIECE = 1 << 20
"""Bytes read at once."""
_PATTERN = re.compile(
    rb"\{'descr': '([<>|][fiub][0-9]{1,2})', 'fortran_order': False, "
    rb"'shape': \( *([0-9]{1,20}),((?: [0-9]{1,18},)* [0-9]{1,18})?\), \} #([0-9a-f]{8}) ([0-9a-f]{8}) *\n",
)


class Header(NamedTuple):
    """The header of an array."""

    dtype: np.dtype[Any]
    row_shape: tuple[int, ...]
    rows: int
    owner: int
    """CRC-32 of the owner."""
    checksum: int = 0
    """CRC-32 of dtype, row shape and rows."""

    @property
    def row_bytes(self) -> int:
        """Bytes of one row."""
        return self.dtype.itemsize * math.prod(self.row_shape)

    @property
    def offset(self) -> int:
        """Byte where the rows begin."""
        return len(self.encode())

    def encode(self) -> bytes:
        """Return the bytes of the header; their number depends neither on the rows nor on the checksums."""
        rest = "".join(f" {n}," for n in self.row_shape).removesuffix(",")
        shape = f"({self.rows:{_COUNT_DIGITS}d},{rest})"
        text = f"{{'descr': '{self.dtype.str}', 'fortran_order': False, 'shape': {shape}, }}"
        text += f" #{self.owner:08x} {self.checksum:08x}"
        text += " " * (-(_TEXT_AT + len(text) + 1) % _ALIGNMENT) + "\n"
        return _NPY + struct.pack("<H", len(text)) + text.encode()

    def checksum_of(self, handle: BinaryIO, rows: int) -> int | None:
        """Return the checksum of the first `rows` rows of a file; None when it ends before."""
        return crc_of_bytes(handle, self.offset, rows * self.row_bytes, self.start())

    def start(self) -> int:
        """Return the checksum of no rows."""
        return zlib.crc32(f"{self.dtype.str} {self.row_shape}".encode())


def crc_of_text(text: str) -> int:
    """Return the CRC-32 that stands for an owner."""
    return zlib.crc32(text.encode(errors="surrogatepass"))


def crc_of_bytes(handle: BinaryIO, position: int, count: int, checksum: int = 0) -> int | None:
    """Run a CRC-32 on over `count` bytes of a file from `position` on; return None when the file ends before."""
    while count > 0:
        piece = files.read_at(handle, position, min(count, _PIECE))
        if not piece:
            return None
        checksum = zlib.crc32(piece, checksum)
        position, count = position + len(piece), count - len(piece)
    return checksum


def decode_header(start: bytes) -> Header | None:
    """Read a header from the first bytes of a file; None when dyn does not write such a header."""
    length = int.from_bytes(start[len(_NPY) : _TEXT_AT], "little")
    found = _PATTERN.fullmatch(start[_TEXT_AT : _TEXT_AT + length])
    if found is None:
        return None
    try:
        dtype = np.dtype(found[1].decode())
    except TypeError:  # such as 'f3'
        return None
    row_shape = tuple(int(n) for n in (found[3] or b"").split(b",") if n)
    header = Header(dtype, row_shape, int(found[2]), int(found[4], 16), int(found[5], 16))
    expected = header.encode()
    return header if start[: len(expected)] == expected and header.row_bytes else None


def read_header(path: Path, owner: str | None = None) -> tuple[Header, int]:
    """Return the header of an array, and the size of its file in bytes.

    Raises CorruptRunError: it cannot be read, dyn does not write such a header, or it is of another owner than `owner`.
    """
    with unreadable_as_corrupt(path), files.open_read(path) as handle:
        header, size = decode_header(files.read_at(handle, 0, _LONGEST)), files.size(handle)
    if header is None:
        raise CorruptRunError(path, "its header is not one that dyn writes")
    if owner is not None and header.owner != crc_of_text(owner):
        raise CorruptRunError(path, "it belongs to another run, or is another array")
    return header, size


class ArrayWriter:
    """Appends rows of one shape and dtype to an array; `reopen` goes on with an existing array.

    Attributes:
        path: the `.npy` file.
        whole: whether the last append succeeded; otherwise `cut` must come before the next append.
    """

    def __init__(self, path: Path, row_shape: tuple[int, ...], dtype: DTypeLike, owner: str = "") -> None:
        """Create an empty array `(0, *row_shape)`, in place of any file of that name.

        `owner` identifies the run and the array: readers refuse the file of another run or array.

        Raises ValueError: rows without bytes, or a dtype that is not a plain number.
        """
        header = Header(np.dtype(dtype), tuple(row_shape), 0, crc_of_text(owner))
        header = header._replace(checksum=header.start())
        if decode_header(header.encode()) != header:
            raise ValueError(f"cannot store rows of shape {row_shape} and dtype {np.dtype(dtype)}")
        with files.os_errors_as_run_errors(path):
            files.write_atomic(path, header.encode())
            self._open(path, header)

    @classmethod
    def reopen(cls, path: Path, rows: int, checksum: int, owner: str = "") -> Self:
        """Open an array for appending and keep its first `rows` rows, which must have this checksum.

        Raises CorruptRunError: the array cannot be read, is another's, or its rows do not fit the checksum.
        """
        header, _ = read_header(path, owner)
        writer = cls.__new__(cls)
        with files.os_errors_as_run_errors(path):
            writer._open(path, header)
        try:
            writer.cut(rows, checksum)
        except BaseException:
            writer.close()
            raise
        return writer

    def _open(self, path: Path, header: Header) -> None:
        self.path, self._header, self._offset = path, header, header.offset
        self.whole = True
        self._handle = files.open_update(path)

    @property
    def rows(self) -> int:
        """Acknowledged rows."""
        return self._header.rows

    @property
    def checksum(self) -> int:
        """Running checksum of the acknowledged rows."""
        return self._header.checksum

    def append(self, rows: Array) -> None:
        """Append a block of rows `(k, *row_shape)`.

        Raises:
            ValueError: another shape or dtype than that of the array.
            RunError: the disk is full, not writable or failing.
        """
        dtype, row_shape = self._header.dtype, self._header.row_shape
        if rows.dtype != dtype or rows.shape[1:] != row_shape or rows.ndim != len(row_shape) + 1:
            expected = f"(k, {', '.join(map(str, row_shape))}) {dtype}"
            raise ValueError(f"{self.path.name}: rows {rows.shape} {rows.dtype} instead of {expected}")
        if not len(rows):
            return
        block = np.ascontiguousarray(rows).reshape(-1).view(np.uint8).data
        header = self._header._replace(rows=self.rows + len(rows), checksum=zlib.crc32(block, self.checksum))
        self.whole = False
        with files.os_errors_as_run_errors(self.path):
            files.write_at(self._handle, block, self._offset + self.rows * self._header.row_bytes)
            files.write_at(self._handle, header.encode(), 0)
        self._header, self.whole = header, True

    def cut(self, rows: int, checksum: int | None = None) -> None:
        """Keep the first `rows` rows, and nothing in the file behind them.

        They must have this checksum. Without a checksum, as after an append, all acknowledged rows must have the
        checksum of the header.

        Raises:
            CorruptRunError: they have not.
            RunError: the disk is full, not writable or failing.
        """
        header, handle = self._header, self._handle
        with files.os_errors_as_run_errors(self.path):
            files.ensure_named(os.fstat(handle.fileno()), self.path)
            found = header.checksum_of(handle, rows)
            fits = found == checksum
            if checksum is None:
                fits = rows <= header.rows and header.checksum == header.checksum_of(handle, header.rows)
            if found is None or not fits:
                raise CorruptRunError(self.path, f"its first {rows} rows, which are needed, do not fit their checksum")
            header = header._replace(rows=rows, checksum=found)
            files.write_at(handle, header.encode(), 0)  # first: at each moment the acknowledged rows can be checked
            files.truncate(handle, self._offset + rows * header.row_bytes)
        self._header, self.whole = header, True

    def sync(self) -> None:
        """Return when all acknowledged rows are on the disk, in a file that still has its name."""
        with files.os_errors_as_run_errors(self.path):
            files.ensure_named(os.fstat(self._handle.fileno()), self.path)
            files.sync(self._handle)

    def close(self) -> None:
        """Close the file; the array stays as it is."""
        self._handle.close()


def read_array(path: Path, rows: int | None = None) -> Array:
    """Map an array read-only into memory: its acknowledged rows, or the first `rows` of them; no checksum is compared.

    Raises CorruptRunError: the header is damaged, or there are fewer rows than it says or than `rows`.
    """
    header, size = read_header(path)
    wanted, available = header.rows if rows is None else rows, max(size - header.offset, 0) // header.row_bytes
    if not 0 <= wanted <= header.rows:
        raise CorruptRunError(path, f"it counts {header.rows} rows" + ("" if rows is None else f" instead of {rows}"))
    if wanted > available:
        raise CorruptRunError(path, f"it ends after {available} of {wanted} rows", "half copied?")
    with unreadable_as_corrupt(path):
        try:
            if wanted == 0:
                return np.empty((0, *header.row_shape), header.dtype)  # nothing to map
            return np.memmap(path, header.dtype, "r", header.offset, (wanted, *header.row_shape))
        except ValueError as error:  # too many axes, or a shorter file has taken its place
            raise CorruptRunError(path, f"it cannot be mapped ({error})") from error


def check_array(
    path: Path, owner: str | None, rows: int | None = None, checksum: int | None = None, least: int = 0
) -> int:
    """Check all acknowledged rows of an array against their checksum and return how many there are.

    Args:
        path: the `.npy` file.
        owner: the run and the array whose file this must be; None for any.
        rows: the rows of a finished array, with nothing behind them; without it a torn tail is allowed.
        checksum: the checksum of a finished array.
        least: the rows that an unfinished array has at least: a checkpoint knows of them.

    Raises CorruptRunError: it is damaged.
    """
    header, size = read_header(path, owner)
    with unreadable_as_corrupt(path), files.open_read(path) as handle:
        found = header.checksum_of(handle, header.rows)
    if header.rows < least:
        problem = f"it has {header.rows} rows, and the checkpoint knows of {least}"
    elif rows not in (None, header.rows):
        problem = f"it counts {header.rows} rows instead of {rows}"
    elif found is None:
        problem = f"it ends before row {header.rows}: was it half copied?"
    elif found != header.checksum or checksum not in (None, found):
        problem = "its rows do not fit their checksum"
    elif rows is not None and size != header.offset + rows * header.row_bytes:
        problem = "it is longer than it was when the run ended"
    else:
        return header.rows
    if read_header(path)[0] != header:
        return check_array(path, owner, rows, checksum, least)  # a living process has written the header meanwhile
    raise CorruptRunError(path, problem)


def acknowledged_rows(path: Path) -> int:
    """Return how many rows the header of an array counts; 0 where there is none that can be read."""
    try:
        return max(0, read_header(path)[0].rows)
    except CorruptRunError:
        return 0

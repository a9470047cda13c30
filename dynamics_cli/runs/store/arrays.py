"""Append-only arrays in plain `.npy` files that survive a kill at any moment.

One append writes the rows, then the header with the new number of rows and the running CRC-32 of all rows. The header
acknowledges the rows: before it nobody sees them, and the bytes behind the acknowledged rows are a torn tail, which is
dropped when the array is opened for appending. `np.load(path, mmap_mode="r")` works at any moment. Nothing is forced to
the disk before `sync`.

The header is version 1.0 of NumPy's format. A comment in its padding, which NumPy skips, holds two CRC-32: that of the
array's owner (a run and the name of the array), so that the file of another one does not pass for it, and that of its
dtype, row shape and rows. Number and checksums have fixed places, so that nothing else of a header ever changes.
Reading is strict: only headers written here are accepted, and nothing in them is evaluated.
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
_ALIGNMENT = 64
_COUNT_DIGITS = 20
_MOST_AXES = 32
_LARGEST_ROW = 2**60
"""Bytes; NumPy refuses larger ones."""
_LONGEST = 4096
"""Bytes of a header."""
_PIECE = 1 << 20
"""Bytes read at once."""
_PATTERN = re.compile(
    rb"\{'descr': '([<>|][fiub][0-9]{1,2})', 'fortran_order': False, "
    rb"'shape': \(( *[0-9]+),((?: [0-9]{1,18},)* [0-9]{1,18})?\), \}( #([0-9a-f]{8}) ([0-9a-f]{8}))? *\n",
)


class Header(NamedTuple):
    """The header of an array; `rows` is None where a kill has torn the number.

    `owner` and `checksum` (see `checksum_of`) are None in runs of formats 1 and 2, which had checksums in other files.
    """

    dtype: np.dtype[Any]
    row_shape: tuple[int, ...]
    rows: int | None = 0
    owner: int | None = None
    checksum: int | None = None

    @property
    def row_bytes(self) -> int:
        """Bytes of one row."""
        return self.dtype.itemsize * math.prod(self.row_shape)

    @property
    def offset(self) -> int:
        """Byte where the rows begin."""
        return len(self.encode())

    def encode(self) -> bytes:
        """Return the bytes of the header."""
        rest = "".join(f" {n}," for n in self.row_shape).removesuffix(",")
        count = f"{self.rows or 0:{_COUNT_DIGITS}d}"
        text = f"{{'descr': '{self.dtype.str}', 'fortran_order': False, 'shape': ({count},{rest}), }}"
        if self.owner is not None:
            text += f" #{self.owner:08x} {self.checksum:08x}"
        text += " " * (-(len(_NPY) + 2 + len(text) + 1) % _ALIGNMENT) + "\n"
        return _NPY + struct.pack("<H", len(text)) + text.encode()

    def checksum_of(self, handle: BinaryIO, rows: int) -> int | None:
        """Return the CRC-32 of dtype, row shape and the first `rows` rows; None when the file ends before."""
        return crc_of_bytes(handle, self.offset, rows * self.row_bytes, self.beginning())

    def beginning(self) -> int:
        """Return the checksum of no rows."""
        return zlib.crc32(f"{self.dtype.str} {self.row_shape}".encode())


def crc_of_bytes(handle: BinaryIO, position: int, count: int, checksum: int = 0) -> int | None:
    """Run the CRC-32 on over `count` bytes of a file from `position` on; None when the file ends before."""
    while count > 0:
        piece = files.read_at(handle, position, min(count, _PIECE))
        if not piece:
            return None
        checksum = zlib.crc32(piece, checksum)
        position, count = position + len(piece), count - len(piece)
    return checksum


def decode_header(start: bytes) -> Header | None:
    """Read a header from the first bytes of a file; None when it is not one of ours, or damaged."""
    at = len(_NPY) + 2
    if len(start) < at or not start.startswith(_NPY):
        return None
    (length,) = struct.unpack_from("<H", start, len(_NPY))
    found = _PATTERN.fullmatch(start[at : at + length])
    if found is None:
        return None
    try:
        dtype = np.dtype(found[1].decode())
    except TypeError:  # such as 'f3'
        return None
    row_shape = tuple(int(n) for n in (found[3] or b"").split(b",") if n)
    if len(row_shape) >= _MOST_AXES or dtype.itemsize * math.prod(row_shape) > _LARGEST_ROW:
        return None
    owner, checksum = (int(found[5], 16), int(found[6], 16)) if found[4] else (None, None)
    header = Header(dtype, row_shape, int(found[2]), owner, checksum)
    # All but a torn number of rows must be, byte for byte, as it would be written.
    expected, (first, last) = header.encode(), (at + found.start(2), at + found.end(2))
    if (expected[:first], expected[last:]) != (start[:first], start[last : len(expected)]):
        return None
    return header if expected[first:last] == found[2] else header._replace(rows=None)


def read_header(path: Path) -> tuple[Header, int]:
    """Return the header of an array, and the size of its file in bytes.

    Raises CorruptRunError: it cannot be read, or dyn does not write such a header.
    """
    with unreadable_as_corrupt(path), files.open_read(path) as handle:
        header, size = decode_header(files.read_at(handle, 0, _LONGEST)), files.size(handle)
    if header is None or header.row_bytes == 0:
        raise CorruptRunError(path, "its header is not one that dyn writes")
    return header, size


class ArrayWriter:
    """Appends rows of one shape and dtype to an array; `reopen` goes on with an existing one.

    Attributes:
        path: the `.npy` file.
        row_shape, dtype: shape of one row, type of the numbers.
    """

    def __init__(self, path: Path, row_shape: tuple[int, ...], dtype: DTypeLike, owner: str = "") -> None:
        """Create an empty array `(0, *row_shape)`, in place of any file of that name.

        `owner` identifies the run and the array: the file of another one is not taken for this one.

        Raises ValueError: rows without bytes, or a dtype that is not a plain number.
        """
        header = Header(np.dtype(dtype), tuple(row_shape), 0, crc_of_text(owner), 0)
        header = header._replace(checksum=header.beginning())
        if decode_header(header.encode()) != header or header.row_bytes == 0:
            raise ValueError(f"cannot store rows of shape {row_shape} and dtype {np.dtype(dtype)}")
        with files.os_errors_as_run_errors(path):
            files.write_atomic(path, header.encode())
            self._open(path, header)

    @classmethod
    def reopen(cls, path: Path, rows: int, checksum: int | None, owner: str = "") -> Self:
        """Open an array for appending and keep its first `rows` rows, which must have this checksum.

        Without a checksum, which checkpoints of formats 1 and 2 do not hold, all rows must have that of the header.

        Raises CorruptRunError: the array cannot be read, is another's, or its rows do not fit the checksum.
        """
        header, _ = read_header(path)
        _check_owner(path, header, owner)
        writer = cls.__new__(cls)
        with files.os_errors_as_run_errors(path):
            writer._open(path, header)
            try:
                found = header.checksum_of(writer._handle, rows)
                fits = checksum == found
                if checksum is None and rows <= (header.rows or 0):
                    fits = header.checksum == header.checksum_of(writer._handle, header.rows or 0)
                if found is None or not fits:
                    raise CorruptRunError(
                        path, f"its first {rows} rows, those of the checkpoint, do not fit their checksum"
                    )
                if header != (kept := header._replace(rows=rows, checksum=found)):
                    writer._acknowledge(kept)
                writer.trim()
            except BaseException:
                writer.close()
                raise
        return writer

    def _open(self, path: Path, header: Header) -> None:
        self.path, self.row_shape, self.dtype = path, header.row_shape, header.dtype
        self._offset, self._row_bytes = header.offset, header.row_bytes
        self._header = self._before = header
        self._written = True  # the header is on the disk as it is here
        self._handle = files.open_update(path)

    @property
    def rows(self) -> int:
        """Acknowledged rows."""
        return self._header.rows or 0

    @property
    def checksum(self) -> int:
        """Running checksum of the acknowledged rows."""
        return self._header.checksum or 0

    def append(self, rows: Array) -> None:
        """Append a block of rows `(k, *row_shape)`; after a failure the array is as before and may be appended to.

        Raises:
            ValueError: another shape or dtype than that of the array.
            RunError: the disk is full, not writable or failing.
        """
        if rows.dtype != self.dtype or rows.shape[1:] != self.row_shape or rows.ndim != len(self.row_shape) + 1:
            expected = f"(k, {', '.join(map(str, self.row_shape))}) {self.dtype}"
            raise ValueError(f"{self.path.name}: rows {rows.shape} {rows.dtype} instead of {expected}")
        if not len(rows):
            return
        block = np.ascontiguousarray(rows).reshape(-1).view(np.uint8).data
        checksum = zlib.crc32(block, self.checksum)
        with files.os_errors_as_run_errors(self.path):
            files.write_at(self._handle, block, self._offset + self.rows * self._row_bytes)
            self._acknowledge(self._header._replace(rows=self.rows + len(rows), checksum=checksum))

    def _acknowledge(self, header: Header) -> None:
        self._written = False
        files.write_at(self._handle, header.encode(), 0)
        self._before, self._header, self._written = self._header, header, True

    def go_back(self, rows: int) -> None:
        """Take the last append back where the array has other than `rows` rows, or where that append failed.

        Raises:
            ValueError: the array had another number of rows before its last append.
            RunError: the disk is full, not writable or failing.
        """
        header = self._header if rows == self.rows else self._before
        if header.rows != rows:
            raise ValueError(f"{self.path.name} has {self.rows} rows, not {rows}")
        if header is not self._header or not self._written:
            with files.os_errors_as_run_errors(self.path):
                self._acknowledge(header)

    def trim(self) -> None:
        """Cut the file behind the acknowledged rows."""
        size = self._offset + self.rows * self._row_bytes
        with files.os_errors_as_run_errors(self.path):
            self._ensure_named()
            if files.size(self._handle) != size:
                files.truncate(self._handle, size)

    def sync(self) -> None:
        """Return when all acknowledged rows are on the disk, in a file that still has its name."""
        with files.os_errors_as_run_errors(self.path):
            self._ensure_named()
            files.sync(self._handle)

    def _ensure_named(self) -> None:
        files.ensure_named(os.fstat(self._handle.fileno()), self.path)

    def close(self) -> None:
        """Close the file; the array stays as it is."""
        self._handle.close()


def read_array(path: Path, rows: int | None = None) -> Array:
    """Map an array read-only into memory: its acknowledged rows, or the first `rows` of them; no checksum is compared.

    Raises CorruptRunError: the header is damaged, or there are fewer rows than it says or than `rows`.
    """
    header, size = read_header(path)
    available = max(size - header.offset, 0) // header.row_bytes
    wanted = header.rows if rows is None else rows
    if header.rows is None or wanted is None or wanted > header.rows:
        raise CorruptRunError(path, f"it counts {header.rows} rows" + ("" if rows is None else f" instead of {rows}"))
    if wanted > available:
        raise CorruptRunError(path, f"it ends after {available} of {wanted} rows", "half copied?")
    if wanted == 0:
        return np.empty((0, *header.row_shape), header.dtype)  # nothing to map
    with unreadable_as_corrupt(path):
        try:
            return np.memmap(path, header.dtype, "r", header.offset, (wanted, *header.row_shape))
        except ValueError as error:  # another file has taken its place, a shorter one
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
    header, size = read_header(path)
    if owner is not None:
        _check_owner(path, header, owner)
    with unreadable_as_corrupt(path), files.open_read(path) as handle:
        found = header.checksum_of(handle, header.rows or 0)
    problem = ""
    if header.rows is None or rows not in (None, header.rows):
        problem = f"it counts {header.rows} rows" + ("" if rows is None else f" instead of {rows}")
    elif header.rows < least:
        problem = f"it has {header.rows} rows, and the checkpoint knows of {least}"
    elif found is None:
        problem = f"it ends before row {header.rows}: was it half copied?"
    elif found != header.checksum or checksum not in (None, found):
        problem = "its rows do not fit their checksum"
    elif rows is not None and size != header.offset + rows * header.row_bytes:
        problem = "it is longer than it was when the run ended"
    if not problem and header.rows is not None:
        return header.rows
    if read_header(path)[0] != header:
        return check_array(path, owner, rows, checksum, least)  # a living process has written the header meanwhile
    raise CorruptRunError(path, problem)


def acknowledged_rows(path: Path) -> int:
    """Return how many rows the header of an array counts; 0 where there is none that can be read."""
    try:
        return read_header(path)[0].rows or 0
    except CorruptRunError:
        return 0


def crc_of_text(owner: str) -> int:
    """Return the CRC-32 that stands for an owner."""
    return zlib.crc32(owner.encode(errors="surrogatepass"))


def _check_owner(path: Path, header: Header, owner: str) -> None:
    if header.owner != crc_of_text(owner):
        raise CorruptRunError(path, "it belongs to another run, or is another array")

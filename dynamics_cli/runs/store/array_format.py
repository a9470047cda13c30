"""The two files of an array: a `.npy` file whose number of rows changes in place, and the checksums beside it.

The header of the `.npy` file is version 1.0 of NumPy's format; the number of rows is right-aligned in 20 characters, so
that neither the length of the header nor anything else in it changes when rows are added. Reading is strict: only
headers written here are accepted, and nothing in them is evaluated.

`<name>.crc` is a sequence of 16-byte little-endian records. The first seals the array's dtype and row shape, and names,
by a CRC-32, the run and the array (its owner), so that the files of another one do not pass for these; each other one
stands for one appended block: `(rows of the array after the block: u64, CRC-32 of the block: u32, CRC-32 of the
record: u32)`.
"""

from __future__ import annotations

import math
import re
import struct
import zlib
from dataclasses import dataclass
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from dynamics_cli.runs.store import files

_NPY = b"\x93NUMPY\x01\x00"
_ALIGNMENT = 64
_COUNT_DIGITS = 20
_MOST_AXES = 32
_LARGEST_ROW = 2**60
"""Bytes; NumPy refuses larger ones."""
_LONGEST = 4096
LONGEST_HEADER = len(_NPY) + 2 + _LONGEST
"""Bytes to read from a file to be sure to have its header."""
_PATTERN = re.compile(
    rb"\{'descr': '([<>|][fiub][0-9]{1,2})', 'fortran_order': False, "
    rb"'shape': \((.{20}),((?: [0-9]{1,18},)* [0-9]{1,18})?\), \} *\n",
    re.DOTALL,
)
_COUNT = re.compile(rb" *([0-9]+)")

_CRC = b"DYNCRC1\n"
"""Begins the checksums of an array without owner, as the runs of format 1 have them."""
_OWNED = b"DYN2"
"""Begins those of an array with an owner, whose CRC-32 follows."""
_SEAL = struct.Struct("<8sI")
_BLOCK = struct.Struct("<QI")
_CHECK = struct.Struct("<I")
RECORD_BYTES = 16
_RECORD = np.dtype([("rows", "<u8"), ("block", "<u4"), ("check", "<u4")])
_PIECE = 1 << 20


@dataclass(frozen=True)
class Header:
    """The header of an array of `rows` rows, or of an unreadable number of them (`None`)."""

    dtype: np.dtype[Any]
    row_shape: tuple[int, ...]
    rows: int | None

    @property
    def row_bytes(self) -> int:
        """Bytes of one row."""
        return self.dtype.itemsize * math.prod(self.row_shape)

    @property
    def offset(self) -> int:
        """Byte where the data begin."""
        return len(self.encode())

    @property
    def count_at(self) -> int:
        """Byte where the number of rows begins."""
        return len(_NPY) + 2 + len(self._opening())

    def encode(self, rows: int = 0) -> bytes:
        """Return the bytes of the header of an array of `rows` rows."""
        rest = "".join(f" {n}," for n in self.row_shape).removesuffix(",")
        text = self._opening() + encode_count(rows) + f",{rest}), }}".encode()
        padding = -(len(_NPY) + 2 + len(text) + 1) % _ALIGNMENT
        text += b" " * padding + b"\n"
        return _NPY + struct.pack("<H", len(text)) + text

    def _opening(self) -> bytes:
        return f"{{'descr': '{self.dtype.str}', 'fortran_order': False, 'shape': (".encode()


def encode_count(rows: int) -> bytes:
    """Return the 20 characters that stand for a number of rows."""
    return f"{rows:{_COUNT_DIGITS}d}".encode()


def decode_header(start: bytes) -> Header | None:
    """Read a header from the first bytes of a file; `None` when it is not one of ours, or damaged."""
    if len(start) < len(_NPY) + 2 or not start.startswith(_NPY):
        return None
    (length,) = struct.unpack_from("<H", start, len(_NPY))
    text = start[len(_NPY) + 2 : len(_NPY) + 2 + length]
    found = _PATTERN.fullmatch(text)
    if length > _LONGEST or found is None:
        return None
    try:
        dtype = np.dtype(found[1].decode())
    except TypeError:  # such as 'f3'
        return None
    count = _COUNT.fullmatch(found[2])
    row_shape = tuple(int(n) for n in (found[3] or b"").split(b",") if n)
    if len(row_shape) >= _MOST_AXES or dtype.itemsize * math.prod(row_shape) > _LARGEST_ROW:
        return None
    rows = int(count[1]) if count and encode_count(int(count[1])) == found[2] else None
    header = Header(dtype, row_shape, rows)
    # All but the number of rows must be, byte for byte, what we would have written.
    expected = header.encode()
    same = expected[: header.count_at] == start[: header.count_at]
    after = header.count_at + _COUNT_DIGITS
    return header if same and expected[after:] == start[after : len(expected)] else None


def _checked(body: bytes) -> bytes:
    return body + _CHECK.pack(zlib.crc32(body))


def first_record(header: Header, owner: str | None = None) -> bytes:
    """Return the first record, which stands for the array's dtype and row shape, and for its owner."""
    start = _CRC if owner is None else _OWNED + _CHECK.pack(zlib.crc32(owner.encode(errors="surrogatepass")))
    return _checked(_SEAL.pack(start, zlib.crc32(header.encode())))


def block_record(rows: int, checksum: int) -> bytes:
    """Return the record of a block after which the array has `rows` rows."""
    return _checked(_BLOCK.pack(rows, checksum))


@dataclass(frozen=True)
class Records:
    """The valid records of a checksum file.

    `ends` (B,) holds the rows of the array after each block, `checksums` (B,) their CRC-32; `exact` tells whether the
    file holds nothing else.
    """

    ends: NDArray[np.int64]
    checksums: NDArray[np.int64]
    exact: bool

    @property
    def total(self) -> int:
        """Rows of the array after the last block."""
        return int(self.ends[-1]) if len(self.ends) else 0

    def block_of(self, row: int) -> int:
        """Index of the block that holds a row."""
        return int(np.searchsorted(self.ends, row, side="right"))

    def start(self, block: int) -> int:
        """First row of a block."""
        return int(self.ends[block - 1]) if block else 0


def decode_records(data: bytes, header: Header, owner: str | None = None) -> Records | None:
    """Read a checksum file; what follows the last valid record is left out.

    `None` when the first record is not that of this header, or of this owner, where one is given.
    """
    seal = data[:RECORD_BYTES]
    if owner is None and seal.startswith(_OWNED):
        fits = seal == _checked(_SEAL.pack(seal[: len(_CRC)], zlib.crc32(header.encode())))
    else:
        fits = seal == first_record(header, owner)
    if not fits:
        return None
    count = len(data) // RECORD_BYTES - 1
    table: NDArray[Any] = np.frombuffer(data, _RECORD, count, RECORD_BYTES)
    ends = table["rows"].astype(np.int64)
    valid = np.diff(ends, prepend=0) > 0
    for i in np.flatnonzero(valid):  # stop at the first record that does not check
        if zlib.crc32(data[RECORD_BYTES * (i + 1) :][: _BLOCK.size]) != table["check"][i]:
            valid[i] = False
            break
    good = count if valid.all() else int(np.argmin(valid))
    exact = good == count and len(data) % RECORD_BYTES == 0
    return Records(ends[:good], table["block"][:good].astype(np.int64), exact)


def checksum_of_rows(handle: BinaryIO, header: Header, first: int, last: int) -> int | None:
    """CRC-32 of rows `first <= i < last` as they are in the file; `None` when the file ends before."""
    position, rest = header.offset + first * header.row_bytes, (last - first) * header.row_bytes
    checksum = 0
    while rest > 0:
        piece = files.read_at(handle, position, min(rest, _PIECE))
        if not piece:
            return None
        checksum = zlib.crc32(piece, checksum)
        position, rest = position + len(piece), rest - len(piece)
    return checksum

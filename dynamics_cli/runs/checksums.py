"""The checksums beside an array: which blocks of rows were written, and what their bytes were.

`<name>.crc` is a sequence of 16-byte little-endian records. The first seals the array's dtype and row shape; each other
one stands for one appended block: `(rows of the array after the block: u64, CRC-32 of the block: u32, CRC-32 of the
record: u32)`.
"""

from __future__ import annotations

import struct
import zlib
from dataclasses import dataclass
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from dynamics_cli.runs import files
from dynamics_cli.runs.npy import Header

_MAGIC = b"DYNCRC1\n"
_SEAL = struct.Struct("<8sI")
_BLOCK = struct.Struct("<QI")
_CHECK = struct.Struct("<I")
RECORD_BYTES = 16
_RECORD = np.dtype([("rows", "<u8"), ("block", "<u4"), ("check", "<u4")])
_PIECE = 1 << 20


def _checked(body: bytes) -> bytes:
    return body + _CHECK.pack(zlib.crc32(body))


def seal(header: Header) -> bytes:
    """Return the first record, which holds the array's dtype and row shape."""
    return _checked(_SEAL.pack(_MAGIC, zlib.crc32(header.encode())))


def record(rows: int, checksum: int) -> bytes:
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


def decode(data: bytes, header: Header) -> Records | None:
    """Read a checksum file; what follows the last valid record is left out. `None` when the seal does not fit."""
    if data[:RECORD_BYTES] != seal(header):
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


def of_rows(handle: BinaryIO, header: Header, first: int, last: int) -> int | None:
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

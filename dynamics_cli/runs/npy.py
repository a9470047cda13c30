"""The header of a `.npy` file whose number of rows changes in place.

It is version 1.0 of NumPy's format; the number of rows is right-aligned in 20 characters, so that neither the length of
the header nor anything else in it changes when rows are added. Reading is strict: only headers written here are
accepted, and nothing in them is evaluated.
"""

from __future__ import annotations

import math
import re
import struct
from dataclasses import dataclass
from typing import Any

import numpy as np

_MAGIC = b"\x93NUMPY\x01\x00"
_ALIGNMENT = 64
_COUNT_DIGITS = 20
_MOST_AXES = 32
_LARGEST_ROW = 2**60
"""Bytes; NumPy refuses to think of more."""
_LONGEST = 4096
_PATTERN = re.compile(
    rb"\{'descr': '([<>|][fiub][0-9]{1,2})', 'fortran_order': False, "
    rb"'shape': \((.{20}),((?: [0-9]{1,18},)* [0-9]{1,18})?\), \} *\n",
    re.DOTALL,
)
_COUNT = re.compile(rb" *([0-9]+)")


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
        return len(_MAGIC) + 2 + len(self._opening())

    def encode(self, rows: int = 0) -> bytes:
        """Return the bytes of the header of an array of `rows` rows."""
        rest = "".join(f" {n}," for n in self.row_shape).removesuffix(",")
        text = self._opening() + encode_count(rows) + f",{rest}), }}".encode()
        padding = -(len(_MAGIC) + 2 + len(text) + 1) % _ALIGNMENT
        text += b" " * padding + b"\n"
        return _MAGIC + struct.pack("<H", len(text)) + text

    def _opening(self) -> bytes:
        return f"{{'descr': '{self.dtype.str}', 'fortran_order': False, 'shape': (".encode()


def encode_count(rows: int) -> bytes:
    """Return the 20 characters that stand for a number of rows."""
    return f"{rows:{_COUNT_DIGITS}d}".encode()


def decode(start: bytes) -> Header | None:
    """Read a header from the first bytes of a file; `None` when it is not one of ours, or damaged."""
    if len(start) < len(_MAGIC) + 2 or not start.startswith(_MAGIC):
        return None
    (length,) = struct.unpack_from("<H", start, len(_MAGIC))
    text = start[len(_MAGIC) + 2 : len(_MAGIC) + 2 + length]
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


LONGEST_HEADER = len(_MAGIC) + 2 + _LONGEST
"""Bytes to read from a file to be sure to have its header."""

"""Append-only arrays in plain `.npy` files that survive a kill at any moment.

One append writes, in this order, the rows, the record of their checksum and the number of rows in the header of the
`.npy` file (see `array_format.py`). The last step acknowledges the rows: before it nobody sees them, and what lies
behind the acknowledged rows is a torn tail, dropped when the array is opened for appending.
`np.load(path, mmap_mode="r")` works at any moment. Nothing is forced to the disk before `sync`.
"""

from __future__ import annotations

import hashlib
import os
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import DTypeLike, NDArray

from dynamics_cli.runs.errors import CorruptRunError, unreadable_as_corrupt
from dynamics_cli.runs.store import array_format, files
from dynamics_cli.runs.store.array_format import RECORD_BYTES, Header, Records
from dynamics_cli.runs.store.layout import CHECKSUM_SUFFIX

Array = NDArray[Any]


class ArrayWriter:
    """Appends rows of one shape and dtype to an array; `open_for_append` goes on with an existing one.

    Attributes:
        path: the `.npy` file.
        rows: acknowledged rows.
    """

    def __init__(self, path: Path, row_shape: tuple[int, ...], dtype: DTypeLike, owner: str | None = None) -> None:
        """Create an empty array `(0, *row_shape)`, in place of any file of that name.

        `owner` identifies the run and the array: the files of another one are not taken for these.

        Raises ValueError: rows without bytes, or a dtype that is not a plain number.
        """
        header = Header(np.dtype(dtype), tuple(row_shape), 0)
        if array_format.decode_header(header.encode()) != header or header.row_bytes == 0:
            raise ValueError(f"cannot store rows of shape {row_shape} and dtype {np.dtype(dtype)}")
        self.path = path
        self._header, self._owner = header, owner
        self.rows = self._blocks = 0
        with files.os_errors_as_run_errors(path):
            files.remove(path)
            files.write_atomic(_checksum_file(path), array_format.first_record(header, owner))
            files.write_atomic(path, header.encode())
            self._open()

    def _open(self) -> None:
        self._data = files.open_update(self.path)
        try:
            self._sums = files.open_update(_checksum_file(self.path))
        except BaseException:
            self._data.close()
            raise

    @property
    def row_shape(self) -> tuple[int, ...]:
        """Shape of one row."""
        return self._header.row_shape

    @property
    def dtype(self) -> np.dtype[Any]:
        """Type of the numbers."""
        return self._header.dtype

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
        total = self.rows + len(rows)
        with files.os_errors_as_run_errors(self.path):
            files.write_at(self._data, block, self._header.offset + self.rows * self._header.row_bytes)
            entry = array_format.block_record(total, zlib.crc32(block))
            files.write_at(self._sums, entry, RECORD_BYTES * (self._blocks + 1))
            files.write_at(self._data, array_format.encode_count(total), self._header.count_at)
        self.rows, self._blocks = total, self._blocks + 1

    def truncate(self, rows: int) -> None:
        """Keep only the first `rows` rows, and nothing in the files behind them.

        Raises:
            ValueError: more rows than there are.
            CorruptRunError: the block in which the cut falls is damaged.
        """
        if not 0 <= rows <= self.rows:
            raise ValueError(f"{self.path.name} has {self.rows} rows, not {rows}")
        self._ensure_named()
        records = _load(self.path, self._owner).records
        with files.os_errors_as_run_errors(self.path):
            self._cut(rows, records)

    def _cut(self, rows: int, records: Records) -> None:
        """Header, then checksums, then data: at every moment the rows that the header counts can be checked."""
        block = records.block_of(rows)  # the first block that does not stay whole
        whole = zip(records.ends[:block].tolist(), records.checksums[:block].tolist(), strict=True)
        kept = b"".join(array_format.block_record(end, checksum) for end, checksum in whole)
        if records.start(block) < rows:
            part = _intact(self._data, self._header, records, block, rows)
            if part is None:
                raise CorruptRunError(self.path, f"rows from {records.start(block)} on do not fit their checksum")
            kept += array_format.block_record(rows, part)
        sums = array_format.first_record(self._header, self._owner) + kept
        data = self._header.offset + rows * self._header.row_bytes
        count = array_format.encode_count(rows)
        if files.read_at(self._data, self._header.count_at, len(count)) != count:
            files.write_at(self._data, count, self._header.count_at)
        if files.size(self._sums) != len(sums) or files.read_at(self._sums, 0, len(sums)) != sums:
            self._sums.close()
            try:
                files.write_atomic(_checksum_file(self.path), sums)
            finally:
                self._sums = files.open_update(_checksum_file(self.path))
        if files.size(self._data) != data:
            files.truncate(self._data, data)
        self.rows, self._blocks = rows, len(sums) // RECORD_BYTES - 1

    def sync(self) -> None:
        """Return when everything acknowledged is on the disk, in files that still have their names."""
        self._ensure_named()
        with files.os_errors_as_run_errors(self.path):
            files.sync(self._data)
            files.sync(self._sums)

    def _ensure_named(self) -> None:
        with files.os_errors_as_run_errors(self.path):
            files.ensure_named(os.fstat(self._data.fileno()), self.path)
            files.ensure_named(os.fstat(self._sums.fileno()), _checksum_file(self.path))

    def close(self) -> None:
        """Close the files; the array stays as it is."""
        self._data.close()
        self._sums.close()


def open_for_append(path: Path, rows: int | None = None, owner: str | None = None) -> ArrayWriter:
    """Open an existing array, drop its torn tail, and keep `rows` rows (default: all that are acknowledged and intact).

    Every row that stays is checked against its checksum: what is appended to a damaged array would be for nothing.

    Raises CorruptRunError: the array cannot be read, or fewer than `rows` rows are intact.
    """
    found = _load(path, owner)
    writer = ArrayWriter.__new__(ArrayWriter)
    writer.path, writer._header, writer._owner = path, found.header, owner
    with files.os_errors_as_run_errors(path):
        writer._open()
        try:
            acknowledged = found.records.total if found.header.rows is None else found.header.rows
            # what a checkpoint asks for is there when it fits its checksums, though the row count may be torn
            intact = _intact_rows(writer._data, found, min(acknowledged if rows is None else rows, found.records.total))
            if rows is not None and intact < rows:
                raise CorruptRunError(path, f"{rows} rows are needed", f"only the first {intact} rows can be trusted")
            writer._cut(intact, found.records)
        except BaseException:
            writer.close()
            raise
    return writer


def read_array(path: Path, rows: int | None = None) -> Array:
    """Map an array read-only into memory: its acknowledged rows, or the first `rows` of them; checksums are not read.

    Raises CorruptRunError: the header is damaged, or there are fewer rows than it says or than `rows`.
    """
    header, size = _read_header(path)
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


def verify_array(
    path: Path, rows: int | None = None, *, least: int | None = None, seal: str | None = None, owner: str | None = None
) -> int:
    """Check every acknowledged row of an array against its checksum and return how many there are.

    Args:
        path: the `.npy` file.
        rows: what a finished array must have, with nothing behind it in either file; without it a torn tail is allowed.
        least: what an unfinished array has at least: that many rows were acknowledged by a checkpoint.
        seal: what `sums_seal` gave when the array was finished.
        owner: of which run and array these must be the files; without it of any.

    Raises CorruptRunError: with the number of rows that are intact.
    """
    found = _load(path, owner)
    count, records = found.header.rows, found.records
    total = records.total
    with unreadable_as_corrupt(path), files.open_read(path) as data:
        intact = _intact_rows(data, found, min(total, total if count is None else count))
    if seal is not None and sums_seal(path) != seal:
        problem = f"it is not what it was when the run ended, and {path.name} cannot be checked"
        raise CorruptRunError(_checksum_file(path), problem)
    if count is None or count > total or (rows is not None and not count == total == rows):
        expected = "" if rows is None else f" instead of {rows}"
        raise CorruptRunError(path, f"it counts {count} rows and has checksums of {total}{expected}", _usable(intact))
    # Records may run ahead of the count: after a kill by one block, after a cut back to the checkpoint by any number,
    # after a power cut, too, but then the rows behind the count were lost with it.
    if count not in (0, least) and count not in records.ends:
        raise CorruptRunError(path, f"it counts {count} rows, which no append ended with", _usable(intact))
    if count != least and records.block_of(count) < len(records.ends) - 1:
        with files.open_read(path) as data:
            hidden = _intact_rows(data, found, total)
        if hidden == total:
            raise CorruptRunError(path, f"it counts {count} rows, and {hidden} fit their checksums", _usable(count))
    if count < (least or 0):
        raise CorruptRunError(path, f"it has {count} rows, and the checkpoint knows of {least}", _usable(intact))
    exact = found.header.offset + count * found.header.row_bytes
    if rows is not None and (found.size != exact or not records.exact):
        problem = "it, or its checksum file, is shorter or longer than it was when the run ended"
        raise CorruptRunError(path, problem, _usable(intact))
    if intact < count:
        raise CorruptRunError(path, f"rows from {intact} on do not fit their checksum", _usable(intact))
    return count


def sums_seal(path: Path) -> str:
    """SHA-256 of an array's checksum file (no CRC-32, which is the same for all records that end with their own)."""
    return hashlib.sha256(files.read(_checksum_file(path))).hexdigest()


def blocks(path: Path) -> int:
    """Return how many blocks the checksum file of an array has room for, unread; 0 when there is none."""
    try:
        return max(_checksum_file(path).lstat().st_size // RECORD_BYTES - 1, 0)
    except OSError:
        return 0


@dataclass(frozen=True)
class _Found:
    """What the two files of an array say: header, size of the `.npy` file in bytes, checksum records."""

    header: Header
    size: int
    records: Records


def _checksum_file(path: Path) -> Path:
    return path.with_suffix(CHECKSUM_SUFFIX)


def _usable(rows: int) -> str:
    return f"its first {rows} rows are intact" if rows else "none of its rows can be trusted"


def _read_header(path: Path) -> tuple[Header, int]:
    with unreadable_as_corrupt(path), files.open_read(path) as handle:
        start, size = files.read_at(handle, 0, array_format.LONGEST_HEADER), files.size(handle)
    header = array_format.decode_header(start)
    if header is None or header.row_bytes == 0:
        raise CorruptRunError(path, "its header is not one that dyn writes")
    return header, size


def _load(path: Path, owner: str | None = None) -> _Found:
    header, size = _read_header(path)
    with unreadable_as_corrupt(_checksum_file(path)):
        data = files.read(_checksum_file(path))
    records = array_format.decode_records(data, header, owner)
    if records is None:
        raise CorruptRunError(_checksum_file(path), f"it belongs to another run, or not to the header of {path.name}")
    if _read_header(path)[0] != header:
        return _load(path, owner)  # a living process has appended in the meantime
    return _Found(header, size, records)


def _intact(data: BinaryIO, header: Header, records: Records, block: int, upto: int | None = None) -> int | None:
    """Check a block; return the CRC-32 of its rows, or of those before row `upto`, and `None` when it is damaged."""
    start, end = records.start(block), int(records.ends[block])
    whole = array_format.checksum_of_rows(data, header, start, end)
    if whole is None or whole != records.checksums[block]:
        return None
    return whole if upto is None else array_format.checksum_of_rows(data, header, start, upto)


def _intact_rows(data: BinaryIO, found: _Found, rows: int) -> int:
    """Return how many of the first `rows` rows can be trusted: those before the first damaged block."""
    for block in range(found.records.block_of(rows - 1) + 1 if rows else 0):
        if _intact(data, found.header, found.records, block) is None:
            return found.records.start(block)
    return rows

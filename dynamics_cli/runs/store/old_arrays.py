"""Arrays of runs of formats 1 and 2, whose checksums stand in a file `<name>.crc` beside the `.npy` file.

`<name>.crc` is a sequence of 16-byte little-endian records. The first holds a magic text (format 1) or the CRC-32 of
the array's owner (format 2), and the CRC-32 of the header for no rows; each other record stands for one appended block:
rows of the array after the block (u64), CRC-32 of the block (u32). The last 4 bytes of each record are its own CRC-32.
"""

from __future__ import annotations

import hashlib
import struct
import zlib
from contextlib import closing
from pathlib import Path

import numpy as np

from dynamics_cli.runs.errors import CorruptRunError, unreadable_as_corrupt
from dynamics_cli.runs.store import files, layout
from dynamics_cli.runs.store.arrays import ArrayWriter, crc_of_bytes, crc_of_text, read_array, read_header

LAST_FORMAT = 2
"""Last format of runs that began with such arrays."""


def is_old(path: Path) -> bool:
    """Whether the header of an array has no checksum.

    Raises CorruptRunError: it cannot be read.
    """
    return read_header(path)[0].owner is None


def check_old_array(
    path: Path, owner: str | None, rows: int | None = None, seal: str | None = None, least: int = 0
) -> int:
    """Check all acknowledged rows of an array and return how many there are.

    Args:
        path: the `.npy` file.
        owner: the run and the array whose file this must be, in format 2; None in format 1.
        rows: the rows of a finished array.
        seal: SHA-256 of the file of its checksums, in `run.json`.
        least: the rows that an unfinished array has at least.

    Raises CorruptRunError: it is damaged.
    """
    header, size = read_header(path)
    ends = [0, *(end for end, _ in _blocks(path, owner, seal))]
    if header.rows < least or rows not in (None, header.rows):
        wanted = f"at least {least}" if rows is None else rows
        raise CorruptRunError(path, f"it counts {header.rows} rows instead of {wanted}")
    # Records run ahead of the rows: after a kill by a block, after a cut back to the checkpoint by many.
    if header.rows not in (least, *ends[-2:]):
        raise CorruptRunError(path, f"it counts {header.rows} rows and has checksums of {ends[-1]}")
    if rows is not None and (rows, size) != (ends[-1], header.offset + rows * header.row_bytes):
        raise CorruptRunError(path, "it is not what it was when the run ended")
    _check_blocks(path, owner, header.rows)
    return header.rows


def renew(path: Path, owner: str | None, rows: int, new_owner: str) -> None:
    """Rewrite an array in the format of `arrays`, with its first `rows` rows.

    Raises:
        CorruptRunError: these rows are damaged.
        RunError: the disk is full, not writable or failing.
    """
    _check_blocks(path, owner, rows)
    array = read_array(path, rows)
    with files.os_errors_as_run_errors(path):
        with files.replacing(path) as new, closing(ArrayWriter(new, array.shape[1:], array.dtype, new_owner)) as writer:
            writer.append(np.asarray(array))
            writer.sync()
        files.remove(path.with_suffix(layout.CHECKSUM_SUFFIX))


def _check_blocks(path: Path, owner: str | None, rows: int) -> None:
    """Raise `CorruptRunError` unless the blocks of the first `rows` rows fit their checksums."""
    header, start = read_header(path)[0], 0
    with unreadable_as_corrupt(path), files.open_read(path) as handle:
        for end, checksum in _blocks(path, owner):
            position, count = header.offset + start * header.row_bytes, (end - start) * header.row_bytes
            if start >= rows or crc_of_bytes(handle, position, count) != checksum:
                break
            start = end
    if start < rows:
        raise CorruptRunError(path, "its rows do not fit their checksums")


def _blocks(path: Path, owner: str | None, seal: str | None = None) -> list[tuple[int, int]]:
    """Return the rows after each block, and the CRC-32 of the block; records behind a torn record are left out."""
    sums = path.with_suffix(layout.CHECKSUM_SUFFIX)
    with unreadable_as_corrupt(sums):
        data = files.read(sums)
    if seal is not None and hashlib.sha256(data).hexdigest() != seal:
        raise CorruptRunError(sums, f"it is not what it was when the run ended, and {path.name} cannot be checked")
    magic = b"DYNCRC1\n" if owner is None else struct.pack("<4sI", b"DYN2", crc_of_text(owner))
    first = struct.pack("<8sI", magic, zlib.crc32(read_header(path)[0]._replace(rows=0).encode()))
    if data[:16] != first + struct.pack("<I", zlib.crc32(first)):
        raise CorruptRunError(sums, f"it belongs to another run, or not to the header of {path.name}")
    blocks, last = [], 0
    for end, checksum, own in struct.iter_unpack("<QII", data[16 : len(data) // 16 * 16]):
        if end <= last or zlib.crc32(struct.pack("<QI", end, checksum)) != own:
            break
        blocks.append((end, checksum))
        last = end
    return blocks

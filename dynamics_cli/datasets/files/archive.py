"""Opening a zip archive of unknown origin."""

from __future__ import annotations

import struct
import zipfile
from pathlib import Path

from dynamics_cli.runs.errors import ARCHIVE_DAMAGE

MAX_DIRECTORY = 2**24
"""Bytes of the largest table of contents that is read: that of some hundred thousand files."""
PACKINGS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
"""How files may be packed; what unpacks the other ways may ask for any amount of memory."""

_END, _END64 = b"PK\x05\x06", b"PK\x06\x06"
_END_BYTES = 22
_LONGEST_COMMENT = 2**16
_IN_END64 = 0xFFFFFFFF
_ENCRYPTED = 1


class ArchiveError(Exception):
    """An archive, or a file in it, cannot be read; the message says why."""


def open_archive(path: Path) -> zipfile.ZipFile:
    """Open a zip archive.

    Raises ArchiveError: it is none, is damaged, or lists more files than fit into memory.
    """
    try:
        if (listed := _directory_bytes(path)) > MAX_DIRECTORY:
            raise ArchiveError(f"its table of contents takes {listed} bytes, at most {MAX_DIRECTORY} are read")
        return zipfile.ZipFile(path)
    except ARCHIVE_DAMAGE as error:
        raise ArchiveError(str(error) or type(error).__name__) from error


def why_unreadable(entry: zipfile.ZipInfo) -> str | None:
    """Say why a file in an archive is not read at all, or return None."""
    if entry.flag_bits & _ENCRYPTED:
        return "is encrypted"
    if entry.compress_type not in PACKINGS:
        return "is packed in a way that is not read here"
    return None


def _directory_bytes(path: Path) -> int:
    """Return the size of the table of contents that the end of an archive claims; 0 when there is no such end."""
    with path.open("rb") as handle:
        size = handle.seek(0, 2)
        handle.seek(max(0, size - _END_BYTES - _LONGEST_COMMENT))
        tail = handle.read()
    at = len(tail) - _END_BYTES
    if not tail[at:].startswith(_END):  # a comment follows
        at = tail.rfind(_END)
    if at < 0 or at + _END_BYTES > len(tail):
        return 0
    (listed,) = struct.unpack_from("<I", tail, at + 12)
    far = tail.rfind(_END64, 0, at)
    if listed == _IN_END64 and far >= 0 and far + 48 <= len(tail):
        (listed,) = struct.unpack_from("<Q", tail, far + 40)
    return int(listed)

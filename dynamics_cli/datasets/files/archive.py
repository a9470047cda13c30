"""Opening a zip archive of unknown origin."""

from __future__ import annotations

import contextlib
import io
import zipfile
from collections.abc import Iterator
from pathlib import Path

MAX_READ = 2**24
"""Bytes of an archive that are read at once: a table of contents of so many lists some hundred thousand files."""
PACKINGS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
"""How files may be packed; the other ways may ask for any amount of memory."""
_ENCRYPTED = 1


class _Bounded(io.BufferedReader):
    def read(self, size: int | None = -1, /) -> bytes:
        """Read as any file; `zipfile` asks for a whole table of contents, and makes objects of it."""
        if size is not None and size > MAX_READ:
            raise zipfile.BadZipFile(f"its table of contents takes {size} bytes, at most {MAX_READ} are read")
        return super().read(size)


@contextlib.contextmanager
def open_archive(path: Path) -> Iterator[zipfile.ZipFile]:
    """Open a zip archive; an error in `ARCHIVE_DAMAGE` says that it is none, is damaged, or lists too many files."""
    if not path.is_file():  # a device may never end
        raise zipfile.BadZipFile("there is no such file")
    with _Bounded(io.FileIO(path)) as file, zipfile.ZipFile(file) as archive:
        for entry in archive.infolist():
            if entry.flag_bits & _ENCRYPTED or entry.compress_type not in PACKINGS:
                raise zipfile.BadZipFile(f"{entry.filename!r} is encrypted, or packed in a way that is not read here")
        yield archive

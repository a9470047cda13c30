"""JPEGs in a folder or a zip archive, of unknown origin: read without unpacking, with limits on all that they claim."""

from __future__ import annotations

import contextlib
import io
import stat
import struct
import warnings
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

import numpy as np
from numpy.typing import NDArray
from PIL import Image, UnidentifiedImageError

from dynamics_cli.datasets.files.archive import ArchiveError, open_archive, why_unreadable
from dynamics_cli.errors import InputError
from dynamics_cli.runs.errors import ARCHIVE_DAMAGE

MAX_FILES = 100_000
"""More files than this are refused."""
MAX_BYTES = 4 * 2**20
"""Size of the largest picture that is read."""
MAX_TOTAL = 2 * 2**30
"""Size of all pictures together."""
MAX_RATIO = 100
"""How many times its packed size a picture may have; JPEGs have one or two."""
MAX_PIXELS = 2**22
"""Pixels of the largest picture that is decoded."""

_FORMATS = ("JPEG",)
"""Pillow's other decoders stay out of reach."""
_NOISE = ("__MACOSX", ".DS_Store", "Thumbs.db", "desktop.ini")
"""What operating systems leave in folders and archives."""


class UnreadablePictureError(Exception):
    """The bytes of one picture cannot be read."""


@dataclass(frozen=True)
class Pictures:
    """Files by name, relative to the folder or archive, with `/` between folders."""

    names: list[str]
    read: Callable[[str], bytes]
    """Returns the bytes of one file; UnreadablePictureError when they cannot be read."""


@contextlib.contextmanager
def open_pictures(path: Path) -> Iterator[Pictures]:
    """Open a folder or a zip archive.

    Raises InputError: it is neither, is damaged, or holds what no collection of pictures does: links, names that lead
    elsewhere, encrypted files, more than pictures need.
    """
    try:
        folder = _open_folder(path) if path.is_dir() else None
        is_file = path.is_file()
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror})") from error
    if folder is not None:
        yield folder
    elif is_file:
        with _open_zip(path) as archive:
            entries = _safe_entries(path, archive)

            def read(name: str) -> bytes:
                return _read_entry(archive, entries[name])

            yield Pictures(list(entries), read)
    else:
        raise InputError(f"{path}: no such file or folder")


def _open_folder(folder: Path) -> Pictures:
    inner = folder / "train"
    root = inner if inner.is_dir() and not inner.is_symlink() else folder
    files = sorted(path for path in root.iterdir() if not _is_noise(path.name))
    if len(files) > MAX_FILES:
        raise InputError(f"{root}: holds {len(files)} files, at most {MAX_FILES} are read")
    for path in files:
        if not stat.S_ISREG(path.lstat().st_mode):
            kind = "a link" if path.is_symlink() else "a folder" if path.is_dir() else "no ordinary file"
            raise InputError(f"{path}: is {kind}; the folder must hold the pictures themselves")

    def read(name: str) -> bytes:
        try:
            with (root / name).open("rb") as handle:
                data = handle.read(MAX_BYTES + 1)
        except OSError as error:
            raise UnreadablePictureError(error.strerror or str(error)) from error
        if len(data) > MAX_BYTES:
            raise UnreadablePictureError(f"more than {MAX_BYTES} bytes")
        return data

    return Pictures([path.name for path in files], read)


def _open_zip(path: Path) -> zipfile.ZipFile:
    try:
        return open_archive(path)
    except ArchiveError as error:
        raise InputError(
            f"{path}: is not a complete zip archive ({error}); download it again, or give the folder it unpacks to"
        ) from error


def _safe_entries(path: Path, archive: zipfile.ZipFile) -> dict[str, zipfile.ZipInfo]:
    found = archive.infolist()
    if len(found) > MAX_FILES:
        raise InputError(f"{path}: holds {len(found)} files, at most {MAX_FILES} are read")
    entries: dict[str, zipfile.ZipInfo] = {}
    for entry in found:
        name = entry.filename
        if why := _unsafe(entry):
            raise InputError(f"{path}: {name!r} {why}; the archive is refused")
        if entry.is_dir() or any(_is_noise(part) for part in PurePosixPath(name).parts):
            continue
        if name in entries:
            raise InputError(f"{path}: {name!r} is there twice; the archive is refused")
        entries[name] = entry
    if sum(entry.file_size for entry in entries.values()) > MAX_TOTAL:
        raise InputError(f"{path}: unpacks to more than {MAX_TOTAL // 2**30} GiB; the archive is refused")
    if sum(entry.compress_size for entry in entries.values()) > path.stat().st_size:
        raise InputError(f"{path}: its files overlap; the archive is refused")
    return entries


def _unsafe(entry: zipfile.ZipInfo) -> str | None:
    """Say why an entry has no place in an archive of pictures."""
    name, mode = entry.filename, entry.external_attr >> 16
    if not name:
        return "is no name"
    parts = PurePosixPath(name).parts
    if name.startswith("/") or ".." in parts or "\\" in name or ":" in name or "\0" in entry.orig_filename:
        return "leads out of the archive"
    if mode and stat.S_IFMT(mode) not in (0, stat.S_IFREG, stat.S_IFDIR):
        return "is a link or a device"
    return why_unreadable(entry)


def _read_entry(archive: zipfile.ZipFile, entry: zipfile.ZipInfo) -> bytes:
    if entry.file_size > min(MAX_BYTES, MAX_RATIO * max(entry.compress_size, 1024)):
        raise UnreadablePictureError(f"would unpack to {entry.file_size} bytes")
    try:
        with archive.open(entry) as handle:
            data = handle.read(entry.file_size + 1)  # no more than the claimed size comes out
    except ARCHIVE_DAMAGE as error:
        raise UnreadablePictureError(f"damaged in the archive: {str(error) or type(error).__name__}") from error
    if len(data) != entry.file_size:
        raise UnreadablePictureError(f"damaged in the archive: {len(data)} bytes instead of {entry.file_size}")
    return data


def _is_noise(name: str) -> bool:
    return name in _NOISE or name.startswith("._")


class NotAPictureError(Exception):
    """The bytes are not a JPEG that can be decoded."""


@contextlib.contextmanager
def quiet_pillow() -> Iterator[None]:
    """Keep to itself what Pillow warns of while it reads pictures: odd metadata do not matter for pixels."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", module=r"PIL\.")
        yield


def check_jpeg(data: bytes) -> None:
    """Decode a JPEG to its end, at the smallest scale that the format offers.

    Raises NotAPictureError: it cannot be decoded; the message says why.
    """
    _decode(data, size=None)


def decode_jpeg(data: bytes, size: int) -> NDArray[np.uint8]:
    """Decode a JPEG and scale it to a square, whatever its aspect ratio: (size, size, 3), red, green, blue.

    Raises NotAPictureError: it cannot be decoded; the message says why.
    """
    return np.asarray(_decode(data, size), dtype=np.uint8)


def _decode(data: bytes, size: int | None) -> Image.Image:
    try:
        with Image.open(io.BytesIO(data), formats=_FORMATS) as image:
            if image.width * image.height > MAX_PIXELS:
                raise NotAPictureError(f"{image.width} x {image.height} pixels are too many")
            # the format scales by 1/2, 1/4 or 1/8 while it decodes; twice the size is left for a good reduction
            image.draft("RGB", (1, 1) if size is None else (2 * size, 2 * size))
            image.load()
            colour = image.convert("RGB")
            return colour if size is None else colour.resize((size, size), Image.Resampling.BILINEAR)
    except UnidentifiedImageError as error:
        raise NotAPictureError("not a JPEG") from error
    except Image.DecompressionBombError as error:
        raise NotAPictureError("too many pixels") from error
    except (OSError, ValueError, SyntaxError, EOFError, ArithmeticError, struct.error) as error:
        raise NotAPictureError(str(error) or type(error).__name__) from error

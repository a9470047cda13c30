"""JPEGs in a folder or a zip archive, of unknown origin: read without unpacking, with limits on all that they claim."""

from __future__ import annotations

import contextlib
import io
import struct
import warnings
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path, PurePosixPath
from typing import IO, NamedTuple

import numpy as np
from numpy.typing import NDArray
from PIL import Image, UnidentifiedImageError

from dynamics_cli.datasets.files.archive import open_archive
from dynamics_cli.errors import InputError
from dynamics_cli.runs.errors import ARCHIVE_DAMAGE

MAX_FILES = 100_000
"""More files than this are refused."""
MAX_BYTES = 4 * 2**20
"""Size of the largest picture that is read."""
MAX_TOTAL = 2 * 2**30
"""Size of all pictures of an archive together."""
MAX_PIXELS = 2**22
"""Pixels of the largest picture that is decoded."""
_NOISE = ("__MACOSX", ".DS_Store", "Thumbs.db", "desktop.ini")
"""Names of files and folders that operating systems leave."""


class PictureError(Exception):
    """A picture cannot be read or decoded; the message says why."""


class Pictures(NamedTuple):
    """Files by name, relative to the folder or archive, with `/` between folders."""

    names: list[str]
    open: Callable[[str], IO[bytes]]

    def read(self, name: str) -> bytes:
        """Return the bytes of a file; raise PictureError when they are damaged or too many."""
        try:
            with self.open(name) as handle:
                data = handle.read(MAX_BYTES + 1)
        except ARCHIVE_DAMAGE as error:
            reason = getattr(error, "strerror", None) or error
            raise PictureError(f"cannot be read: {str(reason) or type(error).__name__}") from error
        if len(data) > MAX_BYTES:
            raise PictureError(f"has more than {MAX_BYTES} bytes")
        return data


@contextlib.contextmanager
def open_pictures(path: Path) -> Iterator[Pictures]:
    """Open a folder or a zip archive; a name may be there twice.

    Raises InputError: it is neither, is damaged, or holds links, folders, or more files than a collection of pictures.
    """
    with contextlib.ExitStack() as stack:
        try:
            pictures = _in_folder(path) if path.is_dir() else _in_archive(path, stack.enter_context(open_archive(path)))
        except ARCHIVE_DAMAGE as error:
            raise InputError(
                f"{path}: is neither a folder nor a complete zip archive ({str(error) or type(error).__name__}); "
                "download it again, or give the folder it unpacks to"
            ) from error
        if len(pictures.names) > MAX_FILES:
            raise InputError(f"{path}: holds {len(pictures.names)} files, at most {MAX_FILES} are read")
        yield pictures


def _in_archive(path: Path, archive: zipfile.ZipFile) -> Pictures:
    if sum(entry.file_size for entry in archive.infolist()) > MAX_TOTAL:
        raise InputError(f"{path}: unpacks to more than {MAX_TOTAL // 2**30} GiB; the archive is refused")
    return Pictures([name for name in archive.namelist() if not _is_noise(name)], archive.open)


def _in_folder(folder: Path) -> Pictures:
    inner = folder / "train"
    root = inner if inner.is_dir() and not inner.is_symlink() else folder
    files = sorted(path for path in root.iterdir() if not _is_noise(path.name))
    for path in files:
        if path.is_symlink() or not path.is_file():
            raise InputError(f"{path}: is a link or no file; the folder must hold the pictures themselves")
    return Pictures([path.name for path in files], lambda name: (root / name).open("rb"))


def _is_noise(name: str) -> bool:
    return name.endswith("/") or any(part in _NOISE or part.startswith("._") for part in PurePosixPath(name).parts)


@contextlib.contextmanager
def quiet_pillow() -> Iterator[None]:
    """Ignore Pillow's warnings of odd metadata, which do not matter for pixels."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", module=r"PIL\.")
        yield


def decode_jpeg(data: bytes, size: int) -> NDArray[np.uint8]:
    """Decode a JPEG to its end and scale it to a square, whatever its aspect ratio: (size, size, 3), red, green, blue.

    Raises PictureError: it cannot be decoded; the message says why.
    """
    try:
        with Image.open(io.BytesIO(data), formats=("JPEG",)) as image:  # Pillow's other decoders stay out of reach
            if image.width * image.height > MAX_PIXELS:
                raise PictureError(f"{image.width} x {image.height} pixels are too many")
            # the format scales by 1/2, 1/4 or 1/8 while it decodes; twice the size is left for a good reduction
            image.draft("RGB", (2 * size, 2 * size))
            return np.asarray(image.convert("RGB").resize((size, size), Image.Resampling.BILINEAR), dtype=np.uint8)
    except UnidentifiedImageError as error:
        raise PictureError("not a JPEG") from error
    except (OSError, ValueError, SyntaxError, ArithmeticError, struct.error, Image.DecompressionBombError) as error:
        raise PictureError(str(error) or type(error).__name__) from error

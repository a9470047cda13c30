"""Arrays of an `.npz` file that nobody vouches for: nothing is unpickled, and nothing is allocated on a mere claim."""

from __future__ import annotations

import math
import tokenize
import zipfile
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from dynamics_cli.datasets.archive import DAMAGE, ArchiveError, open_archive, why_unreadable
from dynamics_cli.errors import InputError

Header = tuple[tuple[int, ...], bool, "np.dtype[Any]"]

_DAMAGE = (*DAMAGE, SyntaxError, TypeError, KeyError, AttributeError, tokenize.TokenError)
"""What NumPy raises besides, where the header of an array is damaged."""
_HEADERS = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}
_GIB = 2**30


def read_npz(path: Path, *, required: Sequence[str], optional: Sequence[str] = ()) -> dict[str, NDArray[Any]]:
    """Return the named arrays of an `.npz` file, which hold numbers; pickled objects are refused, others not looked at.

    Raises:
        InputError: the file is damaged, lacks a required array or has it twice, or one holds something else than
            numbers, or more of them than fit into memory.

    """
    try:
        with open_archive(path) as archive:
            entries = {entry.filename.removesuffix(".npy"): entry for entry in archive.infolist()}
            there_twice = [name for name, count in Counter(archive.namelist()).items() if count > 1]
            missing = [name for name in required if name not in entries]
            if missing:
                there = ", ".join(list(entries)[:10]) + (", ..." if len(entries) > 10 else "")
                raise InputError(f"{path}: no array {missing[0]!r}; the file holds {there or 'nothing'}")
            wanted = {name: entries[name] for name in (*required, *optional) if name in entries}
            if twice := [name for name, entry in wanted.items() if entry.filename in there_twice]:
                raise InputError(f"{path}: {twice[0]} is there twice")
            return {name: _read(path, name, archive, entry) for name, entry in wanted.items()}
    except (ArchiveError, MemoryError, *_DAMAGE) as error:
        reason = str(error) or type(error).__name__
        raise InputError(f"{path}: not a readable .npz file of plain arrays ({reason})") from error


def _read(path: Path, name: str, archive: zipfile.ZipFile, entry: zipfile.ZipInfo) -> NDArray[Any]:
    if why := why_unreadable(entry):
        raise ArchiveError(f"{name} {why}")
    with archive.open(entry) as stream:
        shape, _, dtype = _header(stream)
        there = entry.file_size - stream.tell()
    if dtype.hasobject:
        raise ArchiveError(f"{name} holds Python objects")
    if dtype.kind not in "fiub":
        raise InputError(f"{path}: {name} holds {dtype}, numbers are needed")
    claimed = math.prod(shape) * dtype.itemsize
    if claimed != there:  # told before NumPy makes room for what is claimed
        raise ArchiveError(f"{name} claims shape {shape} of {dtype}, {claimed} bytes; there are {there}")
    _check_memory(path, name, claimed)
    with archive.open(entry) as stream:
        array: NDArray[Any] = np.lib.format.read_array(stream, allow_pickle=False)
    return array


def _header(stream: IO[bytes]) -> Header:
    version = np.lib.format.read_magic(stream)
    if version not in _HEADERS:
        raise ArchiveError(f"arrays of version {version} hold no plain numbers")
    shape, fortran_order, dtype = _HEADERS[version](stream)
    return tuple(map(int, shape)), bool(fortran_order), dtype


def _check_memory(path: Path, name: str, needed: int) -> None:
    """Refuse what unpacks to more than this machine can hold: a small file may claim, and be, a large array."""
    import psutil

    available = psutil.virtual_memory().total
    if needed > available:
        raise InputError(
            f"{path}: {name} takes {needed / _GIB:.1f} GiB of memory, this machine has {available / _GIB:.1f} GiB"
        )

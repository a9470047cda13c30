"""Arrays from `.npz` and `.csv` files of unknown origin.

Nothing is unpickled, and nothing is allocated because a header claims a size.
"""

from __future__ import annotations

import csv
import math
import zipfile
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from dynamics_cli.datasets.files.archive import ArchiveError, open_archive, why_unreadable
from dynamics_cli.errors import DataMissingError, InputError
from dynamics_cli.memory import refuse_beyond_memory
from dynamics_cli.runs.errors import ARCHIVE_DAMAGE

Floats = NDArray[np.float64]
Header = tuple[tuple[int, ...], bool, "np.dtype[Any]"]

_HEADERS = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}


def read_samples(path: Path, outputs: int = 1) -> dict[str, Floats]:
    """Return arrays `x` and `y` (and `x_test`, `y_test` where an `.npz` has them); `outputs` columns of a CSV are `y`.

    Raises:
        DataMissingError: the file is not there.
        InputError: it cannot be read; the message says where.
    """
    if not _is_file(path):
        raise DataMissingError(f"{path}: no such data file; name an existing .npz or .csv under dataset.path")
    if path.suffix.lower() == ".npz":
        return read_npz(path, required=("x", "y"), optional=("x_test", "y_test"))
    if path.suffix.lower() == ".csv":
        return _read_csv(path, outputs)
    raise InputError(f"{path}: unknown kind of data file {path.suffix!r}; known are .npz and .csv")


def read_npz(path: Path, *, required: Sequence[str], optional: Sequence[str] = ()) -> dict[str, NDArray[Any]]:
    """Return the named arrays of an `.npz` file, which hold numbers; pickled objects are refused, others not looked at.

    Raises InputError: the file is damaged, lacks a required array or has it twice, or one holds something else than
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
            needed = 0
            names: list[str] = []
            for name, entry in wanted.items():  # a small file may claim, and be, large arrays
                stored, numbers = _size(path, name, archive, entry)
                needed, names = needed + stored + 8 * numbers, [*names, name]  # and their copy in float64
                refuse_beyond_memory(needed, f"{path}: {', '.join(names)} {'take' if len(names) > 1 else 'takes'}")
            return {name: _read(archive, entry) for name, entry in wanted.items()}
    except (ArchiveError, *ARCHIVE_DAMAGE) as error:
        reason = str(error) or type(error).__name__
        raise InputError(f"{path}: not a readable .npz file of plain arrays ({reason})") from error


def _read(archive: zipfile.ZipFile, entry: zipfile.ZipInfo) -> NDArray[Any]:
    with archive.open(entry) as stream:
        array: NDArray[Any] = np.lib.format.read_array(stream, allow_pickle=False)
    return array


def _size(path: Path, name: str, archive: zipfile.ZipFile, entry: zipfile.ZipInfo) -> tuple[int, int]:
    """Return the bytes of an array and how many numbers it has, by its header; refuse what holds something else."""
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
    if claimed != there:  # refused before NumPy allocates what is claimed
        raise ArchiveError(f"{name} claims shape {shape} of {dtype}, {claimed} bytes; there are {there}")
    return claimed, math.prod(shape)


def _header(stream: IO[bytes]) -> Header:
    version = np.lib.format.read_magic(stream)
    if version not in _HEADERS:
        raise ArchiveError(f"arrays of version {version} hold no plain numbers")
    shape, fortran_order, dtype = _HEADERS[version](stream)
    return tuple(map(int, shape)), bool(fortran_order), dtype


def _read_csv(path: Path, outputs: int) -> dict[str, Floats]:
    try:
        text = path.read_text(encoding="utf-8-sig")
        lines = enumerate(csv.reader(text.splitlines(), strict=True), 1)
        rows = [(number, row) for number, row in lines if any(cell.strip() for cell in row)]
    except UnicodeDecodeError as error:
        raise InputError(f"{path}: not UTF-8 text ({error.reason} at byte {error.start})") from error
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror})") from error
    except csv.Error as error:
        raise InputError(f"{path}: not a table of numbers ({error})") from error
    if rows and not any(_is_number(cell) for cell in rows[0][1]):
        rows = rows[1:]  # a header
    if not rows:
        raise InputError(f"{path}: the file holds no samples")
    columns = len(rows[0][1])
    if columns <= outputs:
        last = "the label" if outputs == 1 else f"{outputs} columns of labels"
        guess = next((f"; is it separated by {one!r}? Commas are needed" for one in ";\t" if one in rows[0][1][0]), "")
        found = "one column only" if columns == 1 else f"{columns} columns only"
        raise InputError(f"{path}:{rows[0][0]}: {found}; needed are inputs and, last, {last}{guess}")
    for number, row in rows:
        if len(row) != columns:
            raise InputError(f"{path}:{number}: {len(row)} columns, the lines before have {columns}")
        for column, cell in enumerate(row, 1):
            if not _is_number(cell):
                raise InputError(f"{path}:{number}: column {column} holds {_short(cell)}, not a number")
            if not math.isfinite(float(cell)):
                raise InputError(f"{path}:{number}: column {column} holds {_short(cell)}; all values must be finite")
    table = np.array([[float(cell) for cell in row] for _, row in rows], dtype=np.float64)
    return {"x": table[:, :-outputs], "y": table[:, -outputs:]}


def _short(cell: str) -> str:
    return repr(cell) if len(cell) <= 60 else f"{cell[:60]!r}..."


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except OSError:  # too long a name, or a directory that may not be looked into
        return False


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True

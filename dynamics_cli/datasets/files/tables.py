"""Arrays from `.npz` and `.csv` files of unknown origin: no pickles, nothing beyond memory."""

from __future__ import annotations

import csv
import math
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dynamics_cli.errors import DataMissingError, InputError, did_you_mean
from dynamics_cli.kinds import Floats
from dynamics_cli.memory import refuse_beyond_memory
from dynamics_cli.runs.errors import ARCHIVE_DAMAGE
from dynamics_cli.runs.store import files


def read_samples(path: Path, outputs: int = 1) -> dict[str, Floats]:
    """Return arrays `x`, `y`, of an `.npz` also `x_test`, `y_test`; `outputs` columns of a CSV.

    Raises:
        DataMissingError: the file is not there.
        InputError: it cannot be read; the message says where.
    """
    if path.suffix.lower() == ".csv":
        return _read_csv(path, outputs)
    return read_npz(path, required=("x", "y"), optional=("x_test", "y_test"))


def read_npz(
    path: Path, *, required: Sequence[str], optional: Sequence[str] = ()
) -> dict[str, NDArray[Any]]:
    """Return the named arrays of an `.npz` file, which hold numbers; other arrays are not read.

    Raises:
        DataMissingError: the file is not there.
        InputError: it is damaged or lacks a required array, or an array holds something else than
            numbers, or more of them than fit into memory.
    """
    try:
        files.check_regular(path)
        with zipfile.ZipFile(path) as archive:
            entries = {entry.filename.removesuffix(".npy"): entry for entry in archive.infolist()}
            for name in required:
                if name not in entries:
                    names = ", ".join(list(entries)[:10]) + (", ..." if len(entries) > 10 else "")
                    raise InputError(
                        f"{path}: no array {name!r}; the file holds {names or 'nothing'}"
                    )
            wanted = {name: entries[name] for name in (*required, *optional) if name in entries}
            return {
                name: _read_array(archive, entry, f"{path}: {name}")
                for name, entry in wanted.items()
            }
    except FileNotFoundError as error:
        raise DataMissingError(f"{path}: there is no such file") from error
    except ARCHIVE_DAMAGE as error:
        reason = getattr(error, "strerror", None) or str(error) or type(error).__name__
        raise InputError(f"{path}: not a readable .npz file of plain arrays ({reason})") from error


def _read_array(archive: zipfile.ZipFile, entry: zipfile.ZipInfo, name: str) -> NDArray[Any]:
    refuse_beyond_memory(entry.file_size, f"{name} takes")  # a small archive may hold a large array
    with archive.open(entry) as stream:
        array: NDArray[Any] = np.lib.format.read_array(stream, allow_pickle=False)
        if stream.read(1):  # so that the archive's checksum is compared
            raise zipfile.BadZipFile(
                f"{entry.filename} goes on after an array of shape {array.shape}"
            )
    if array.dtype.kind not in "fiub":
        raise InputError(f"{name} holds {array.dtype}, numbers are needed")
    refuse_beyond_memory(8 * array.size, f"{name} in float64 takes")
    return array


def read_series(path: Path, columns: Sequence[str] | None = None) -> tuple[list[str], Floats]:
    """Return the names of columns of a CSV file and their numbers (rows, columns).

    Without a header the names are 1, 2, ... Other columns than `columns` may hold anything.

    Raises:
        DataMissingError: the file is not there.
        InputError: it cannot be read, or has no such column or two of the name; the message says
            where.
    """
    rows = _rows(path)
    if columns is None:
        _refuse_row_and_column_numbers(path, rows)
    width = len(rows[0][1]) if rows else 0
    names = [str(k + 1) for k in range(width)]
    if rows and all(_number(cell) is None for cell in rows[0][1]):
        names = [cell.strip() for cell in rows[0][1]]
        rows = rows[1:]
    chosen = list(range(width))
    if columns is not None:
        for name in columns:
            if name not in names:
                listed = ", ".join(names[:20]) or "none"
                told = did_you_mean(name, names)
                raise InputError(f"{path}: no column {name!r}{told}; there are {listed}")
        chosen = [names.index(name) for name in columns]
    for k in chosen:
        if names.count(names[k]) > 1:
            raise InputError(f"{path}: two columns have the name {names[k]!r}; rename one of them")
        if chosen.count(k) > 1:
            raise InputError(f"dataset.columns: {names[k]!r} is there twice")
    return [names[k] for k in chosen], _numbers(path, rows, width, chosen)


def _read_csv(path: Path, outputs: int) -> dict[str, Floats]:
    rows = _rows(path)
    _refuse_row_and_column_numbers(path, rows)
    if rows and all(_number(cell) is None for cell in rows[0][1]):
        rows = rows[1:]  # a header
    width = len(rows[0][1]) if rows else 0
    if width <= outputs:
        needed = f"at least {outputs + 1} columns between commas, inputs and, last, labels"
        raise InputError(f"{path}: it has {width}; needed are {needed}")
    table = _numbers(path, rows, width, range(width))
    return {"x": table[:, :-outputs], "y": table[:, -outputs:]}


Row = tuple[int, list[str]]
"""The number of a line, and its cells."""


def _rows(path: Path) -> list[Row]:
    """Return the lines of a CSV file that are not empty."""
    try:
        files.check_regular(path)
        lines = enumerate(
            csv.reader(path.read_text(encoding="utf-8-sig").splitlines(), strict=True), 1
        )
        return [(number, row) for number, row in lines if any(cell.strip() for cell in row)]
    except FileNotFoundError as error:
        raise DataMissingError(f"{path}: there is no such file") from error
    except (OSError, ValueError, csv.Error) as error:
        reason = getattr(error, "strerror", None) or error
        raise InputError(f"{path}: not a table of numbers ({reason})") from error


def _numbers(path: Path, rows: Sequence[Row], width: int, columns: Sequence[int]) -> Floats:
    """Return some columns of rows of `width` cells as numbers (rows, columns)."""
    table = np.empty((len(rows), len(columns)))
    for k, (number, row) in enumerate(rows):
        hint = "; columns are between commas, and decimals behind a point" * _otherwise(row)
        if len(row) != width:
            raise InputError(
                f"{path}:{number}: {len(row)} columns, the lines before have {width}{hint}"
            )
        for place, column in enumerate(columns):
            value = _number(row[column])
            if value is None or not math.isfinite(value):
                needed = "a number" if value is None else "a finite number"
                raise InputError(
                    f"{path}:{number}: column {column + 1} holds {row[column][:60]!r}, not"
                    f" {needed}{hint}"
                )
            table[k, place] = value
    return table


def _refuse_row_and_column_numbers(path: Path, rows: Sequence[Row]) -> None:
    """Refuse a table with the numbers of its rows or columns, which pandas writes by default.

    Raises InputError: they would be read as an input or a sample.
    """
    if not rows:
        return
    line, cells = rows[0]
    first, *others = [cell.strip() for cell in cells]
    columns = [str(k) for k in range(len(cells))]
    if first in ("", "Unnamed: 0") and (
        others == columns[:-1] or all(_number(cell) is None for cell in others)
    ):
        raise InputError(
            f"{path}:{line}: the first column has no name, as the row numbers that pandas writes:"
            " use `to_csv(..., index=False)`, or name the column if it is an input"
        )
    if others and [first, *others] == columns:
        raise InputError(
            f"{path}:{line}: the line holds 0 to {len(cells) - 1}, as the column numbers that"
            " pandas writes: use `to_csv(..., header=False, index=False)`, or write 0.0 for 0 if"
            " the line is a sample"
        )


def _otherwise(cells: Sequence[str]) -> bool:
    """Return whether a line has marks that divide columns in tables of other forms."""
    return any(not set(";\t").isdisjoint(cell) for cell in cells)


def _number(cell: str) -> float | None:
    """Return the number in a cell; None for other texts, and for `1_000`, Python's alone."""
    if "_" in cell:
        return None
    try:
        return float(cell)
    except ValueError:
        return None

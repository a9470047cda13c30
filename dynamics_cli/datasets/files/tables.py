"""Arrays from `.npz` and `.csv` files of unknown origin: no pickles, nothing beyond memory."""

from __future__ import annotations

import csv
import math
import re
import warnings
import zipfile
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dynamics_cli.errors import DataMissingError, InputError, RunWarning, did_you_mean
from dynamics_cli.kinds import Floats
from dynamics_cli.memory import refuse_beyond_memory
from dynamics_cli.runs.errors import ARCHIVE_DAMAGE
from dynamics_cli.runs.store import files

_LABEL = re.compile(r"(y|labels?|targets?|class|classes|outcome|response)[ _.]?\d*", re.IGNORECASE)
"""Names of columns that are labels."""
_ROW_NUMBERS = ("index", "id", "row", "rows", "row.names", "rownames", "row_names", "rowid")
"""Names of columns that number the rows, in small letters."""
_MISSING = ("", "na", "n/a", "nan", "null", "none", "?", "-", ".")
"""Cells without a value, in small letters."""
_DIGITS = 16
"""The number of a row or a column has fewer."""
_TOLD: set[str] = set()
"""Labels that this process has told."""


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
    header, rows = _split(path, rows)
    width = len(header) or (len(rows[0][1]) if rows else 0)
    names = header or [str(k + 1) for k in range(width)]
    chosen = list(range(width))
    if columns is not None:
        places = {name: k for k, name in enumerate(names)}
        for name in columns:
            if name not in places:
                listed = ", ".join(names[:20]) or "none"
                told = did_you_mean(name, names)
                raise InputError(f"{path}: no column {name!r}{told}; there are {listed}")
        chosen = [places[name] for name in columns]
    named = Counter(names)
    taken = Counter(chosen)
    for k in chosen:
        if named[names[k]] > 1:
            raise InputError(f"{path}: two columns have the name {names[k]!r}; rename one of them")
        if taken[k] > 1:
            raise InputError(f"dataset.columns: {names[k]!r} is there twice")
    return [names[k] for k in chosen], _numbers(path, rows, width, chosen)


def _read_csv(path: Path, outputs: int) -> dict[str, Floats]:
    rows = _rows(path)
    _refuse_row_and_column_numbers(path, rows)
    header, rows = _split(path, rows)
    width = len(rows[0][1]) if rows else 0
    if width <= outputs:
        needed = f"at least {outputs + 1} columns between commas, inputs and, last, labels"
        raise InputError(f"{path}: it has {width}; needed are {needed}")
    table = _numbers(path, rows, width, range(width))
    _tell_labels(path, header[:-outputs], header[-outputs:])
    return {"x": table[:, :-outputs], "y": table[:, -outputs:]}


def _tell_labels(path: Path, inputs: Sequence[str], labels: Sequence[str]) -> None:
    """Warn of labels, the last columns, whose names do not say so, once a process.

    Raises InputError: an input is named as a label.
    """
    if any(_LABEL.fullmatch(name) for name in labels):
        return
    taken = f"{path}: {' '.join(map(repr, labels))}, at the end of a row, is taken as the label"
    if named := [name for name in inputs if _LABEL.fullmatch(name)]:
        raise InputError(
            f"{taken}, and {named[0]!r} as an input: move {named[0]!r} to the end, or rename it"
        )
    if labels and taken not in _TOLD:
        _TOLD.add(taken)
        warnings.warn(taken, RunWarning, stacklevel=2)


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


def _split(path: Path, rows: list[Row]) -> tuple[list[str], list[Row]]:
    """Return the names in the header, none without one, and the rows below it.

    Raises InputError: the header has other columns than the row below, or is a row without values.
    """
    if not rows or any(_number(cell) is not None for cell in rows[0][1]):
        return [], rows
    line, cells = rows[0]
    names = [cell.strip() for cell in cells]
    if all(name.lower() in _MISSING for name in names):
        raise InputError(f"{path}:{line}: the line holds no number: {names[0]!r}; leave it out")
    if rows[1:] and len(rows[1][1]) == len(names) + 1 and not _otherwise(names):
        raise InputError(
            f"{path}:{line}: the header has {len(names)} names, the line below"
            f" {len(names) + 1} columns, as R writes row names: use"
            " `write.table(..., row.names = FALSE)`, or name the first column"
        )
    return names, rows[1:]


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
    """Refuse a table with the numbers of its rows or columns, as pandas and R write by default.

    Raises InputError: they would be read as an input or a sample.
    """
    if not rows:
        return
    _refuse_row_numbers(path, rows)
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
    if not (others and _are_consecutive([first, *others])):
        return
    below = [_number(cell) or 0.0 for _, row in rows[1:] for cell in row]
    if any(math.isfinite(number) and number % 1 for number in below):
        raise InputError(
            f"{path}:{line}: the line holds {first} to {others[-1]}, as numbers of columns: leave"
            f" it out, or write {first}.0 for {first} if the line is a sample"
        )


def _refuse_row_numbers(path: Path, rows: Sequence[Row]) -> None:
    """Refuse a first column that is named as one of row numbers, and holds them."""
    line, cells = rows[0]
    name = cells[0].strip()
    numbers = [row[0].strip() for _, row in rows[1:]]
    if name.lower() in _ROW_NUMBERS and _are_consecutive(numbers) and int(numbers[0]) < 2:
        raise InputError(
            f"{path}:{line}: the first column, {name!r}, numbers the rows: leave it out, or rename"
            " it if it is an input"
        )


def _are_consecutive(cells: Sequence[str]) -> bool:
    """Return whether texts are whole numbers, each one more than the number before."""
    if not cells or not all(cell.isdecimal() and len(cell) < _DIGITS for cell in cells):
        return False
    return [int(cell) for cell in cells] == [int(cells[0]) + k for k in range(len(cells))]


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

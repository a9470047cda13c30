"""A user's own data: `.npz` or `.csv` files."""

from __future__ import annotations

import csv
import zipfile
from pathlib import Path

import numpy as np

from dynamics_cli.config.dataset import FileDataset
from dynamics_cli.data.dataset import Dataset, Floats, make_dataset
from dynamics_cli.data.streams import stream
from dynamics_cli.errors import DataMissingError, InputError


def load(config: FileDataset, seed: int) -> Dataset:
    """Read the file and, where asked for, hold samples out.

    Raises:
        DataMissingError: the file is not there.
        InputError: it is not a data set; the message says where.

    """
    arrays = read_samples(Path(config.path))
    x, y = arrays["x"], arrays["y"]
    x_test, y_test = arrays.get("x_test"), arrays.get("y_test")
    if config.test_path is not None:
        held_out = read_samples(Path(config.test_path))
        x_test, y_test = held_out["x"], held_out["y"]
    elif config.test_fraction is not None:
        # checked before the split, so that messages speak of the file and not of a part of it
        make_dataset(x, y, origin=config.path)
        count = round(config.test_fraction * len(x))
        if not 0 < count < len(x):
            raise InputError(
                f"{config.path}: test_fraction {config.test_fraction} of {len(x)} samples leaves a part empty"
            )
        order = stream(seed, "data").permutation(len(x))
        test, train = np.sort(order[:count]), np.sort(order[count:])
        x, y, x_test, y_test = x[train], y[train], x[test], y[test]
    return make_dataset(x, y, x_test=x_test, y_test=y_test, append_bias=config.append_bias, origin=config.path)


def read_samples(path: Path) -> dict[str, Floats]:
    """Return arrays `x` and `y` (and `x_test`, `y_test` where an `.npz` has them)."""
    if not path.is_file():
        raise DataMissingError(f"{path}: no such data file; name an existing .npz or .csv under dataset.path")
    if path.suffix == ".npz":
        return read_npz(path, required=("x", "y"), optional=("x_test", "y_test"))
    if path.suffix == ".csv":
        return _read_csv(path)
    raise InputError(f"{path}: unknown kind of data file {path.suffix!r}; known are .npz and .csv")


def read_npz(path: Path, *, required: tuple[str, ...], optional: tuple[str, ...] = ()) -> dict[str, Floats]:
    """Return the named arrays of an `.npz` file; pickled objects are refused.

    Raises:
        InputError: the file is damaged, holds objects, or lacks a required array.

    """
    try:
        with path.open("rb") as stream, np.load(stream, allow_pickle=False) as archive:
            missing = [name for name in required if name not in archive]
            if missing:
                raise InputError(
                    f"{path}: no array {missing[0]!r}; the file holds {', '.join(archive.files) or 'nothing'}"
                )
            arrays = {name: archive[name] for name in (*required, *optional) if name in archive}
    except (ValueError, OSError, EOFError, zipfile.BadZipFile) as error:
        raise InputError(f"{path}: not a readable .npz file of plain arrays ({error})") from error
    for name, array in arrays.items():
        if array.dtype.kind not in "fiub":
            raise InputError(f"{path}: {name} holds {array.dtype}, numbers are needed")
    return arrays


def _read_csv(path: Path) -> dict[str, Floats]:
    try:
        text = path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise InputError(f"{path}: not UTF-8 text ({error.reason} at byte {error.start})") from error
    rows = [(number, row) for number, row in enumerate(csv.reader(text.splitlines()), 1) if any(c.strip() for c in row)]
    if rows and not any(_is_number(cell) for cell in rows[0][1]):
        rows = rows[1:]  # a header
    if not rows:
        raise InputError(f"{path}: the file holds no samples")
    columns = len(rows[0][1])
    if columns < 2:
        raise InputError(f"{path}:{rows[0][0]}: one column only; needed are inputs and, last, the label")
    for number, row in rows:
        if len(row) != columns:
            raise InputError(f"{path}:{number}: {len(row)} columns, the lines before have {columns}")
        for column, cell in enumerate(row, 1):
            if not _is_number(cell):
                raise InputError(f"{path}:{number}: column {column} holds {cell!r}, not a number")
    table = np.array([[float(cell) for cell in row] for _, row in rows], dtype=np.float64)
    return {"x": table[:, :-1], "y": table[:, -1]}


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True

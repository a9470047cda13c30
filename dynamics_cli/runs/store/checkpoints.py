"""The checkpoint of a run: the state of its stepper, and how many rows of each array belong to it.

One `.npz` file (that `np.load` opens too) whose archive comment is the CRC-32 of all bytes before it. The checkpoint
before the last checkpoint is kept, so that a damaged file costs minutes, not the run.
"""

from __future__ import annotations

import io
import json
import zipfile
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pydantic import TypeAdapter

from dynamics_cli.runs.errors import ARCHIVE_DAMAGE, CorruptRunError, unreadable_as_corrupt
from dynamics_cli.runs.store import files, layout

_META = "meta.json"
_DIGITS = 8
_ROWS = TypeAdapter(layout.Rows)


@dataclass(frozen=True)
class Checkpoint:
    """The stepper's arrays, the caller's `meta`, and the rows of each array of the run at that moment.

    `checksums` holds the running checksum of these rows by array. `damaged` names the newer checkpoint that could not
    be read, if any.
    """

    arrays: dict[str, NDArray[Any]]
    meta: dict[str, Any]
    rows: dict[str, int]
    checksums: dict[str, int]
    damaged: Path | None = None


def save_checkpoint(
    directory: Path,
    arrays: Mapping[str, NDArray[Any]],
    meta: Mapping[str, Any],
    rows: Mapping[str, int],
    checksums: Mapping[str, int],
    owner: str | None = None,
) -> None:
    """Write a checkpoint in one indivisible step and keep the checkpoint before.

    `owner` identifies the run: checkpoints of other runs are refused.

    Raises:
        ValueError: an array of Python objects.
        RunError: the disk is full, not writable or failing.
    """
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_STORED) as archive:
        described = {"meta": dict(meta), "rows": dict(rows), "crc32": dict(checksums), "owner": owner}
        archive.writestr(zipfile.ZipInfo(_META), json.dumps(described))  # ZipInfo: without the time of day
        for name, array in arrays.items():
            with archive.open(zipfile.ZipInfo(f"{name}.npy"), "w", force_zip64=True) as member:
                np.lib.format.write_array(member, np.asanyarray(array), allow_pickle=False)
        archive.comment = b"0" * _DIGITS
    data = buffer.getbuffer()
    data[-_DIGITS:] = _checksum(data)
    current, previous = directory / layout.CHECKPOINT, directory / layout.PREVIOUS_CHECKPOINT
    fresh = directory / f".{layout.CHECKPOINT}.new.tmp"
    with files.os_errors_as_run_errors(current):
        files.write_atomic(fresh, data)  # on the disk before the last checkpoint but one goes
        if files.exists(current):
            files.replace(current, previous)
        files.replace(fresh, current)
        files.sync_directory(directory)


def read_checkpoint(path: Path, owner: str | None = None) -> Checkpoint:
    """Read a checkpoint file.

    Raises:
        FileNotFoundError: there is none.
        CorruptRunError: it is damaged, or belongs to another run than `owner`.
    """
    with unreadable_as_corrupt(path, but=(FileNotFoundError,)):
        data = memoryview(files.read(path))
    if len(data) <= _DIGITS or bytes(data[-_DIGITS:]) != _checksum(data):
        raise CorruptRunError(path, "it does not fit its checksum")
    arrays: dict[str, NDArray[Any]] = {}
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            for member in archive.infolist():
                if member.compress_type != zipfile.ZIP_STORED:
                    raise CorruptRunError(path, "it holds compressed members, which dyn does not write")
                with archive.open(member) as stream:
                    if member.filename == _META:
                        described = json.load(stream)
                    else:
                        name = member.filename.removesuffix(".npy")
                        arrays[name] = np.lib.format.read_array(stream, allow_pickle=False)
        rows, checksums = map(_ROWS.validate_python, (described["rows"], described["crc32"]))
        if rows.keys() != checksums.keys():
            raise CorruptRunError(path, "it has not a checksum for each array")
        found, written_by = Checkpoint(arrays, dict(described["meta"]), rows, checksums), described["owner"]
    except ARCHIVE_DAMAGE as error:
        raise CorruptRunError(path, "its contents are not those of a checkpoint") from error
    if owner not in (None, written_by):
        raise CorruptRunError(path, "it belongs to another run")
    return found


def load_checkpoint(directory: Path, owner: str | None = None) -> Checkpoint | None:
    """Read the newest intact checkpoint of a run (`owner`, see `save_checkpoint`); `None` when none was written.

    Raises CorruptRunError: there are checkpoints, but none is intact.
    """
    damaged: CorruptRunError | None = None
    for name in (layout.CHECKPOINT, layout.PREVIOUS_CHECKPOINT):
        try:
            found = read_checkpoint(directory / name, owner)
        except FileNotFoundError:
            continue
        except CorruptRunError as error:
            damaged = damaged or error
            continue
        return replace(found, damaged=damaged.file if damaged else None)
    if damaged:
        raise CorruptRunError(damaged.file, damaged.problem, "no older one is intact: start again with --force")
    return None


def _checksum(data: memoryview) -> bytes:
    return f"{zlib.crc32(data[:-_DIGITS]):0{_DIGITS}x}".encode()

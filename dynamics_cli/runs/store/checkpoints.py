"""The checkpoint of a run: the state of its stepper, with rows and checksum of each array then.

One `.npz` file (that `np.load` opens too) whose archive comment is the CRC-32 of all bytes before
it. The checkpoint before it is kept too, so that a flipped bit costs seconds of training, not the
run.
"""

from __future__ import annotations

import io
import json
import warnings
import zipfile
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel

from dynamics_cli.errors import DamageWarning
from dynamics_cli.runs.errors import ARCHIVE_DAMAGE, CorruptRunError, unreadable_as_corrupt
from dynamics_cli.runs.store import files, layout
from dynamics_cli.runs.store.arrays import Counted

_META = "meta.json"
_DIGITS = 8
_AGAIN = "start again with --force"
TOO_SHORT = f"ends before {layout.CHECKPOINT}, as in a copy of a run that was being written"
"""Said of an array that has fewer rows than the last checkpoint counts."""


class Checkpoint(Counted, BaseModel):
    """The stepper's arrays, the caller's `meta`, rows and CRC-32 of the run's arrays by name."""

    arrays: dict[str, Any] = {}
    meta: dict[str, Any] = {}
    file: str = layout.CHECKPOINT
    """The name of the file that it was read from."""
    config_sha256: str = ""
    """The config of its run."""

    @property
    def iteration(self) -> int:
        """The state of the network."""
        return int(self.meta["iteration"])


def save_checkpoint(directory: Path, checkpoint: Checkpoint) -> None:
    """Write the checkpoint of a run in one indivisible step.

    Raises:
        ValueError: an array of Python objects.
        RunError: the disk is full, not writable or failing; the checkpoint before stays.
    """
    path = directory / layout.CHECKPOINT
    packed = _packed(checkpoint)
    with files.os_errors_as_run_errors(path), files.replacing(path) as temporary:
        with files.create(temporary) as handle:
            files.write_at(handle, packed, 0)
            files.sync(handle)
        if files.exists(path):
            files.replace(path, directory / layout.CHECKPOINT_BEFORE)


def keep_checkpoint(directory: Path, checkpoint: Checkpoint) -> None:
    """Write a checkpoint that stays, named after its iteration; raises as `save_checkpoint`."""
    folder = directory / layout.CHECKPOINTS
    path = folder / f"{checkpoint.iteration}.npz"
    with files.os_errors_as_run_errors(path):
        files.make_directory(folder)
        files.write_atomic(path, _packed(checkpoint))


def kept_checkpoints(directory: Path) -> list[str]:
    """Return the names, below a run directory, of the checkpoints that it keeps."""
    folder = directory / layout.CHECKPOINTS
    if folder.is_symlink() or not folder.is_dir():
        return []
    return [f"{layout.CHECKPOINTS}/{name}" for name in files.names(folder) if name.endswith(".npz")]


def _packed(checkpoint: Checkpoint) -> bytes:
    """Return the bytes of the file of a checkpoint."""
    buffer = io.BytesIO()
    described = checkpoint.model_dump(exclude={"arrays", "file"})
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_STORED) as archive:
        # `ZipInfo` holds no time of day, so that equal checkpoints have equal bytes
        archive.writestr(zipfile.ZipInfo(_META), json.dumps(described))
        for name, array in checkpoint.arrays.items():
            with archive.open(zipfile.ZipInfo(f"{name}.npy"), "w", force_zip64=True) as member:
                np.lib.format.write_array(member, np.asanyarray(array), allow_pickle=False)
        archive.comment = b"0" * _DIGITS
    with buffer.getbuffer() as data:  # released before the buffer is closed
        data[-_DIGITS:] = _checksum(data)
    return buffer.getvalue()


def load_checkpoint(directory: Path, info: Mapping[str, Any]) -> Checkpoint | None:
    """Read the checkpoint of a run with this `run.json`; None when none was written.

    The checkpoint before it takes its place, which a `DamageWarning` tells, where it is damaged, or
    counts rows that the arrays do not have yet, as in a copy that was made while the run was
    written. Where it is not there, the process was killed while it wrote the next one.

    Raises CorruptRunError: both are damaged or gone, or belong to another run.
    """
    found: list[Checkpoint] = []
    damage = None
    for name in (layout.CHECKPOINT, layout.CHECKPOINT_BEFORE):
        try:
            checkpoint = read_checkpoint(directory, info, name)
        except CorruptRunError as error:
            damage = damage or error
        else:
            found += [checkpoint] if checkpoint is not None else []
    if not found:
        if damage is not None:
            raise damage
        return None
    short = [checkpoint.short(directory) for checkpoint in found]
    taken = found[short.index(None)] if None in short else found[0]
    if taken.file == layout.CHECKPOINT_BEFORE and files.exists(directory / layout.CHECKPOINT):
        problem = f"{short[0]} {TOO_SHORT}" if damage is None else str(damage)
        at = f"the checkpoint before it, of iteration {taken.iteration}, takes its place"
        warnings.warn(f"{problem}; {at}", DamageWarning, stacklevel=2)
    return taken


def read_checkpoint(
    directory: Path, info: Mapping[str, Any], name: str = layout.CHECKPOINT
) -> Checkpoint | None:
    """Read the checkpoint of this name, as `load_checkpoint` does, without another in its place."""
    path = directory / name
    if not files.exists(path):
        others = files.exists(directory / layout.CHECKPOINT_BEFORE)
        if name == layout.CHECKPOINT and info.get("checkpointed") and not others:
            again = f"{_AGAIN}; a copy of a run that was being written is copied again"
            raise CorruptRunError(path, "it is gone", again)
        return None
    with unreadable_as_corrupt(path, _AGAIN):
        data = files.read(path)
    if len(data) <= _DIGITS or data[-_DIGITS:] != _checksum(memoryview(data)):
        raise CorruptRunError(path, "it does not fit its checksum", _AGAIN)
    arrays: dict[str, NDArray[Any]] = {}
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            described = Checkpoint.model_validate_json(archive.read(_META))
            for member in archive.infolist():
                if member.compress_type != zipfile.ZIP_STORED:
                    raise CorruptRunError(
                        path, "it holds compressed members, which dyn does not write", _AGAIN
                    )
                if member.filename != _META:
                    with archive.open(member) as stream:
                        name = member.filename.removesuffix(".npy")
                        arrays[name] = np.lib.format.read_array(stream, allow_pickle=False)
        iteration = described.iteration
    except ARCHIVE_DAMAGE as error:
        raise CorruptRunError(path, "its contents are no checkpoint", _AGAIN) from error
    if described.config_sha256 != info["config_sha256"] or iteration < 0:
        raise CorruptRunError(path, "it belongs to another run", _AGAIN)
    return described.model_copy(update={"arrays": arrays, "file": path.name})


def _checksum(data: memoryview) -> bytes:
    return f"{zlib.crc32(data[:-_DIGITS]):0{_DIGITS}x}".encode()

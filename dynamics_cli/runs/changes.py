"""Changes since a run was trained outside its directory: of data files, and of foreign code."""

from __future__ import annotations

import hashlib
import stat
import warnings
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

from dynamics_cli.errors import ChangedWarning, InputError
from dynamics_cli.kinds.registry import KindSource, foreign_sources
from dynamics_cli.runs.store import files

_TOLD: set[str] = set()
"""Changes that this process has told, not of which runs: thousands in a sweep share a file."""


def changed_files(info: Mapping[str, Any]) -> list[Path]:
    """Return the files of a run that have changed since it was trained, given its `run.json`.

    A file that is not there, or cannot be read, has not changed: a run can be read without its
    data.
    """
    return [
        Path(file)
        for file, sha256 in info.get("files", {}).items()
        if _sha256(Path(file)) not in (None, sha256)
    ]


def told_of_file(file: Path | str) -> str:
    """Return in words that a data file has changed."""
    return f"{file} has changed since the run was trained: restore it, or train again"


def told_of_sources(directory: Path, info: Mapping[str, Any], config: object) -> dict[str, str]:
    """Return a sentence for each source in use that is not the one which a run kept."""
    try:
        used = {kind: source.sha256 for kind, source in foreign_sources(config).items()}
    except InputError:  # a kind without a source, such as one typed into a console
        return {}
    told = {}
    for kind, kept in info.get("kinds", {}).items():
        name = kept["from"]
        sha256 = kept["sha256"]
        if used.get(kind, sha256) != sha256:
            told[f"{name} {sha256}"] = (
                f"{name} has changed since {directory} was trained with it, and may give other"
                f" functions and numbers: `--with {directory / kept['copy'] / name}` takes the"
                " kept copy"
            )
    return told


def changes_of(directory: Path, info: Mapping[str, Any], config: object) -> dict[str, str]:
    """Return what has changed since a run was trained: a key for each change -> a sentence."""
    told = told_of_sources(directory, info, config)
    for file in changed_files(info):
        told[f"{file} {info['files'][str(file)]}"] = told_of_file(file)
    return told


def sha256_of_copy(folder: Path) -> str:
    """Return the checksum of a copy of the source of kinds, as `KindSource.sha256` gives it.

    Raises OSError: it cannot be read.
    """
    copied = {
        file.relative_to(folder).as_posix(): files.read(file)
        for file in folder.rglob("*")
        if file.is_file() and file.suffix != ".pyc"
    }
    return KindSource("", copied).sha256


def warn_of_changes(directory: Path, info: Mapping[str, Any], config: object) -> None:
    """Warn of each change once a process."""
    for key, sentence in changes_of(directory, info, config).items():
        if key not in _TOLD:
            _TOLD.add(key)
            warnings.warn(sentence, ChangedWarning, stacklevel=4)


def _sha256(file: Path) -> str | None:
    """Return the SHA-256 of a regular file, None where there is none that can be read."""
    try:
        status = file.stat()
        if not stat.S_ISREG(status.st_mode):  # a pipe would make us wait for its writer
            return None
        return _sha256_at(file, status.st_mtime_ns, status.st_size)
    except (OSError, ValueError):  # ValueError: a name that no file can have
        return None


@lru_cache(maxsize=256)
def _sha256_at(file: Path, _modified: int, _size: int) -> str:
    with file.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()

"""Which configs are the same run: the hash that names a run directory."""

from __future__ import annotations

import hashlib
import json
import stat
from collections.abc import Iterator
from functools import reduce
from operator import getitem
from pathlib import Path as FilePath
from typing import Any

from dynamics_cli.config.base import Sections, kinds_in
from dynamics_cli.config.dump import to_plain
from dynamics_cli.config.errors import ConfigError, Path, Problem, key_text
from dynamics_cli.config.reader import MAPPING
from dynamics_cli.config.registry import foreign_sources
from dynamics_cli.config.run import RunConfig

NUMERICS_VERSION = 3
"""Raised when the same config gives other numbers than before, so that older runs are not taken for new ones."""


def canonical(config: RunConfig, *, device: str, backend: str) -> str:
    """Return the text that is hashed: JSON with sorted keys, resolved device and backend, and contents for files.

    Raises:
        ConfigError: when a file that the config names is not there or cannot be read.
        InputError: when a kind of somebody else has no source.
    """
    sections = dict(config)
    if missing := [Problem(MAPPING, None, key_text(path), message) for path, message in check_files(sections)]:
        raise ConfigError(missing)
    resolved: Any = to_plain(config) | {"device": device, "backend": backend}
    for path, file in named_files(sections):
        *above, key = path
        reduce(getitem, above, resolved)[key] = {"sha256": _file_hash(file, key_text(path))}
    if sources := foreign_sources(config):
        resolved["sources"] = {kind: source.sha256 for kind, source in sources.items()}
    resolved["numerics_version"] = NUMERICS_VERSION
    return json.dumps(_positive_zeros(resolved), sort_keys=True, separators=(",", ":"), allow_nan=False)


def run_hash(config: RunConfig, *, device: str, backend: str) -> str:
    """Return the identity of the run, a sha256 in hexadecimal.

    It depends on what is computed, not on how or where it is written down: the order of keys, `extends`, the spelling
    of numbers, defaults written out and the place of the config and of files it names do not matter.

    Args:
        config: the resolved config.
        device: the device that `auto` stands for, or the one that was asked for.
        backend: likewise.

    Raises:
        ConfigError: when a file that the config names is not there or cannot be read.
    """
    return hashlib.sha256(canonical(config, device=device, backend=backend).encode()).hexdigest()


def run_directory_name(config: RunConfig, identity: str) -> str:
    """Return the name of the run's directory below the root of all runs: its name and the start of its hash."""
    return f"{config.name}-{identity[:10]}"


def _file_hash(file: str, key: str) -> str:
    try:
        with FilePath(file).open("rb") as stream:
            return hashlib.file_digest(stream, "sha256").hexdigest()
    except OSError as error:
        raise ConfigError([Problem(MAPPING, None, key, f"{file} cannot be read: {error.strerror}")]) from error


def _positive_zeros(value: Any) -> Any:
    """Return `value` with -0.0 as 0.0: equal configs are the same run."""
    if isinstance(value, dict):
        return {key: _positive_zeros(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_positive_zeros(item) for item in value]
    return value + 0.0 if isinstance(value, float) else value


def check_files(sections: Sections) -> Iterator[tuple[Path, str]]:
    """Yield the files that sections name and that are not there."""
    for path, file in named_files(sections):
        if why := _unusable(FilePath(file)):
            yield path, why


def _unusable(file: FilePath) -> str | None:
    """Return why there is no ordinary file to read, None when there is one."""
    try:
        mode = file.stat().st_mode
    except (FileNotFoundError, NotADirectoryError, ValueError):  # ValueError: a name with a null character
        return f"there is no file {file}"
    except OSError as error:
        return f"{file} cannot be read: {error.strerror}"
    if stat.S_ISDIR(mode):
        return f"{file} is a directory, not a file"
    return None if stat.S_ISREG(mode) else f"{file} is not an ordinary file"


def named_files(sections: Sections) -> Iterator[tuple[Path, str]]:
    """Yield the key and the name of every file that a config names."""
    for path, kind in kinds_in(sections):
        for key, file in kind.files():
            yield (*path, key), file

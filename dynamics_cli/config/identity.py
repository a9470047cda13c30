"""Which configs are the same run: the hash that names a run directory."""

from __future__ import annotations

import errno
import hashlib
import json
import os
from functools import reduce
from operator import getitem
from pathlib import Path
from typing import Any

from dynamics_cli.config.changes import SECTIONS, segments_of
from dynamics_cli.config.check import named_files
from dynamics_cli.config.errors import ConfigError, Mistake, key_text
from dynamics_cli.config.reader import MAPPING
from dynamics_cli.kinds import RunConfig
from dynamics_cli.kinds.registry import foreign_sources

NUMERICS_VERSION = 3
"""Raised when a config gives other numbers than before: no older run is taken for a new one."""


def canonical(
    config: RunConfig, *, device: str, backend: str, digests: dict[str, str] | None = None
) -> str:
    """Return the text that is hashed: sorted JSON, with device and backend, and contents of files.

    `digests` keeps those of files, which many configs may name, from call to call.

    Raises:
        ConfigError: when a file that the config names is not there or cannot be read.
        InputError: when a kind of somebody else has no source.
    """
    if digests is None:
        digests = {}
    first, *others = segments_of(config)
    plain = _contents(first.config, digests)
    sources = foreign_sources([segment.config for segment in (first, *others)])
    if others:
        plain["changes"] = []
        for segment in others:
            contents = _contents(segment.config, digests)
            sections = {key: contents[key] for key in SECTIONS}
            plain["changes"].append({**segment.resolved, **sections})
    plain |= {"device": device, "backend": backend, "numerics_version": NUMERICS_VERSION}
    if sources:
        plain["sources"] = {kind: source.sha256 for kind, source in sources.items()}
    return json.dumps(plain, sort_keys=True, separators=(",", ":"), allow_nan=False)


def _contents(config: RunConfig, digests: dict[str, str]) -> dict[str, Any]:
    """Return a config as plain data, with the contents of files in place of their names."""
    plain: Any = config.model_dump(exclude_none=True)
    for path, file in named_files(dict(config)):
        *above, last = path
        if file not in digests:
            digests[file] = _file_hash(file, key_text(path))
        reduce(getitem, above, plain)[last] = {"sha256": digests[file]}
    contents: dict[str, Any] = plain
    return contents


def run_hash(
    config: RunConfig, *, device: str, backend: str, digests: dict[str, str] | None = None
) -> str:
    """Return the identity of the run, a sha256 in hexadecimal.

    It depends on the computation, not on how or where the config is written: the order of keys,
    `extends`, the spelling of numbers, defaults written out and the place of the config and of
    files it names do not matter.

    Args:
        config: the resolved config.
        device: the device that `auto` stands for, or the one that was asked for.
        backend: likewise.
        digests: see `canonical`.

    Raises:
        ConfigError: when a file that the config names is not there or cannot be read.
    """
    return hashlib.sha256(
        canonical(config, device=device, backend=backend, digests=digests).encode()
    ).hexdigest()


def run_directory_name(config: RunConfig, identity: str) -> str:
    """Return the name of a run directory: the name of the config and the start of the hash."""
    return f"{config.name}-{identity[:10]}"


def _file_hash(file: str, key: str) -> str:
    try:
        if os.path.exists(file) and not os.path.isfile(file):  # noqa: PTH110, PTH113 - as below
            raise OSError(errno.EINVAL, "it is not a regular file")  # a pipe would be waited for
        with Path(file).open("rb") as stream:
            return hashlib.file_digest(stream, "sha256").hexdigest()
    except OSError as error:
        raise ConfigError(
            [Mistake(MAPPING, None, key, f"{file} cannot be read: {error.strerror}")]
        ) from error

"""`run.json`: status, provenance and numbers of a run, with a checksum of its own."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np

from dynamics_cli.config import RunConfig, load_config
from dynamics_cli.errors import RunError
from dynamics_cli.runs import files, layout
from dynamics_cli.runs.errors import CorruptRunError, NotARunError
from dynamics_cli.runs.fields import wrong_field
from dynamics_cli.runs.sealed import seal, unseal

FORMAT = 1
"""Version of the run directory; a directory of a higher one is refused, not guessed at."""

Status = Literal["running", "complete", "interrupted", "diverged", "failed"]
STATUSES: tuple[str, ...] = get_args(Status)

Info = dict[str, Any]

_ARRAYS = "the arrays are files of their own: `dyn verify` says which are intact"


def plain(value: Any) -> Any:
    """Return `value` as JSON knows it: NumPy numbers as numbers, non-finite ones as `None`, paths as text."""
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    if isinstance(value, (np.generic, np.ndarray)):
        return plain(value.tolist())
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return str(value) if isinstance(value, Path) else value


def write_info(directory: Path, info: Mapping[str, Any]) -> None:
    """Write `run.json` in one indivisible step."""
    indent = None if "replicas" in info else 2  # a list of thousands is for machines, and indenting it takes seconds
    with files.told(directory / layout.INFO):
        files.write_atomic(directory / layout.INFO, seal(plain(info), indent=indent))


def read_info(directory: Path) -> Info:
    """Read `run.json`.

    Raises:
        NotARunError: there is none.
        CorruptRunError: it is not what was written.
        RunError: it was written by a newer version.
    """
    path = directory / layout.INFO
    try:
        data = files.read(path)
    except (FileNotFoundError, NotADirectoryError) as error:
        raise NotARunError(_why_not(directory)) from error
    except OSError as error:
        raise CorruptRunError(path, f"it cannot be read ({error.strerror})", _ARRAYS) from error
    try:
        info, intact = unseal(data)
    except ValueError as error:
        raise CorruptRunError(path, str(error), _ARRAYS) from error
    version = info.get("format")
    if isinstance(version, int) and version > FORMAT:
        wanted = f"format {version}, where this one reads formats up to {FORMAT}"
        if intact:
            raise RunError(f"{directory} was written by a newer version of dyn ({wanted}): update dyn to read it")
        raise CorruptRunError(path, f"it does not fit its checksum, or a newer version of dyn wrote it ({wanted})")
    if not intact or info.get("status") not in STATUSES:
        raise CorruptRunError(path, "it does not fit its checksum; was it edited?", _ARRAYS)
    if (wrong := wrong_field(info)) is not None:
        raise CorruptRunError(path, f"its entry {wrong!r} is not one that dyn writes", _ARRAYS)
    return info


def check_config(directory: Path, info: Info) -> None:
    """Compare `config.yaml` with the config of which `run.json` speaks; by it the two are known to be of one run.

    Raises:
        CorruptRunError: it is missing, or not the one with which the run began.
    """
    path = directory / layout.CONFIG
    try:
        data = files.read(path)
    except OSError as error:
        raise CorruptRunError(path, f"it cannot be read ({error.strerror})", _ARRAYS) from error
    if hashlib.sha256(data).hexdigest() != info.get("config_sha256"):
        problem = f"it is not the config with which the run of {layout.INFO} began; was it edited?"
        raise CorruptRunError(path, problem, _ARRAYS)


def read_config(directory: Path, info: Info) -> RunConfig:
    """Read the resolved config of a run.

    Raises:
        CorruptRunError: it is missing, or not the one with which the run began.
        ConfigError: this version of dyn does not understand it.
    """
    check_config(directory, info)
    return load_config(directory / layout.CONFIG, check_files_exist=False)  # a run can be read when its data have moved


def _why_not(directory: Path) -> str:
    if not directory.exists():
        return f"{directory} does not exist"
    if is_run(directory):
        return f"{directory} has no {layout.INFO}: it was half copied or half deleted, or never begun"
    return f"{directory} is not a run directory (it has no {layout.INFO})"


def is_run(directory: Path) -> bool:
    """Whether a directory is a run of ours, perhaps a damaged one: by its `run.json`, or else by its `config.yaml`."""
    try:
        text = files.read(directory / layout.INFO)
        if all(word in text for word in (b'"format"', b'"status"', b'"config_sha256"')):
            return True
    except OSError:
        pass
    try:
        return files.read(directory / layout.CONFIG).startswith(layout.CONFIG_FIRST_LINE.encode())
    except OSError:
        return False

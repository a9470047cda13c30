"""The directory of a sweep, by its description `sweep.json`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from dynamics_cli.errors import RunError
from dynamics_cli.runs import files

SWEEP = "sweep.json"
RESULTS = "results.csv"
FORMAT = 1


def is_sweep(directory: Path) -> bool:
    """Whether a directory is that of a sweep."""
    return files.exists(directory / SWEEP)


def read_sweep(directory: Path) -> dict[str, Any]:
    """Return what a sweep directory says of itself.

    Raises:
        RunError: it is not a sweep, or its description is damaged.

    """
    path = directory / SWEEP
    try:
        described: dict[str, Any] = json.loads(files.read(path))
    except (OSError, ValueError) as error:
        raise RunError(f"{directory} is not the directory of a sweep, or {SWEEP} is damaged ({error})") from error
    if described.get("format") != FORMAT:
        raise RunError(f"{path} was written by another version of dyn (format {described.get('format')})")
    return described

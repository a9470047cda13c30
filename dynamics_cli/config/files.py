"""The files that a config names."""

from __future__ import annotations

import stat
from collections.abc import Iterator
from pathlib import Path as FilePath

from dynamics_cli.config.base import Sections, kinds_in
from dynamics_cli.config.errors import Path


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

"""Whether sections of a config make sense, alone and together, and the files that they name."""

from __future__ import annotations

import os
from collections.abc import Iterator

from dynamics_cli.config.errors import KeyPath
from dynamics_cli.kinds import Finding, Kind, Sections
from dynamics_cli.kinds.base import kinds_in


def check_sections(sections: Sections) -> Iterator[Finding]:
    """Yield where and why the given sections do not make sense, alone or together.

    Kinds inside a kind, such as a teacher's, are checked together with each other.
    """
    inside: dict[KeyPath, Sections] = {}
    for path, kind in kinds_in(sections):
        inside[path] = {name: value for name, value in kind if isinstance(value, Kind)}
        beside = inside.get(path[:-1], {})
        for place, message in kind.check({**sections, **beside}):
            around = path[:-1] if place[0] in beside else ()
            yield (*around, *place), message


def check_files(sections: Sections) -> Iterator[tuple[KeyPath, str]]:
    """Yield the files that sections name and that are not there."""
    for path, file in named_files(sections):
        if not os.path.isfile(file):  # noqa: PTH113 - False for a name that no file can have
            yield path, f"there is no file {file}"


def named_files(sections: Sections) -> Iterator[tuple[KeyPath, str]]:
    """Yield the key and the name of every file that a config names."""
    for path, kind in kinds_in(sections):
        for key in kind.file_keys:
            if (file := getattr(kind, key)) is not None:
                yield (*path, key), file

"""Changes to a config from the command line, `--set section.key=value`, before anything is validated."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from copy import deepcopy
from pathlib import Path as FilePath
from typing import Any, NamedTuple

from dynamics_cli.config.errors import Problem, key_text
from dynamics_cli.config.nodes import read_text
from dynamics_cli.config.reader import plain
from dynamics_cli.config.source import Origin, Source

SET = "--set"
SETTINGS = "<settings>"


class Assignment(NamedTuple):
    """A change whose value has been read already."""

    path: tuple[str, ...]
    value: Any
    origin: Origin


def apply(source: Source, overrides: Iterable[str | Assignment]) -> None:
    """Apply each `key=value` to `source`, the value read as YAML; problems are added to those of `source`.

    A mapping replaces its section. Kinds are set first, whatever the order: setting one keeps the keys beside it that
    the new kind knows and drops the others, but none that another override sets. Paths in values are relative to the
    working directory.
    """
    given = [one if isinstance(one, Assignment) else _parse(one, source) for one in overrides]
    read = [one for one in given if one is not None]
    for path, value, origin in sorted(read, key=lambda one: one.path[-1] != "kind"):
        _assign(source, path, deepcopy(value), origin)


def apply_settings(source: Source, settings: Mapping[str, object]) -> None:
    """Replace top-level keys of `source`; None means that the setting was not given."""
    given = plain({key: value for key, value in settings.items() if value is not None}, SETTINGS)
    source.problems += given.problems
    for key, value in given.data.items():
        _assign(source, (key,), value, given.origin((key,)))
    source.broken |= given.broken


def _parse(text: str, source: Source) -> Assignment | None:
    key, equals, written = text.partition("=")
    path = tuple(part.strip() for part in key.split("."))
    if not equals or not all(path):
        source.problems.append(Problem(SET, None, "", f"{text!r} must have the form section.key=value"))
        return None
    reading = read_text(written, SET, FilePath.cwd(), has_lines=False)
    if reading.problems:
        source.problems += [
            Problem(SET, None, key_text(path) + (f".{problem.key}" if problem.key else ""), problem.message)
            for problem in reading.problems
        ]
        return None
    return Assignment(path, reading.value, Origin(SET, None, FilePath.cwd()))


def _assign(source: Source, path: tuple[str, ...], value: object, origin: Origin) -> None:
    try:
        source.assign(path, value, origin)
    except TypeError as error:
        blocking = error.args[0]
        message = f"{key_text(blocking)} is not a section with keys"
        source.problems.append(Problem(origin.file, None, key_text(path), message))

"""Reads a config file, or a mapping, with everything that it extends, into plain data that knows its origins.

Before anything is validated, `--set section.key=value` and settings change these data.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Mapping
from copy import deepcopy
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from dynamics_cli.config.errors import KeyPath, Mistake, key_text
from dynamics_cli.config.nodes import read_text
from dynamics_cli.config.source import Place, Written, merge
from dynamics_cli.config.text import SECTIONS, show
from dynamics_cli.errors import UsageError
from dynamics_cli.text import jsonable

MAPPING = "<config>"
"""The file name of a config that is a mapping."""

MAX_BYTES = 2**20
"""Size of the largest config file."""

NO_SUCH_FILE = "there is no such file"


def read_file(path: str | os.PathLike[str]) -> Written:
    """Read a config file and the chain of files that it extends; nothing is validated, problems are collected."""
    return _with_parents(_read_file(Path(path)), [os.path.realpath(path)])


def read_mapping(mapping: Mapping[str, object]) -> Written:
    """Take a config from a mapping; relative paths in it are relative to the working directory.

    Tuples and arrays (anything with `tolist`) become lists, paths become texts.
    """
    return _with_parents(plain(mapping, MAPPING), [])


def plain(mapping: Mapping[str, object], name: str) -> Written:
    """Take plain data from a mapping, called `name` in messages, without following `extends`."""
    source = Written({}, {(): Place(name, None, Path.cwd())})
    source.data = _plain(mapping, (), source)
    return source


def _read_file(path: Path) -> Written:
    """Read one file alone."""
    source = Written({}, {(): Place(str(path), None, path.absolute().parent)})
    told, line = "", None
    try:
        text = _contents(path).decode("utf-8-sig")
    except FileNotFoundError:
        told = NO_SUCH_FILE
    except IsADirectoryError:
        told = "is a directory, not a config file"
    except UnicodeDecodeError as error:
        told = f"is not UTF-8 text (byte 0x{error.object[error.start]:02x})"
        line = error.object[: error.start].count(b"\n") + 1
    except (OSError, ValueError) as error:  # ValueError: of `_contents`, or a name that no file can have
        told = f"cannot be read: {error.strerror if isinstance(error, OSError) else error}"
    else:
        source = read_text(text, str(path), path.absolute().parent)
        source.origins[()] = replace(source.origins[()], line=1)  # not that of the first key, below comments
        if isinstance(source.data, dict):
            return source
        if source.problems:
            source.data, source.readable = {}, False
        elif source.data is None:
            told = f"is empty; needed are {SECTIONS}"
        else:
            told, line = f"must be a mapping of {SECTIONS}, not {show(source.data)}", 1
    return source.give_up(told, line) if told else source


def _contents(path: Path) -> bytes:
    """Return the contents of a file of reasonable size; raise ValueError for a larger one."""
    with path.open("rb") as stream:
        data = stream.read(MAX_BYTES + 1)
    if len(data) > MAX_BYTES:
        raise ValueError(f"it holds more than {MAX_BYTES} bytes; write the data to a file of their own")
    return data


def _with_parents(source: Written, chain: list[str]) -> Written:
    """Merge `source` over what it extends; `chain` holds the files that led here, to refuse a cycle."""
    if "extends" not in source.data:
        return source
    extends = source.data.pop("extends")
    if ("extends",) in source.broken:
        return source
    if not isinstance(extends, str) or not extends:
        wrong = f"must be the path of one config file (a text), not {show(extends)}"
    else:
        origin = source.origin(("extends",))
        # shown as the child was named: relative where that was
        named = Path(origin.file).parent / extends if origin.line is not None else Path(extends)
        resolved = os.path.realpath(origin.directory / extends)
        if resolved not in chain:
            parent = _read_file(named)
            if not parent.readable and parent.problems[0].message == NO_SUCH_FILE:
                parent.problems = [source.problem(("extends",), f"there is no file {named}")]
            return merge(_with_parents(parent, [*chain, resolved]), source)
        wrong = f"extending {named} would go round in a circle"
    source.refuse(("extends",), wrong)
    source.readable = False
    return source


def _plain(value: object, path: KeyPath, source: Written) -> Any:
    """Return `value` of plain types only, noting what cannot be."""
    if hasattr(value, "tolist"):  # an array or a scalar of NumPy, a tensor
        value = value.tolist()
    match value:
        case Mapping():
            return dict(_items(value, path, source))
        case list() | tuple():
            return [_plain(item, (*path, place), source) for place, item in enumerate(value)]
        case None | bool() | int() | float() | str():
            return value
        case Path():
            return str(value)
    return source.refuse(path, f"a {type(value).__name__} is not allowed: a config holds only plain values")


def _items(mapping: Mapping[Any, object], path: KeyPath, source: Written) -> Iterator[tuple[str, Any]]:
    for key, value in mapping.items():
        if isinstance(key, str):
            yield key, _plain(value, (*path, key), source)
        else:
            origin = source.origins[()]
            source.problems.append(Mistake(origin.file, None, key_text(path), f"a key must be a text, not {show(key)}"))


SET = "--set"
SETTINGS = "<settings>"
Overrides = Mapping[str, Any] | Iterable[str]
"""Changes of settings: `{"seed": 3, "optimizer.lr": 0.1}` or `["seed=3", "optimizer.lr=0.1"]`."""


def override_texts(overrides: Overrides) -> list[str]:
    """Return changes of settings as `--set` takes them: `key=value`, the value as YAML."""
    if isinstance(overrides, str):
        raise UsageError(f"overrides are a mapping or a list, not the text {overrides!r}")
    if isinstance(overrides, Mapping):  # JSON is YAML, and leaves no text that could be read as something else
        return [f"{key}={json.dumps(jsonable(value), ensure_ascii=False)}" for key, value in overrides.items()]
    return list(overrides)


class Assignment(NamedTuple):
    """A change whose value has been read already."""

    path: tuple[str, ...]
    value: Any
    origin: Place


def apply(source: Written, overrides: Iterable[str | Assignment]) -> None:
    """Apply each `key=value` to `source`, the value read as YAML; problems are added to `source`.

    A mapping replaces its section. Kinds are set first, whatever the order: setting one keeps the keys beside it that
    the new kind knows and drops the others, but none that another override sets. Paths in values are relative to the
    working directory.
    """
    given = [one if isinstance(one, Assignment) else _assignment(one, source) for one in overrides]
    read = [one for one in given if one is not None]
    for path, value, origin in sorted(read, key=lambda one: one.path[-1] != "kind"):
        source.assign(path, deepcopy(value), origin)


def apply_settings(source: Written, settings: Mapping[str, object]) -> None:
    """Replace top-level keys of `source`; None means that the setting was not given."""
    given = plain({key: value for key, value in settings.items() if value is not None}, SETTINGS)
    source.problems += given.problems
    for key, value in given.data.items():
        source.assign((key,), value, given.origin((key,)))
    source.broken |= given.broken


def _assignment(text: str, source: Written) -> Assignment | None:
    key, equals, written = text.partition("=")
    path = tuple(part.strip() for part in key.split("."))
    if not equals or not all(path):
        source.problems.append(Mistake(SET, None, "", f"{text!r} must have the form section.key=value"))
        return None
    reading = read_text(written, SET, Path.cwd(), has_lines=False)
    if reading.problems:
        source.problems += [
            Mistake(SET, None, key_text(path) + (f".{problem.key}" if problem.key else ""), problem.message)
            for problem in reading.problems
        ]
        return None
    return Assignment(path, reading.data, Place(SET, None, Path.cwd()))

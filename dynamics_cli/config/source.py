"""The plain data of a config before validation, with the origin of every value."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from dynamics_cli.config.errors import KeyPath, Mistake, key_text
from dynamics_cli.config.schema import node_at

CHOOSING = ("kind", "name")
"""Keys that decide which other keys a section may have; those it may not have are dropped."""


def choosing_first(key: object) -> int:
    """Return the rank of a key in the order in which keys are set."""
    return CHOOSING.index(key) if key in CHOOSING else len(CHOOSING)


@dataclass(frozen=True)
class Place:
    """Where a value was written."""

    file: str
    """File as named to the user, or a word such as `--set`."""
    line: int | None
    """Line in it, from 1."""
    directory: Path
    """The directory to which relative paths written there belong."""


@dataclass
class Written:
    """Plain data (mappings, lists, texts, numbers, ...), the place of each value, and mistakes."""

    data: Any
    origins: dict[KeyPath, Place]
    problems: list[Mistake] = field(default_factory=list)
    broken: set[KeyPath] = field(default_factory=set)
    """Values already complained about; validation passes over them."""

    def note(self, path: KeyPath, line: int) -> None:
        """Note the line on which the value at `path` was written."""
        whole = self.origins[()]
        self.origins[path] = Place(whole.file, line, whole.directory)

    def origin(self, path: KeyPath) -> Place:
        """Return where the value at `path`, or else the closest section around it, was written."""
        while path not in self.origins:
            path = path[:-1]
        return self.origins[path]

    def is_broken(self, path: KeyPath) -> bool:
        """Return whether the value at `path`, or a section around it, has been complained about."""
        return any(path[:length] in self.broken for length in range(len(path) + 1))

    def problem(self, path: KeyPath, message: str) -> Mistake:
        """Return a problem with the value at `path`."""
        origin = self.origin(path)
        return Mistake(origin.file, origin.line, key_text(path), message)

    def refuse(self, path: KeyPath, message: str) -> None:
        """Note a problem with the value at `path`, which validation passes over."""
        self.problems.append(self.problem(path, message))
        self.broken.add(path)

    def assign(self, path: tuple[str, ...], value: object, origin: Place) -> None:
        """Set the value at `path`, creating the sections above it.

        A `kind` or `name` that is set drops the keys that it does not know. A number stands for the
        place of a value that a list has. Something on the way that is no section is a problem.
        """
        section: Any = self.data
        place: KeyPath = ()
        for depth, part in enumerate(path):
            in_list = isinstance(section, list) and part.isdecimal() and int(part) < len(section)
            if not in_list and not isinstance(section, dict):
                told = f"{key_text(place)} is not a section with keys"
                self.problems.append(Mistake(origin.file, None, key_text(path), told))
                return
            key: Any = part
            if in_list:
                key = int(part)
            place = (*place, key)
            if depth == len(path) - 1:
                break
            if not in_list and key not in section:
                section[key] = {}
                self.origins[place] = origin
            section = section[key]

        is_other = key in CHOOSING and section.get(key) != value
        section[key] = value
        if is_other:
            node = node_at(place[:-1], self.data)
            if node.choice is not None and node.section is not None:
                for stale in section.keys() - node.keys():
                    del section[stale]

        # what was noted of the value before, and of what it held, is no longer true
        for at in [at for at in self.origins if at[: len(place)] == place]:
            del self.origins[at]
        self.broken = {at for at in self.broken if at[: len(place)] != place}
        self.origins[place] = origin


def _never(_place: KeyPath, _said: Mapping[str, Any]) -> bool:
    return False


def merge(
    parent: Written, child: Written, as_a_whole: Callable[[KeyPath, Any], bool] = _never
) -> Written:
    """Return the parent's data with the child's over it, key by key; problems of both are kept.

    A section of the child takes the place of the parent's `as_a_whole` where this says so.
    """

    def put(path: tuple[str, ...], below: dict[str, Any], above: dict[str, Any]) -> None:
        for key in sorted(above, key=choosing_first):
            place = (*path, key)
            sections = isinstance(above[key], dict) and isinstance(below.get(key), dict)
            if sections and not as_a_whole(place, above[key]):
                put(place, below[key], above[key])
            else:
                parent.assign(place, above[key], child.origin(place))

    put((), parent.data, child.data)
    parent.origins |= child.origins
    parent.problems += child.problems
    parent.broken |= child.broken
    return parent

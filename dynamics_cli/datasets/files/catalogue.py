"""The data sets that dyn knows, and which of their files are here."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Literal

from dynamics_cli.datasets.files import dogs_vs_cats, mnist, store
from dynamics_cli.datasets.files.cifar10 import CIFAR10
from dynamics_cli.errors import DataMissingError, DynError, InputError, UsageError, did_you_mean
from dynamics_cli.runs.store import files
from dynamics_cli.text import Table

Presence = Literal["embedded", "here", "missing", "incomplete", "damaged", "moved"]

PUBLISHED = {one.name: one for one in (mnist.MNIST, CIFAR10)}
"""Data sets that can be downloaded, by name."""
_ABSENT = {"missing": "is not in", "incomplete": "is incomplete in", "moved": "is no longer at"}


@dataclass(frozen=True)
class Entry:
    """A data set, and how much of it is here."""

    name: str
    state: Presence
    """`incomplete`: some files are here; `moved`: it was added, but is no longer where it was; `damaged`: the
    note of its place cannot be read."""
    path: Path
    """Where it is, or would be."""
    size: int
    """Bytes that it takes where dyn keeps data, or inside dyn."""
    description: str
    how: str
    """How to get it; empty for a data set that is here."""


def list_data() -> Table:
    """Return the data sets that are files, here or missing: name, state, path, size, description, how to get."""
    return Table(map(asdict, _entries()))


def _entries() -> list[Entry]:
    subset = Entry("mnist-subset", "embedded", mnist.SUBSET, mnist.SUBSET.stat().st_size, mnist.ATTRIBUTION, "")
    return [subset, *map(_published, PUBLISHED.values()), _dogs_vs_cats()]


def find_data(name: str) -> Path:
    """Return where a data set is.

    Raises:
        UsageError: there is none of this name.
        DataMissingError: it is not here; the message says how to get it.
        InputError: the files that are here are damaged.
    """
    entry = _named(name)
    if entry.state in _ABSENT:
        raise DataMissingError(f"{name} {_ABSENT[entry.state]} {entry.path}: {entry.how}")
    if entry.state == "damaged":
        raise InputError(entry.how)
    return entry.path


def remove_data(name: str) -> int:
    """Delete the files that dyn keeps of a data set, never a file of the user's own; return the bytes that this freed.

    Raises:
        UsageError: there is none of this name, it is a part of dyn, or a file lies there that is not of dyn.
        RunError: something cannot be deleted.
    """
    entry = _named(name)
    if entry.state == "embedded":
        raise UsageError(f"{name} is a part of dyn and cannot be removed")
    directory, ours = dogs_vs_cats.directory(), dogs_vs_cats.OURS
    if name in PUBLISHED:
        directory = PUBLISHED[name].directory
        ours = "|".join(re.escape(file.name) for file in PUBLISHED[name].files)
    if not directory.is_dir():
        return 0
    if directory.is_symlink():
        raise UsageError(f"{directory} is a link: what it points to is not deleted")
    with store.locked(directory):
        files.refuse_others(directory, re.compile(rf"{ours}|{re.escape(store.LOCK)}.*"))
        for path in directory.iterdir():
            if path.name != store.LOCK:
                files.remove_tree(path)
    return entry.size


def refuse_unless(name: str, allowed: Sequence[str], what: str) -> None:
    """Refuse a name that is not among those that can be downloaded, or added.

    Raises UsageError: with the names that can be, and for another data set how it is got.
    """
    if name in allowed:
        return
    entry = _named(name)
    how = entry.how or f"it is {entry.state}"
    raise UsageError(f"{name} cannot be {what}, only {', '.join(allowed[:-1])} and {allowed[-1]} can: {how}")


def _named(name: str) -> Entry:
    entries = {entry.name: entry for entry in _entries()}
    if name not in entries:
        raise UsageError(f"no data set {name!r}{did_you_mean(name, entries)}; there are {', '.join(entries)}")
    return entries[name]


def _published(one: store.Published) -> Entry:
    lacking = len(one.missing())
    state: Presence = "missing" if lacking == len(one.files) else "incomplete" if lacking else "here"
    size = files.used(one.directory)[0]
    return Entry(one.name, state, one.directory, size, f"{one.title}: {one.images}", one.how if lacking else "")


def _dogs_vs_cats() -> Entry:
    directory, title, how = dogs_vs_cats.directory(), "Kaggle's Dogs vs. Cats", dogs_vs_cats.HOW_TO_GET
    path: Path = directory
    state: Presence = "missing"
    try:
        place = dogs_vs_cats.remembered()
        if place is not None:
            path, title = Path(place.path), f"{title}: {describe_counts(place)}"
            state, how = ("here", "") if dogs_vs_cats.is_there(place) else ("moved", how)
    except DynError as error:
        state, how = "damaged", str(error)
    return Entry("dogs-vs-cats", state, path, files.used(directory)[0], title, how)


def describe_counts(place: dogs_vs_cats.Collection) -> str:
    """Return the number of images of each class, e.g. `1001 cats and 1001 dogs of 12500 each`."""
    dogs = int(place.labels.sum())
    cats = len(place.names) - dogs
    whole = "" if cats == dogs == dogs_vs_cats.PER_CLASS else f" of {dogs_vs_cats.PER_CLASS} each"
    return f"{cats} cats and {dogs} dogs{whole}"

"""The data sets that dyn knows, and which of their files are here."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Literal

from dynamics_cli.datasets.files import cifar10, dogs_vs_cats, mnist, store
from dynamics_cli.errors import DataMissingError, DynError, InputError, UsageError, did_you_mean
from dynamics_cli.runs.store import files
from dynamics_cli.text import Table

Presence = Literal["embedded", "here", "missing", "incomplete", "damaged", "moved"]

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
    full = "MNIST: 60 000 training and 10 000 test images"
    colours = "CIFAR-10: 50 000 training and 10 000 test images"
    return [
        subset,
        _originals("mnist", mnist.mnist_directory(), mnist.ALL_FILES, full, mnist.HOW_TO_GET),
        _originals("cifar10", cifar10.cifar10_directory(), [cifar10.ARCHIVE], colours, cifar10.HOW_TO_GET),
        _dogs_vs_cats(),
    ]


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
    directory, ours = {
        "mnist": (mnist.mnist_directory(), "|".join(re.escape(file.name) for file in mnist.ALL_FILES)),
        "cifar10": (cifar10.cifar10_directory(), re.escape(cifar10.ARCHIVE.name)),
        "dogs-vs-cats": (dogs_vs_cats.directory(), dogs_vs_cats.OURS),
    }[name]
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


def _originals(name: str, directory: Path, wanted: Sequence[store.Original], title: str, how: str) -> Entry:
    lacking = len(store.missing_files(directory, wanted))
    state: Presence = "missing" if lacking == len(wanted) else "incomplete" if lacking else "here"
    return Entry(name, state, directory, files.used(directory)[0], title, how if lacking else "")


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

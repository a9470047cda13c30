"""Kaggle's Dogs vs. Cats: checked once where the user keeps it, remembered, never copied."""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TypeVar

from dynamics_cli.datasets import store
from dynamics_cli.datasets.jpeg import NotAPictureError, check_jpeg, quiet_pillow
from dynamics_cli.datasets.pictures import Pictures, UnreadablePictureError, open_pictures
from dynamics_cli.errors import DataMissingError, InputError

CLASSES = ("cat", "dog")
PER_CLASS = 12_500
"""Images of each class in Kaggle's set."""
HOW_TO_GET = (
    "download train.zip from https://www.kaggle.com/c/dogs-vs-cats/data (a free account is needed), then "
    "`dyn data add dogs-vs-cats PATH` with the archive or the folder it unpacks to"
)

Progress = Callable[[int, int], None]
"""Called with the number of images done and of all images."""
Result = TypeVar("Result")

_NAME = re.compile(r"(?:train/)?((cat|dog)\.(0|[1-9][0-9]{0,5})\.jpg)")
_KEY = re.compile(r"[0-9a-f]{64}")
_PLACE = "place.json"
_CHUNK = 64
_SHOWN = 20


@dataclass(frozen=True)
class Place:
    """Where the user's images are, and what was found there."""

    path: str
    key: str
    """SHA-256 over the names and contents of all images: the same for the archive and the folder."""
    names: list[str]
    """File names such as `cat.0.jpg`, cats first, by number."""

    @property
    def counts(self) -> dict[str, int]:
        """Number of images of each class."""
        return {kind: sum(name.startswith(f"{kind}.") for name in self.names) for kind in CLASSES}


def directory() -> Path:
    """Return where dyn keeps what belongs to this data set."""
    return store.data_root() / "dogs-vs-cats"


def add_dogs_vs_cats(
    path: Path, *, progress: Progress | None = None, on_wait: Callable[[str], None] | None = None
) -> Place:
    """Check every image of `train.zip` or of the folder it unpacks to, and remember where they are.

    Raises:
        InputError: not such an archive or folder, or images are broken (they are named); then nothing changes.
        RunError: the place cannot be written down.

    """
    path = path.absolute()
    broken: list[str] = []
    with open_pictures(path) as pictures, quiet_pillow():
        files = _images(path, pictures)
        digest = hashlib.sha256()
        for done, (name, content, problem) in enumerate(read_all(pictures, files, check_jpeg), 1):
            if problem is not None:
                broken.append(f"  {files[name]}: {problem}")
            digest.update(_line(name, content))
            if progress is not None:
                progress(done, len(files))
    if broken:
        more = [f"  and {len(broken) - _SHOWN} more"] if len(broken) > _SHOWN else []
        listed = "\n".join(broken[:_SHOWN] + more)
        raise InputError(f"{path}: {len(broken)} of {len(files)} images cannot be used:\n{listed}")
    place = Place(str(path), digest.hexdigest(), list(files))
    with store.locked(directory(), on_wait), store.told(directory()), store.fresh_file(directory() / _PLACE) as handle:
        handle.write(json.dumps(asdict(place)).encode())
    return place


def remembered() -> Place | None:
    """Return the place that was added; None when there is none.

    Raises:
        InputError: what was written down cannot be read.

    """
    file = directory() / _PLACE
    try:
        found = json.loads(file.read_bytes())
        place = Place(**found)
        _check(place)
    except FileNotFoundError:
        return None
    except (OSError, ValueError, TypeError, RecursionError) as error:
        raise InputError(f"{file}: is damaged ({error}); `dyn data add dogs-vs-cats PATH` writes it anew") from error
    return place


def _check(place: Place) -> None:
    """Raise TypeError unless a place that was read is one that could have been written: files are named after it."""
    if not isinstance(place.path, str) or not isinstance(place.key, str) or not _KEY.fullmatch(place.key):
        raise TypeError("path and key must be texts, the key a SHA-256")
    if not isinstance(place.names, list) or not all(isinstance(n, str) and _NAME.fullmatch(n) for n in place.names):
        raise TypeError("names must be a list of names of images")
    if not place.names:
        raise TypeError("there is no image")


def find_place() -> Place:
    """Return the place that was added.

    Raises:
        DataMissingError: none was; the message says how to get the data.

    """
    place = remembered()
    if place is None:
        raise DataMissingError(f"the images of Dogs vs. Cats are not here: {HOW_TO_GET}")
    return place


def is_there(place: Place) -> bool:
    """Whether the images still are where they were."""
    return os.path.exists(place.path)  # noqa: PTH110 - `Path.exists` raises for a name that is too long


def decode_all(
    place: Place, decode: Callable[[bytes], Result], progress: Progress | None = None
) -> Iterator[tuple[str, Result]]:
    """Yield name and decoded content of every image in order, checking that they still are what was added.

    Raises:
        DataMissingError: they are no longer there.
        InputError: they have changed; this may be told after the last image.

    """
    path = Path(place.path)
    if not is_there(place):
        raise DataMissingError(f"the images of Dogs vs. Cats are no longer at {path}; {HOW_TO_GET}")
    changed = f"{path}: has changed since it was added; `dyn data add dogs-vs-cats PATH` checks it again"
    with open_pictures(path) as pictures:
        files = _images(path, pictures)
        if list(files) != place.names:
            raise InputError(changed)
        digest = hashlib.sha256()
        for done, (name, content, result) in enumerate(read_all(pictures, files, decode), 1):
            if isinstance(result, Problem):
                raise InputError(f"{path}: {files[name]}: {result}")
            digest.update(_line(name, content))
            yield name, result
            if progress is not None:
                progress(done, len(files))
        if digest.hexdigest() != place.key:
            raise InputError(changed)


class Problem(str):
    """Why an image cannot be used."""

    __slots__ = ()


def read_all(
    pictures: Pictures, files: dict[str, str], work: Callable[[bytes], Result]
) -> Iterator[tuple[str, bytes, Result | Problem]]:
    """Yield name, content and `work(content)`, or the problem, of each file in order; the work is done by threads."""

    def attempt(content: bytes | Problem) -> Result | Problem:
        try:
            return content if isinstance(content, Problem) else work(content)
        except NotAPictureError as error:
            return Problem(error)

    with ThreadPoolExecutor(min(8, os.cpu_count() or 1)) as pool:
        for names in _chunks(list(files)):
            contents = [_content(pictures, files[name]) for name in names]
            for name, content, result in zip(names, contents, pool.map(attempt, contents), strict=True):
                yield name, b"" if isinstance(content, Problem) else content, result


def _content(pictures: Pictures, file: str) -> bytes | Problem:
    try:
        return pictures.read(file)
    except UnreadablePictureError as error:
        return Problem(error)


def _chunks(names: Sequence[str]) -> Iterable[Sequence[str]]:
    return (names[k : k + _CHUNK] for k in range(0, len(names), _CHUNK))


def _images(path: Path, pictures: Pictures) -> dict[str, str]:
    """Return file name -> name in the folder or archive of every image, cats first, by number."""
    found: dict[str, str] = {}
    strange = []
    for name in pictures.names:
        match = _NAME.fullmatch(name)
        if match is None:
            strange.append(name)
        elif match[1] in found:
            raise InputError(f"{path}: {match[1]} is there twice")
        else:
            found[match[1]] = name
    if "train.zip" in (Path(name).name for name in strange):
        raise InputError(f"{path}: holds Kaggle's train.zip among others; unpack it and give train.zip")
    if strange:
        listed = ", ".join(map(repr, strange[:5])) + (f" and {len(strange) - 5} more" if len(strange) > 5 else "")
        raise InputError(f"{path}: images are called cat.0.jpg or dog.0.jpg (in train/ or not), but there is {listed}")
    for kind in CLASSES:
        if not any(name.startswith(f"{kind}.") for name in found):
            raise InputError(f"{path}: holds no image of a {kind} ({kind}.0.jpg ...); both classes are needed")
    order = sorted(found, key=lambda name: (name.split(".")[0], int(name.split(".")[1])))
    return {name: found[name] for name in order}


def _line(name: str, content: bytes) -> bytes:
    return f"{name} {hashlib.sha256(content).hexdigest()}\n".encode()

"""The JSON beside a figure: what the figure claims, and seals of its files and of the runs it was drawn from."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from dynamics_cli.errors import RunError
from dynamics_cli.reproduction.obtain import ObtainedRun
from dynamics_cli.runs import CorruptRunError, files, outputs_root
from dynamics_cli.runs.sealed import refuse_newer, seal, unseal

FORMAT = 1
"""Version of the document; one of a higher version is refused, not guessed at."""
BY_CHANCE = ("reused", "seconds")
"""What is said of a run that is another the next time, for equal runs."""


def write_document(path: Path, about: Mapping[str, Any], written: Sequence[Path], runs: Sequence[ObtainedRun]) -> Path:
    """Write the JSON of a figure whose other files are written already, and return its path.

    `about` is what it says of the figure. Added are the SHA-256 of the files, the runs with their identity, and last a
    checksum of the whole. What differs from one time to the next stands under `provenance`.

    Raises:
        RunError: it cannot be written.
    """
    told = [run.as_dict() for run in runs]
    obtained = [{"role": run["role"], **{key: run.pop(key) for key in BY_CHANCE}} for run in told]
    document = {
        "format": FORMAT,
        **about,
        "provenance": {**about["provenance"], "obtained": obtained},
        "files": [file.name for file in written],
        "sha256": {file.name: sha256(file) for file in written},
        "runs": [{**one, "path": _place(run.run.path, path.parent)} for one, run in zip(told, runs, strict=True)],
    }
    with files.told(path):
        files.make_directory(path.parent)
        files.write_atomic(path, seal(document))
    return path


def read_document(path: Path) -> dict[str, Any]:
    """Read the JSON of a figure.

    Raises:
        CorruptRunError: it is missing, not what was written, or not the JSON of a figure.
        RunError: a newer version of dyn wrote it.
    """
    try:
        document, intact = unseal(files.read(path))
    except OSError as error:
        raise CorruptRunError(path, f"it cannot be read ({error.strerror})") from error
    except ValueError as error:
        raise CorruptRunError(path, str(error)) from error
    if intact:
        refuse_newer(path, document.get("format"), FORMAT)
    if "sha256" not in document and "figure" in document:
        raise CorruptRunError(path, "it has no checksums: an earlier dyn made it, or it was edited", _again(document))
    if not intact or not {"figure", "sha256", "runs"} <= set(document):
        raise CorruptRunError(path, "it is not what dyn wrote beside a figure; was it edited?")
    return document


def _again(document: Mapping[str, Any]) -> str:
    return f"`dyn reproduce {document['figure']}` makes it again"


def run_path(document_file: Path, path: str) -> Path:
    """Return the directory of a run that the JSON of a figure names: relative paths begin where the JSON is."""
    return Path(os.path.normpath(document_file.absolute().parent / path))


def sha256(path: Path) -> str:
    """SHA-256 of a file, in hexadecimal."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def _place(run: Path, folder: Path) -> str:
    """Return where a run is: relative to the figure when both are below the root of outputs, which may be moved."""
    run, folder, root = run.absolute(), folder.absolute(), outputs_root().absolute()
    if run.is_relative_to(root) and folder.is_relative_to(root):
        return Path(os.path.relpath(run, folder)).as_posix()
    return str(run)


@contextmanager
def alone_in(folder: Path) -> Iterator[None]:
    """Let no other process write figures to a folder meanwhile, so that pictures and JSON always belong together.

    The folder itself is locked, where the system can do that: no file of ours is left in it.

    Raises:
        RunError: the folder cannot be made.
    """
    try:
        files.make_directory(folder)
    except OSError as error:
        raise RunError(f"cannot write {folder}: {error.strerror or error}") from error
    if os.name != "posix":
        yield
        return
    import fcntl

    handle = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)

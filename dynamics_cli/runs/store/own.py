"""Files that `dyn` writes under names that it chooses: it knows its own by a mark in them."""

from __future__ import annotations

import hashlib
from contextlib import suppress
from pathlib import Path

from pydantic import BaseModel

from dynamics_cli.errors import RunError, UsageError
from dynamics_cli.runs.store import files
from dynamics_cli.runs.store.sealed import FileName, looks_sealed, read_sealed

MADE_BY = "dynamics-cli"
"""The program named in the metadata of a picture and in the head of a page."""
_MARKS = {
    ".png": f"Software\0{MADE_BY}",
    ".pdf": f"/Creator ({MADE_BY})",
    ".svg": f"<dc:title>{MADE_BY}</dc:title>",
    ".gif": MADE_BY,
    ".html": f'<meta name="generator" content="{MADE_BY}">',
}


class ListForm(BaseModel):
    """What a sealed file says of the files beside it."""

    sha256: dict[FileName, str] = {}


def is_own(path: Path) -> bool:
    """Whether `dyn` wrote a file: sealed JSON, or marked, or listed in the sealed JSON beside it.

    A link is not `dyn`'s.
    """
    if path.is_symlink() or not path.is_file():
        return False
    contents = files.read(path)
    if path.suffix == ".json":
        return looks_sealed(contents)
    if path.suffix in _MARKS and _MARKS[path.suffix].encode() in contents:
        return True
    with suppress(RunError, OSError):  # as it stands beside a figure
        listed = read_sealed(path.with_suffix(".json"), form=ListForm).get("sha256", {})
        return bool(listed.get(path.name) == hashlib.sha256(contents).hexdigest())
    return False


def refuse_links(*folders: Path) -> None:
    """Raise `UsageError` when a folder of a run in which files are to be written is a link."""
    for folder in folders:
        if folder.is_symlink():
            raise UsageError(
                f"{folder} is a link, and dyn does not write through links: put a folder in its"
                " place, or name another"
            )


def refuse_foreign(*paths: Path) -> None:
    """Raise `UsageError` when a file that is to be written is there, and somebody else's."""
    for path in paths:
        if files.exists(path) and not is_own(path):
            raise UsageError(
                f"{path} is there already, and dyn did not write it: move it away, or choose"
                " another folder"
            )

"""Files that `dyn` writes under names that it chooses: by a mark in them `dyn` knows its own, and overwrites no other."""

from __future__ import annotations

from pathlib import Path

from dynamics_cli.errors import UsageError
from dynamics_cli.runs.store import files
from dynamics_cli.runs.store.sealed import looks_sealed

MADE_BY = "dynamics-cli"
"""The program named in the metadata of a picture and in the head of a page."""
_MARKS = {
    ".png": f"Software\0{MADE_BY}",
    ".pdf": f"/Creator ({MADE_BY})",
    ".svg": f"<dc:title>{MADE_BY}</dc:title>",
    ".gif": MADE_BY,
    ".html": f'<meta name="generator" content="{MADE_BY}">',
}


def is_own(path: Path) -> bool:
    """Whether `dyn` wrote a file: a picture or a page with its mark, or sealed JSON; a link is not `dyn`'s."""
    if path.is_symlink() or not path.is_file():
        return False
    contents = files.read(path)
    if path.suffix == ".json":
        return looks_sealed(contents)
    return path.suffix in _MARKS and _MARKS[path.suffix].encode() in contents


def refuse_foreign(*paths: Path) -> None:
    """Raise `UsageError` when one of the files that are to be written is there already, and somebody else's."""
    for path in paths:
        if files.exists(path) and not is_own(path):
            raise UsageError(
                f"{path} is there already, and dyn did not write it: move it away, or choose another folder"
            )

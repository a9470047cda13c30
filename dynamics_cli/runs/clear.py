"""Making room for a new run: removing the files of the run that is there, and nothing else.

A directory is a run when its `run.json` says so. `make_room` writes a `run.json` with the status
`BEGINNING` before it removes a file, and it stays until the new run has begun: after a kill in
between, the directory is still a run, and holds nothing to keep.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Collection, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dynamics_cli.errors import RunError, UsageError
from dynamics_cli.runs.changes import sha256_of_copy
from dynamics_cli.runs.info import RunForm, write_info
from dynamics_cli.runs.store import files, layout
from dynamics_cli.runs.store.arrays import LONGEST_HEADER, decode_header
from dynamics_cli.runs.store.checkpoints import is_checkpoint, load_checkpoint
from dynamics_cli.runs.store.own import is_own
from dynamics_cli.runs.store.sealed import read_sealed

_FIRST_LINE = layout.CONFIG_FIRST_LINE.encode()
_SHOWN = 3
"""Files that a message names."""


def make_room(
    directory: Path, config: bytes, copies: Collection[str] = (), *, force: bool = False
) -> None:
    """Let a new run begin in a directory; remove the run that is there if `force` allows it.

    Files that `dyn` did not write stay where they are. A run that was killed before it began needs
    no `force`.

    Args:
        directory: the run directory, whose lock the caller holds.
        config: the contents of the new `config.yaml`.
        copies: names of the folders below `parts` that the new run writes.
        force: remove a run that has begun, and files of a run that has lost its `run.json`.

    Raises:
        UsageError: the directory holds a run, or somebody's files under the names of a run; nothing
            is removed.
        RunError: something cannot be removed or written.
    """
    with files.os_errors_as_run_errors(directory):
        held = check_room(directory, config, force=force)
        marker = {
            "status": layout.BEGINNING,
            "config_sha256": hashlib.sha256(config).hexdigest(),
            "rows": held.listed,
            "copies": sorted({*held.copies, *copies}),
        }
        write_info(directory, marker)
        for path in held.own:
            files.remove(path)
        emptied = {path.parent for path in held.own} - {directory}
        for folder in sorted(emptied, reverse=True):  # those inside come before those around
            if not files.names(folder):
                files.remove_directory(folder)


@dataclass(frozen=True)
class Held:
    """The files that a directory holds under the names of a run, all written by `dyn`."""

    own: list[Path]
    """Without `run.json`."""
    listed: Mapping[str, int]
    """Arrays that `run.json` or the checkpoint lists -> their rows."""
    copies: Mapping[str, str]
    """Folders below `parts` that `run.json` lists -> their checksum; "" while they are written."""


def check_room(directory: Path, config: bytes, *, force: bool = False) -> Held:
    """Return what `make_room` removes; see there for arguments and errors."""
    if files.exists(directory) and not directory.is_dir():
        raise UsageError(f"{directory} is a file, not a directory")
    ours = layout.is_run(directory)
    if ours and not force and layout.has_begun(directory):
        raise UsageError(
            f"{directory} holds a run already: give --resume to continue it or --force to start"
            " over"
        )
    info_file = directory / layout.INFO
    info: dict[str, Any] = {}
    if ours:
        with suppress(RunError, OSError):  # damaged: headers and first lines tell whose files are
            info = read_sealed(info_file, form=RunForm)
    held = Held([], _arrays_of(directory, info), _copies_of(info))
    foreign = []
    if files.exists(info_file) and (info_file.is_symlink() or not ours):
        foreign.append(info_file)
    for path in _under_our_names(directory):
        name = path.relative_to(directory).as_posix()
        if _is_ours(path, name, config, ours, held):
            held.own.append(path)
        elif name.partition("/")[0] != layout.PLOTS or not (ours or force):
            foreign.append(path)  # beside the pictures of a run people keep files of their own
    if foreign:
        raise UsageError(
            f"{directory} holds {_some(directory, foreign)}, which dyn did not write and will not"
            " overwrite: move it away, or choose another directory"
        )
    kept = [path for path in held.own if not files.is_temporary(path.name)]
    if kept and not ours and not force:
        raise UsageError(
            f"{directory} has no {layout.INFO}, and holds {_some(directory, kept)} of a run: was it"
            " half copied? --force removes the files of that run"
        )
    return held


def _some(directory: Path, paths: list[Path]) -> str:
    names = ", ".join(path.relative_to(directory).as_posix() for path in paths[:_SHOWN])
    if len(paths) > _SHOWN:
        return f"{names} and {len(paths) - _SHOWN} more"
    return names


def _arrays_of(directory: Path, info: Mapping[str, Any]) -> dict[str, int]:
    """Return the rows of the arrays that a run says it has, by name."""
    if rows := info.get("rows"):
        return dict(rows)
    with suppress(RunError):  # damaged: their headers tell whose the arrays are
        if "config_sha256" in info and (saved := load_checkpoint(directory, info)):
            return saved.rows
    return {}


def _copies_of(info: Mapping[str, Any]) -> dict[str, str]:
    """Return the folders below `parts` that a run says it has, as in `Held.copies`."""
    listed = {Path(kind["copy"]).name: kind["sha256"] for kind in info.get("kinds", {}).values()}
    return listed | dict.fromkeys(info.get("copies", []), "")


def _under_our_names(directory: Path) -> Iterator[Path]:
    """Yield what stands under the names of a run, but `run.json`; links are not followed."""
    for name in layout.RUN_FILES:
        path = directory / name
        if name not in layout.FOLDERS or path.is_symlink() or not path.is_dir():
            if name != layout.INFO and files.exists(path):
                yield path
            continue
        for folder, below, inside in os.walk(path):
            yield from (Path(folder, file) for file in sorted(inside))
            links = (Path(folder, link) for link in sorted(below))
            yield from filter(Path.is_symlink, links)
    yield from files.temporaries(directory)


def _is_ours(path: Path, name: str, config: bytes, ours: bool, held: Held) -> bool:
    """Whether `dyn` wrote the file `name` of a directory, which is a run if `ours` says so."""
    if path.is_symlink() or not path.is_file():
        return False
    folder, _, rest = name.partition("/")
    if folder == layout.PLOTS:
        return is_own(path)
    if folder == layout.PARTS:
        copy = rest.partition("/")[0]
        around = path.parents[rest.count("/") - 1]
        return copy in held.copies and held.copies[copy] in ("", sha256_of_copy(around))
    with files.open_read(path) as handle:
        begins = files.read_at(handle, 0, LONGEST_HEADER)
    if name == layout.CONFIG and begins:
        # outside a run somebody may have kept it, and edited it
        return files.read(path) == config or (ours and begins.startswith(_FIRST_LINE))
    if path.suffix == ".npy" and begins:
        return name.removesuffix(".npy") in held.listed or decode_header(begins) is not None
    return not begins or files.is_temporary(path.name) or is_checkpoint(begins)

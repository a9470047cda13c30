"""Find the run that a user names by a directory, the start of a name or of a hash, `DIR:k`, or `latest`."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import TYPE_CHECKING

from dynamics_cli.errors import RunError, UsageError, did_you_mean
from dynamics_cli.runs.store import layout

if TYPE_CHECKING:
    from dynamics_cli.runs.run import Run

LATEST = "latest"
"""Stands for the run below the root of runs that was written last."""

_HASH = re.compile(r"[0-9a-f]{4,64}")
_REPLICA = re.compile(r"(.+):([0-9]{1,9})", re.DOTALL)


def run_names(root: Path | None = None) -> list[str]:
    """Return the names of the directories below a folder, by default the root of all runs."""
    root = root or layout.runs_root()
    return sorted(path.name for path in root.iterdir() if path.is_dir()) if root.is_dir() else []


def is_there(path: str | Path) -> bool:
    """Whether a file or folder has this name; a text that cannot be a name, such as a very long text, has none."""
    return os.path.exists(path)  # noqa: PTH110 - `Path.exists` raises for a name that is too long


def run_directory(text: str) -> Path:
    """Return the directory of a run: a path, the (start of the) name or hash of a kept run, or `latest`.

    Raises:
        RunError: there is no such run.
        UsageError: several runs begin so; the message names them.
    """
    path, root = Path(text), layout.runs_root()
    if is_there(path):
        return path
    fitting = find_names(text)
    if len(fitting) == 1:
        return root / fitting[0]
    if fitting:
        raise UsageError(f"{text!r} can be several runs below {root}: {', '.join(fitting)}")
    if text == LATEST:
        raise RunError(f"there is no run below {root} yet")
    raise RunError(f"there is no run {text}, neither as a path nor below {root}{did_you_mean(text, run_names())}")


def stands_for_run(text: str) -> bool:
    """Whether `text` can only be meant as a run: a directory, or the name of a run below its root."""
    name, _ = numbered(text)
    return Path(name).is_dir() if is_there(name) else name == LATEST or bool(find_names(name))


def find_names(text: str, root: Path | None = None, info: str = layout.INFO) -> list[str]:
    """Return the names of the runs that `text` can stand for, or of the folders with a file `info` below another root.

    A whole name comes before starts of names, and these before starts of hashes.
    """
    root = root or layout.runs_root()
    names = run_names(root)
    if text in names:
        return [text]
    if text == LATEST:
        return _latest(root, names, info)
    by_name = [name for name in names if name.startswith(text)]
    if by_name or not _HASH.fullmatch(text):
        return by_name
    return [name for name in names if _hash_begins(root / name, text)]


def load_run(which: str | Path | Run, *, verify: bool = True, together: bool = False, whole: bool = False) -> Run:
    """Open a run for reading.

    Args:
        which: its directory; its name, or the start of its name or hash, below the root of runs; any of these
            followed by `:k` for replica k of runs trained together; or `latest`.
        verify: check the config and, when it is first used, each array against the checksums.
        together: open a directory of replicas as one run with arrays `(K, R, ...)`, instead of refusing it.
        whole: check all arrays now, so that damage is told before anything is done with them.

    Raises:
        UsageError: several runs begin so.
        RunError: there is no such run, it is damaged, holds several runs, or was written by a newer version.
    """
    from dynamics_cli.runs.run import Run

    if isinstance(which, Run):
        run = which
    else:
        text = os.fspath(which)
        run = _open(text, run_directory(numbered(text)[0]), verify=verify, together=together)
    if whole:
        run.check_all()
    return run


def _open(text: str, directory: Path, *, verify: bool, together: bool) -> Run:
    from dynamics_cli.runs.replica import replicas_of
    from dynamics_cli.runs.run import Run

    run, (name, k) = Run(directory, verify=verify), numbered(text)
    if k is not None:
        replicas = replicas_of(run)
        if k >= len(replicas):
            raise RunError(f"{name} holds replicas 0 to {len(replicas) - 1}, none with number {k}")
        return replicas[k]
    if "replicas" in run.info and not together:
        last = len(run.info["replicas"]) - 1
        raise RunError(f"{run.path} holds several runs trained together: name one, {text}:0 to {text}:{last}")
    return run


def numbered(text: str) -> tuple[str, int | None]:
    """Return `DIR` and k of `DIR:k`, unless something is called so; the text and None of anything else."""
    found = _REPLICA.fullmatch(text)
    return (found[1], int(found[2])) if found and not is_there(text) else (text, None)


def _latest(root: Path, names: list[str], info: str) -> list[str]:
    """Return the name of the run whose `run.json` was written last, as a list; an empty list without runs."""
    written = {}
    for name in names:
        try:
            written[name] = (root / name / info).stat().st_mtime_ns
        except OSError:  # no run, or a run that was never begun
            continue
    return [max(written, key=lambda name: written[name])] if written else []


def _hash_begins(run: Path, text: str) -> bool:
    """Whether the hash of a run begins so: its name has the first ten digits, its `run.json` all of them."""
    _, _, digits = run.name.rpartition("-")
    if len(text) <= len(digits):
        return digits.startswith(text)
    if not _HASH.fullmatch(digits) or not text.startswith(digits) or not layout.is_run(run):
        return False
    from dynamics_cli.runs.info import read_info

    return str(read_info(run).get("hash")).startswith(text)

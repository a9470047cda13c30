"""Find and open what a user names.

A run or a sweep is named by its path, (the start of) its name, or `latest`; replica k of a run by
`DIR:k`, job k of a sweep by `SWEEP:k`.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from dynamics_cli.errors import RunError, UsageError, did_you_mean
from dynamics_cli.runs.find import DAMAGED, runs_below, summarize
from dynamics_cli.runs.info import STATUSES
from dynamics_cli.runs.replica import replicas_of
from dynamics_cli.runs.run import Run
from dynamics_cli.runs.store import layout
from dynamics_cli.sweeps.directory import ENDINGS, SWEEP, Sweep, is_sweep
from dynamics_cli.text import Table

LATEST = "latest"
"""Stands for the run or the sweep that was written last."""

_NUMBERED = re.compile(r"(.+):([0-9]{1,9})", re.DOTALL)


def sweeps_root() -> Path:
    """Return the folder of the sweeps that are found by their names."""
    return layout.outputs_root() / "sweeps"


def run_names() -> list[str]:
    """Return the names of the directories below the root of all runs."""
    return [path.name for path in _folders(layout.runs_root())]


def list_runs(root: str | Path | None = None, *, statuses: Iterable[str] = ()) -> Table:
    """List the runs that are kept.

    `size` is in bytes, `modified` in seconds since 1970.

    Args:
        root: where they are; by default below `outputs/runs`.
        statuses: only runs of this status.

    Raises UsageError: there is no such status.
    """
    wanted = list(statuses)
    known = (*STATUSES, DAMAGED)
    for status in wanted:
        if status not in known:
            raise UsageError(
                f"no status {status!r}{did_you_mean(status, known)}; there are {', '.join(known)}"
            )
    rows = map(summarize, runs_below(Path(root or layout.runs_root())))
    return Table(row for row in rows if not wanted or row["status"] in wanted)


def list_sweeps(root: str | Path | None = None) -> Table:
    """List the sweeps that are kept, finished or not.

    The columns are path, status, jobs, and how many ended in which way; `root` is by default
    `outputs/sweeps`. A sweep that cannot be read has the status `damaged`, and `problem` says why.
    """
    return Table(map(_summary, filter(is_sweep, _folders(Path(root or sweeps_root())))))


def _summary(directory: Path) -> dict[str, Any]:
    """Return a row of the list of sweeps."""
    shown = ("path", "status", "jobs", *ENDINGS, "modified")
    try:
        described = Sweep(directory).describe()
        return {name: described[name] for name in shown}
    except RunError as error:
        modified = (directory / SWEEP).lstat().st_mtime
        unknown = dict.fromkeys(("jobs", *ENDINGS))
        about = {"path": directory, "status": DAMAGED, **unknown, "modified": modified}
        return {**about, "problem": str(error)}


def is_there(path: str | Path) -> bool:
    """Whether a file or folder has this name, which may be too long for a name."""
    return os.path.exists(path)  # noqa: PTH110 - `Path.exists` raises for a name that is too long


def stands_for_run(text: str) -> bool:
    """Whether `text` can be meant as a run, a sweep, or a part of them."""
    name, _ = split_number(text)
    if is_there(name):
        return Path(name).is_dir()
    return name == LATEST or bool(_matching(name))


def sweep_directory(which: Any, *, alone: bool = False) -> Path | None:
    """Return the directory of a sweep; None when `which` names none.

    `which` is a sweep, its directory, the (start of the) name of a sweep below `sweeps_root`, or
    `latest`, which is a sweep where no run was written since. `alone` says that only a sweep can be
    meant, not a run.

    Raises UsageError: several begin so; the message names them.
    """
    path = Path(getattr(which, "path", which))
    if is_sweep(path):
        return path
    if is_there(path) or len(path.parts) != 1:
        return None
    matching = _matching(str(path), runs=not alone)
    sweeps = [directory for directory in matching if directory.parent == sweeps_root()]
    if sweeps and len(matching) > 1:
        raise UsageError(f"{str(path)!r} can be {', '.join(map(str, matching))}")
    return next(iter(sweeps), None)


def run_directory(text: str) -> Path:
    """Return the directory of a run: a path, the (start of the) name of a kept run, or `latest`.

    Raises:
        RunError: there is no such run.
        UsageError: several runs begin so; the message names them.
    """
    if is_there(text):
        return Path(text)
    root = layout.runs_root()
    matching = _matching(text, sweeps=False)
    if len(matching) > 1:
        names = ", ".join(path.name for path in matching)
        raise UsageError(f"{text!r} can be several runs below {root}: {names}")
    if not matching:
        raise RunError(
            f"there is no run {text}, neither as a path nor below"
            f" {root}{did_you_mean(text, run_names())}"
        )
    return matching[0]


def open_run(which: Any, *, together: bool = False, whole: bool = False) -> Run:
    """Open a run for reading.

    Args:
        which: a run, or any name of one; see the module.
        together: open a directory of replicas as one run with arrays `(K, R, ...)`, instead of
            refusing it.
        whole: check all arrays now, so that damage is told before anything is done with them.

    Raises:
        UsageError: several runs begin so.
        RunError: there is no such run, it is damaged, or holds several runs.
    """
    run = which
    if not isinstance(run, Run):
        run = _open(os.fspath(which), together=together)
    if whole:
        run.check_all()
    return run


def _open(text: str, *, together: bool) -> Run:
    name, k = split_number(text)
    if k is not None and (sweep := sweep_directory(name)) is not None:
        return Sweep(sweep).run(k)
    run = Run(run_directory(name))
    if k is None and ("replicas" not in run.info or together):
        return run
    replicas = replicas_of(run)
    if k is None:
        raise RunError(
            f"{run.path} holds several runs trained together: name one, {text}:0 to"
            f" {text}:{len(replicas) - 1}"
        )
    if k >= len(replicas):
        raise RunError(f"{name} holds replicas 0 to {len(replicas) - 1}, none with number {k}")
    return replicas[k]


def split_number(text: str) -> tuple[str, int | None]:
    """Return `DIR` and k of `DIR:k`, unless something is called so; else the text and None."""
    match = _NUMBERED.fullmatch(text)
    if match is None or is_there(text):
        return text, None
    return match[1], int(match[2])


def _matching(text: str, *, runs: bool = True, sweeps: bool = True) -> list[Path]:
    """Return the directories below the roots that `text` can stand for.

    Whole names come before starts of names.
    """
    written: dict[Path, Path] = {}
    if runs:
        written |= {path: path / layout.INFO for path in _folders(layout.runs_root())}
    if sweeps:
        written |= {path: path / SWEEP for path in _folders(sweeps_root()) if is_sweep(path)}
    if whole := [path for path in written if path.name == text]:
        return whole
    if text == LATEST:
        times = {path: file.stat().st_mtime_ns for path, file in written.items() if is_there(file)}
        return sorted(times, key=times.__getitem__, reverse=True)[:1]
    return [path for path in written if path.name.startswith(text)]


def _folders(root: Path) -> list[Path]:
    if not root.is_dir():
        return []
    return sorted(path for path in root.iterdir() if path.is_dir() and not layout.is_aside(path))

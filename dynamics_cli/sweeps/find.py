"""Find and open what a user names: a run or a sweep by its path, (the start of) its name, or `latest`; replica k of a
run by `DIR:k`, job k of a sweep by `SWEEP:k`.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

from dynamics_cli.errors import RunError, UsageError, did_you_mean
from dynamics_cli.runs.replica import replicas_of
from dynamics_cli.runs.run import Run
from dynamics_cli.runs.store import layout
from dynamics_cli.sweeps.directory import SWEEP, Sweep, is_sweep

LATEST = "latest"
"""Stands for the run or the sweep below its root that was written last."""

_NUMBERED = re.compile(r"(.+):([0-9]{1,9})", re.DOTALL)


def sweeps_root() -> Path:
    """Return the folder of the sweeps that are found by their names."""
    return layout.outputs_root() / "sweeps"


def run_names(root: Path | None = None) -> list[str]:
    """Return the names of the directories below a folder, by default the root of all runs."""
    root = root or layout.runs_root()
    return sorted(path.name for path in root.iterdir() if path.is_dir()) if root.is_dir() else []


def is_there(path: str | Path) -> bool:
    """Whether a file or folder has this name; a text that cannot be a name, such as a very long text, has none."""
    return os.path.exists(path)  # noqa: PTH110 - `Path.exists` raises for a name that is too long


def stands_for_run(text: str) -> bool:
    """Whether `text` can only be meant as a run: a directory, or the name of a run below its root."""
    name, _ = _numbered(text)
    return Path(name).is_dir() if is_there(name) else name == LATEST or bool(_matching(name, layout.runs_root()))


def run_directory(text: str) -> Path:
    """Return the directory of a run: a path, the (start of the) name of a kept run, or `latest`.

    Raises:
        RunError: there is no such run.
        UsageError: several runs begin so; the message names them.
    """
    root = layout.runs_root()
    if is_there(text):
        return Path(text)
    fitting = _matching(text, root)
    if len(fitting) == 1:
        return fitting[0]
    if fitting:
        names = ", ".join(path.name for path in fitting)
        raise UsageError(f"{text!r} can be several runs below {root}: {names}")
    if text == LATEST:
        raise RunError(f"there is no run below {root} yet")
    raise RunError(f"there is no run {text}, neither as a path nor below {root}{did_you_mean(text, run_names())}")


def sweep_directory(which: Any, *, alone: bool = False) -> Path | None:
    """Return the directory of a sweep; None when `which` names none.

    `which` is a sweep, its directory, the (start of the) name of a sweep below `sweeps_root`, or `latest`, which is
    a sweep where no run was written since. `alone` says that only a sweep can be meant, not a run.

    Raises UsageError: several begin so; the message names them.
    """
    path = Path(getattr(which, "path", which))
    if is_sweep(path):
        return path
    if is_there(path) or len(path.parts) != 1:
        return None
    text = str(path)
    found = _matching(text, sweeps_root(), SWEEP)
    both = [*found, *([] if alone else _matching(text, layout.runs_root()))] if found else []
    fitting = [one for one in both if one.name == text] or both
    if text == LATEST:
        fitting = sorted(fitting, key=lambda one: _written(one, SWEEP if one in found else layout.INFO))[-1:]
    if len(fitting) > 1:
        raise UsageError(f"{text!r} can be {', '.join(map(str, fitting))}")
    return fitting[0] if fitting and fitting[0] in found else None


def run_of_job(which: Any) -> Any:
    """Return the run of a job that is called `SWEEP:k`; anything else as it is.

    Raises as `sweep_directory` and `Sweep.run`.
    """
    if isinstance(which, str | Path):
        name, number = _numbered(os.fspath(which))
        if number is not None and (directory := sweep_directory(name)) is not None:
            return Sweep(directory).run(number)
    return which


def open_run(which: Any, *, together: bool = False, whole: bool = False) -> Run:
    """Open a run for reading.

    Args:
        which: a run, or any name of one; see the module.
        together: open a directory of replicas as one run with arrays `(K, R, ...)`, instead of refusing it.
        whole: check all arrays now, so that damage is told before anything is done with them.

    Raises:
        UsageError: several runs begin so.
        RunError: there is no such run, it is damaged, or holds several runs.
    """
    found = run_of_job(which)
    run = found if isinstance(found, Run) else _open(os.fspath(found), together=together)
    if whole:
        run.check_all()
    return run


def _open(text: str, *, together: bool) -> Run:
    name, k = _numbered(text)
    run = Run(run_directory(name))
    if k is not None:
        replicas = replicas_of(run)
        if k >= len(replicas):
            raise RunError(f"{name} holds replicas 0 to {len(replicas) - 1}, none with number {k}")
        return replicas[k]
    if "replicas" in run.info and not together:
        last = len(run.info["replicas"]) - 1
        raise RunError(f"{run.path} holds several runs trained together: name one, {text}:0 to {text}:{last}")
    return run


def _numbered(text: str) -> tuple[str, int | None]:
    """Return `DIR` and k of `DIR:k`, unless something is called so; the text and None of anything else."""
    found = _NUMBERED.fullmatch(text)
    return (found[1], int(found[2])) if found and not is_there(text) else (text, None)


def _matching(text: str, root: Path, info: str = layout.INFO) -> list[Path]:
    """Return the directories below a root that `text` can stand for; for `latest` they have a file `info`.

    A whole name comes before starts of names.
    """
    names = run_names(root)
    if text in names:
        return [root / text]
    if text == LATEST:
        begun = [root / name for name in names if _written(root / name, info)]
        return [max(begun, key=lambda path: _written(path, info))] if begun else []
    return [root / name for name in names if name.startswith(text)]


def _written(directory: Path, info: str) -> int:
    """Return when a file was written; 0 where there is none."""
    try:
        return (directory / info).stat().st_mtime_ns
    except OSError:
        return 0

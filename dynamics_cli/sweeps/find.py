"""Find the sweep, or the run of a job, that a user names."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from dynamics_cli.errors import UsageError
from dynamics_cli.runs import Run, named
from dynamics_cli.runs.named import LATEST, find_names, is_there, numbered
from dynamics_cli.runs.store import layout
from dynamics_cli.sweeps.directory import SWEEP, Sweep, is_sweep


def sweeps_root() -> Path:
    """Return the folder of the sweeps that are found by their names."""
    return layout.outputs_root() / "sweeps"


def sweep_directory(which: Any, *, alone: bool = False) -> Path | None:
    """Return the directory of a sweep; None when `which` names none.

    `which` is a sweep, its directory, the (start of the) name or hash of a sweep below `sweeps_root`, or `latest`,
    which is a sweep where no run was written since. `alone` says that only a sweep can be meant, not a run.

    Raises UsageError: several begin so; the message names them.
    """
    path, root = Path(getattr(which, "path", which)), sweeps_root()
    if is_sweep(path):
        return path
    if is_there(path) or len(path.parts) != 1:
        return None
    text = str(path)
    found = {root / name: SWEEP for name in find_names(text, root, SWEEP)}
    runs = {} if alone else {layout.runs_root() / name: layout.INFO for name in find_names(text)}
    both = found | runs if found else {}
    fitting = [one for one in both if one.name == text] or list(both)
    if text == LATEST:
        fitting = sorted(fitting, key=lambda one: (one / both[one]).stat().st_mtime_ns)[-1:]
    if len(fitting) > 1:
        raise UsageError(f"{text!r} can be {', '.join(map(str, fitting))}")
    return fitting[0] if fitting and fitting[0] in found else None


def run_of_job(which: Any) -> Any:
    """Return the run of a job that is called `SWEEP:k`; anything else as it is.

    Raises as `sweep_directory` and `Sweep.run`.
    """
    if isinstance(which, str | Path):
        name, number = numbered(os.fspath(which))
        if number is not None and (directory := sweep_directory(name)) is not None:
            return Sweep(directory).run(number)
    return which


def find_sweep(which: Sweep | str | Path) -> Path:
    """Return the directory of a sweep, where no run can be meant."""
    return sweep_directory(which, alone=True) or Path(str(which))


def open_run(which: Any, **options: Any) -> Run:
    """Return a run, which may be called by its place in a sweep, as `runs.named.load_run` opens it."""
    return named.load_run(run_of_job(which), **options)

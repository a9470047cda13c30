"""Find the sweep, or the run of a job, that a user names."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from dynamics_cli.errors import UsageError
from dynamics_cli.runs.named import LATEST, find_names, is_there, numbered
from dynamics_cli.runs.store import layout
from dynamics_cli.sweeps.directory import FIXED, SWEEP, is_sweep, number_of, read_rows


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


def list_jobs(directory: Path) -> Iterator[dict[str, Any]]:
    """Yield the jobs of a sweep that have ended: `run`, as `run_of_job` takes it, settings, seed, final numbers.

    Raises RunError: it is not a sweep, or none has ended.
    """
    name = directory.name if directory.parent == sweeps_root() else directory
    for row in read_rows(directory):
        numbers = {key: text for key, text in row.items() if key not in FIXED or key in ("seed", "status")}
        yield {"run": f"{name}:{row['job']}", **{key: _plain(text) for key, text in numbers.items()}}


def _plain(text: str) -> Any:
    """Return a cell of the table as a number, None where it is empty."""
    return int(text) if text.isdecimal() else text if math.isnan(number := number_of(text)) else number


def run_of_job(which: Any) -> Any:
    """Return the run of a job that is called `SWEEP:k`; anything else as it is.

    Raises as `sweep_directory` and `SweepTable.run_of`.
    """
    if isinstance(which, str | Path):
        name, number = numbered(os.fspath(which))
        if number is not None and (directory := sweep_directory(name)) is not None:
            from dynamics_cli.sweeps.pictures import SweepTable

            return SweepTable(directory).run_of(number)
    return which

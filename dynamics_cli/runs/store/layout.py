"""Names inside a run directory, where run directories are, how a directory is recognised as a run, and emptying it."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from dynamics_cli.errors import UsageError
from dynamics_cli.runs.store import files

CONFIG = "config.yaml"
"""The resolved config."""
INFO = "run.json"
"""Status, provenance and final numbers; its presence makes a directory a run."""
LOCK = ".lock"
"""Held by the process that writes."""
CHECKPOINT = "checkpoint.npz"
"""From where an unfinished run goes on."""
TRAJECTORY = "trajectory"
"""Folder of the recorded parameters."""
MEASURES = "measures"
"""Folder of the recorded measures."""
PLOTS = "plots"
"""Folder of the pictures drawn of the run."""
PARTS = "parts"
"""Folder of copies of the sources of kinds that are not bundled."""

LOSSES = "losses"
"""Array of recorded losses (L,)."""
LOSS_ITERATIONS = "loss_iterations"
"""Array of the iterations of the recorded losses (L,)."""
TIMES = "times"
"""Array of the times of the recorded losses (L,), where time is not iterations x step."""
LOSS_GROUP = (LOSS_ITERATIONS, TIMES, LOSSES)
"""The arrays of recorded losses."""
SNAPSHOT_ITERATIONS = f"{TRAJECTORY}/iterations"
"""Array of the iterations of the snapshots (K,)."""

RUN_FILES = (
    INFO,  # first: without it a half-deleted run does not read as a run
    CHECKPOINT,
    *(f"{name}.npy" for name in LOSS_GROUP),
    TRAJECTORY,
    MEASURES,
    PLOTS,
    PARTS,
    CONFIG,  # last: by it the remaining files are recognised as ours
)
"""Files and folders of a run directory besides its lock, in the order of deletion."""

CONFIG_FIRST_LINE = "# The resolved config of this run directory, written by dyn."
"""By this line a `config.yaml` is recognised as part of a run."""

_ARRAY_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.\-]{0,199}")


def outputs_root() -> Path:
    """Folder of runs and figures: `DYN_OUTPUTS`, or `outputs` in the working directory."""
    return Path(os.environ.get("DYN_OUTPUTS") or "outputs")


def runs_root() -> Path:
    """Folder of the runs that are found and reused by their config."""
    return outputs_root() / "runs"


def is_array_name(name: str) -> bool:
    """Whether a parameter or a measure of this name can be stored as a file of that name."""
    return _ARRAY_NAME.fullmatch(name) is not None


def check_array_names(names: Iterable[str]) -> None:
    """Raise `ValueError` unless all are names of arrays of a run, such as `losses` or `trajectory/hidden_weight`."""
    for name in names:
        folder, _, array = name.partition("/")
        if name not in LOSS_GROUP and not (
            folder in (TRAJECTORY, MEASURES) and is_array_name(array)
        ):
            raise ValueError(
                f"{name!r} cannot name an array: letters, digits, '_', '-' and '.' can"
            )


def counts(entry: Any) -> dict[str, int]:
    """Return the number that a file holds for each array of a run.

    Raises ValueError: it holds something else, such as the name of a file outside the run.
    """
    if not isinstance(entry, Mapping) or any(
        type(count) is not int or count < 0 for count in entry.values()
    ):
        raise ValueError("numbers of rows or checksums are missing")
    check_array_names(entry)
    return dict(entry)


def array_file(directory: Path, array: str) -> Path:
    """File of an array such as `losses` or `trajectory/hidden_weight`."""
    return directory / f"{array}.npy"


def is_run(directory: Path) -> bool:
    """Whether a directory is a run of ours, perhaps damaged: by its `run.json`, or else by its `config.yaml`."""
    contents = []
    for name in (INFO, CONFIG):
        try:
            contents.append(files.read(directory / name))
        except OSError:
            contents.append(b"")
    info, config = contents
    described = all(word in info for word in (b'"format"', b'"status"', b'"config_sha256"'))
    return described or config.startswith(CONFIG_FIRST_LINE.encode())


def clear_run(directory: Path) -> None:
    """Delete the files and folders of a run, for `--force`; the lock, which the caller holds, and all else stay.

    A directory that does not exist, or holds nothing of the names that a run uses, is left as it is.

    Raises:
        UsageError: the directory is not a run, yet holds files whose names a run needs.
        RunError: something cannot be deleted.
    """
    if not is_run(directory):
        refuse_foreign(directory)
        return
    with files.os_errors_as_run_errors(directory):
        files.remove_temporaries(directory)
        for name in RUN_FILES:
            if name == CONFIG:
                files.sync_directory(directory)
            files.remove_tree(directory / name)
            if name == INFO:
                files.sync_directory(
                    directory
                )  # a power cut, too, finds the first gone first, and the last last


def refuse_foreign(directory: Path) -> None:
    """Raise `UsageError` when a new run in this directory would meet another run, or files that are not ours."""
    ours = is_run(directory)
    if files.exists(directory / INFO) and ours:
        raise UsageError(
            f"{directory} holds a run already: give --resume to continue it or --force to start over"
        )
    met = [name for name in RUN_FILES if files.exists(directory / name)]
    if met and not ours:  # ours is a run that was killed before its first moment, or half deleted
        raise UsageError(
            f"{directory} is not a run, and holds {', '.join(met)}: dyn will not overwrite it"
        )
    if files.exists(directory) and not directory.is_dir():
        raise UsageError(f"{directory} is a file, not a directory")

"""Names inside a run directory, where run directories are, and what makes a directory a run."""

from __future__ import annotations

import os
import re
from pathlib import Path

from dynamics_cli.runs.store import files

CONFIG = "config.yaml"
"""The resolved config."""
INFO = "run.json"
"""Status, provenance and final numbers; its presence makes a directory a run."""
LOCK = ".lock"
"""Held by the process that writes, where locks of the system hold."""
LEASE = ".lease"
"""Held instead on network file systems."""
LOCKS = (LOCK, LEASE)
CHECKPOINT = "checkpoint.npz"
"""From where an unfinished run goes on."""
CHECKPOINT_BEFORE = "checkpoint.before.npz"
"""The checkpoint before it, which takes its place where it is damaged."""
TRACEBACK = "traceback.txt"
"""Python's traceback of a failure."""
CHECKPOINTS = "checkpoints"
"""Folder of the checkpoints that are kept, from which another run can go on."""
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

FOLDERS = (TRAJECTORY, MEASURES, CHECKPOINTS, PLOTS, PARTS)
"""The folders of a run directory."""
WRITTEN_FOLDERS = ("", TRAJECTORY, MEASURES)
"""The run directory itself, and its folders in which files are written as the run goes on."""
RUN_FILES = (
    INFO,
    CONFIG,
    CHECKPOINT,
    CHECKPOINT_BEFORE,
    TRACEBACK,
    *(f"{name}.npy" for name in LOSS_GROUP),
    *FOLDERS,
)
"""Files and folders of a run directory besides its lock."""

BEGINNING = "beginning"
"""Status in `run.json` where a run is about to begin: the directory holds nothing to keep."""

CONFIG_FIRST_LINE = "# The resolved config of this run directory, written by dyn."
"""The first line of the `config.yaml` of a run."""

_INFO_BEGINS = re.compile(rb'\{\s*"format": [0-9]+,\s*"status": "')
_ASIDE = re.compile(r".+\.before-[0-9]+")
_ARRAY_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.\-]{0,199}")


def outputs_root() -> Path:
    """Folder of runs and figures: `DYN_OUTPUTS`, or `outputs` in the working directory."""
    return Path(os.environ.get("DYN_OUTPUTS") or "outputs")


def runs_root() -> Path:
    """Folder of the runs that are found and reused by their config."""
    return outputs_root() / "runs"


def audits_root() -> Path:
    """Folder of the runs that audits train under nulls, which no list shows and no name finds."""
    return outputs_root() / "audits"


def is_array_name(name: str) -> bool:
    """Whether a parameter or a measure of this name can be stored as a file of that name."""
    return _ARRAY_NAME.fullmatch(name) is not None


def check_array_name(name: str) -> str:
    """Return the name of an array of a run: `losses`, `trajectory/hidden_weight`.

    Raises ValueError: it can be none, such as the name of a file outside the run.
    """
    folder, _, array = name.partition("/")
    recorded = folder in (TRAJECTORY, MEASURES) and is_array_name(array)
    if not recorded and name not in LOSS_GROUP:
        raise ValueError(f"{name!r} cannot name an array: letters, digits, '_', '-' and '.' can")
    return name


def array_file(directory: Path, array: str) -> Path:
    """File of an array such as `losses` or `trajectory/hidden_weight`."""
    return directory / f"{array}.npy"


def is_run(directory: Path) -> bool:
    """Whether a directory is a run, perhaps damaged: its `run.json` says so, by how it begins."""
    return _INFO_BEGINS.match(_contents(directory / INFO)) is not None


def has_begun(directory: Path) -> bool:
    """Whether a directory holds a run that has begun, perhaps damaged."""
    begins = _INFO_BEGINS.match(contents := _contents(directory / INFO))
    return begins is not None and f'"status": "{BEGINNING}"'.encode() not in contents


def is_aside(directory: Path) -> bool:
    """Whether a directory has the name of a run that was moved aside, which no list shows."""
    return _ASIDE.fullmatch(directory.name) is not None


def was_run(directory: Path) -> bool:
    """Whether a directory holds the config of a run, as where a run was half copied."""
    return _contents(directory / CONFIG).startswith(CONFIG_FIRST_LINE.encode())


def _contents(file: Path) -> bytes:
    try:
        return files.read(file)
    except OSError:
        return b""

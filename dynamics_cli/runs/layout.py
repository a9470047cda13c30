"""Names inside a run directory, and where run directories are."""

from __future__ import annotations

import os
import re
from pathlib import Path

from dynamics_cli.runs import files

CONFIG = "config.yaml"
"""The resolved config."""
INFO = "run.json"
"""Status, provenance and final numbers; its presence makes a directory a run."""
LOCK = "lock"
"""Held by the process that writes the run."""
LOCK_HOLDER = "lock.json"
"""Process id and host of the last holder of the lock."""
CHECKPOINT = "checkpoint.npz"
"""From where an interrupted run goes on."""
PREVIOUS_CHECKPOINT = "checkpoint-previous.npz"
"""The checkpoint before that, should the last one be damaged."""
TRAJECTORY = "trajectory"
"""Folder of the recorded parameters."""
MEASURES = "measures"
"""Folder of the recorded measures."""
PLOTS = "plots"
"""Folder of the pictures drawn of the run."""

LOSSES = "losses"
"""Array of recorded losses (L,); its last row acknowledges that of the two arrays below."""
LOSS_ITERATIONS = "loss_iterations"
"""Array of the iterations of the recorded losses (L,)."""
TIMES = "times"
"""Array of the times of the recorded losses (L,), where time is not iterations x step."""
SNAPSHOT_ITERATIONS = f"{TRAJECTORY}/iterations"
"""Array of the iterations of the snapshots (K,); written last of a snapshot, which acknowledges it."""

ARRAY_SUFFIX = ".npy"
CHECKSUM_SUFFIX = ".crc"

RUN_FILES = (
    INFO,  # first: without it a half-deleted run does not read as one
    CHECKPOINT,
    PREVIOUS_CHECKPOINT,
    *(name + suffix for name in (LOSSES, LOSS_ITERATIONS, TIMES) for suffix in (ARRAY_SUFFIX, CHECKSUM_SUFFIX)),
    TRAJECTORY,
    MEASURES,
    PLOTS,
    CONFIG,  # last: by it what is left is recognised as ours
)
"""What a run directory holds besides its lock, in the order of deletion."""

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


def check_array_name(name: str) -> None:
    """Raise `ValueError` unless `is_array_name`."""
    if not is_array_name(name):
        raise ValueError(f"{name!r} cannot name an array: letters, digits, '_', '-' and '.' can")


def array_file(directory: Path, array: str) -> Path:
    """File of an array such as `losses` or `trajectory/hidden_weight`."""
    return directory / (array + ARRAY_SUFFIX)


LOSS_GROUP = (LOSS_ITERATIONS, TIMES, LOSSES)
"""The arrays of recorded losses, the acknowledging one last."""


def loss_arrays(directory: Path) -> list[str]:
    """Names of the arrays of recorded losses that a run directory holds."""
    return [name for name in LOSS_GROUP if _is_array(directory / name)]


def snapshot_arrays(directory: Path) -> list[str]:
    """Names of the arrays of parameters, measures and snapshot iterations that a run directory holds."""
    found = {
        f"{folder}/{name.removesuffix(suffix)}"
        for folder in (TRAJECTORY, MEASURES)
        for name in files.names(directory / folder)
        for suffix in (ARRAY_SUFFIX, CHECKSUM_SUFFIX)
        if name.endswith(suffix) and not name.startswith(".")
    }
    return sorted(found, key=lambda name: (name == SNAPSHOT_ITERATIONS, name))


def _is_array(stem: Path) -> bool:
    return any(files.exists(stem.with_name(stem.name + suffix)) for suffix in (ARRAY_SUFFIX, CHECKSUM_SUFFIX))

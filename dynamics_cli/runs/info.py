"""`run.json`: status and numbers of a run, with a checksum; where, when and by which versions it was made."""

from __future__ import annotations

import hashlib
import math
import os
import platform
import subprocess
import sys
from collections.abc import Mapping
from contextlib import suppress
from datetime import UTC, datetime
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Annotated, Any, Literal, get_args

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    InstanceOf,
    ValidationInfo,
    field_validator,
)

from dynamics_cli.config import RunConfig, load_config
from dynamics_cli.runs.errors import CorruptRunError, NotARunError, unreadable_as_corrupt
from dynamics_cli.runs.store import files, layout
from dynamics_cli.runs.store.sealed import check_entries, read_sealed, seal
from dynamics_cli.text import jsonable
from dynamics_cli.version import __version__

FORMAT = 1
"""Version of the run directory; a directory of a higher version is refused, not guessed at."""

Status = Literal["running", "complete", "interrupted", "diverged", "failed"]
STATUSES: tuple[str, ...] = get_args(Status)

Info = dict[str, Any]
"""The contents of `run.json`: entries of `RunInfo`, and others."""

_ARRAYS = "the arrays are files of their own: `dyn verify` says which are intact"


def _finite(value: Any) -> Any:
    try:
        if type(value) in (int, float) and math.isfinite(float(value)):
            return value
    except OverflowError:  # an integer beyond all floats
        pass
    raise ValueError("not a finite number")


Number = Annotated[Any, AfterValidator(_finite)] | None
"""A finite number; numbers that are not finite are written as null."""
Text = InstanceOf[str]
"""A text, perhaps with the escaped bytes of a file name that is not UTF-8, which pydantic's own `str` refuses."""


def _in_parts(copy: str) -> str:
    """Refuse a copy that is not a folder in `PARTS`: nothing outside of a run is read for it."""
    folder, _, name = copy.partition("/")
    if folder != layout.PARTS or "/" in name or name in ("", ".", ".."):
        raise ValueError("not a folder of copies in the run")
    return copy


class KindCopy(BaseModel):
    """Where a kind came from that is not bundled."""

    model_config = ConfigDict(strict=True)

    origin: Text = Field(alias="from")
    sha256: Text
    place: Annotated[Text, AfterValidator(_in_parts)] = Field(alias="copy")
    """The folder of its copy, in the run."""


class RunInfo(BaseModel):
    """The entries of `run.json` that are read again; a file can fit its checksum although dyn has not written it.

    All but the status may be absent. Other entries are shown, and nothing is done with them.
    """

    model_config = ConfigDict(strict=True)

    status: Status
    """`running` also after the process has died; the lock tells."""
    name: Text = ""
    """The name in the config."""
    hash: Text | None = None
    """Identity of the run."""
    device: Text | None = None
    backend: Text | None = None
    """The device and the backend that were used, where the config may say `auto`."""
    config_sha256: Text = ""
    """SHA-256 of `config.yaml`; it also identifies the run in its checkpoints."""
    checkpointed: bool = False
    """Whether a checkpoint was written, which an unfinished run therefore has."""
    messages: list[Text] = []
    """Notes for the user."""
    iterations: layout.Count | None = None
    """Updates made."""
    final_loss: Number = None
    """Loss of the last state."""
    seconds: Number = None
    """Wall time of the training loop."""
    arrays: list[Text] = []
    """The arrays of weights and measures, in the order of the network and of the config, and that of times."""
    rows: layout.Rows = {}
    """Rows of each array, once the run has ended in order."""
    crc32: layout.Rows = {}
    """Checksum of each array (see `runs.store.arrays`), once the run has ended in order."""
    versions: dict[str, Any] = {}
    """Versions of dyn, Python and the numerical packages."""
    provenance: dict[str, Any] = {}
    """Where, when and by which command the run was started."""
    resumptions: list[dict[str, Any]] = []
    """The provenance of each process that went on with the run."""
    kinds: dict[str, KindCopy] = {}
    """Where each kind came from that is not bundled: its file or package, checksum, and the copy in the run."""
    replicas: list[dict[str, Any]] = []
    """The changes of the config by each of R runs that are trained together."""
    replica_losses: list[Number] = []
    """The final loss of each replica."""
    replica_iterations: list[layout.Count | None] = []
    """The updates of each replica."""
    replica_statuses: list[Text | None] = []
    """The status of each replica."""

    @field_validator("rows")
    @classmethod
    def _all_are_there(cls, rows: layout.Rows) -> layout.Rows:
        """Refuse rows without the arrays that acknowledge or date the others."""
        losses = rows.keys() & set(layout.LOSS_GROUP)
        if layout.SNAPSHOT_ITERATIONS not in rows and rows.keys() != losses:
            raise ValueError("snapshots without iterations")
        if losses and not losses >= {layout.LOSSES, layout.LOSS_ITERATIONS}:
            raise ValueError("losses without iterations")
        return rows

    @field_validator("replica_losses", "replica_iterations", "replica_statuses")
    @classmethod
    def _one_for_each_replica(cls, values: list[Any], info: ValidationInfo) -> list[Any]:
        if len(values) != len(info.data.get("replicas", [])):
            raise ValueError("not one for each replica")
        return values


def owner(info: Mapping[str, Any], array: str) -> str:
    """Return the text by which the file of an array names its run and the array."""
    return f"{info.get('hash')} {array}"


def write_info(directory: Path, info: Mapping[str, Any]) -> None:
    """Write `run.json` in one indivisible step."""
    indent = None if "replicas" in info else 2  # a list of thousands is for machines, and indenting it takes seconds
    with files.os_errors_as_run_errors(directory / layout.INFO):
        files.write_atomic(directory / layout.INFO, seal(jsonable(info), indent=indent))


def read_info(directory: Path) -> Info:
    """Read `run.json`.

    Raises:
        NotARunError: there is none.
        CorruptRunError: it was changed since it was written.
        RunError: it was written by a newer version.
    """
    path = directory / layout.INFO
    try:
        info = read_sealed(path, FORMAT, _ARRAYS)
    except (FileNotFoundError, NotADirectoryError) as error:
        raise NotARunError(_why_not(directory)) from error
    check_entries(path, info, RunInfo, _ARRAYS)
    return info


def check_config(directory: Path, info: Info) -> None:
    """Compare `config.yaml` with its checksum in `run.json`, by which both belong to the same run.

    Raises CorruptRunError: it is missing, or another config than the run began with.
    """
    path = directory / layout.CONFIG
    with unreadable_as_corrupt(path, _ARRAYS):
        data = files.read(path)
    if hashlib.sha256(data).hexdigest() != info.get("config_sha256"):
        problem = f"it is not the config with which the run of {layout.INFO} began; was it edited?"
        raise CorruptRunError(path, problem, _ARRAYS)


def read_config(directory: Path, info: Info) -> RunConfig:
    """Read the resolved config of a run; it can be read when its data have moved and its own kinds are not loaded.

    Raises:
        CorruptRunError: it is missing, or another config than the run began with.
        ConfigError: this version of dyn does not understand it.
    """
    check_config(directory, info)
    return load_config(directory / layout.CONFIG, check_files_exist=False, lenient=True)


def _why_not(directory: Path) -> str:
    if not directory.exists():
        return f"{directory} does not exist"
    if layout.is_run(directory):
        return f"{directory} has no {layout.INFO}: it was half copied or half deleted, or never begun"
    return f"{directory} is not a run directory (it has no {layout.INFO})"


def provenance() -> dict[str, Any]:
    """Describe this process: versions, machine, threads, commit of the checkout if there is one, time in UTC.

    The threads of torch are given when torch is loaded; nothing heavy is imported here.
    """
    return {
        "started": datetime.now(UTC).isoformat(timespec="seconds"), "versions": versions(), "commit": _own_commit(),
        "platform": platform.platform(), "machine": platform.machine(), "cpus": os.cpu_count(), "threads": threads(),
    }  # fmt: skip


@cache
def versions() -> Mapping[str, str]:
    """Versions of dyn, Python and the installed numerical packages, loaded or not."""
    found = {"dyn": __version__, "python": platform.python_version()}
    for name in ("numpy", "scipy", "torch", "numba", "llvmlite"):
        with suppress(PackageNotFoundError):
            found[name] = version(name)
    return found


def threads() -> int | None:
    """Threads that numerical code may use: torch's number if it is loaded, else `OMP_NUM_THREADS`."""
    torch = sys.modules.get("torch")
    if torch is not None:
        return int(torch.get_num_threads())
    text = os.environ.get("OMP_NUM_THREADS", "")
    return int(text) if text.isdecimal() else None


@cache
def _own_commit() -> str | None:
    return commit(Path(__file__).resolve().parents[2])


def commit(root: Path) -> str | None:
    """Commit checked out in `root`, with `-dirty` when files differ from it; `None` outside a checkout."""
    if not (root / ".git").exists():
        return None
    # without optional locks: killed while it refreshes the index, git would leave its lock in a user's checkout
    describe = ["describe", "--always", "--dirty", "--abbrev=40", "--exclude=*"]
    command = ["git", "--no-optional-locks", "-C", str(root), *describe]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=10, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.strip() or None if done.returncode == 0 else None

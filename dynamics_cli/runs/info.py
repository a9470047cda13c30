"""`run.json`: status and numbers of a run; where, when and by which versions it was made."""

from __future__ import annotations

import hashlib
import os
import platform
import sys
from collections.abc import Mapping
from contextlib import suppress
from datetime import UTC, datetime
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, Literal, Self, get_args

from pydantic import BaseModel, model_validator

from dynamics_cli.config import RunConfig, load_config
from dynamics_cli.runs.code import CHECKOUT, Code, Source, commit
from dynamics_cli.runs.errors import CorruptRunError, NotARunError, unreadable_as_corrupt
from dynamics_cli.runs.store import files, layout
from dynamics_cli.runs.store.arrays import Counted
from dynamics_cli.runs.store.sealed import read_sealed, write_sealed
from dynamics_cli.version import __version__

Status = Literal["running", "complete", "interrupted", "diverged", "failed"]
STATUSES: tuple[str, ...] = get_args(Status)

ENDS = ("rows", "crc32", "iterations", "final_loss", "seconds")
"""Entries of `run.json` that a run gets when it ends."""
COPIED = (
    "as in a copy of a run that was being written: the run reads up to a checkpoint; copy it again"
    " for the rest"
)

Info = dict[str, Any]
"""The contents of `run.json`; docs/reference/run-files.md lists the entries."""

_ARRAYS = "the arrays are files of their own, which numpy.load reads"


class _Note(BaseModel):
    at: int
    words: str


class _Provenance(BaseModel):
    code: Code = Code()


class RunForm(Counted, BaseModel):
    """`run.json`."""

    status: Status | Literal["beginning"]
    config_sha256: str = ""
    name: str | None = None
    hash: str | None = None
    device: str | None = None
    backend: str | None = None
    iterations: int | None = None
    final_loss: float | None = None
    seconds: float | None = None
    messages: list[str] = []
    files: dict[str, str] = {}
    kinds: dict[str, Source] = {}
    provenance: _Provenance | None = None
    sweep: dict[str, Any] = {}
    parent: dict[str, Any] | None = None
    notes: list[_Note] = []
    resumptions: list[dict[str, Any]] = []
    replicas: list[dict[str, Any]] | None = None
    replica_losses: list[float | None] | None = None
    replica_iterations: list[int] | None = None
    replica_statuses: list[Status] | None = None

    @model_validator(mode="after")
    def _of_each_replica(self) -> Self:
        networks = len(self.replicas or [])
        for each in (self.replica_losses, self.replica_iterations, self.replica_statuses):
            if each is not None and len(each) != networks:
                raise ValueError("a list does not have an entry for each replica")
        return self


def write_info(directory: Path, info: Mapping[str, Any]) -> None:
    """Write `run.json` in one indivisible step."""
    # a list of thousands is for machines, and indenting it takes seconds
    indent = None if "replicas" in info else 2
    write_sealed(directory / layout.INFO, info, indent=indent)


def read_info(directory: Path) -> Info:
    """Read `run.json`.

    Where it says that the run has ended, but arrays end before and a checkpoint is there, as in a
    copy that was made meanwhile, the run is one that was killed after the checkpoint.

    Raises:
        NotARunError: there is none, or the run has not begun.
        CorruptRunError: it was changed since it was written.
        RunError: a later version of dyn wrote it.
    """
    path = directory / layout.INFO
    try:
        info = read_sealed(path, _ARRAYS, form=RunForm)
    except (FileNotFoundError, NotADirectoryError) as error:
        raise NotARunError(_why_not(directory)) from error
    if info["status"] == layout.BEGINNING:
        raise NotARunError(f"{directory} holds no run yet: it was never begun, or half deleted")
    if not files.exists(directory / layout.CHECKPOINT):
        return info
    short = Counted.model_validate(info).short(directory)
    if short is None:
        return info
    told = f"{short.name} ends before {layout.INFO}, {COPIED}"
    kept = {key: value for key, value in info.items() if key not in ENDS}
    messages = [*info.get("messages", []), told]
    return {**kept, "status": "running", "checkpointed": True, "messages": messages}


def begun_info(directory: Path) -> Info | None:
    """Return `run.json` of a run that has begun; None where none has.

    Raises RunError: it is damaged, or a later version of dyn wrote it.
    """
    try:
        return read_info(directory)
    except NotARunError:
        return None


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
    """Read the resolved config of a run; neither its data nor its own kinds need be there.

    Raises:
        CorruptRunError: it is missing, or another config than the run began with.
        ConfigError: this version of dyn does not understand it.
    """
    check_config(directory, info)
    return load_config(directory / layout.CONFIG, check_files_exist=False, lenient=True)


def _why_not(directory: Path) -> str:
    if not directory.exists():
        return f"{directory} does not exist"
    if layout.was_run(directory):
        return f"{directory} has no {layout.INFO}: it was half copied, or half deleted"
    return f"{directory} is not a run directory (it has no {layout.INFO})"


def provenance() -> dict[str, Any]:
    """Describe this process: time in UTC, versions, platform, threads, commit of a checkout.

    The threads of torch are given when torch is loaded; nothing heavy is imported here.
    """
    return {
        "started": datetime.now(UTC).isoformat(timespec="seconds"),
        "versions": versions(),
        "commit": _own_commit(),
        "platform": platform.platform(),
        "threads": threads(),
    }


@cache
def _own_commit() -> str | None:
    return commit(CHECKOUT)


@cache
def versions() -> Mapping[str, str]:
    """Versions of dyn, Python and the installed numerical packages, loaded or not."""
    installed = {"dyn": __version__, "python": platform.python_version()}
    for name in ("numpy", "scipy", "torch", "numba", "llvmlite"):
        with suppress(PackageNotFoundError):
            installed[name] = version(name)
    return installed


def threads() -> int | None:
    """Threads that numerical code may use: torch's if it is loaded, else `OMP_NUM_THREADS`."""
    torch = sys.modules.get("torch")
    if torch is not None:
        return int(torch.get_num_threads())
    with suppress(KeyError, ValueError):
        return int(os.environ["OMP_NUM_THREADS"])
    return None

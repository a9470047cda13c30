"""Checking every file of a run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from dynamics_cli.errors import DynError, RunError
from dynamics_cli.kinds.registry import KindSource
from dynamics_cli.runs.errors import CorruptRunError, NotARunError
from dynamics_cli.runs.info import read_config
from dynamics_cli.runs.run import Run, is_rewritten, which_file
from dynamics_cli.runs.store import files, layout
from dynamics_cli.runs.store.arrays import check_array
from dynamics_cli.runs.store.checkpoints import read_checkpoint


@dataclass(frozen=True)
class Finding:
    """Damage of a file of a run, and the parts that are still usable (may be empty)."""

    file: Path
    problem: str
    usable: str = ""

    @classmethod
    def of(cls, error: DynError, file: Path) -> Finding:
        """Return an error as a finding; an error that names no file is about `file`."""
        if isinstance(error, CorruptRunError):
            return cls(error.file, error.problem, error.usable)
        return cls(file, str(error))


def verify_run(path: str | Path) -> list[Finding]:
    """Check every checksum of a run directory; return the damages found."""
    directory = Path(path)
    before = which_file(directory)
    findings = _verify(directory)
    if findings and is_rewritten(directory, before):
        return [Finding(directory, "another process is writing it, so that it could not be checked")]
    return findings


def _verify(directory: Path) -> list[Finding]:
    try:
        run = Run(directory, verify=False)
    except (NotARunError, CorruptRunError) as error:
        return [replace(Finding.of(error, directory), usable=_intact_arrays(directory))]
    except RunError as error:
        return [Finding.of(error, directory)]
    findings = [Finding(link, "it is a link, where a run holds its own files") for link in layout.links(directory)]
    try:
        read_config(directory, run.info)
    except CorruptRunError as error:
        findings.append(replace(Finding.of(error, directory), usable=_intact_arrays(directory)))
    except DynError as error:
        findings.append(Finding.of(error, directory / layout.CONFIG))
    findings += _copies(directory, run.info.get("kinds", {}))
    damaged, readable = _checkpoints(directory, run.info)
    findings += damaged
    if damaged and not readable and not run.finished:
        return findings  # the number of rows that the arrays must have is lost
    return findings + _arrays(run)


def _copies(directory: Path, kinds: Mapping[str, Mapping[str, str]]) -> list[Finding]:
    """Return which copies of the sources of foreign kinds have changed."""
    findings = {}
    for kind in kinds.values():
        folder = directory / kind["copy"]
        try:
            there = {file.relative_to(folder).as_posix(): files.read(file) for file in sorted(folder.rglob("*.py"))}
        except OSError as error:
            findings[folder] = Finding(folder, f"it cannot be read ({error.strerror})", "all arrays")
            continue
        if KindSource(kind["from"], there).sha256 != kind["sha256"]:
            findings[folder] = Finding(folder, "the copied source is not the one that the run used", "all arrays")
    return list(findings.values())


def _checkpoints(directory: Path, info: dict[str, Any]) -> tuple[list[Finding], list[str]]:
    """Return the damages of the checkpoints, and the names of the readable checkpoints."""
    errors: list[CorruptRunError] = []
    readable = []
    for name in (layout.CHECKPOINT, layout.PREVIOUS_CHECKPOINT):
        try:
            read_checkpoint(directory / name, info.get("config_sha256"))
            readable.append(name)
        except FileNotFoundError:
            continue
        except CorruptRunError as error:
            errors.append(error)
    unneeded = info["status"] in ("complete", "diverged")
    if info.get("checkpointed") and not (readable or errors or unneeded):
        errors.append(CorruptRunError(directory / layout.CHECKPOINT, "it is gone, and so is the one before it"))
    left = f"--resume goes on from {readable[0]}" if readable else "the run can only be started again, with --force"
    usable = "nothing needs it any more" if unneeded else left
    return [replace(Finding.of(error, directory), usable=usable) for error in errors], readable


def _arrays(run: Run) -> list[Finding]:
    """Return the damages of the arrays of a run."""
    findings: list[Finding] = []
    snapshots = 0
    for name in sorted(run.array_names(), key=lambda name: name != layout.SNAPSHOT_ITERATIONS):
        try:
            rows = run.check(name)
        except CorruptRunError as error:
            findings.append(Finding.of(error, run.path))
            continue
        if name == layout.SNAPSHOT_ITERATIONS:
            snapshots = rows
        elif name not in layout.LOSS_GROUP and rows < snapshots:
            problem = f"it has {rows} rows of {snapshots} snapshots"
            findings.append(Finding(layout.array_file(run.path, name), problem))
    return findings


def _intact_arrays(directory: Path) -> str:
    """Return, in words, which arrays of a directory fit their own checksums; numpy.load reads them."""
    intact: list[str] = []
    try:
        names = [*layout.loss_arrays(directory), *layout.snapshot_arrays(directory)]
    except PermissionError:
        return ""
    for name in names:
        try:
            intact.append(f"{name} ({check_array(layout.array_file(directory, name), None)} rows)")
        except CorruptRunError:
            continue
    return f"arrays that fit their own checksums: {', '.join(intact)}" if intact else ""

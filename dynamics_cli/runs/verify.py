"""Checking every file of a run."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dynamics_cli.errors import DamageWarning, DynError
from dynamics_cli.kinds.registry import KindSource
from dynamics_cli.runs.changes import changed_files, told_of_file
from dynamics_cli.runs.errors import CorruptRunError
from dynamics_cli.runs.info import read_config
from dynamics_cli.runs.run import Run, is_rewritten, stamp
from dynamics_cli.runs.store import files, layout
from dynamics_cli.runs.store.checkpoints import read_checkpoint


@dataclass(frozen=True)
class Finding:
    """A fault of a file, in words."""

    file: Path
    problem: str

    @classmethod
    def of(cls, error: DynError, file: Path) -> Finding:
        """Return an error as a finding; an error that names no file is about `file`."""
        if not isinstance(error, CorruptRunError):
            return cls(file, str(error))
        return cls(
            error.file, f"{error.problem} ({error.usable})" if error.usable else error.problem
        )


def verify_run(path: str | Path) -> list[Finding]:
    """Compare every file of a run directory with its checksum; return the faults."""
    directory = Path(path)
    before = stamp(directory)
    findings = list(_faults(directory))
    if findings and is_rewritten(directory, before):
        return [
            Finding(directory, "another process is writing it, so that it could not be checked")
        ]
    return findings


def _faults(directory: Path) -> Iterator[Finding]:
    try:
        run = Run(directory, any_config=True)
    except DynError as error:
        yield Finding.of(error, directory)
        return
    try:
        read_config(directory, run.info)
    except DynError as error:
        yield Finding.of(error, directory / layout.CONFIG)
    yield from _copies(directory, run.info.get("kinds", {}))
    yield from (Finding(file, told_of_file("it")) for file in changed_files(run.info))
    before = _checkpoint_fault(directory, run.info, layout.CHECKPOINT_BEFORE)
    last = _checkpoint_fault(directory, run.info, layout.CHECKPOINT)
    if before is not None:
        yield Finding(before.file, before.problem)
    if last is not None:
        instead = before is None and files.exists(directory / layout.CHECKPOINT_BEFORE)
        if instead:
            yield Finding(last.file, f"{last.problem} (the one before takes its place)")
        else:
            yield Finding.of(last, directory)
    try:
        with warnings.catch_warnings(action="ignore", category=DamageWarning):  # found above
            names = run.array_names
    except CorruptRunError:  # nobody knows the rows of the arrays
        return
    for name in names:
        try:
            run.check(name)
        except CorruptRunError as error:
            yield Finding.of(error, directory)


def _checkpoint_fault(
    directory: Path, info: Mapping[str, Any], name: str
) -> CorruptRunError | None:
    try:
        read_checkpoint(directory, info, name)
        return None
    except CorruptRunError as error:
        return error


def _copies(directory: Path, kinds: Mapping[str, Mapping[str, str]]) -> Iterator[Finding]:
    """Yield a finding for each copied source of foreign kinds that has changed."""
    for origin, place, sha256 in {
        (kind["from"], kind["copy"], kind["sha256"]) for kind in kinds.values()
    }:
        folder = directory / layout.PARTS / Path(place).name
        try:
            copied = {
                file.relative_to(folder).as_posix(): files.read(file)
                for file in sorted(folder.rglob("*.py"))
            }
        except OSError as error:
            yield Finding(folder, f"it cannot be read ({error.strerror})")
            continue
        if KindSource(origin, copied).sha256 != sha256:
            yield Finding(folder, "the copied source is not the one that the run used")

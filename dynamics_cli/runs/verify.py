"""Checking every file of a run."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from dynamics_cli.errors import DamageWarning, DynError
from dynamics_cli.process import ignored_warnings
from dynamics_cli.runs.changes import changed_files, sha256_of_copy, told_of_file
from dynamics_cli.runs.code import Source
from dynamics_cli.runs.errors import CorruptRunError
from dynamics_cli.runs.info import COPIED, Info, RunForm, read_config
from dynamics_cli.runs.run import Run, is_rewritten, stamp
from dynamics_cli.runs.store import layout
from dynamics_cli.runs.store.checkpoints import (
    TOO_SHORT,
    kept_checkpoints,
    read_checkpoint,
)
from dynamics_cli.runs.store.sealed import read_form


@dataclass(frozen=True)
class Fault:
    """A fault of a file, in words."""

    file: Path
    problem: str

    @classmethod
    def of(cls, error: DynError, file: Path) -> Fault:
        """Return an error as a fault; an error that names no file is about `file`."""
        if not isinstance(error, CorruptRunError):
            return cls(file, str(error))
        return cls(error.file, error.sentence)


def verify_run(path: str | Path) -> list[Fault]:
    """Compare every file of a run directory with its checksum; return the faults."""
    directory = Path(path)
    before = stamp(directory)
    findings = list(_faults(directory))
    if findings and is_rewritten(directory, before):
        return [Fault(directory, "another process is writing it, so that it could not be checked")]
    return findings


def _faults(directory: Path) -> Iterator[Fault]:
    try:
        run = Run(directory, any_config=True)
    except DynError as error:
        yield Fault.of(error, directory)
        return
    try:
        read_config(directory, run.info)
    except DynError as error:
        yield Fault.of(error, directory / layout.CONFIG)
    told = RunForm.model_validate(run.info)
    of_code = {} if told.provenance is None else told.provenance.code.kept
    yield from faults_of_copies(directory, [*told.kinds.values(), *of_code.values()])
    yield from (Fault(file, told_of_file("it")) for file in changed_files(run.info))
    if not run.finished and read_form(directory / layout.INFO, RunForm).rows:
        yield Fault(directory / layout.INFO, f"it counts more rows than there are, {COPIED}")
    yield from _checkpoints(directory, run.info)
    try:
        with ignored_warnings(DamageWarning):  # found above
            names = run.array_names
    except CorruptRunError:  # nobody knows the rows of the arrays
        return
    for name in names:
        try:
            run.check(name)
        except CorruptRunError as error:
            yield Fault.of(error, directory)


def _checkpoints(directory: Path, info: Info) -> Iterator[Fault]:
    """Yield the faults of all checkpoints; the one before takes the place of the last."""
    found = {}
    before = layout.CHECKPOINT_BEFORE
    for name in [*kept_checkpoints(directory), before, layout.CHECKPOINT]:
        try:
            found[name] = read_checkpoint(directory, info, name)
        except CorruptRunError as error:
            problem = error.problem
            if name == layout.CHECKPOINT:
                instead = "the one before takes its place" if found.get(before) else error.usable
                problem = f"{problem} ({instead})"
            elif name != before:
                problem += " (no run can go on from it)"
            yield Fault(error.file, problem)
    last = found.get(layout.CHECKPOINT)
    former = found.get(before)
    if last is not None and former is not None and not info.get("rows"):
        short = last.short(directory)
        if short is not None and former.short(directory) is None:
            yield Fault(short, f"it {TOO_SHORT} (the checkpoint before takes its place)")


def faults_of_copies(directory: Path, sources: Iterable[Source]) -> Iterator[Fault]:
    """Yield a finding for each copied source that has changed, of a kind, a script or a change."""
    for place, sha256 in {(source.copy_, source.sha256) for source in sources}:
        folder = directory / layout.PARTS / Path(place).name
        try:
            if sha256_of_copy(folder) != sha256:
                yield Fault(folder, "the copied source is not the one that the run used")
        except OSError as error:
            yield Fault(folder, f"it cannot be read ({error.strerror})")

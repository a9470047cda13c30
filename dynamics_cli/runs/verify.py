"""Checking every file of a run."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from dynamics_cli.errors import DynError, RunError
from dynamics_cli.runs import files, layout
from dynamics_cli.runs.checkpoint import read_checkpoint
from dynamics_cli.runs.errors import CorruptRunError
from dynamics_cli.runs.run import Run


@dataclass(frozen=True)
class Finding:
    """Something wrong with a file of a run, and what is still usable (may be empty)."""

    file: Path
    problem: str
    usable: str = ""


def verify_run(path: str | Path) -> list[Finding]:
    """Check every checksum of a run directory; return what is wrong, an empty list when nothing is."""
    directory = Path(path)
    try:
        run = Run(directory)
    except CorruptRunError as error:
        return [_finding(error)]
    except RunError as error:
        return [Finding(directory, str(error))]
    findings: list[Finding] = []
    try:
        _ = run.config
    except CorruptRunError as error:
        findings.append(_finding(error))
    except DynError as error:
        findings.append(Finding(directory / layout.CONFIG, str(error)))
    intact = False
    for name in (layout.CHECKPOINT, layout.PREVIOUS_CHECKPOINT):
        try:
            if files.exists(directory / name):
                read_checkpoint(directory / name)
                intact = True
        except CorruptRunError as error:
            findings.append(_finding(error))
    if not intact and any(finding.file.suffix == ".npz" for finding in findings) and not run.finished:
        return findings  # nobody knows how many rows the arrays ought to have
    snapshots = 0
    for name in sorted(run.array_names(), key=lambda name: name != layout.SNAPSHOT_ITERATIONS):
        try:
            rows = run.check(name)
        except CorruptRunError as error:
            findings.append(_finding(error))
            continue
        if name == layout.SNAPSHOT_ITERATIONS:
            snapshots = rows
        elif name not in layout.LOSS_GROUP and rows < snapshots:
            problem = f"it has {rows} rows of {snapshots} snapshots"
            findings.append(Finding(layout.array_file(directory, name), problem, f"its first {rows} rows are intact"))
    return findings


def _finding(error: CorruptRunError) -> Finding:
    return Finding(error.file, error.problem, error.usable)

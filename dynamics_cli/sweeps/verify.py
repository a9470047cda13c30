"""Checking a sweep: its description, its table, and every run below it."""

from __future__ import annotations

from pathlib import Path

from dynamics_cli.errors import RunError
from dynamics_cli.runs import CorruptRunError, Finding, list_runs, verify_run
from dynamics_cli.sweeps.directory import read_sweep, read_table


def verify_sweep(directory: Path) -> list[Finding]:
    """Check every checksum of the directory of a sweep; return what is wrong, an empty list when nothing is."""
    findings = []
    try:
        if "table" in read_sweep(directory):  # without it the sweep has not ended yet
            read_table(directory)
    except CorruptRunError as error:
        findings.append(Finding(error.file, error.problem, error.usable))
    except RunError as error:
        findings.append(Finding(directory, str(error)))
    return [*findings, *(found for run in list_runs(directory) for found in verify_run(run.path))]

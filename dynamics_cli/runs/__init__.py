"""The run directory: writing it so that nothing is lost, reading it, finding it."""

from __future__ import annotations

from dynamics_cli.runs.errors import CorruptRunError, LockedRunError, NotARunError
from dynamics_cli.runs.find import RunSummary, list_runs, prune
from dynamics_cli.runs.info import Status
from dynamics_cli.runs.provenance import provenance
from dynamics_cli.runs.run import Run, load_run
from dynamics_cli.runs.store.checkpoints import Checkpoint
from dynamics_cli.runs.store.layout import clear_run, is_run, outputs_root, runs_root
from dynamics_cli.runs.store.locks import is_locked, run_lock
from dynamics_cli.runs.verify import Finding, verify_run
from dynamics_cli.runs.writer import RunWriter, check_space

__all__ = [
    "Checkpoint",
    "CorruptRunError",
    "Finding",
    "LockedRunError",
    "NotARunError",
    "Run",
    "RunSummary",
    "RunWriter",
    "Status",
    "check_space",
    "clear_run",
    "is_locked",
    "is_run",
    "list_runs",
    "load_run",
    "outputs_root",
    "provenance",
    "prune",
    "run_lock",
    "runs_root",
    "verify_run",
]

"""The results of a sweep as rows for data frames and for `--json`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from dynamics_cli.sweeps.engine import Result
from dynamics_cli.text import Table


def result_rows(results: Sequence[Result], directory: Path) -> Table:
    """Return one row a job: its number, settings, seed, how it ended, final numbers, where its run is."""
    rows = Table()
    for result in results:
        row: dict[str, Any] = {}
        for key, value in job_document(result, directory).items():
            row |= value if key in ("settings", "measures") else {key: value}
        rows.append(row)
    return rows


def job_document(result: Result, directory: Path) -> dict[str, Any]:
    """Return what `--json` says of one job."""
    return {
        "job": result.job.number,
        "settings": result.job.settings,
        "seed": result.job.config.seed,
        "status": result.status,
        "iterations": result.iterations,
        "final_loss": result.final_loss,
        "measures": result.measures,
        "path": directory / result.path if result.path else None,
        "replica": result.replica,
        "message": result.message,
    }

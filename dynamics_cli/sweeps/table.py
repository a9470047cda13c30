"""The table of a sweep: every setting and every final number of every job."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from dynamics_cli.runs.store import files
from dynamics_cli.sweeps.directory import RESULTS
from dynamics_cli.sweeps.engine import Result


def table(results: Sequence[Result], keys: Sequence[str]) -> tuple[list[str], list[list[Any]]]:
    """Return header and rows: job, swept settings, seed, status, final numbers, where the run is."""
    measures = sorted({name for result in results for name in result.measures})
    header = ["job", *keys, "seed", "status", "iterations", "final_loss", *measures, "path", "replica", "message"]
    rows = [
        [
            result.job.number,
            *(_cell(result.job.settings[key]) for key in keys),
            result.job.config.seed,
            result.status,
            "" if result.iterations is None else result.iterations,
            repr(result.final_loss),
            *(repr(result.measures[name]) if name in result.measures else "" for name in measures),
            result.path,
            "" if result.replica is None else result.replica,
            result.message,
        ]
        for result in results
    ]
    return header, rows


def _cell(value: Any) -> Any:
    return json.dumps(value) if isinstance(value, list | dict | bool) else value


def write_table(directory: Path, results: Sequence[Result], keys: Sequence[str]) -> Path:
    """Write `results.csv` in one indivisible step and return its path."""
    header, rows = table(results, keys)
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(header)
    writer.writerows(rows)
    path = directory / RESULTS
    files.save(path, text.getvalue().encode())
    return path

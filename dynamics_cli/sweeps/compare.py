"""Two sweeps side by side: which settings they have, and how far the final numbers of their common jobs are apart."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

from dynamics_cli.errors import UsageError
from dynamics_cli.sweeps.directory import FIXED, read_rows, read_sweep


@dataclass(frozen=True)
class SweepComparison:
    """Two sweeps, finished or not."""

    a: Path
    b: Path
    settings: dict[str, tuple[list[str], list[str]]]
    """Swept settings that differ: their values in each."""
    statuses: dict[str, tuple[int, int]]
    """How many jobs ended in which way."""
    common: int
    """Jobs that have ended in both: the same values of the settings that both sweep, and the same seed."""
    numbers: dict[str, dict[str, Any]]
    """Final numbers of these jobs: medians in a and b, the largest relative difference, and the job of it."""


def compare_sweeps(a: Path, b: Path) -> SweepComparison:
    """Compare two sweeps job by job.

    The relative difference of two numbers is their distance divided by the larger absolute value.

    Raises:
        RunError: one is not a sweep, is damaged, or none of its jobs has ended.
        UsageError: the settings that both sweep do not tell its jobs apart.
    """
    tables = [read_rows(path) for path in (a, b)]
    keys = [{*(axis["key"] for axis in read_sweep(path)["axes"])} for path in (a, b)]
    both = sorted(keys[0] & keys[1])
    values = [
        {key: list(dict.fromkeys(row.get(key, "") for row in rows)) for key in sorted(keys[0] | keys[1])}
        for rows in tables
    ]
    settings = {key: (values[0][key], values[1][key]) for key in values[0] if values[0][key] != values[1][key]}
    jobs = [_by_place(path, rows, both) for path, rows in zip((a, b), tables, strict=True)]
    common = [place for place in jobs[0] if place in jobs[1]]
    statuses = {
        status: (counted[0], counted[1])
        for status in ("complete", "diverged", "failed")
        if any(counted := [sum(row["status"] == status for row in rows) for rows in tables])
    }
    names = [name for name in tables[0][0] if name in tables[1][0] and name not in (*FIXED, *keys[0], *keys[1])]
    numbers = {}
    for name in names:
        pairs = [(jobs[0][at]["job"], _number(jobs[0][at][name]), _number(jobs[1][at][name])) for at in common]
        pairs = [pair for pair in pairs if math.isfinite(pair[1]) and math.isfinite(pair[2])]
        if pairs:
            apart = [abs(x - y) / (max(abs(x), abs(y)) or 1.0) for _, x, y in pairs]
            worst = max(range(len(pairs)), key=apart.__getitem__)
            numbers[name] = {
                "common": len(pairs), "a": median(x for _, x, _ in pairs), "b": median(y for _, _, y in pairs),
                "relative": apart[worst], "job": int(pairs[worst][0]),
            }  # fmt: skip
    return SweepComparison(a, b, settings, statuses, len(common), numbers)


def _by_place(path: Path, rows: list[dict[str, str]], keys: list[str]) -> Mapping[tuple[str, ...], dict[str, str]]:
    found = {(*(row[key] for key in keys), row["seed"]): row for row in rows}
    if len(found) < len(rows):
        raise UsageError(
            f"{path} sweeps more than the other: {', '.join(keys) or 'the seed'} do not tell its jobs apart"
        )
    return found


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return math.nan

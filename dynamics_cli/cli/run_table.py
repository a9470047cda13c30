"""Lists of runs, as `dyn list runs` and `dyn runs prune` print them."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from dynamics_cli.cli.output import duration, number, size, table
from dynamics_cli.errors import UsageError, did_you_mean

if TYPE_CHECKING:
    from dynamics_cli.runs import RunSummary


def run_table(summaries: Sequence[RunSummary]) -> str:
    """Return one line for each run."""
    now = time.time()
    rows = [
        [
            str(run.path),
            run.status,
            str(run.iterations),
            number(run.final_loss),
            size(run.size),
            f"{duration(max(now - run.modified, 0))} ago",
        ]
        for run in summaries
    ]
    return table(["run", "status", "iterations", "final loss", "size", "changed"], rows, right=[2, 3, 4, 5])


def as_document(summary: RunSummary) -> dict[str, Any]:
    """Return a run as `--json` shows it; `problem` only of a damaged one."""
    document = asdict(summary)
    if not document["problem"]:
        del document["problem"]
    return document


def check_statuses(statuses: Iterable[str]) -> None:
    """Refuse what is not a status of a run.

    Raises:
        UsageError: with the statuses that there are.

    """
    from dynamics_cli.runs.find import DAMAGED
    from dynamics_cli.runs.info import STATUSES

    known = (*STATUSES, DAMAGED)
    for status in statuses:
        if status not in known:
            raise UsageError(f"no status {status!r}{did_you_mean(status, known)}; there are {', '.join(known)}")

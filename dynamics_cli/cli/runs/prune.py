"""`dyn runs prune`: deleting runs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from dynamics_cli.cli.options import json_option

if TYPE_CHECKING:
    from dynamics_cli.runs import RunSummary

DAY = 86400.0
EXAMPLES = """\b
Examples:
  dyn runs prune --status interrupted --status failed --dry-run
  dyn runs prune --older-than 30 --yes
"""


@click.command(epilog=EXAMPLES)
@click.option(
    "--status", "statuses", multiple=True, metavar="STATUS", help="Only runs of this status; can be repeated."
)
@click.option("--older-than", type=click.FloatRange(0), metavar="DAYS", help="Only runs unchanged for so many days.")
@click.option("--root", type=click.Path(path_type=Path), metavar="DIR", help="Look below DIR (default: outputs/runs).")
@click.option("--dry-run", is_flag=True, help="Only say what would be deleted.")
@click.option("--yes", "-y", is_flag=True, help="Do not ask.")
@json_option
def prune(
    *,
    statuses: tuple[str, ...],
    older_than: float | None,
    root: Path | None,
    dry_run: bool,
    yes: bool,
    as_json: bool,
) -> None:
    """Delete runs, after showing them and asking.

    A run that another process is writing is never deleted, nor is anything that does not belong to a run.
    """
    from dynamics_cli.cli.output import emit, emit_json, say, size
    from dynamics_cli.cli.run_table import as_document, check_statuses, run_table
    from dynamics_cli.runs import prune as prune_runs
    from dynamics_cli.runs import runs_root

    check_statuses(statuses)
    if not statuses and older_than is None:
        raise click.UsageError("say which runs: --status STATUS, --older-than DAYS (0 for all), or both")
    age = None if older_than is None else older_than * DAY
    root = root or runs_root()
    found = prune_runs(root, statuses=statuses or None, older_than=age, dry_run=True)
    if not dry_run and found:
        if not yes:
            say(run_table(found))
            _ask(f"delete {_count(found)}, {size(sum(run.size for run in found))}?")
        # one by one: those that were shown and no others
        found = [gone for run in found for gone in prune_runs(run.path, statuses=statuses or None, older_than=age)]
    if as_json:
        emit_json({"dry_run": dry_run, "deleted": [as_document(run) for run in found]})
        return
    if found:
        emit(run_table(found))
    say(f"{'would delete' if dry_run else 'deleted'} {_count(found)}, {size(sum(run.size for run in found))}")


def _ask(question: str) -> None:
    """Return when the answer is yes, leave with exit code 0 when it is no.

    Raises:
        UsageError: there is nobody to ask.

    """
    try:
        sure = click.confirm(question, err=True)
    except click.Abort as abort:
        if isinstance(abort.__context__, EOFError):
            raise click.UsageError("nothing is deleted without an answer; --yes deletes without asking") from None
        raise
    if not sure:
        click.echo("nothing deleted", err=True)
        raise click.exceptions.Exit(0)


def _count(found: list[RunSummary]) -> str:
    return f"{len(found)} run{'' if len(found) == 1 else 's'}"

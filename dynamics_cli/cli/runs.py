"""`dyn runs`: looking after the runs that are kept."""

from __future__ import annotations

from pathlib import Path

import click

from dynamics_cli.cli.arguments import json_option, root_option, status_option
from dynamics_cli.cli.groups import Group
from dynamics_cli.cli.output import emit, emit_json, run_table, say
from dynamics_cli.text import Table, size

EXAMPLES = """\b
Examples:
  dyn runs prune --status interrupted --status failed
  dyn runs prune --older-than 30 --dry-run
"""

PRUNE_EXAMPLES = """\b
Examples:
  dyn runs prune --status interrupted --status failed --dry-run
  dyn runs prune --older-than 30 --yes
"""


@click.group("runs", cls=Group, epilog=EXAMPLES)
def runs() -> None:
    """Delete runs."""


@runs.command(epilog=PRUNE_EXAMPLES)
@status_option
@click.option("--older-than", type=click.FloatRange(0), metavar="DAYS", help="Only runs unchanged for so many days.")
@root_option
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
    from dynamics_cli import api

    if not statuses and older_than is None:
        raise click.UsageError("say which runs: --status STATUS, --older-than DAYS (0 for all), or both")
    found = api.prune_runs(root, statuses=statuses, older_than=older_than, dry_run=True)
    if found and not dry_run:
        if not yes:
            say(run_table(found))
            _ask(f"delete {_count(found)}?")
        # one by one: those that were shown and no others
        shown = [api.prune_runs(run["path"], statuses=statuses, older_than=older_than) for run in found]
        found = Table(run for gone in shown for run in gone)
    if as_json:
        emit_json({"dry_run": dry_run, "deleted": found})
        return
    if found:
        emit(run_table(found))
    say(f"{'would delete' if dry_run else 'deleted'} {_count(found)}")


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


def _count(found: Table) -> str:
    return f"{len(found)} run{'' if len(found) == 1 else 's'}, {size(sum(run['size'] for run in found))}"

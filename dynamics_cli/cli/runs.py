"""`dyn runs`: looking after the runs that are kept."""

from __future__ import annotations

from pathlib import Path

import click

from dynamics_cli.cli.arguments import complete_run, json_option, root_option, status_option
from dynamics_cli.cli.groups import CommandGroup
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
  dyn runs prune latest boursier2022-orthogonal-0123456789
"""


@click.group("runs", cls=CommandGroup, epilog=EXAMPLES)
def runs() -> None:
    """Delete runs."""


@runs.command(epilog=PRUNE_EXAMPLES)
@click.argument("names", nargs=-1, metavar="[RUN]...", shell_complete=complete_run)
@status_option
@click.option("--older-than", type=click.FloatRange(0), metavar="DAYS", help="Only runs unchanged for so many days.")
@root_option
@click.option("--dry-run", is_flag=True, help="Only list the runs that would be deleted.")
@click.option("--yes", "-y", is_flag=True, help="Do not ask.")
@json_option
def prune(
    *, names: tuple[str, ...], statuses: tuple[str, ...], older_than: float | None, root: Path | None, dry_run: bool,
    yes: bool, as_json: bool,
) -> None:  # fmt: skip
    """Delete runs, after showing them and asking.

    RUN is a run directory, or the (start of the) name or hash of a run; of those that are named, options leave some.
    A run that another process is writing is never deleted, nor is anything that does not belong to a run.
    """
    from dynamics_cli.runs.find import prune_runs
    from dynamics_cli.runs.named import run_directory
    from dynamics_cli.runs.store.layout import is_run

    if not names and not statuses and older_than is None:
        raise click.UsageError("say which runs: RUN, --status STATUS, or --older-than DAYS (0 for all)")
    if names and root is not None:
        raise click.UsageError("a run is named or looked for below --root, not both")
    places: list[Path | None] = list(dict.fromkeys(run_directory(name) for name in names))
    if none := [str(place) for place in places if place and not is_run(place)]:
        raise click.UsageError(f"not a run: {', '.join(none)}")
    if names and older_than is None:
        older_than = 0.0
    chosen = (prune_runs(p, statuses=statuses, older_than=older_than, dry_run=True) for p in places or [root])
    found = Table(run for some in chosen for run in some)
    if found and not dry_run:
        if not yes:
            say(run_table(found))
            _ask(f"delete {_count(found)}?")
        # run by run: exactly the runs that were shown
        shown = [prune_runs(run["path"], statuses=statuses, older_than=older_than) for run in found]
        found = Table(run for gone in shown for run in gone)
    if as_json:
        emit_json({"dry_run": dry_run, "deleted": found})
        return
    if found:
        emit(run_table(found))
    say(f"{'would delete' if dry_run else 'deleted'} {_count(found)}")


def _ask(question: str) -> None:
    """Return when the answer is yes, leave with exit code 0 when it is no.

    Raises UsageError: there is nobody to ask.
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

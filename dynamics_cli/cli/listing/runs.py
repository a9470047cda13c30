"""`dyn list runs`."""

from __future__ import annotations

from pathlib import Path

import click

from dynamics_cli.cli.options import json_option


@click.command(epilog="Example: dyn list runs --status interrupted")
@click.option("--root", type=click.Path(path_type=Path), metavar="DIR", help="Look below DIR (default: outputs/runs).")
@click.option(
    "--status", "statuses", multiple=True, metavar="STATUS", help="Only runs of this status; can be repeated."
)
@json_option
def runs(root: Path | None, statuses: tuple[str, ...], as_json: bool) -> None:
    """List the runs that are kept."""
    from dynamics_cli.cli.output import emit, emit_json, say
    from dynamics_cli.cli.run_table import as_document, check_statuses, run_table
    from dynamics_cli.runs import list_runs, runs_root

    check_statuses(statuses)
    root = root or runs_root()
    found = [summary for summary in list_runs(root) if not statuses or summary.status in statuses]
    if as_json:
        emit_json([as_document(summary) for summary in found])
    elif found:
        emit(run_table(found))
    else:
        say(f"there are no such runs below {root}")
